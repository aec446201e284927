"""Search profile HMMs among proteins from Python, and the hits as columns of numpy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.api.tables import ROWS_SHOWN, ResultRows
from mummergpu.hmm.filters import FilterThresholds
from mummergpu.hmm.finishing import FinishingOptions
from mummergpu.hmm.profiles import Profile, profile_of
from mummergpu.input.blocks.memory import NamedSequence
from mummergpu.input.blocks.proteins import ProteinFiles, ProteinRules, ProteinsInMemory
from mummergpu.output.profile_columns import FIELDS, ColumnSink, DomainColumns
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.profile_options import ProfileSearchOptions, ProteinSource
from mummergpu.pipeline.search_profiles import run
from mummergpu.runtime.processors import processor_count
from mummergpu.runtime.words import counted


class Hit(NamedTuple):
    """One domain of a hit; positions are 0-based and half-open.

    Attributes
    ----------
    query, target : str
        A profile and a protein; of a scan, a protein and a profile.
    e_value, score, bias : float
        Of the whole target.
    domain, domains : int
        The number of the domain, from 1 on, and how many the target has.
    c_evalue, i_evalue, domain_score, domain_bias : float
        Of the domain: its conditional and its independent E-value.
    profile_start, profile_end, start, end, envelope_start, envelope_end : int
        Where it lies on the profile and on the protein.
    included : bool
        Whether the domain is significant.
    """

    query: str
    target: str
    e_value: float
    score: float
    bias: float
    domain: int
    domains: int
    c_evalue: float
    i_evalue: float
    domain_score: float
    domain_bias: float
    profile_start: int
    profile_end: int
    start: int
    end: int
    envelope_start: int
    envelope_end: int
    included: bool


class Hits(ResultRows[Hit]):
    """The domains that HMMER reports, query by query, the best target first.

    The fields of `Hit` are columns: arrays of numpy, of which `query` and `target` are numbers into
    `query_names` and `target_names`. `to_arrow`, `to_pandas` and `to_polars` make tables of them.
    """

    _row = Hit
    _names: ClassVar = {
        "query": ("query", "query_names"),
        "target": ("target", "target_names"),
    }

    def __init__(self, columns: DomainColumns) -> None:
        self._columns = columns
        self.query_names = columns.query_names
        self.target_names = columns.target_names

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            return getattr(self._columns, name)
        raise AttributeError(f"'Hits' object has no attribute {name!r}")

    def __len__(self) -> int:
        return self._columns.query.size

    def __repr__(self) -> str:
        lines = [counted(len(self), "domain")]
        for hit in self._rows(slice(ROWS_SHOWN)):
            place = f"{hit.target}:{hit.start}-{hit.end}"
            lines.append(f"  {hit.query} {place} {hit.domain_score:.1f} bits, {hit.i_evalue:.2g}")
        return "\n".join([*lines, "  ..."] if len(self) > ROWS_SHOWN else lines)

    def _part(self, key: slice | npt.NDArray[np.bool_]) -> Hits:
        parts = {field: getattr(self._columns, field)[key] for field in FIELDS}
        return Hits(self._columns._replace(**parts))


def hmmsearch(
    profiles: object, sequences: object, *, threads: int | None = None, **options: Any
) -> Hits:
    """Search profile HMMs among proteins, as HMMER's hmmsearch does.

    Parameters
    ----------
    profiles : path, pyhmmer HMM, or sequence of them
        Files of HMMER, also pressed or compressed, or profiles of pyhmmer.
    sequences : path, or iterable of (str, str)
        A FASTA file of proteins, also compressed, or names and sequences.
    threads : int, optional
        The number of threads; by default all processors.
    **options
        HMMER's options without dashes: ``E``, ``T``, ``domE``, ``domT``, ``incE``, ``incT``,
        ``incdomE``, ``incdomT``, ``Z``, ``domZ``, ``F1``, ``F2``, ``F3`` and ``seed`` are numbers;
        ``cut_ga``, ``cut_nc``, ``cut_tc``, ``max``, ``nobias``, ``nonull2`` and ``any_letters``
        are true or false.

    Returns
    -------
    Hits
        The domains that are reported.

    Raises
    ------
    MummergpuError
        If the input or an option is wrong, or pyhmmer is not installed.
    TypeError
        If there is no such option.
    """
    return _search(profiles, sequences, threads, options, scans=False)


def hmmscan(
    profiles: object, sequences: object, *, threads: int | None = None, **options: Any
) -> Hits:
    """Search proteins among profile HMMs, as HMMER's hmmscan does; see `hmmsearch`.

    The queries of the hits are proteins, and E-values count profiles.
    """
    return _search(profiles, sequences, threads, options, scans=True)


_CUTOFFS = {"cut_ga": "gathering", "cut_nc": "noise", "cut_tc": "trusted"}
_NUMBERS = ("E", "T", "domE", "domT", "incE", "incT", "incdomE", "incdomT", "domZ", "seed")


def _search(
    profiles: object, sequences: object, threads: int | None, options: dict[str, Any], scans: bool
) -> Hits:
    left = dict(options)
    target_count = left.pop("Z", None)
    rules = ProteinRules(any_letters=bool(left.pop("any_letters", False)))
    finishing = _finishing(left)
    if left:
        raise TypeError(f"no such option: {', '.join(sorted(left))}")
    count = threads or processor_count()
    asked = ProfileSearchOptions(
        _profiles(profiles), _source(sequences, rules), finishing, target_count, scans, (), count
    )
    sink = ColumnSink()
    run(asked, RunContext(count), sink)
    return Hits(sink.columns())


def _finishing(left: dict[str, Any]) -> FinishingOptions:
    """Return the options that are given, and take them out of `left`."""
    thresholds = FilterThresholds.without_filters()
    if not left.pop("max", False):
        given = {name: left.pop(name) for name in ("F1", "F2", "F3") if name in left}
        thresholds = FilterThresholds(**given, bias_filter=not left.pop("nobias", False))
    cutoffs = [word for name, word in _CUTOFFS.items() if left.pop(name, False)]
    return FinishingOptions(
        thresholds=thresholds,
        **{name: left.pop(name) for name in _NUMBERS if name in left},
        bit_cutoffs=cutoffs[0] if cutoffs else None,
        null2=not left.pop("nonull2", False),
    )


def _profiles(profiles: Any) -> tuple[str | Profile, ...]:
    def is_path(one: Any) -> bool:
        return isinstance(one, str) or hasattr(one, "__fspath__")

    several = (
        [profiles] if is_path(profiles) or hasattr(profiles, "evalue_parameters") else profiles
    )
    return tuple(
        one if isinstance(one, Profile) else str(one) if is_path(one) else profile_of(one)
        for one in several
    )


def _source(sequences: Any, rules: ProteinRules) -> ProteinSource:
    if isinstance(sequences, str) or hasattr(sequences, "__fspath__"):
        return ProteinFiles([str(sequences)], rules)
    named: Iterable[NamedSequence] = sequences
    return ProteinsInMemory(named, rules)
