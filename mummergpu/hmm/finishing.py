"""Compares sequences that passed the filters to the end, as HMMER does, with pyhmmer.

Comparisons do not depend on each other, and each one seeds its random numbers anew. So HMMER's
pipeline gives the same rows for the survivors alone as for all sequences, given the number of
all sequences.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeVar

import numpy as np

from mummergpu.errors import InputError
from mummergpu.hmm.hit_lists import cutoffs_of
from mummergpu.hmm.options import FinishingOptions
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.stage_counts import FILTERS
from mummergpu.input.blocks.proteins import NamedProteins
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.pyhmmer_library import bytes_of, pyhmmer_module

Target = TypeVar("Target")

_UNDERFLOW: Final = "score underflow (is 0.0)"
"""HMMER's message for a sequence that no path emits."""


def first_cause(error: BaseException) -> str:
    """Return the first error, in HMMER's words: pyhmmer reports those that followed from it."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return getattr(error, "message", None) or str(error)


class Finisher:
    """Compares sequences with profiles to the end; each thread has a pipeline of its own.

    HMMER flushes denormal numbers to zero, and pyhmmer leaves that to its caller: with them a
    comparison takes five times as long on Intel's processors. `Z` is the number of targets that the
    user gives, if any.
    """

    def __init__(self, options: FinishingOptions, alphabet: Any, Z: float | None) -> None:
        self._options = options
        self._alphabet = alphabet
        self._Z = Z
        self._of_thread = threading.local()

    def _pipeline(self) -> Any:
        """Return this thread's pipeline, reset: making one takes as long as a comparison."""
        pipeline = getattr(self._of_thread, "pipeline", None)
        if pipeline is None:
            pipeline = self._of_thread.pipeline = self._options.pipeline(self._alphabet, self._Z)
        else:
            pipeline.clear()
        return pipeline

    def search(self, profile: Profile, proteins: NamedProteins, survivors: Int64Array) -> Any:
        """Compare the survivors of a block with a profile (HMMER's hmmsearch).

        Return pyhmmer's ``TopHits``, the same as for all proteins of the block, and the numbers of
        the proteins that no path through the profile emits. `InputError` is raised if HMMER cannot
        compare a sequence for another reason.
        """
        easel = pyhmmer_module("easel")

        def compared(numbers: Iterable[int]) -> Any:
            sequences = easel.DigitalSequenceBlock(
                self._alphabet, (self.query(proteins, number) for number in numbers)
            )
            with profile.lent_model() as model, flushed_floats():
                return self._pipeline().search_hmm(model, sequences)

        return self._possible(survivors.tolist(), compared, lambda n: (profile, proteins.name(n)))

    def cutoffs(self, profile: Profile) -> dict[str, Any]:
        """Return the scores that are thresholds in searches with a profile (`cutoffs_of`)."""
        easel = pyhmmer_module("easel")
        with profile.lent_model() as model, flushed_floats():
            hits = self._pipeline().search_hmm(model, easel.DigitalSequenceBlock(self._alphabet))
        return cutoffs_of(hits.__getstate__()["pipeline"])

    def filters_passed(self, profile: Profile, proteins: NamedProteins, number: int) -> int:
        """Return how many of its filters HMMER counts for a profile and a protein."""
        try:
            hits, impossible = self.search(profile, proteins, np.array([number]))
        except InputError:
            return FILTERS
        pipeline = hits.__getstate__()["pipeline"]
        counts = (pipeline[f"n_past_{name}"] for name in ("msv", "bias", "vit", "fwd"))
        return FILTERS if impossible else sum(counts)

    def scan(self, proteins: NamedProteins, number: int, profiles: Sequence[Profile]) -> Any:
        """Compare a protein with the profiles whose filters it passed (HMMER's hmmscan).

        The profiles are in the order of their file. Return the same as `search`; the impossible
        targets are profiles here.
        """
        plan7 = pyhmmer_module("plan7")
        sequence = self.query(proteins, number)

        def compared(profiles: Sequence[Profile]) -> Any:
            with ExitStack() as stack:
                lent = [stack.enter_context(one.lent_model()) for one in profiles]
                models = plan7.OptimizedProfileBlock(self._alphabet, lent)
                stack.enter_context(flushed_floats())
                return self._pipeline().scan_seq(sequence, models)

        return self._possible(profiles, compared, lambda one: (one, proteins.name(number)))

    def _possible(
        self,
        targets: Sequence[Target],
        compared: Callable[[Sequence[Target]], Any],
        pair_of: Callable[[Target], tuple[Profile, str]],
    ) -> tuple[Any, list[Target]]:
        """Return the hits of targets, and those that are left out because their score is 0.

        HMMER stops at one of these, and does not report which one it is.
        """
        errors = pyhmmer_module("errors")
        failures = (SystemError, OverflowError, errors.EaselError, errors.UnexpectedError)
        try:
            return compared(targets), []
        except failures:
            del self._of_thread.pipeline
        impossible = []
        for target in targets:
            try:
                compared([target])
            except failures as error:
                del self._of_thread.pipeline
                if _UNDERFLOW not in (cause := first_cause(error)):
                    profile, name = pair_of(target)
                    message = f"HMMER cannot compare sequence {name}: {cause}"
                    raise InputError(message, profile.path, record=profile.shown_name) from None
                impossible.append(target)
        return compared([one for one in targets if one not in impossible]), impossible

    def query(self, proteins: NamedProteins, number: int) -> Any:
        """Return a protein as a ``pyhmmer.easel.DigitalSequence``."""
        codes = proteins.codes[proteins.offsets[number] : proteins.offsets[number + 1]]
        return pyhmmer_module("easel").DigitalSequence(
            self._alphabet,
            name=bytes_of(proteins.name(number)),
            description=bytes_of(proteins.description(number)) or None,
            accession=bytes_of(proteins.accession(number)) or None,
            sequence=np.ascontiguousarray(codes),
        )
