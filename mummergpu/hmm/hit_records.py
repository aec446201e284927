"""Hits as bytes of a few arrays: pyhmmer's own keep an alignment each, of thousands of bytes.

The bytes are those of HMMER's ``p7_hit_Serialize``, in which pyhmmer gives a hit away and takes it
back; names are in them as they are. Without alignments, 365 and 437 bytes a hit were left in a scan
and a search of 160 hits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int64Array

_HEAD: Final = Struct(">I4xd12xd")
"""The size of what comes before the domains, what hits are sorted by, and the P-value's log."""
_DOMAINS: Final = 72
_FLAGS: Final = 108
_NAME: Final = 109
_HAS_ACCESSION: Final = 1
_SIZE: Final = Struct(">I")
_FIRST_RESIDUE: Final = Struct(">q")
_ENVELOPE_AND_ACCURACY: Final = Struct(">4x2q44xf")
_ALIGNED_FROM: Final = 20
"""Where in a domain the first aligned residue is."""
_PLACES: Final = slice(8, 44)
"""Where in an alignment the places and lengths of profile and sequence are."""
_TEXTS: Final = bytes([16, *9 * [0]])
"""The end of an alignment of no columns: its texts are residues and those that it has to have, all
empty. HMMER takes residues for granted where it copies an alignment."""

_CUTOFF_FIELDS: Final = ("use_bit_cutoffs", "T", "domT", "incT", "incdomT")


class HitRecords(NamedTuple):
    """The hits of a profile in a part of the targets, in the order of the targets.

    Attributes
    ----------
    text : ndarray, dtype=uint8
        A record for each, one after the other.
    offsets : ndarray, dtype=int64, shape=(n_hits + 1,)
        Where each begins in `text`, and where the last ends.
    cutoffs : dict
        The scores that HMMER has taken from the profile as thresholds, by pyhmmer's words.
    impossible : tuple of str
        The targets that were left out because no path emits them.
    """

    text: ByteArray
    offsets: Int64Array
    cutoffs: dict[str, Any]
    impossible: tuple[str, ...] = ()

    @property
    def tells_something(self) -> bool:
        """Whether there is a hit, or a target that was left out."""
        return self.offsets.size > 1 or bool(self.impossible)

    @classmethod
    def of_hits(
        cls, hits: Any, keeps_alignments: bool, is_kept: Callable[[HitWords], bool] | None = None
    ) -> HitRecords:
        """Return those of a ``pyhmmer.plan7.TopHits`` that a function wants, by default all."""
        state = hits.__getstate__()
        records = [bytes(one) for one in state["unsrt"]]
        if is_kept is not None:
            records = [one for one in records if is_kept(HitWords.of_record(one))]
        if not keeps_alignments:
            records = [*map(_without_alignments, records)]
        offsets = np.cumsum([0, *map(len, records)], dtype=np.int64)
        cutoffs = {name: state["pipeline"][name] for name in _CUTOFF_FIELDS}
        return cls(np.frombuffer(b"".join(records), dtype=np.uint8), offsets, cutoffs)

    def records(self) -> Iterator[bytes]:
        """Yield the record of each hit."""
        text = self.text.tobytes()
        return (text[begin:end] for begin, end in pairwise(self.offsets.tolist()))


class HitWords(NamedTuple):
    """What a record says of its target, and its P-value."""

    name: bytes
    accession: bytes
    p_value: float

    @classmethod
    def of_record(cls, record: bytes) -> HitWords:
        """Return the words of a record."""
        name, accession, *_ = record[_NAME : _SIZE.unpack_from(record)[0]].split(b"\0")
        if not record[_FLAGS] & _HAS_ACCESSION:
            accession = b""
        return cls(name, accession, math.exp(_HEAD.unpack_from(record)[2]))


def sorted_state(parts: Sequence[HitRecords], vector: Any) -> dict[str, Any]:
    """Return hits as a state of ``pyhmmer.plan7.TopHits``, the best first, but for its pipeline.

    `vector` is pyhmmer's class of vectors of bytes.
    """
    records = [record for part in parts for record in part.records()]

    # Hits that are equal in all that HMMER sorts by stay in the order of their targets.
    def place(number: int) -> tuple[float, bytes, int]:
        record = records[number]
        end, key, _ = _HEAD.unpack_from(record)
        name = record[_NAME : record.index(0, _NAME)]
        return -key, name, _FIRST_RESIDUE.unpack_from(record, end + _ALIGNED_FROM)[0]

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
        first, last, expected = _ENVELOPE_AND_ACCURACY.unpack_from(record, at)
        found.append(expected / (1.0 + abs(last - first)))
    return found


def _domains(record: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each domain of a record begins, and its alignment."""
    at = _SIZE.unpack_from(record)[0]
    for _ in range(_SIZE.unpack_from(record, _DOMAINS)[0]):
        begin = at + _SIZE.unpack_from(record, at)[0]
        yield at, begin
        at = begin + _SIZE.unpack_from(record, begin)[0]


def _without_alignments(record: bytes) -> bytes:
    """Return a record whose domains have places, but no alignments."""
    parts = [record[: _SIZE.unpack_from(record)[0]]]
    size = _SIZE.pack(_PLACES.stop + len(_TEXTS))
    for at, begin in _domains(record):
        places = record[begin + _PLACES.start : begin + _PLACES.stop]
        parts += [record[at:begin], size, bytes(4), places, _TEXTS]
    return b"".join(parts)
