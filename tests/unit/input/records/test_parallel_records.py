"""Records that threads parse in pieces: the pieces, their faults, blocks of them, their reader."""

import errno
import gc
import gzip
import io
import os
import sys

import numpy as np
import pytest
from helpers.naive import pairs_of
from helpers.parallel_files import (
    BLOCK,
    CHUNK,
    PIECE,
    fasta_record,
    fastq_record,
    read,
    usual_fasta,
    usual_fastq,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records import parallel_records
from mummergpu.input.records.block_arrays import BlockArrays, NoRoomError, RecycledMemory
from mummergpu.input.records.byte_runs import STEP
from mummergpu.input.records.parallel_records import find_record, split
from mummergpu.input.records.record_arrays import Records
from mummergpu.sequence.codes import BREAK, MARGIN


@pytest.mark.parametrize("piece", [40, 100, 1000, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("is_closed", [True, False])
def test_usual_text_needs_the_pieces_alone(
    tmp_path, monkeypatch, threads, parts, kind, piece, end, is_closed
):
    text = kind.usual_text(200, seed=piece)
    path = tmp_path / "r"
    path.write_text(text if is_closed else text.removesuffix("\n"), newline=end)
    monkeypatch.setattr(parallel_records, "PIECE_BYTES", piece)
    assert read(path, threads) == read(path, None)
    size = path.stat().st_size
    assert parts.rest == size
    pieces = len(parts.ranges) - 2
    assert size // (3 * piece) < pieces and (pieces == 1) == (piece == 1 << 20)


def test_a_byte_order_mark_is_skipped(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text("\ufeff\n\n" + kind.usual_text(30), encoding="utf-8")
    assert read(path, threads) == read(path, None) and parts.rest == path.stat().st_size


@pytest.mark.parametrize("count", [100, 0])
def test_faults_in_later_pieces_are_told_as_ever(tmp_path, threads, parts, kind, count):
    before = kind.usual_text(100)
    path = tmp_path / "r"
    path.write_text(before + kind.fault + kind.usual_text(count, seed=2), newline="")
    found = read(path, threads)
    assert found == read(path, None)
    line = before.count("\n") + kind.fault.count("\n")
    assert isinstance(found, str) and found.startswith(f"{path}:{line}: ")
    assert len(before) - 3 * PIECE < parts.rest <= len(before)


def test_fastq_whose_lines_are_wrapped_is_read_from_there_on(tmp_path, threads, parts):
    before = usual_fastq(50)
    wrapped = "@w\nACGT\nACGT\nAC\n+\n@III\n@III\n@I\n" * 60
    path = tmp_path / "r"
    path.write_text(before + wrapped + usual_fastq(50, seed=2))
    assert read(path, threads) == read(path, None)
    assert len(before) - 3 * PIECE < parts.rest <= len(before) + len(wrapped)


def test_a_long_genome_among_reads_is_read_by_one_parser(tmp_path, threads, parts):
    before, genome = usual_fasta(50), fasta_record("genome", "ACGTTGCAAC" * 500, 70)
    path = tmp_path / "r.fa"
    path.write_text(before + genome + usual_fasta(50, seed=2))
    assert read(path, threads) == read(path, None)
    assert len(before) - 3 * PIECE < parts.rest <= len(before)
    parts.ranges.clear()
    path.write_text(genome + before)
    assert read(path, threads) == read(path, None) and parts.ranges == [(0, None)]


@pytest.mark.parametrize("length", [100, 150, 2000])
def test_reads_may_be_longer_than_a_piece(tmp_path, threads, parts, kind, length):
    path = tmp_path / "r"
    long, usual = kind.record("long", "ACGTTGCAAC" * (length // 10)), kind.usual_text(20)
    path.write_text(usual + long + usual + 2 * long + usual)
    assert read(path, threads) == read(path, None)
    # In a window there is no beginning of a record that is much longer.
    assert (parts.rest == path.stat().st_size) == (length < 200)


def test_short_reads_and_long_names_do_not_make_large_blocks(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    long, short = kind.record("r", "ACGT" * 10), kind.record("r", "A")
    text = long * 3 + short * 600 + kind.record("n" * 200, "AC") * 50
    path.write_text(text)
    with query_reader([str(path)], 80, 4096, threads=threads) as reader:
        blocks = list(reader)
    assert pairs_of(blocks) == read(path, None) and parts.rest == len(text)
    assert max(block.base_count for block in blocks) < 160
    assert max(block.query_count for block in blocks) <= 11
    assert max(block.names.size for block in blocks) < 4 * 80 + 200


def test_a_name_that_outgrows_the_memory_is_read_all_the_same(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(50) + kind.record("n" * 400, "ACGT") + kind.usual_text(50))
    assert read(path, threads) == read(path, None) and parts.rest < path.stat().st_size


def test_blocks_are_about_equally_large_and_do_not_depend_on_threads(
    tmp_path, parts, kind, monkeypatch
):
    path = tmp_path / "r"
    # The names become longer, of which the first ones show nothing.
    path.write_text("".join(kind.record(f"r{number}", "ACGTTGCAAC") for number in range(3000)))
    monkeypatch.setattr(parallel_records, "PIECE_BYTES", 4000)
    found = []
    for count in (3, 8):
        with (
            ReadingThreads(count) as threads,
            query_reader([str(path)], 500, 100, threads=threads) as reader,
        ):
            found.append([block.offsets.tolist() for block in reader])
    assert found[0] == found[1]
    sizes = [offsets[-1] for offsets in found[0]]
    assert 400 < min(sizes) <= max(sizes) < 600


def test_records_are_split_into_equal_parts():
    offsets = np.concatenate([[0], np.cumsum([3, 0, 4, 100, 1, 2, 0, 9])])
    padded = np.full(offsets[-1] + 2 * MARGIN, BREAK, dtype=np.uint8)
    codes = padded[MARGIN:-MARGIN]
    codes[:] = np.arange(codes.size) % 4
    names = np.frombuffer(b"abcdefgh", dtype=np.uint8).copy()
    whole = Records(padded, offsets, names, np.arange(9))
    assert split(whole, 500) == [whole]
    for most in (1, 3, 10, 40, 60):
        found = split(whole, most)
        assert pairs_of(found) == pairs_of([whole])
        assert all(part.offsets.size > 1 for part in found)
        assert all(np.shares_memory(part.padded_codes, padded) for part in found)
        assert len(found) > 1


def found(path, at, is_fastq):
    with path.open("rb") as file:
        return find_record(file.fileno(), at, path.stat().st_size, is_fastq)


def test_a_record_of_fastq_is_found_by_its_lines(tmp_path, monkeypatch):
    long = "A" * 50
    text = f"@a\nAC\n+\n@@\n@b\nACGT\n+\n@@@@\n@c\n{long}\n+\n{long}\n@d\nA\n+\n@\n"
    second, third, last = (text.index(name) for name in ("@b", "@c", "@d"))
    path = tmp_path / "r.fq"
    path.write_text(text)
    monkeypatch.setattr(parallel_records, "WINDOWS", (10, 80))
    assert {found(path, at, True) for at in range(1, second + 1)} == {second}
    assert {found(path, at, True) for at in range(second + 1, third + 1)} == {third}
    assert {found(path, at, True) for at in range(third + 60, last + 1)} == {last}
    assert {found(path, at, True) for at in range(last + 1, len(text) + 9)} == {len(text)}
    monkeypatch.setattr(parallel_records, "WINDOWS", (10, 40))
    assert found(path, 1, True) == second and found(path, third, True) is None
    assert found(path, third + 1, True) is None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_record_of_fasta_begins_with_the_line(tmp_path, monkeypatch, end):
    text = end.join([">a>b >c", "AC", ">", ">d @e", "", " >", *["ACGTACGT"] * 10, ">f", "A"])
    begins = [text.index(f"{end}{name}") + len(end) for name in (f">{end}", ">d", ">f")]
    path = tmp_path / "r.fa"
    path.write_text(text, newline="")
    monkeypatch.setattr(parallel_records, "WINDOWS", (10, 200))
    at = 1
    for begin in begins:
        assert {found(path, at, False) for at in range(at, begin + 1)} == {begin}
        at = begin + 1
    assert {found(path, at, False) for at in range(at, len(text) + 9)} == {len(text)}
    monkeypatch.setattr(parallel_records, "WINDOWS", (10, 60))
    assert found(path, begins[0], False) == begins[0] and found(path, begins[1] + 1, False) is None


names = st.sampled_from(["", "a", "read/1", "n" * 30])
bases = st.text("ACGTNacgtu", min_size=0, max_size=25)
fastq_records = st.builds(
    lambda name, bases, quality, repeated: fastq_record(
        name, bases, (quality * len(bases))[: len(bases)], name if repeated else ""
    ),
    names,
    bases,
    st.text("@+I!~", min_size=1, max_size=5),
    st.booleans(),
)
fasta_records = st.builds(fasta_record, names, bases, st.sampled_from([1, 10, 30]))
odd_fastq = st.sampled_from(
    [
        "\n",
        "\r\n",
        "\r",
        "@m\nACGT\nAC\n+\nIIII\nII\n",
        "@m\nACGT\nAC\n+m\n@@@@\n@@\n",
        "@e\n\n+\n\n",
        "@e\n+\n",
        "@short\nACGT\n+\nIII\n",
        "@long\nACGT\n+\nIIIII\n",
        "@other\nACGT\n+another\nIIII\n",
        "@bad\nAC1T\n+\nIIII\n",
        "@blank\nACGT\n\n+\nIIII\n",
        "@protein\nEFILPQEFIL\n+\nIIIIIIIIII\n",
        "@space\nACGT\n+\nII I\n",
        "@cut\nACG",
        ">fasta\nACGT\n",
        f"@large\n{'ACGTTGCA' * 60}\n+\n{'@' * 480}\n",
    ]
)
odd_fasta = st.sampled_from(
    [
        "\n",
        "\r\n",
        "\r",
        "\r>return\nACGT\n",
        ">return\rACGT\n",
        ">spaces >x\tACGT\n\n A C\tG\n \nT\n",
        ">a>b@c >d @e\nAC\n",
        ">one\n>two\n>\n>\n",
        ">gaps\n-*.-\n*\n",
        ">few\nACGTACGTAC\nGTACGTACGE\n",
        ">protein\nEFILPQEFIL\n",
        ">half\nACGTACGTAC\nEFILPQEFIL\n",
        ">bad\nAC1T\n",
        ">mark\nAC>GT\n",
        ";comment\n",
        " >space\nACGT\n",
        "@fastq\nACGT\n+\nIIII\n",
        ">\xe4\x00\x01\nACGT\n",
        ">cut",
        ">cut\nACG",
        f">{'n' * 400} {'d' * 400}\nACGT\n",
        fasta_record("large", "ACGTTGCA" * 60, 70),
        fasta_record("larger", "ACGTTGCA" * 200, 70),
    ]
)
texts = st.one_of(
    st.lists(st.one_of(records, records, records, odd), min_size=1, max_size=14).map(
        lambda parts, first=first: first + "".join(parts)
    )
    for first, records, odd in (
        ("@first\nACGT\n+\nIIII\n", fastq_records, odd_fastq),
        (">first\nACGT\n", fasta_records, odd_fasta),
    )
)


@settings(max_examples=300)
@given(
    text=texts,
    crlf=st.booleans(),
    cut=st.sampled_from([0, 0, 0, 1, 2, 7]),
    piece=st.sampled_from([1, 20, 60, 1000]),
    block=st.sampled_from([1, 9, 40, 1000]),
    chunk=st.sampled_from([2, 13, 64]),
    any_letters=st.booleans(),
)
def test_pieces_give_what_the_whole_text_gives(
    tmp_path, monkeypatch, threads, parts, text, crlf, cut, piece, block, chunk, any_letters
):
    whole = text[: len(text) - cut]
    if crlf:
        whole = whole.replace("\r\n", "\n").replace("\n", "\r\n")
    path = tmp_path / "r"
    path.write_bytes(whole.encode())
    monkeypatch.setattr(parallel_records, "PIECE_BYTES", piece)
    found = read(path, threads, block, chunk, any_letters)
    assert found == read(path, None, block, chunk, any_letters)


def blocks_and_copies(reader):
    for block in reader:
        arrays = block.padded_codes, block.offsets, block.names, block.name_offsets
        yield block, QueryBlock(block.index, *(array.copy() for array in arrays))


def test_blocks_stay_as_they_are_while_others_are_read(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(500))
    with query_reader([str(path)], BLOCK, 100, threads=threads) as reader:
        pairs = [pair for pair in blocks_and_copies(reader) if pair[0].index % 7 == 0]
    for block, copy in pairs:
        assert pairs_of([block]) == pairs_of([copy])
        assert np.array_equal(block.padded_codes, copy.padded_codes)


def test_progress_reaches_the_total(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(500))
    with query_reader([str(path)] * 2, BLOCK, 100, threads=threads) as reader:
        progress = [reader.bytes_read for _ in reader]
    assert progress == sorted(progress) and len(set(progress)) > 100
    assert progress[-1] == reader.bytes_read == reader.bytes_total


def test_a_reader_can_be_closed_at_any_time(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(500) + kind.fault + kind.usual_text(20))
    for count in (0, 1, 2, 50, 200):
        before = len(os.listdir("/proc/self/fd"))
        with query_reader([str(path)], BLOCK, threads=threads) as reader:
            for _ in range(count):
                next(reader)
        assert list(reader) == [] and len(os.listdir("/proc/self/fd")) == before


def change_after_the_first_block(path, threads, change):
    try:
        with query_reader([str(path)], BLOCK, CHUNK, threads=threads) as reader:
            first = next(reader)
            change()
            return pairs_of([first, *reader])
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("size", [3000, 3007, 3020])
def test_a_file_may_shrink(tmp_path, threads, parts, kind, size):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(500))
    found = change_after_the_first_block(path, threads, lambda: os.truncate(path, size))
    assert path.stat().st_size == size and found == read(path, None)


def test_a_file_may_grow(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(100))

    def grow():
        with path.open("a") as file:
            file.write(kind.usual_text(100, seed=2))

    assert change_after_the_first_block(path, threads, grow) == read(path, None)


def test_a_disk_that_fails_is_told_after_the_records_before(
    tmp_path, threads, parts, kind, monkeypatch
):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(500))

    def fail(function):
        def checked(number, what, at):
            if at > 5000:
                raise OSError(errno.EIO, "wrong")
            return function(number, what, at)

        return checked

    monkeypatch.setattr(os, "pread", fail(os.pread))
    monkeypatch.setattr(os, "preadv", fail(os.preadv))
    count = 0
    with (
        pytest.raises(InputError) as caught,
        query_reader([str(path)], BLOCK, CHUNK, threads=threads) as reader,
    ):
        for block in reader:
            count += block.base_count
    assert str(caught.value) == f"{path}: input/output error" and 4000 < parts.rest <= 5000
    assert 1000 < count < 3500


def test_other_files_take_the_usual_way(tmp_path, monkeypatch, threads, kind):
    text = kind.usual_text(5)
    plain, small, packed = (tmp_path / name for name in ("plain", "small", "packed.gz"))
    plain.write_text(text)
    small.write_text(kind.usual_text(4))
    packed.write_bytes(gzip.compress(text.encode(), 0))
    monkeypatch.setattr(parallel_records, "LEAST_BYTES", len(text))
    monkeypatch.setattr(parallel_records, "ParallelRecordReader", pytest.fail)
    for path in (small, packed):
        assert read(path, threads) == read(path, None)
    with ReadingThreads(2) as two:
        assert read(plain, two) == read(plain, None)
    with plain.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        with query_reader(["-"], BLOCK, threads=threads) as reader:
            assert pairs_of(reader) == read(plain, None)
    monkeypatch.setattr(parallel_records, "MOST_BLOCK_BASES", BLOCK - 1)
    assert read(plain, threads) == read(plain, None)


def address(arrays):
    return arrays.offsets.__array_interface__["data"][0]


def test_arrays_become_longer_and_keep_their_content():
    arrays = BlockArrays(10, 2, 5)
    arrays.padded[:10] = 3
    arrays.offsets[:] = 7
    arrays.make_room(1000, 50, 200)
    assert arrays.padded.size >= MARGIN + 1000 + STEP and arrays.names.size >= 200 + STEP
    assert arrays.offsets.size >= 51 and arrays.name_offsets.size >= 51
    assert (arrays.padded[:10] == 3).all() and (arrays.offsets[:3] == 7).all()
    arrays.give_back(10, 2, 5)
    assert arrays.padded.size == 10 + 2 * MARGIN
    assert arrays.names.size == 5 and arrays.offsets.size == 3
    assert (arrays.padded[:10] == 3).all()


def test_recycled_arrays_have_the_room_that_was_asked_for():
    memory = RecycledMemory(100, 10, 30)
    arrays = memory.new_arrays()
    arrays.make_room(100, 10, 30)
    for too_much in ((101, 10, 30), (100, 11, 30), (100, 10, 31)):
        with pytest.raises(NoRoomError):
            arrays.make_room(*too_much)
    arrays.give_back(1, 1, 1)
    arrays.make_room(100, 10, 30)
    parts = (arrays.padded, arrays.offsets, arrays.names, arrays.name_offsets)
    for number, part in enumerate(parts):
        part[:] = number
    assert all((part == number).all() for number, part in enumerate(parts))
    assert arrays.offsets.dtype == arrays.name_offsets.dtype == np.int64


def test_memory_is_used_again_as_soon_as_no_view_is_left():
    memory = RecycledMemory(100, 10, 30)
    gc.disable()
    try:
        arrays = memory.new_arrays()
        place = address(arrays)
        view = arrays.padded[3:9][1:2].view(np.int8)
        del arrays
        other = memory.new_arrays()
        assert address(other) != place
        del view
        again = memory.new_arrays()
        assert address(again) == place
        assert address(memory.new_arrays()) != place
    finally:
        gc.enable()
