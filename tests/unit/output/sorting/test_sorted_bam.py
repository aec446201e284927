"""Sorted BAM: the order, the index, temporary files, and what samtools and Picard say."""

import os
import pickle
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pysam
import pytest
from helpers.alignment_tools import GROUP, samtools
from helpers.alignments import AlignedReads
from helpers.in_memory import named_records
from helpers.made_alignments import random_alignments, random_reference
from helpers.written_alignments import rows_of, write_bam, write_sorted
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import OutputError
from mummergpu.input.reference import Reference
from mummergpu.output.options import SortOptions
from mummergpu.output.sorting import record_store
from mummergpu.output.sorting.bam_index import BAI, RowIndexer, bin_at_depth, index_bytes
from mummergpu.output.sorting.record_store import RowRanges
from mummergpu.output.sorting.row_tables import (
    KEY,
    NUMBER,
    PLACE,
    Axis,
    radix_order,
    row_table,
    sizes_of,
)
from mummergpu.output.sorting.sorted_bam import PreparedRows
from mummergpu.sequence.codes import MARGIN


def texts_of(rows):
    return [row.to_string() for row in rows]


def blocks_of(case, made):
    """Cut a case between templates, into some blocks."""
    offsets, names = case.reads.name_offsets.tolist(), case.reads.names
    own = [names[begin:end].tobytes() for begin, end in pairwise(offsets)]
    borders = [n for n in range(1, len(own)) if own[n] != own[n - 1]]
    chosen = sorted(made.sample(borders, k=min(len(borders), made.randint(0, 6))))
    return case.parts([0, *chosen, len(own)])


@given(st.lists(st.integers(0, 1 << 40)), st.integers(0, 40))
def test_numbers_are_sorted_and_equal_ones_stay(numbers, bits):
    keys = np.array([number % (1 << bits) for number in numbers], dtype=np.uint64)
    order, ordered = radix_order(keys, bits)
    assert order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert ordered.tolist() == np.sort(keys).tolist()


@settings(max_examples=40)
@given(st.integers(), st.integers(1, 60), st.sampled_from([1, 100_000, 1 << 30]), st.booleans())
def test_rows_are_in_order_and_the_index_finds_them(
    tmp_path, seed, templates, memory, by_coordinate
):
    made = random.Random(seed)
    reference = random_reference(made)
    case = random_alignments(made, reference, templates)
    blocks = blocks_of(case, made)
    write_bam(tmp_path / "plain.bam", reference, [case])
    options = SortOptions(by_coordinate, False, memory, str(tmp_path), made.choice([1, 3]))
    write_sorted(tmp_path / "x.bam", reference, blocks, options)
    plain = rows_of(tmp_path / "plain.bam")
    if by_coordinate:
        # By places, those without one last, otherwise as they came.
        plain.sort(key=lambda row: (row.reference_id % (1 << 32), row.reference_start))
    assert texts_of(rows_of(tmp_path / "x.bam")) == texts_of(plain)
    if by_coordinate:
        assert_index_is_right(tmp_path / "x.bam", reference, made, 6)


def assert_index_is_right(path, reference, made, count):
    """Ask for ranges, with our index and with that of samtools."""
    own, other = path, path.with_name("other.bam")
    other.write_bytes(path.read_bytes())
    kind = "csi" if path.with_name(f"{path.name}.csi").exists() else "bai"
    samtools("index", *(["-c"] if kind == "csi" else []), other)
    assert samtools("idxstats", own) == samtools("idxstats", other)
    with (
        pysam.AlignmentFile(str(own), index_filename=f"{own}.{kind}") as file,
        pysam.AlignmentFile(str(other), index_filename=f"{other}.{kind}") as expected,
    ):
        for _ in range(count):
            record = made.randrange(len(reference.names))
            name, length = reference.names[record].decode(), int(reference.record_lengths[record])
            begin = made.randrange(length)
            end = min(length, begin + made.choice([1, 20, 1000, 100_000]))
            rows = texts_of(list(file.fetch(name, begin, end)))
            assert rows == texts_of(list(expected.fetch(name, begin, end)))
        assert file.mapped == expected.mapped and file.unmapped == expected.unmapped
        assert file.nocoordinate == expected.nocoordinate
        assert len(list(file.fetch("*"))) == len(list(expected.fetch("*")))


@pytest.fixture(scope="module")
def long_case():
    """Many short reads on records of several bins."""
    made = random.Random(11)
    reference = named_records(
        (b"r%d" % number, bytes(made.choices(b"ACGT", k=size)))
        for number, size in enumerate([150_000, 10, 3000, 400_000])
    )
    return reference, random_alignments(made, reference, 1500, 60)


@pytest.mark.parametrize(
    ("memory", "range_rows"), [(1, 300), (1, 1 << 16), (400_000, 300), (1 << 30, 300)]
)
def test_many_rows_with_and_without_temporary_files(
    tmp_path, long_case, memory, range_rows, monkeypatch
):
    """The bytes depend neither on the memory nor on the threads nor on the blocks."""
    reference, case = long_case
    write_sorted(tmp_path / "y.bam", reference, [case], SortOptions(threads=2), GROUP)
    monkeypatch.setattr(record_store, "_RANGE_ROWS", range_rows)
    options = SortOptions(memory_bytes=memory, folder=str(tmp_path), threads=1 + memory % 3)
    path = tmp_path / "x.bam"
    write_sorted(path, reference, blocks_of(case, random.Random(memory)), options, GROUP)
    assert path.read_bytes() == (tmp_path / "y.bam").read_bytes()
    assert Path(f"{path}.bai").read_bytes() == (tmp_path / "y.bam.bai").read_bytes()
    samtools("quickcheck", path)
    assert_index_is_right(path, reference, random.Random(3), 40)
    assert {one.suffix for one in tmp_path.iterdir()} == {".bam", ".bai"}


def test_a_record_that_is_too_long_for_bai_has_a_csi(tmp_path):
    """The bases are zeros that take no memory as long as nothing reads them."""
    made = random.Random(5)
    small = named_records([(b"s", b"A" * 300), (b"r", b"A" * 300)])
    case = random_alignments(made, small, 2000, 50)
    starts, lengths = np.array([0, 301]), np.array([300, 600_000_000])
    padded = np.zeros(int(starts[1] + lengths[1]) + 2 * MARGIN, dtype=np.uint8)
    names = small.names
    reference = Reference("r.fa", padded[MARGIN:-MARGIN], starts, lengths, names, padded)
    far = [made.choice([0, 1 << 14, 1 << 29, 599_999_700]) for _ in case.columns.positions]
    positions = case.columns.positions + np.where(case.columns.records == 1, far, 0)
    case = AlignedReads(case.reads, case.columns._replace(positions=positions))
    path = tmp_path / "x.bam"
    write_sorted(path, reference, [case], SortOptions())
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.bam", "x.bam.csi"]
    samtools("quickcheck", path)
    assert_index_is_right(path, reference, made, 30)
    for begin in (0, 1 << 14, 1 << 29, (1 << 29) - 20, 599_999_700, 599_999_999):
        place = f"r:{begin + 1}-{begin + 40}"
        found = int(samtools("view", "-c", path, place))
        assert found == int(samtools("view", "-c", tmp_path / "other.bam", place))


def test_a_full_disk_is_an_error_that_names_the_folder(tmp_path, long_case, monkeypatch):
    class FullFile:
        def write(self, data):
            raise OSError(28, os.strerror(28))

        def close(self):
            return None

    monkeypatch.setattr(
        "mummergpu.output.sorting.record_store.open_temporary_file", lambda folder: FullFile()
    )
    for folder, reason in ((str(tmp_path), "no space left"), ("/nowhere", "no such file")):
        options = SortOptions(memory_bytes=1, folder=folder)
        with pytest.raises(OutputError, match=f"{folder}: temporary data cannot .*: {reason}"):
            write_sorted(tmp_path / "x.bam", long_case[0], [long_case[1]], options)
        assert list(tmp_path.iterdir()) == []
        monkeypatch.undo()


def test_no_alignments_at_all(tmp_path):
    reference = random_reference(random.Random(1))
    write_sorted(tmp_path / "x.bam", reference, [], SortOptions(mark_duplicates=True))
    assert rows_of(tmp_path / "x.bam") == []
    samtools("quickcheck", tmp_path / "x.bam")
    assert samtools("idxstats", tmp_path / "x.bam").endswith(b"*\t0\t0\t0\n")


def test_records_that_another_process_gets_are_the_same():
    """The texts of a block lie in memory in any order."""
    memory = np.frombuffer(b"thirdFIRSTsecond", dtype=np.uint8)
    texts = [memory[5:10], memory[10:], memory[:5]]
    rows = np.zeros((3, NUMBER + 1), dtype=np.int64)
    rows[:, PLACE] = [text.ctypes.data for text in texts]
    moved = pickle.loads(pickle.dumps(PreparedRows(texts, rows, None)))
    (joined,) = moved.texts
    begins = moved.rows[:, PLACE] - joined.ctypes.data
    found = [joined[at : at + text.size].tobytes() for at, text in zip(begins, texts, strict=True)]
    assert found == [b"FIRST", b"second", b"third"]


def test_the_bin_of_a_range_ends_before_its_end():
    """The bins of SAM's section 5.3, at both borders of the smallest ones."""
    size = 1 << 14
    assert bin_at_depth(0, size, 5) == 4681 and bin_at_depth(size, 2 * size, 5) == 4682
    assert bin_at_depth(0, size + 1, 5) == bin_at_depth(size - 1, size + 1, 5) == 585
    assert bin_at_depth(7 * size, 8 * size + 1, 5) == 73


def tables_of(blocks, bits):
    """Return a table of each block of keys; the records of a row lie where its number says."""
    tables = []
    first = 0
    for block in blocks:
        keys = np.array(block, dtype=np.uint64)
        numbers = np.arange(first, first + keys.size, dtype=np.int64)
        spans = np.full(keys.size, 100, dtype=np.uint32)
        rows = row_table(keys, bits, 1000 * numbers, sizes_by_number(numbers), spans)
        rows[:, NUMBER] += first
        tables.append(rows)
        first += keys.size
    return tables


def sizes_by_number(numbers):
    return numbers % 7 * 97 + 1


def merged_ranges(tables, begin):
    ranges = RowRanges(tables, begin, map)
    merged = [ranges.merged(number) for number in range(ranges.count)]
    assert [one.begin for one in merged] == ranges.begins[:-1].tolist()
    return merged


@given(
    st.lists(st.lists(st.integers(0, 1 << 33), max_size=30), max_size=12),
    st.sampled_from([1, 3, 33]),
    st.integers(1, 9),
)
def test_ranges_are_the_stable_order(monkeypatch, blocks, bits, range_rows):
    """Few bits make many equal keys."""
    monkeypatch.setattr(record_store, "_RANGE_ROWS", range_rows)
    monkeypatch.setattr(record_store, "_SAMPLES", 2)
    blocks = [[key % (1 << bits) for key in block] for block in blocks]
    merged = merged_ranges(tables_of(blocks, bits), 50)
    rows = np.concatenate([one.rows for one in merged])
    keys = np.array([key for block in blocks for key in block], dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    assert rows[:, NUMBER].tolist() == order.tolist()
    assert rows[:, KEY].tolist() == keys[order].tolist()
    assert rows[:, PLACE].tolist() == (1000 * order).tolist()
    sizes = sizes_by_number(order)
    assert sizes_of(rows).tolist() == sizes.tolist()
    assert np.concatenate([one.ends for one in merged]).tolist() == (50 + sizes.cumsum()).tolist()


@pytest.mark.parametrize("keys", [range(100_000), [7] * 100_000, [5, *[1 << 20] * 9] * 10_000])
def test_no_range_has_many_more_rows_than_the_others(monkeypatch, keys):
    """Also if the rows are equal, and the tables are smaller than what is asked of a range."""
    monkeypatch.setattr(record_store, "_RANGE_ROWS", 2000)
    made = random.Random(2)
    cuts = [0, *sorted(made.sample(range(1, len(keys)), 999)), len(keys)]
    shuffled = made.sample(list(keys), len(keys))
    tables = tables_of([shuffled[begin:end] for begin, end in pairwise(cuts)], 21)
    merged = merged_ranges(tables, 0)
    assert len(merged) > 40
    assert max(one.ends.size for one in merged) < 6000


def test_an_index_takes_ranges_in_any_order(monkeypatch):
    made = np.random.default_rng(8)
    lengths = np.array([70_000, 20, 3000, 400_000])
    starts = np.append(0, lengths.cumsum())
    axis = Axis(starts, starts[:-1], lengths)
    blocks = [made.integers(0, starts[-1] + 1, 500).tolist() for _ in range(9)]
    blocks.append([int(starts[-1])] * 200)
    tables = tables_of(blocks, axis.bits)
    whole = RowIndexer(axis)
    for merged in merged_ranges(tables, 90):
        whole.add(merged)
    monkeypatch.setattr(record_store, "_RANGE_ROWS", 100)
    ranges = merged_ranges(tables, 90)
    assert len(ranges) > 30
    shuffled = RowIndexer(axis)
    for number in made.permutation(len(ranges)).tolist():
        shuffled.add(ranges[number])
    assert bytes_of(shuffled.found()) == bytes_of(whole.found())
    assert shuffled.found().counts[:, 2].sum() == 4700


def bytes_of(found):
    return index_bytes(found, BAI, np.arange(40) * 20_000)
