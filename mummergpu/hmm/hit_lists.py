"""The hits of a query, put together from the parts of a search.

HMMER knows how many targets there are only when it has compared the last one. A part of a search is
finished before that, among the targets that pyhmmer has seen; parts are joined when all are known.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from mummergpu.hmm.finishing import FinishingOptions
from mummergpu.hmm.profiles import pyhmmer_module
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.frozen import frozen

TABLES: Final = {"tblout": "targets", "domtblout": "domains", "pfamtblout": "pfam"}
"""HMMER's tables, and pyhmmer's words for them."""

MAX_EXPONENT: Final = 300
"""E-values of less than ten to the minus this are counted as this."""

_ARE_E_VALUES: Final = ("by_E", "dom_by_E", "inc_by_E", "incdom_by_E")
_SCORES: Final = ("T", "domT", "incT", "incdomT")
_NAME_WIDTH: Final = 20
_ACCESSION_WIDTH: Final = 10


@frozen
class QueryWords:
    """What tables say of a query for which pyhmmer has no object: one without a comparison."""

    name: str
    accession: str | None = None


@frozen
class HitList:
    """The hits of a query.

    Attributes
    ----------
    query : object
        Of pyhmmer, or `QueryWords`.
    hits : pyhmmer.plan7.TopHits or None
        Those reported, and others; None if no target was compared to the end.
    """

    query: Any
    hits: Any | None

    def table(self, kind: str, header: bool = False) -> bytes:
        """Return the rows of one of `TABLES`; the one for Pfam always has its headings."""
        if self.hits is None and not header and kind != "pfamtblout":
            return b""
        hits = self.hits
        if hits is None:
            hits = pyhmmer_module("plan7").TopHits(self.query)
        text = io.BytesIO()
        with flushed_floats():
            hits.write(text, format=TABLES[kind], header=header)
        return text.getvalue()

    def reported(self) -> Iterator[Any]:
        """Yield the hits that are reported, the best first."""
        if self.hits is not None:
            yield from self.hits.reported

    def alignment(self, program: str, wraps: bool = True) -> bytes:
        """Return the domains that are included as an alignment in Stockholm; nothing if none are.

        Parameters
        ----------
        program : str
            Who has made it, for the line about the author.
        wraps : bool
            Whether rows are wrapped; otherwise each is one line.
        """
        if self.hits is None:
            return b""
        try:
            alignment = self.hits.to_msa(self.query.alphabet, all_consensus_cols=True)
        except ValueError:  # No domain is included.
            return b""
        alignment.name = self.query.name
        alignment.accession = self.query.accession
        alignment.description = self.query.description
        alignment.author = program
        text = io.BytesIO()
        alignment.write(text, "stockholm" if wraps else "pfam")
        return text.getvalue()


class HitCounts:
    """What a search has found, for reports.

    Attributes
    ----------
    queries, queries_with_hit : int
        The profiles, or of a scan the sequences, and those of which a hit is reported.
    hits, included_hits, domains : int
        Those reported.
    exponents : Counter of int
        How many hits have each exponent of ten of their E-values, whose sign is turned.
    """

    def __init__(self) -> None:
        self.queries = self.queries_with_hit = 0
        self.hits = self.included_hits = self.domains = 0
        self.exponents: Counter[int] = Counter()

    def add(self, found: HitList) -> None:
        """Count the hits of a query."""
        before = self.hits
        for hit in found.reported():
            self.hits += 1
            self.included_hits += bool(hit.included)
            self.domains += len(hit.domains.reported)
            exponent = -math.floor(math.log10(hit.evalue)) if hit.evalue > 0 else MAX_EXPONENT
            self.exponents[min(exponent, MAX_EXPONENT)] += 1
        self.queries += 1
        self.queries_with_hit += self.hits > before

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, for JSON."""
        names = ("queries", "queries_with_hit", "hits", "included_hits", "domains")
        rows = [{"exponent": -one, "hits": hits} for one, hits in sorted(self.exponents.items())]
        return {**{name: getattr(self, name) for name in names}, "e_values": rows}


class HitCounter:
    """Joins the parts of the hits of each query.

    Parameters
    ----------
    alphabet : pyhmmer.easel.Alphabet
        That of the profiles.
    options : FinishingOptions
        Those of the parts.
    Z : float or None
        The number of targets that the user says; None to count them.
    scans : bool
        Whether the targets are profiles.
    """

    def __init__(
        self, alphabet: Any, options: FinishingOptions, Z: float | None, scans: bool
    ) -> None:
        self._alphabet = alphabet
        self._options = options
        self._Z = Z
        self._scans = scans

    @cached_property
    def _pipeline_state(self) -> dict[str, Any]:
        """What pyhmmer keeps of a pipeline beside hits, after no comparison."""
        plan7, easel = pyhmmer_module("plan7"), pyhmmer_module("easel")
        pipeline = replace(self._options, bit_cutoffs=None).pipeline(self._alphabet, self._Z)
        if self._scans:
            query = easel.DigitalSequence(self._alphabet, name="none", sequence=b"\0")
            hits = pipeline.scan_seq(query, plan7.OptimizedProfileBlock(self._alphabet))
        else:
            model = plan7.OptimizedProfile(1, self._alphabet)
            hits = pipeline.search_hmm(model, easel.DigitalSequenceBlock(self._alphabet))
        state: dict[str, Any] = hits.__getstate__()["pipeline"]
        return state

    def join(self, query: Any, parts: Sequence[Any], targets: int, compared: int) -> HitList:
        """Return the hits of a query.

        Parameters
        ----------
        query : object
            Of pyhmmer, or `QueryWords` if nothing was compared.
        parts : sequence of pyhmmer.plan7.TopHits
            In the order of the targets.
        targets, compared : int
            The number of all targets, and of those that were compared for these parts.
        """
        if not parts:
            return HitList(query, None)
        # pyhmmer adds the numbers of targets of what it merges.
        rest = pyhmmer_module("plan7").TopHits(parts[0].query)
        state = rest.__getstate__()
        count = "nmodels" if self._scans else "nseqs"
        state["pipeline"] = self._pipeline_state | {count: targets - compared}
        if self._options.bit_cutoffs is not None:
            # Those of the profile: pyhmmer merges hits of equal thresholds only.
            state["pipeline"] |= dict.fromkeys(_ARE_E_VALUES, False)
            state["pipeline"] |= {name: getattr(parts[0], name) for name in _SCORES}
        if self._Z is None:
            state["pipeline"]["Z"] = targets - compared
        state["_empty"] = False
        rest.__setstate__(state)
        return HitList(query, parts[0].merge(*parts[1:], rest))

    def without_late(self, part: Any, targets_until: int, place_of: Callable[[str], int]) -> Any:
        """Return the hits of a part that HMMER would keep until it has compared all targets.

        It drops a hit at once if its E-value among the targets so far is too large. That matters
        because the columns of a table are as wide as the longest name among all hits that are kept.

        Parameters
        ----------
        targets_until : int
            The number of targets up to the last one of the part.
        place_of : callable
            Returns that number for the target of a name.
        """
        limit = self._options.E
        if self._Z is not None or self._options.T is not None or self._options.bit_cutoffs:
            return part
        late = {
            number
            for number, hit in enumerate(part)
            if hit.pvalue * targets_until > limit
            and (
                len(hit.name.encode()) > _NAME_WIDTH
                or len((hit.accession or "").encode()) > _ACCESSION_WIDTH
            )
            and hit.pvalue * place_of(hit.name) > limit
        }
        return _without(part, late) if late else part


def _without(part: Any, places: set[int]) -> Any:
    """Return hits without those at some places."""
    state = part.__getstate__()
    kept = [place for number, place in enumerate(state["hit"]) if number not in places]
    order = {place: number for number, place in enumerate(sorted(kept))}
    state["unsrt"] = [state["unsrt"][place] for place in order]
    state["hit"] = [order[place] for place in kept]
    state["N"] = state["Nalloc"] = len(kept)
    fewer = pyhmmer_module("plan7").TopHits(part.query)
    fewer.__setstate__(state)
    return fewer
