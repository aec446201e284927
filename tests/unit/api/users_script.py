"""A script as users write it: `test_users_script.py` checks its types, and runs it."""

import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt

import mummergpu
from mummergpu import (
    Alignment,
    Alignments,
    DeviceArray,
    DeviceMatches,
    Index,
    Match,
    Matches,
    MummergpuError,
    RunStats,
)
from mummergpu.errors import InputError, LibraryError, OptionError


def longest(matches: Matches) -> Match:
    return max(matches, key=lambda match: match.length)


def look_at(m: Matches) -> None:
    assert_type(m.query, npt.NDArray[np.uint32])
    assert_type(m.reference, npt.NDArray[np.uint32])
    assert_type(m.query_start, npt.NDArray[np.int64])
    assert_type(m.reference_start, npt.NDArray[np.int64])
    assert_type(m.length, npt.NDArray[np.int64])
    assert_type(m.reverse, npt.NDArray[np.bool_])
    assert_type(m.offsets, npt.NDArray[np.int64])
    assert_type(m.query_names, list[str])
    assert_type(m.query_lengths, npt.NDArray[np.int64])
    assert_type(m[0], Match)
    assert_type(m[1:], Matches)
    assert_type(m[m.length > 20], Matches)
    assert_type(iter(m), Iterator[Match])
    assert_type(longest(m).reference, str)
    assert_type(longest(m).reference_start, int)
    assert_type(longest(m).reverse, bool)


def search(folder: Path) -> int:
    index = Index.build(folder / "r.fa", min_length=12, index_for="reads", threads=1)
    assert_type(index, Index)
    assert_type(index.names, list[str])
    assert_type(index.lengths, npt.NDArray[np.int64])
    Index.build([("one", "ACGT" * 5), ("two", b"ACGT" * 5)])
    index.save(folder / "r.mgi")
    found = 0
    with Index.open(str(folder / "r.mgi")) as opened:
        assert_type(opened, Index)
        opened.verify(folder / "r.fa")
        m = opened.match("ACGT" * 10, 14, "both", mode="all", backend="cpu", threads=1)
        m = opened.match([("q", "ACGT" * 10)])
        assert_type(m, Matches)
        blocks = opened.stream(folder / "q.fa", str(folder / "q.fa"), strands="forward")
        assert_type(blocks, Generator[Matches, None, None])
        found += sum(len(block) for block in blocks)
        look_at(m)
        m.write(str(folder / "m.txt"), format="mummer")
    return found


def look_at_alignments(found: Alignments) -> None:
    assert_type(found.read, npt.NDArray[np.int64])
    assert_type(found.flag, npt.NDArray[np.uint16])
    assert_type(found.reverse, npt.NDArray[np.bool_])
    assert_type(found.cigars, npt.NDArray[np.uint32])
    assert_type(found.cigar(0), str)
    assert_type(found[0], Alignment)
    assert_type(found[0].reference, str | None)
    assert_type(found[1:], Alignments)
    assert_type(found[found.mapping_quality > 20], Alignments)
    assert_type(iter(found), Iterator[Alignment])


def map_reads(index: Index, folder: Path) -> int:
    reads = [("a", "ACGT" * 10, "F" * 40), ("b", "ACGT" * 10, None)]
    look_at_alignments(index.map(reads))
    index.map([("a", b"ACGT" * 10)], [("a", b"ACGT" * 10)])
    index.map([(("a", "ACGT" * 10), ("a", "ACGT" * 10))])
    index.map((name, bases, [30] * len(bases)) for name, bases, _ in reads)
    blocks = index.stream_map(folder / "q.fa")
    assert_type(blocks, Generator[Alignments, None, None])
    return sum(len(block) for block in blocks)


def search_on_a_gpu(index: Index, folder: Path) -> Matches:
    """Nobody calls this where there is no GPU."""
    found = index.match_on_device([("q", "ACGT" * 10)], 14, "both", threads=1)
    found = index.match_on_device([folder / "q.fa"])
    assert_type(found, DeviceMatches)
    assert_type(found.query, DeviceArray[np.uint32])
    assert_type(found.length, DeviceArray[np.int64])
    assert_type(found.reverse, DeviceArray[np.bool_])
    assert_type(found.offsets.to_host(), npt.NDArray[np.int64])
    assert_type(found.length.address, int)
    assert_type(len(found), int)
    assert_type(found.query_names, list[str])
    assert_type(found.to_host(), Matches)
    return found.to_host()


def run(folder: Path) -> RunStats:
    stats = mummergpu.match(folder / "r.fa", [folder / "q.fa"], folder / "x.txt", threads=1)
    assert_type(stats, RunStats)
    assert_type(stats.matches, int)
    assert_type(stats.seconds, float)
    assert_type(stats.backend, str)
    return stats


def errors(folder: Path) -> str:
    try:
        Index.open(folder / "q.fa")
    except InputError as error:
        assert_type(error.path, str)
        assert_type(error.line, int | None)
        return error.message
    except (OptionError, LibraryError):
        return "wrong usage"
    except MummergpuError as error:
        assert_type(error.exit_code, int)
        return str(error)
    return ""


def wrong_types(index: Index, m: Matches, stats: RunStats) -> None:
    """Nobody calls this: mypy has to see every error that a comment ignores."""
    Index.build(12)  # type: ignore[arg-type]
    index.match(3.5)  # type: ignore[arg-type]
    index.match("ACGT", minimum=3)  # type: ignore[call-arg]
    index.stream(b"q.fa")  # type: ignore[arg-type]
    m.length = 3  # type: ignore[assignment]
    m["query"]  # type: ignore[call-overload]
    stats.matches = 3  # type: ignore[misc]
    mummergpu.match("r.fa", "q.fa")  # type: ignore[call-arg]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    print(search(place), run(place).matches, errors(place))
