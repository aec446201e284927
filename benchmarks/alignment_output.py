"""The time that writing alignments of reads takes, without mapping them.

    python benchmarks/alignment_output.py [--reads 1000000] [--threads N] [--runs 3]

Makes pairs of 150 bases on a random genome as columns, and writes them to nowhere as SAM, as BAM,
as sorted BAM with its index, and that with duplicates flagged; also compresses one thread's share
of BAM in the two ways into the library. Writes `results/alignment-output.json`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import in_turn, save

from mummergpu.input.blocks.read_block import WrittenReads
from mummergpu.input.records.tags import Tags
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.output.alignments.read_rows import ReadRows
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.formats import Rows
from mummergpu.output.open_sink import open_sink
from mummergpu.output.records.bam import AlignmentBam
from mummergpu.output.records.record_format import AlignmentHead
from mummergpu.output.run_facts import RunFacts
from mummergpu.output.sorting.options import SortOptions
from mummergpu.output.targets import OutputTarget
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, reverse_complement_each, with_margins

LENGTH = 150
BLOCK_READS = 20_000
CHUNK_BYTES = 16 * 0xFF00


@dataclass(frozen=True)
class Reads:
    """A block of reads with qualities."""

    padded_codes: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    names: npt.NDArray[np.uint8]
    name_offsets: npt.NDArray[np.int64]
    base_qualities: npt.NDArray[np.uint8]
    has_groups = False
    tags = Tags(np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.int64))

    @property
    def as_written(self) -> WrittenReads:
        """The same as they are written."""
        return WrittenReads(self.padded_codes, self.offsets, self.base_qualities)


def made_block(reference: Reference, first: int, count: int) -> tuple[Reads, AlignmentColumns]:
    """Return pairs that face each other, with a mismatch in 200 bases."""
    random = np.random.default_rng(first)
    pairs = count // 2
    begins = random.integers(0, reference.codes.size - 1000, pairs)
    inserts = np.clip(random.normal(400, 60, pairs).astype(np.int64), LENGTH, 900)
    positions = np.stack([begins, begins + inserts - LENGTH], axis=1).ravel()
    bases = reference.codes[positions[:, None] + np.arange(LENGTH)]
    is_wrong = random.random(bases.shape) < 0.005
    bases = np.where(is_wrong, (bases + 1) % 4, bases).astype(np.uint8)
    offsets = np.arange(count + 1, dtype=np.int64) * LENGTH
    turned = reverse_complement_each(bases.ravel(), offsets).reshape(count, LENGTH)
    bases[1::2] = turned[1::2]
    texts = [f"A00123:8:HAAA:1:1101:{first + pair}:{pair % 997}".encode() for pair in range(pairs)]
    names = [text for text in texts for _ in range(2)]
    name_offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum([len(name) for name in names], out=name_offsets[1:])
    levels = np.array([37, 25, 11, 2], dtype=np.uint8)
    qualities = levels[random.choice(4, size=count * LENGTH, p=[0.93, 0.04, 0.02, 0.01])]
    rows = np.arange(count, dtype=np.int64)
    flags = np.tile(np.array([99, 147], dtype=np.uint16), pairs)
    distances = is_wrong.sum(axis=1).astype(np.int32)
    columns = AlignmentColumns(
        reads=rows,
        flags=flags,
        records=np.zeros(count, dtype=np.int32),
        positions=positions,
        qualities=np.full(count, 60, dtype=np.uint8),
        cigar_offsets=np.arange(count + 1, dtype=np.int64),
        cigars=np.full(count, LENGTH << 4, dtype=np.uint32),
        template_lengths=np.stack([inserts, -inserts], axis=1).ravel().astype(np.int32),
        mate_rows=rows ^ 1,
        scores=LENGTH - 5 * distances,
        second_scores=np.zeros(count, dtype=np.int32),
        edit_distances=distances,
    )
    codes = with_margins(bases.ravel())
    text = np.frombuffer(bytearray(b"".join(names)), dtype=np.uint8)
    return Reads(codes, offsets, text, name_offsets, qualities), columns


def writing(
    reference: Reference,
    blocks: list[tuple[Reads, AlignmentColumns]],
    name: str,
    sort: SortOptions | None,
    threads: int,
) -> Callable[[], dict[str, float]]:
    facts = RunFacts(reference, ("reads.fq",), threads, sort=sort)

    def run() -> dict[str, float]:
        begin = time.perf_counter()
        with (
            OutputFile(os.devnull) as output,
            OutputFile(os.devnull) as index,
            ThreadPoolExecutor(threads) as pool,
        ):
            target = OutputTarget(os.devnull, name)
            sink = open_sink([target], [output], facts, Stats(), Rows.READS, [index])
            try:
                for prepared in ordered_results(
                    pool, 2 * threads, blocks, lambda block: sink.prepare(*block)
                ):
                    sink.write(prepared)
                last = time.perf_counter()
                sink.finish()
            finally:
                sink.close()
        end = time.perf_counter()
        return {"seconds": end - begin, "finish_seconds": end - last}

    return run


def compressing(
    chunks: list[npt.NDArray[np.uint8]], by_blocks: bool, threads: int
) -> Callable[[], dict[str, float]]:
    compressor = BgzfCompressor()
    work = compressor._compress_by_blocks if by_blocks else compressor.compress

    def run() -> dict[str, float]:
        begin = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            packed = sum(map(len, pool.map(work, chunks)))
        seconds = time.perf_counter() - begin
        content = sum(chunk.size for chunk in chunks)
        return {"seconds": seconds, "gigabytes_a_second": content / seconds / 1e9, "bytes": packed}

    return run


def chunks_of(
    reference: Reference, blocks: list[tuple[Reads, AlignmentColumns]]
) -> Iterator[npt.NDArray[np.uint8]]:
    made = AlignmentBam(reference, ReadRows(reference), AlignmentHead(), "reads.fq", CHUNK_BYTES)
    for reads, columns in blocks:
        yield from made.format_block(reads, columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=1_000_000)
    parser.add_argument("--bases", type=int, default=100_000_000)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", type=int, default=SortOptions().memory_bytes)
    options = parser.parse_args()
    codes = np.random.default_rng(1).integers(0, 4, options.bases, dtype=np.uint8)
    padded = with_margins(codes)
    starts, lengths = np.array([0]), np.array([codes.size])
    view = padded[MARGIN : MARGIN + codes.size]
    reference = Reference("random", view, starts, lengths, (b"random",), padded)
    firsts = range(0, options.reads, BLOCK_READS)
    with ThreadPoolExecutor(options.threads) as pool:
        blocks = list(pool.map(lambda first: made_block(reference, first, BLOCK_READS), firsts))
    threads, memory = options.threads, options.memory
    kinds: dict[str, Any] = {
        "sam": ("sam", None),
        "bam": ("bam", None),
        "sorted": ("bam", SortOptions(memory_bytes=memory, threads=threads)),
        "marked": ("bam", SortOptions(True, True, memory, threads=threads)),
    }
    jobs = {name: writing(reference, blocks, *kind, threads) for name, kind in kinds.items()}
    chunks = list(chunks_of(reference, blocks))
    jobs["compress"] = compressing(chunks, False, threads)
    jobs["compress_by_blocks"] = compressing(chunks, True, threads)
    results = in_turn(options.runs, **jobs)
    for name, figures in results.items():
        print(name, {key: round(value["median"], 3) for key, value in figures.items()})
    print(save("alignment-output.json", {"options": vars(options)} | results))


if __name__ == "__main__":
    main()
