"""Draw reads from a reference, with the lengths, errors and qualities of a platform.

Read number n has its own random stream, so it is the same in a small set as in a large one. A
fragment lies within a run of bases: it contains no N of the reference and crosses no record
border. So each N of a read is a base that the platform could not call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.runtime.processors import processor_count
from mummergpu.sequence.codes import BREAK
from mummergpu.workload.declaration import Reads
from mummergpu.workload.error_profiles import (
    DELETION,
    INSERTION,
    MAXIMUM,
    REPETITION,
    SUBSTITUTION,
    UNKNOWN,
    error_table,
    homopolymer_table,
    length_table,
    template_table,
)
from mummergpu.workload.read_sequencing import (
    BASES_READ,
    READS_FORWARD,
    Origin,
    Platform,
    write_pairs,
    write_reads,
)
from mummergpu.workload.splitmix import stream_key

_BLOCK_BYTES: Final = 4 << 20
_BLOCK_CODES: Final = 1 << 20
_MAXIMUM_BASES: Final = 1 << 32


@dataclass
class Tally:
    """Counts of events, bases and reads in a set of reads.

    Attributes
    ----------
    counts : ndarray, dtype=int64, shape=(8,)
        How often each event happened, the number of bases, and the number of reads on the
        forward strand.
    """

    counts: Int64Array = field(default_factory=lambda: np.zeros(8, dtype=np.int64))

    @property
    def bases(self) -> int:
        """The number of bases."""
        return int(self.counts[BASES_READ])

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        counts = self.counts.tolist()
        return {
            "bases": counts[BASES_READ],
            "forward_reads": counts[READS_FORWARD],
            "substitutions": counts[SUBSTITUTION],
            "insertions": counts[INSERTION] + counts[REPETITION],
            "deletions": counts[DELETION],
            "unknown_bases": counts[UNKNOWN],
        }


def sequence_reads(
    reference: Reference,
    reads: Reads,
    count: int,
    name: str,
    seed: int,
    tally: Tally,
    tell: Callable[[int], None] = lambda reads: None,
) -> Iterator[tuple[memoryview, ...]]:
    """Draw reads and yield them as text: FASTQ, or FASTA if they have no qualities.

    Parameters
    ----------
    count : int
        The number of reads, or of pairs.
    name : str
        The name of the workload; the reads are called ``name.1``, ``name.2`` and so on.
    tally : Tally
        Counts events, bases and reads; each block adds to it.
    tell : callable
        Receives the number of reads whose text has been yielded and used.

    Yields
    ------
    tuple of memoryview
        The text of some reads, of pairs the text of first
        mates and that of second ones. In FASTQ the header of a read gives its true origin: the
        record, the leftmost position (1-based) and the span of the fragment on the forward strand,
        and the strand of the read.

    Raises
    ------
    InputError
        If no run of bases of the reference is as long as the shortest read or the longest
        template, or the reference has too many bases for the 32-bit random numbers that choose a
        position.
    """
    templates = template_table(reads)
    least = int(templates[MAXIMUM]) if reads.is_paired else reads.length_minimum
    runs = base_runs(reference)
    runs = runs[runs[:, 1] - runs[:, 0] >= least]
    if not runs.size:
        raise InputError(f"no {least} bases in a row to take a read from", reference.path)
    run_offsets = _offsets(runs[:, 1] - runs[:, 0])
    if run_offsets[-1] > _MAXIMUM_BASES:
        raise InputError(f"more than {_MAXIMUM_BASES} bases to choose from", reference.path)
    has_qualities = bool(reads.quality)
    mark = "@" if has_qualities else ">"
    prefix = np.frombuffer(bytearray(f"{mark}{name}.".encode()), dtype=np.uint8)
    record_bounds = np.append(reference.record_starts, reference.codes.size + 1)
    names = np.frombuffer(bytearray(b"".join(reference.names) + b"\n"), dtype=np.uint8)
    name_lengths = [len(record) for record in reference.names]
    name_offsets = _offsets(name_lengths)
    platform = Platform(
        length_table(reads), templates, error_table(reads), homopolymer_table(reads), prefix,
        has_qualities,
    )  # fmt: skip
    origin = Origin(reference.codes, record_bounds, names, name_offsets, runs, run_offsets)
    key = np.array([stream_key(seed, name, "reads")], dtype=np.uint64)
    # 128 bytes hold four numbers of at most 20 digits, the fixed words, and four line ends.
    read_bytes = 2 * reads.length_maximum + prefix.size + max(name_lengths) + 128
    block_reads = max(1, _BLOCK_BYTES // read_bytes)

    def drawn(first: int) -> tuple[tuple[memoryview, ...], Int64Array]:
        """Return the text of the reads of a block, and their counts."""
        last, counts = min(first + block_reads, count), np.zeros_like(tally.counts)
        buffer, mates = (np.empty((last - first) * read_bytes, dtype=np.uint8) for _ in range(2))
        scratch = np.empty((2, reads.length_maximum), dtype=np.uint8)
        if reads.is_paired:
            ends = np.zeros(2, np.int64)
            write_pairs(key, first, last, origin, platform, scratch, buffer, mates, ends, counts)
            return (buffer[: ends[0]].data, mates[: ends[1]].data), counts
        size = write_reads(key, first, last, origin, platform, scratch, buffer, counts)
        return (buffer[:size].data,), counts

    threads = processor_count()
    firsts = range(0, count, block_reads)
    with ThreadPoolExecutor(threads) as executor:
        blocks = ordered_results(executor, 2 * threads, firsts, drawn)
        with closing(blocks):
            for first, (text, counts) in zip(firsts, blocks, strict=True):
                tally.counts += counts
                yield text
                tell(min(first + block_reads, count))


def _offsets(lengths: npt.ArrayLike) -> Int64Array:
    return np.append(0, np.cumsum(lengths)).astype(np.int64)


def base_runs(reference: Reference) -> Int64Array:
    """Return where the runs of bases without a break begin and end: shape=(n_runs, 2).

    A break separates the records of the joined reference, so no run crosses a record border.
    """
    codes, borders, was_base = reference.codes, [], False
    for begin in range(0, codes.size, _BLOCK_CODES):
        is_base = codes[begin : begin + _BLOCK_CODES] != BREAK
        borders.append(begin + np.flatnonzero(np.diff(is_base, prepend=was_base)))
        was_base = bool(is_base[-1])
    if was_base:
        borders.append(np.array([codes.size]))
    return np.concatenate([np.empty(0, dtype=np.int64), *borders]).reshape(-1, 2)
