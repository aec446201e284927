"""Temporary files come back whole; blocks are as large as memory and threads like them."""

import errno
import math
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.mapped_reads import block_of
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.errors import OutputError
from mummergpu.hmm.stage_counts import VITERBI, Reached
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.records.record_arrays import Records
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.candidates.candidates import NUMBERS as NUMBERS_OF_CANDIDATE
from mummergpu.mapping.candidates.candidates import no_candidates
from mummergpu.mapping.placing.second_pass import DoubtfulReads
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.pipeline.block_search_loop import (
    LAST_PARTS,
    LEAST_SHARE,
    SAFETY,
    SAFETY_OF_SMALL,
    BlockParts,
    BlockSearchLoop,
)
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.mapping_groups import MemoryGate, SpilledAlignments
from mummergpu.pipeline.profile_job import NumberedProteins
from mummergpu.pipeline.progress import QueryProgress
from mummergpu.pipeline.search_profiles import ProfilePass, ProfileSearch, _Found, _Task
from mummergpu.pipeline.spill import ArrayFile, SpilledMems, SpilledQueries
from mummergpu.sequence.codes import MARGIN
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand

NUMBERS = np.arange(5, dtype=np.int64)
BYTES = np.arange(7, dtype=np.uint8)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def mems_of(counts):
    """Matches of queries, so many of each, with other numbers on the other strand."""
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    rows = np.arange(offsets[-1])
    forward = MemColumns(offsets, *(rows + offset for offset in (1, 2, 3)))
    return {Strand.FORWARD: forward, Strand.REVERSE: forward._replace(lengths=rows + 9)}


def test_matches_come_back_in_order_in_parts_of_their_blocks(folder):
    written = [mems_of(counts) for counts in ([], [1], [2, 0, 3, 1], [0, 4])]
    with SpilledMems(tuple(Strand)) as file:
        for one in written:
            file.write_mems(one)
        for cuts in ([[0], [1], [4], [2]], [[0], [1], [1, 2, 1], [1, 1]]):
            file.rewind()
            for one, parts in zip(written, cuts, strict=True):
                begin = 0
                for count in parts:
                    back = file.read_mems(count)
                    for strand in Strand:
                        expected = one[strand].part(begin, begin + count)
                        for column, wanted in zip(back[strand], expected, strict=True):
                            np.testing.assert_array_equal(column, wanted)
                    begin += count
        assert os.listdir(folder) == []


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_full_disk_is_told_of_the_folder(size, folder, monkeypatch):
    """Small arrays wait in a buffer, so the disk is asked only when the file is rewound."""
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "w+b"))
    message = f"^{folder}: temporary data cannot be kept: no space left on device"
    with pytest.raises(OutputError, match=message), ArrayFile() as file:
        file.write(np.zeros(size, dtype=np.int64))
        file.rewind()
    # What nobody asks for again may be lost.
    with ArrayFile() as file:
        file.write(NUMBERS)


def test_a_file_that_is_cut_anywhere_is_an_error(folder):
    with ArrayFile() as file:
        file.write(NUMBERS, BYTES)
        file.rewind()
        size = os.fstat(file._file.fileno()).st_size
    for end in range(size):
        with ArrayFile() as file:
            file.write(NUMBERS, BYTES)
            file.rewind()
            os.ftruncate(file._file.fileno(), end)
            message = f"^{folder}: temporary data cannot be kept: the file is cut short"
            with pytest.raises(OutputError, match=message):
                file.read()
                file.read()


def test_folders_that_are_missing(monkeypatch, folder):
    missing = folder / "missing"
    monkeypatch.setattr(tempfile, "tempdir", str(missing))
    message = "temporary data cannot be kept: no such file or directory"
    with pytest.raises(OutputError, match=f"^{missing}: {message}"):
        ArrayFile()

    def refuse():
        """As Python tells that it can write to none of the folders that it knows."""
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    with pytest.raises(OutputError, match="temporary data cannot be kept: no such file"):
        ArrayFile()


def test_reads_come_back():
    """With the word whether their tags name groups: a row has the header's read group otherwise."""
    pairs, single = block_of([b"ACGT", b"GG"], paired=True), block_of([b"TTT"])
    pairs.base_qualities[:] = np.arange(6)
    query = QueryBlock(0, single.padded_codes, single.offsets, single.names, single.name_offsets, 3)
    written = [replace(pairs, has_groups=True), query, single]
    with SpilledQueries() as file:
        for block in written:
            file.write_block(block)
        back = list(file.read_blocks())
    assert [type(block) for block in back] == [ReadBlock, QueryBlock, ReadBlock]
    assert [block.index for block in back] == [0, 1, 2] and back[1].file_number == 3
    first, _, last = back
    assert (first.paired, first.has_groups) == (True, True)
    assert (last.paired, last.has_groups) == (False, False)
    for name in ("base_qualities", "padded_codes", "names"):
        np.testing.assert_array_equal(getattr(first, name), getattr(pairs, name))


def test_alignments_come_back_with_the_reads_to_map_again():
    written = []
    with SpilledAlignments() as file:
        for count in (2, 1):
            block = block_of([b"ACGT"] * count)
            arrays = [np.full(count, place) for place, _ in enumerate(AlignmentColumns._fields)]
            columns, reads = AlignmentColumns(*arrays), np.arange(count - 1)
            candidates = no_candidates(count - 1)
            numbers = np.ones((count, NUMBERS_OF_CANDIDATE), dtype=np.int32)
            candidates = candidates._replace(numbers=numbers)
            doubtful = DoubtfulReads(reads, candidates)
            file.write_alignments(block, columns, doubtful)
            written.append((block, columns, doubtful))
        back = list(file.read_alignments())
    assert len(back) == len(written)
    for (block, columns, doubtful), (other, same, again) in zip(written, back, strict=True):
        np.testing.assert_array_equal(block.codes, other.codes)
        np.testing.assert_array_equal(doubtful.numbers, again.numbers)
        pairs = zip(doubtful.candidates, again.candidates, strict=True)
        assert all(one.shape == two.shape and (one == two).all() for one, two in pairs)
        for field in AlignmentColumns._fields:
            np.testing.assert_array_equal(getattr(columns, field), getattr(same, field))


SIZES = WorkSizes(10_000, 10, 10, 10, 1000, 100)
TASKS = 200
PROFILES = 40
PATIENCE = 20


def block_of_lengths(lengths):
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    codes = np.arange(offsets[-1] + 2 * MARGIN, dtype=np.int64).astype(np.uint8)
    names = np.frombuffer(b"n" * len(lengths), dtype=np.uint8)
    return QueryBlock(3, codes, offsets, names, np.arange(len(lengths) + 1, dtype=np.int64))


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.lists(st.integers(0, 99)))
def test_parts_are_the_block(lengths, densities):
    block, parts = block_of_lengths(lengths), BlockParts(SIZES)
    found = []
    rest = iter(densities)
    for part in parts.parts(block):
        found.append(part)
        if (rows := next(rest, None)) is not None:
            parts.add(part.base_count, rows * part.base_count // 30)
    assert all(part.query_count > 0 and part.index == 3 for part in found)
    assert [n for part in found for n in np.diff(part.offsets).tolist()] == lengths
    assert np.concatenate([part.codes for part in found]).tolist() == block.codes.tolist()


def test_the_first_part_is_small_and_the_others_as_large_as_matches_allow():
    block, parts = block_of_lengths([10] * 200), BlockParts(SIZES)
    sizes = []
    for part in parts.parts(block):
        sizes.append(part.base_count)
        parts.add(part.base_count, part.base_count)
    assert sizes[0] == SIZES.first_batch_bases
    # Equal parts of what is left, as few as there can be.
    assert len(sizes) == 1 + 1900 // int(SIZES.max_rows / SAFETY) + 1
    assert set(sizes[1:]) == {230, 240}


def test_the_last_parts_are_a_fair_share_of_what_is_left():
    block, parts, sizes = block_of_lengths([10] * 1000), BlockParts(SIZES), []
    usual = parts.max_bases()

    def fair():
        return (block.base_count - sum(sizes)) // 3

    for part in parts.parts(block, fair):
        assert part.base_count - 10 <= max(min(usual, fair()), usual // LAST_PARTS)
        sizes.append(part.base_count)
    assert sum(sizes) == block.base_count and 0.9 * usual < sizes[0] <= usual
    assert (
        sorted(sizes[1:], reverse=True) == sizes[1:]
        and usual / LAST_PARTS * 0.75 < sizes[-2] < usual
    )


def test_a_device_gets_small_parts_first_and_last_of_reads_to_map():
    blocks = [block_of_lengths([10] * 1000) for _ in range(10)]
    search = SimpleNamespace(
        sizes=replace(SIZES, first_batch_bases=10_000), needs_all_threads=lambda block: False
    )
    progress = QueryProgress(lambda work: None, 1)
    progress.read(100_000, 1.0)
    for maps in (False, True):
        loop = BlockSearchLoop(search, RunContext(4, waiting_threads=2), progress, maps=maps)
        sizes = [part.base_count for part in loop._in_parts(iter(blocks), 1)]
        assert sum(sizes) == 100_000
        if not maps:
            assert sizes == [10_000] * 10
            continue
        assert sizes[:4] == [2500] * 4 and sizes[-4:] == [2500] * 4
        assert 5000 <= max(sizes) and len(sizes) < 40


def test_a_loop_remembers_how_many_matches_earlier_reads_had():
    search = SimpleNamespace(sizes=SIZES, needs_all_threads=lambda block: False)
    loop = BlockSearchLoop(search, RunContext(1), QueryProgress(lambda work: None, 1))
    sizes = []
    for _ in range(2):
        first = next(loop._in_parts(iter([block_of_lengths([10] * 1000)]), 1))
        sizes.append(first.base_count)
        loop._parts.add(first.base_count, 0)
    assert sizes == [SIZES.first_batch_bases, 10_000]


def test_no_matches_cut_nothing_and_many_cut_to_small_parts():
    parts = BlockParts(SIZES)
    parts.add(100, 0)
    assert parts.max_bases() >= 100_000
    # Some matches a base leave what fits, with less to spare, and very many no less than a small
    # part of the first.
    parts.add(100, 800)
    assert parts.max_bases() == int(SIZES.max_rows / SAFETY_OF_SMALL / 8) < SIZES.first_batch_bases
    parts.add(100, 10**9)
    assert parts.max_bases() == max(1, SIZES.first_batch_bases // LEAST_SHARE)


def test_many_matches_are_forgotten_after_a_while():
    parts = BlockParts(SIZES)
    parts.add(100, 10_000)
    dense = parts.max_bases()
    for _ in range(40):
        parts.add(100, 1)
    assert parts.max_bases() > 10 * dense


@pytest.mark.parametrize("size", [10, 25, None])
def test_together_tasks_take_no_more_than_there_is(size):
    shared, lock = MemoryGate(size), threading.Lock()
    held = []
    most = []
    both = threading.Barrier(2)

    def work(number):
        # Some take more than there is.
        wanted = 1 + number * 7 % 30
        with shared.taken(wanted):
            with lock:
                held.append(wanted)
                most.append(list(held))
            with lock:
                held.remove(wanted)
        return wanted

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(work, range(TASKS)))
    assert len(done) == len(most) == TASKS
    assert not held
    assert all(sum(one) <= (size or math.inf) or len(one) == 1 for one in most)

    def wait_for_each_other(wanted):
        with shared.taken(wanted):
            both.wait(timeout=20)

    # Two that fit have it at the same time.
    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(wait_for_each_other, [5, 5]))) == 2


def test_what_was_taken_is_free_after_an_error():
    shared = MemoryGate(5)
    for _ in range(2):
        with pytest.raises(ValueError, match="here"), shared.taken(5):
            raise ValueError("here")


def some_proteins(count):
    offsets = np.arange(count + 1)
    names = np.full(count, ord("x"), dtype=np.uint8)
    records = Records(np.zeros(count + 2 * MARGIN, dtype=np.uint8), offsets, names, offsets)
    return NumberedProteins(records, 0, None, np.zeros(0, dtype=np.int64))


def test_many_short_tasks_are_done_while_one_is_long(monkeypatch):
    done = []
    enough = threading.Event()
    context = RunContext(threads=2)
    search = ProfileSearch(None, context, None, None)

    def work(task):
        if task.number == 0:
            assert enough.wait(PATIENCE), f"{len(done)} of the others were done meanwhile"
        else:
            done.append(task.number)
            if len(done) == PROFILES - 1:
                enough.set()
        return _Found(task, None)

    monkeypatch.setattr(search, "_search", work)
    proteins = some_proteins(3)
    one = ProfilePass([], 0)
    tasks = (_Task(one, proteins, number, number) for number in range(PROFILES))
    with closing(search._found(tasks, search._window(PROFILES))) as results:
        assert [one.task.number for one in results] == [*range(PROFILES)]
    context.executor.shutdown()


def test_memory_holds_few_blocks_though_one_is_long(monkeypatch):
    drawn = []
    gate = threading.Event()
    context = RunContext(threads=2)
    search = ProfileSearch(None, context, None, None)

    def work(task):
        if task.survivors is not None:
            gate.wait(0.5)
        return _Found(task, None)

    def tasks():
        for block in range(200):
            drawn.append(block)
            survivors = np.array([0]) if block == 0 else None
            yield _Task(ProfilePass([], 0), some_proteins(2), 0, 0, survivors)

    monkeypatch.setattr(search, "_search", work)
    with closing(search._found(tasks(), search._window(1))) as results:
        next(results)
        assert len(drawn) <= context.window + 1
    context.executor.shutdown()


def test_survivors_are_cut_for_the_sums_and_again_for_what_is_left():
    reached = Reached.of_all(np.arange(3000), VITERBI)
    task = _Task(ProfilePass([], 0), some_proteins(3000), 5, 0, reached)
    parts = [*task.parts()]
    every = [one.survivors.sequences for one in parts if one.survivors is not None]
    assert [one.size for one in every] == [1024, 1024, 952]
    parts[2].is_summed = True
    again = [one.survivors.sequences for one in parts[2].parts() if one.survivors is not None]
    assert [one.size for one in again] == [64] * 14 + [56]
    assert np.concatenate(again).tolist() == [*range(2048, 3000)]
