"""The hits of a query, joined from the parts of a search.

HMMER knows the number of targets only after the last one. A part of a search is finished before
that, with the number of targets that pyhmmer has seen; the parts are joined when all are known.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.options import FinishingOptions
from mummergpu.hmm.stage_counts import Statistics
from mummergpu.input.records.record_reader import printable
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.pyhmmer_library import bytes_of, pyhmmer_module, text_of
from mummergpu.runtime.words import shorter

HIT: Final = Struct(">I4xd3f3df5iI8xi16xB")
"""The begin of a record: its size with the words of the target, the key that sorts hits, three
scores and the logarithms of their P-values, the number of domains expected, those of regions,
clustered ones, overlaps, envelopes and domains, flags, the best domain, and which words follow."""
_LOG_CHANCE: Final = slice(28, 36)
"""Where the logarithm of the first P-value is."""
DOMAIN: Final = Struct(">I4q16x5fd2i4x")
"""A domain: its size, the ends of envelope and alignment, score of the envelope, correction and
bias in nats, residues aligned correctly, score in bits, the logarithm of its P-value, two marks."""
ALIGNMENT: Final = Struct(">I4x3i3qB")
"""The begin of an alignment: its size with the texts, first, last and number of nodes, the same of
residues, and which texts follow."""
NO_TEXTS: Final = 9
"""The bytes of the texts of no columns, all empty: residues, since HMMER assumes that there are
some where it copies an alignment, and the required ones."""
HAS_ACCESSION, HAS_DESCRIPTION = 1, 2
HAS_RESIDUES: Final = 16
INCLUDED, REPORTED = 1, 2

_CUTOFF_FIELDS: Final = ("use_bit_cutoffs", "T", "domT", "incT", "incdomT")


class HitRecords(NamedTuple):
    """The hits of a profile in a part of the targets, in the order of the targets.

    They are bytes of HMMER's ``p7_hit_Serialize``, which pyhmmer writes and reads: its own hits
    each keep an alignment, of thousands of bytes. A hit without it has some 400 bytes.
    """

    text: ByteArray
    offsets: Int64Array  # (n_hits + 1,): where each begins in `text`, and where the last ends
    # The scores that HMMER has taken from the profile as thresholds, by pyhmmer's words.
    cutoffs: dict[str, Any]
    impossible: tuple[str, ...] = ()  # The targets that were left out because no path emits them

    @property
    def tells_something(self) -> bool:
        """Whether there is a hit, or a target that was left out."""
        return self.offsets.size > 1 or bool(self.impossible)

    @classmethod
    def of_hits(cls, hits: Any, keeps_alignments: bool) -> HitRecords:
        """Return the hits of a ``pyhmmer.plan7.TopHits``."""
        state = hits.__getstate__()
        records = [bytes(one) for one in state["unsrt"]]
        if not keeps_alignments:
            records = [*map(_without_alignments, records)]
        return cls.of_records(records, cutoffs_of(state["pipeline"]))

    @classmethod
    def of_records(cls, records: Sequence[bytes], cutoffs: dict[str, Any]) -> HitRecords:
        """Return the hits of some records."""
        offsets = np.cumsum([0, *map(len, records)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(records), dtype=np.uint8), offsets, cutoffs)

    @property
    def p_values(self) -> Float64Array:
        """The P-value of each hit, but for the last digits."""
        places = self.offsets[:-1, np.newaxis] + np.arange(_LOG_CHANCE.start, _LOG_CHANCE.stop)
        found: Float64Array = np.exp(self.text[places].view(">f8").ravel())
        return found

    def records(self) -> Iterator[bytes]:
        """Yield the record of each hit."""
        text = self.text.tobytes()
        return (text[begin:end] for begin, end in pairwise(self.offsets.tolist()))


def cutoffs_of(pipeline: dict[str, Any]) -> dict[str, Any]:
    """Return the scores that a pipeline of pyhmmer takes as thresholds, from its state."""
    return {name: pipeline[name] for name in _CUTOFF_FIELDS}


class HitWords(NamedTuple):
    """The target of a record, and its P-value."""

    name: bytes
    accession: bytes
    p_value: float

    @classmethod
    def of_record(cls, record: bytes) -> HitWords:
        """Return the words of a record."""
        size, _, _, _, _, log_chance, *_, present = HIT.unpack_from(record)
        name, accession, *_ = record[HIT.size : size].split(b"\0")
        if not present & HAS_ACCESSION:
            accession = b""
        return cls(name, accession, math.exp(log_chance))


def sorted_state(parts: Sequence[HitRecords], vector: Any) -> dict[str, Any]:
    """Return hits as a state of ``pyhmmer.plan7.TopHits``, the best first, but for its pipeline.

    `vector` is pyhmmer's class of vectors of bytes.
    """
    records = [record for part in parts for record in part.records()]

    # Hits with equal keys stay in the order of their targets.
    def place(number: int) -> tuple[float, bytes, int]:
        record = records[number]
        end, key, *_ = HIT.unpack_from(record)
        name = record[HIT.size : record.index(0, HIT.size)]
        return -key, name, DOMAIN.unpack_from(record, end)[3]

    return {
        "_empty": False,
        "unsrt": [vector(bytearray(record)) for record in records],
        "hit": sorted(range(len(records)), key=place),
        **dict.fromkeys(("N", "Nalloc"), len(records)),
        **dict.fromkeys(("nreported", "nincluded", "is_sorted_by_seqidx"), 0),
        "is_sorted_by_sortkey": 1,
    }


def accuracies(hit: Any) -> list[float]:
    """Return the mean posterior probability of the aligned residues of each domain of a hit."""
    record = bytes(hit.__getstate__())
    found = []
    for at, _ in _domains(record):
        _, first, last, *_, expected, _, _, _, _ = DOMAIN.unpack_from(record, at)
        found.append(expected / (1.0 + abs(last - first)))
    return found


def _domains(record: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each domain of a record begins, and its alignment."""
    at, *_, count, _, _, _ = HIT.unpack_from(record)
    for _ in range(count):
        begin = at + DOMAIN.unpack_from(record, at)[0]
        yield at, begin
        at = begin + ALIGNMENT.unpack_from(record, begin)[0]


def _without_alignments(record: bytes) -> bytes:
    """Return a record whose domains have places, but no alignments."""
    parts = [record[: HIT.unpack_from(record)[0]]]
    for at, begin in _domains(record):
        _, *places, _ = ALIGNMENT.unpack_from(record, begin)
        head = ALIGNMENT.pack(ALIGNMENT.size + NO_TEXTS, *places, HAS_RESIDUES)
        parts += [record[at:begin], head, bytes(NO_TEXTS)]
    return b"".join(parts)


TABLES: Final = {"tblout": "targets", "domtblout": "domains", "pfamtblout": "pfam"}
"""HMMER's tables, and pyhmmer's words for them."""

MAX_EXPONENT: Final = 300
"""E-values below 10**-MAX_EXPONENT are counted under this exponent."""

_ARE_E_VALUES: Final = ("by_E", "dom_by_E", "inc_by_E", "incdom_by_E")
_SURE: Final = 1 - 1e-9
_LEAST_WIDTH: Final = 8
"""Columns for names and accessions are at least as wide in tables, and in text reports."""


@frozen
class HitList:
    """The hits of a query."""

    query: Any  # A profile or a sequence of pyhmmer
    hits: Any | None  # Those reported, and others; None if no target was compared to the end
    impossible: tuple[str, ...] = ()  # The targets that were left out because no path emits them
    path: str = ""  # The file of a query that is a profile, for messages
    statistics: Statistics | None = None
    rows: dict[str, bytes] | None = None  # Those of some of the `TABLES`, if they are made

    @property
    def shown_query(self) -> str:
        """The file and the name of the query, as messages show them."""
        name = printable(bytes_of(text_of(self.query, "name")))
        return f"{self.path}: profile {name}" if self.path else f"sequence {name}"

    def table(self, kind: str, header: bool = False) -> bytes:
        """Return the rows of one of `TABLES`; the one for Pfam always has its headings."""
        if self.hits is None and not header and kind != "pfamtblout":
            return b""
        if self.rows is not None and kind in self.rows and not header:
            return self.rows[kind]
        hits = self.hits
        if hits is None:
            hits = pyhmmer_module("plan7").TopHits(self.query)
        text = io.BytesIO()
        with flushed_floats():
            hits.write(text, format=TABLES[kind], header=header)
        return text.getvalue()

    @property
    def are_profiles(self) -> bool:
        """Whether the targets are profiles."""
        return self.hits is not None and self.hits.mode == "scan"

    def reported(self) -> Iterator[Any]:
        """Yield the hits that are reported, the best first."""
        if self.hits is not None:
            yield from self.hits.reported

    @property
    def reported_count(self) -> int:
        """The number of hits that are reported."""
        return 0 if self.hits is None else len(self.hits.reported)

    def alignment(self, program: str, wraps: bool, warn: Callable[[str], None]) -> bytes:
        """Return the domains that are included as an alignment in Stockholm; nothing if none are.

        `program` is named as the author; `warn` receives a line about sequences that HMMER does not
        align.
        """
        if self.hits is None:
            return b""
        # HMMER stops at them: it loses a mark for a gap where it makes a sequence of a hit.
        gaps = [
            domain
            for hit in self.hits.included
            for domain in hit.domains.included
            if _has_gap(domain.alignment)
        ]
        for domain in gaps:
            domain.included = False
        try:
            alignment = self.hits.to_msa(self.query.alphabet, all_consensus_cols=True)
        except ValueError:  # No domain is included.
            return b""
        finally:
            for domain in gaps:
                domain.included = True
            if gaps:
                names = [printable(bytes_of(text_of(one.hit, "name"))) for one in gaps]
                warn(f"{self.shown_query}: no alignment of sequences with a gap: {shorter(names)}")
        for name in ("name", "accession", "description"):
            setattr(alignment, name, bytes_of(text_of(self.query, name)) or None)
        alignment.author = program
        text = io.BytesIO()
        alignment.write(text, "stockholm" if wraps else "pfam")
        return text.getvalue()


def _has_gap(alignment: Any) -> bool:
    """Return whether the residues of an alignment are fewer than their places."""
    text = alignment.target_sequence
    places = alignment.target_to - alignment.target_from + 1
    return bool(len(text) - text.count("-") < places)


class HitCounts:
    """Counts of a search for reports: queries (of a scan, sequences), and reported hits.

    `exponents` counts hits by the power of ten of their E-value, without its minus. Only reported
    hits are counted unless `in_full` is true.
    """

    def __init__(self, in_full: bool) -> None:
        self._in_full = in_full
        self.queries = self.queries_with_hit = 0
        self.hits = self.included_hits = self.domains = 0
        self.exponents: Counter[int] = Counter()

    def add(self, found: HitList) -> None:
        """Count the hits of a query."""
        if not self._in_full:
            self.hits += found.reported_count
            return
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
    """Joins the parts of the hits of each query; `Z` is as for `Finisher`.

    Threads that join hits make the rows of `tables`, too: one thread writes those of all.
    """

    def __init__(
        self,
        alphabet: Any,
        options: FinishingOptions,
        Z: float | None,
        scans: bool,
        tables: Collection[str] = (),
    ) -> None:
        self._tables = tables
        self._alphabet = alphabet
        self._options = options
        self._Z = Z
        self._scans = scans

    @cached_property
    def _pipeline_state(self) -> dict[str, Any]:
        """The state of a pyhmmer pipeline besides its hits, before any comparison."""
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

    def join(
        self, query: Any, parts: Sequence[HitRecords], statistics: Statistics, path: str = ""
    ) -> HitList:
        """Return the hits of a query from its parts, in the order of the targets."""
        impossible = tuple(name for part in parts for name in part.impossible)
        if not any(part.offsets.size > 1 for part in parts):
            return HitList(query, None, impossible, path, statistics)
        plan7, easel = pyhmmer_module("plan7"), pyhmmer_module("easel")
        pipeline = dict(self._pipeline_state)
        if self._options.bit_cutoffs is not None:
            # The profile's thresholds: pyhmmer merges only hits of equal thresholds.
            pipeline |= dict.fromkeys(_ARE_E_VALUES, False) | parts[0].cutoffs
        none = plan7.TopHits(query)
        none.__setstate__(none.__getstate__() | {"_empty": False, "pipeline": pipeline})
        if self._Z is None:
            pipeline = pipeline | {"Z": statistics.targets}
        pipeline = pipeline | {"nmodels" if self._scans else "nseqs": statistics.targets}
        hits = plan7.TopHits(query)
        hits.__setstate__(sorted_state(parts, easel.VectorU8) | {"pipeline": pipeline})
        # When it merges hits, pyhmmer applies the thresholds; even to no hits at all.
        found = HitList(query, hits.merge(none), impossible, path, statistics)
        return replace(found, rows={kind: found.table(kind) for kind in self._tables})

    def part(
        self, found: HitRecords, targets_until: int, place_of: Callable[[bytes], int]
    ) -> HitRecords:
        """Return the hits of a part that HMMER would keep until it has compared all targets.

        It drops a hit at once if its E-value among the targets so far is too large. That matters
        because the columns of a table are as wide as the longest name among all hits that are kept.
        There are `targets_until` targets up to the end of the part; `place_of` returns the number
        of targets up to the one with a name.
        """
        limit = self._options.E

        def is_kept(hit: HitWords) -> bool:
            return (
                hit.p_value * targets_until <= limit
                or max(len(hit.name), len(hit.accession)) <= _LEAST_WIDTH
                or hit.p_value * place_of(hit.name) <= limit
            )

        options = self._options
        if self._Z is not None or options.T is not None or options.bit_cutoffs is not None:
            return found
        if (found.p_values * targets_until < _SURE * limit).all():
            return found
        records = [one for one in found.records() if is_kept(HitWords.of_record(one))]
        kept = HitRecords.of_records(records, found.cutoffs)
        return kept._replace(impossible=found.impossible)
