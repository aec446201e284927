"""HMMER's options of a profile search: thresholds of filters, of reporting and of inclusion."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from typing import Any, Final

from mummergpu.errors import OptionClashError
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import between, check_bool, check_float, keep_values
from mummergpu.runtime.pyhmmer_library import pyhmmer_module

CUTOFFS: Final = {"cut_ga": "gathering", "cut_nc": "noise", "cut_tc": "trusted"}
"""HMMER's options for the cutoffs of profiles, and pyhmmer's names for them."""

_EXCLUSIVE: Final = (
    ("E", "T", *CUTOFFS),
    ("domE", "domT", *CUTOFFS),
    ("incE", "incT", *CUTOFFS),
    ("incdomE", "incdomT", *CUTOFFS),
    ("max", "F1"),
    ("max", "F2"),
    ("max", "F3"),
    ("max", "nobias"),
)
"""Options that exclude each other in HMMER."""

_SCORES: Final = ("T", "domT", "incT", "incdomT")
_FILTERS: Final = ("F1", "F2", "F3")
_POSITIVE: Final = ("E", "domE", "incE", "incdomE", "Z", "domZ")
_TRUTHS: Final = (*CUTOFFS, "max", "nobias", "nonull2")
_LARGEST_SEED: Final = (1 << 32) - 1


@frozen
class FilterThresholds:
    """The P-values up to which sequences pass HMMER's filters."""

    # For MSV (and MSV corrected for composition), Viterbi and Forward.
    F1: float = 0.02
    F2: float = 1e-3
    F3: float = 1e-5
    # Whether scores are corrected for the composition of the profile (HMMER's ``--nobias``).
    bias_filter: bool = True

    @classmethod
    def without_filters(cls) -> FilterThresholds:
        """Return thresholds that all sequences pass (HMMER's ``--max``)."""
        return cls(1.0, 1.0, 1.0, False)


@frozen
class FinishingOptions:
    """Options of reporting and scoring: HMMER's options of the same names."""

    thresholds: FilterThresholds = field(default_factory=FilterThresholds)
    # E-values and bit scores from which on targets and domains are reported or included; a score
    # goes before an E-value.
    E: float = 10.0
    T: float | None = None
    domE: float = 10.0
    domT: float | None = None
    incE: float = 0.01
    incT: float | None = None
    incdomE: float = 0.01
    incdomT: float | None = None
    bit_cutoffs: str | None = None  # The profile's own scores to use instead
    # The number of targets for E-values of domains; None to count those reported.
    domZ: float | None = None
    null2: bool = True  # Whether scores are corrected for biased composition
    seed: int = 42  # Of the random numbers; 0 takes a new one each time

    def pipeline(self, alphabet: Any, Z: float | None) -> Any:
        """Return a pipeline of pyhmmer for comparisons among `Z` targets."""
        plan7 = pyhmmer_module("plan7")
        words = {name: value for name, value in vars(self).items() if name != "thresholds"}
        filters = self.thresholds
        return plan7.Pipeline(
            alphabet,
            **words,
            Z=Z,
            F1=filters.F1,
            F2=filters.F2,
            F3=filters.F3,
            bias_filter=filters.bias_filter,
        )


@frozen
class HmmerOptions:
    """HMMER's options of the same names; None for HMMER's default.

    Raises
    ------
    OptionError
        If a value makes no sense, or two options exclude each other.
    """

    _: KW_ONLY
    E: float | None = None
    T: float | None = None
    domE: float | None = None
    domT: float | None = None
    incE: float | None = None
    incT: float | None = None
    incdomE: float | None = None
    incdomT: float | None = None
    cut_ga: bool = False
    cut_nc: bool = False
    cut_tc: bool = False
    Z: float | None = None
    domZ: float | None = None
    F1: float | None = None
    F2: float | None = None
    F3: float | None = None
    max: bool = False
    nobias: bool = False
    nonull2: bool = False
    seed: int = 42

    def __post_init__(self) -> None:
        found: dict[str, object] = {name: check_bool(name, getattr(self, name)) for name in _TRUTHS}
        for name in (*_POSITIVE, *_SCORES, *_FILTERS):
            if (value := getattr(self, name)) is not None:
                found[name] = check_float(name, value, is_positive=name in _POSITIVE)
        keep_values(self, **found, seed=between("seed", self.seed, 0, _LARGEST_SEED))
        for group in _EXCLUSIVE:
            given = [name for name in group if getattr(self, name) not in (None, False)]
            if len(given) > 1:
                text = f"it and {given[1]} exclude each other"
                raise OptionClashError(given[0], given[1], text)

    @property
    def finishing(self) -> FinishingOptions:
        """The thresholds of the filters, of reporting and of inclusion."""
        if self.max:
            thresholds = FilterThresholds.without_filters()
        else:
            thresholds = FilterThresholds(
                **self._given("F1", "F2", "F3"), bias_filter=not self.nobias
            )
        return FinishingOptions(
            thresholds=thresholds,
            **self._given("E", "T", "domE", "domT", "incE", "incT", "incdomE", "incdomT", "domZ"),
            bit_cutoffs=next((word for name, word in CUTOFFS.items() if getattr(self, name)), None),
            null2=not self.nonull2,
            seed=self.seed,
        )

    def _given(self, *names: str) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}
