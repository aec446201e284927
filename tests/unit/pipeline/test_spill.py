"""Temporary files: what is written comes back, and whatever fails is told of their folder."""

import errno
import os
import tempfile
from dataclasses import replace

import numpy as np
import pytest
from helpers.mapped_reads import block_of

from mummergpu.errors import OutputError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.candidates.candidates import NUMBERS as NUMBERS_OF_CANDIDATE
from mummergpu.mapping.candidates.candidates import no_candidates
from mummergpu.mapping.placing.second_pass import DoubtfulReads
from mummergpu.pipeline.mapping_groups import SpilledAlignments
from mummergpu.pipeline.spill import ArrayFile, SpilledMems, SpilledQueries
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
