"""References: their records as one array, read by one parser or by threads, and checksums."""

import gzip
import hashlib
import os
import random
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO, TextIOWrapper

import numpy as np
import pytest
from helpers.alignment_tools import samtools
from helpers.loops import each
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input import reference as module
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records import parallel_fasta
from mummergpu.input.records.parallel_fasta import read_fasta_in_parallel
from mummergpu.input.reference import read_reference, record_checksums
from mummergpu.sequence.codes import decode


def read(folder, content, chunk_size=1 << 20):
    path = folder / "reference"
    path.write_bytes(content)
    return read_reference(str(path), chunk_size)


RECORDS = b"\n>a x\nACg\nT\n>\n>c\n\n>d\r\nNNAC-RU\r\n>e"


@pytest.mark.parametrize("chunk_size", [2, 3, 8, 1 << 20])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_records_are_joined_by_one_break(tmp_path, chunk_size, pack):
    reference = read(tmp_path, pack(RECORDS), chunk_size)
    assert reference.path == str(tmp_path / "reference")
    assert reference.names == (b"a", b"", b"c", b"d", b"e")
    assert decode(reference.codes) == b"ACGTNNNNNACNNTN"
    assert reference.record_starts.tolist() == [0, 5, 6, 7, 15]
    assert reference.record_lengths.tolist() == [4, 0, 0, 7, 0]
    assert reference.codes.dtype.name == "uint8"
    assert reference.record_starts.dtype.name == reference.record_lengths.dtype.name == "int64"


def test_many_small_records(tmp_path):
    reference = read(tmp_path, b">\nA\n" * 1_000_000)
    assert len(reference.names) == 1_000_000 and reference.codes.size == 1_999_999
    assert reference.codes.tolist()[:4] == [0, 4, 0, 4]


@pytest.mark.parametrize("content", [b">a\n>b", b">a\nNNN\n>b\nRYK-", b">"])
def test_reference_without_a_base_is_refused(tmp_path, content):
    with pytest.raises(InputError, match=r"the reference holds no A, C, G or T$"):
        read(tmp_path, content)


@each(
    "content, name",
    [
        (b"@a\nACGT\n+\nIIII\n", "FASTQ"),
        (b"@SQ\tSN:c1\tLN:100\n", "SAM"),
        (gzip.compress(b"BAM\1" + bytes(50), mtime=0), "BAM"),
        (b"CRAM\3\0" + bytes(50), "CRAM"),
    ],
)
def test_reference_must_be_fasta(tmp_path, content, name):
    with pytest.raises(InputError, match=f": a reference must be FASTA, and this is {name}$"):
        read(tmp_path, content)
    with pytest.raises(InputError, match="must be FASTA"):
        record_checksums(str(tmp_path / "reference"))


def test_reference_from_standard_input_or_a_pipe(monkeypatch):
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b">a\nACGT\n")))
    assert read_reference("-").codes.tolist() == [0, 1, 2, 3]
    read_end, write_end = os.pipe()
    os.write(write_end, b">a\nACGT\n")
    os.close(write_end)
    try:
        assert read_reference(f"/dev/fd/{read_end}").codes.tolist() == [0, 1, 2, 3]
    finally:
        os.close(read_end)


@given(
    st.lists(st.tuples(st.text("ab >", max_size=9), st.text("acgtNRYkm", min_size=1)), min_size=1),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 70),
    st.integers(1, 40),
)
def test_letters_count_and_lines_do_not(tmp_path, records, line_end, width, chunk):
    text = ""
    for name, bases in records:
        lines = [bases[at : at + width] for at in range(0, len(bases), width)]
        text += f">x{name}{line_end}" + "".join(line + line_end for line in lines)
    path = tmp_path / "x.fa"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK_BYTES", chunk)
        found = record_checksums(str(path))
    assert list(found) == [hashlib.md5(bases.upper().encode()).hexdigest() for _, bases in records]


def test_checksums_are_those_of_samtools(tmp_path):
    made = random.Random(2)
    text = ""
    for number in range(30):
        lines = ("".join(made.choices("ACGTNacgtRYK", k=60)) for _ in "ab")
        text += "\n".join([f">r{number} text", *lines, ""])
    plain, packed = tmp_path / "x.fa", tmp_path / "x.fa.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    lines = samtools("dict", plain).decode().splitlines()[1:]
    for path in (plain, packed):
        found = record_checksums(str(path))
        assert [f"M5:{one}" for one in found] == [line.split("\t")[3] for line in lines]
        assert len(found) == len(read_reference(str(path)).names)


def read_whole(path, any_letters, threads=None):
    try:
        return read_reference(str(path), any_letters=any_letters, threads=threads)
    except InputError as error:
        return str(error)


def read_in_pieces(path, any_letters, monkeypatch, piece, header):
    """What is read, and whether the pieces sufficed."""
    sufficed = []

    def spy(*given):
        found = read_fasta_in_parallel(*given)
        sufficed.append(found is not None)
        return found

    with monkeypatch.context() as patch, ReadingThreads(3) as threads:
        patch.setattr(parallel_fasta, "PIECE_BYTES", piece)
        patch.setattr(parallel_fasta, "LONGEST_HEADER", header)
        patch.setattr(module, "LEAST_BYTES", 1)
        patch.setattr(module, "read_fasta_in_parallel", spy)
        return read_whole(path, any_letters, threads), sufficed == [True]


def assert_same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert np.array_equal(one.padded_codes, other.padded_codes)
    assert np.array_equal(one.record_starts, other.record_starts)
    assert np.array_equal(one.record_lengths, other.record_lengths) and one.names == other.names


fasta_lines = st.one_of(
    st.text("ACGTacgtuN", min_size=1, max_size=30),
    st.sampled_from(["", ">", ">a", ">record two", ">r\tx", "NNNN", "AC GT", "AC-GT*", "EFIL"]),
    st.text("ACGT>;@ ", max_size=12),
    st.just("ACGTTGCA" * 12),
)


@settings(max_examples=150)
@given(
    text=st.lists(fasta_lines, min_size=1, max_size=14),
    end=st.sampled_from(["\n", "\r\n"]),
    closed=st.booleans(),
    piece=st.sampled_from([1, 2, 3, 7, 20, 64, 1000]),
    header=st.sampled_from([1, 5, 40, 1000]),
    any_letters=st.booleans(),
)
def test_pieces_give_what_the_whole_text_gives(
    tmp_path, monkeypatch, text, end, closed, piece, header, any_letters
):
    path = tmp_path / "r.fa"
    path.write_text(">first\n" + end.join(text) + end * closed, newline="")
    found, _ = read_in_pieces(path, any_letters, monkeypatch, piece, header)
    assert_same(found, read_whole(path, any_letters))


@pytest.mark.parametrize("piece", [50, 61, 100, 1000, 1 << 20])
@pytest.mark.parametrize("width", [60, 100_000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_usual_text_needs_the_pieces_alone(tmp_path, monkeypatch, piece, width, end):
    random = np.random.default_rng(piece)
    path = tmp_path / "r.fa"
    text = ""
    for number in range(9):
        bases = "".join(random.choice(list("ACGTN"), random.integers(0, 900)))
        cut = [bases[at : at + width] for at in range(0, len(bases), width)]
        text += end.join([f">r{number} {'x' * 20}", *cut, ""])
    path.write_text(text, newline="")
    found, sufficed = read_in_pieces(path, False, monkeypatch, piece, 200)
    # A line that is longer than a header could be one, and pieces of a byte or two start nowhere.
    assert sufficed or (width > 200 and piece < 1000)
    assert_same(found, read_whole(path, False))


def test_small_files_and_one_thread_take_the_usual_way(tmp_path, monkeypatch):
    path = tmp_path / "r.fa"
    path.write_text(">r\nACGT\n")
    monkeypatch.setattr(module, "read_fasta_in_parallel", pytest.fail)
    for count in (2, 1):
        with ReadingThreads(count) as threads:
            assert read_reference(str(path), threads=threads).names == (b"r",)
        monkeypatch.setattr(module, "LEAST_BYTES", 1)


def test_a_file_that_shrinks_is_read_from_the_beginning(tmp_path, monkeypatch):
    path = tmp_path / "r.fa"
    path.write_text(">r\nACGT\n")
    with path.open("rb") as file, ThreadPoolExecutor(2) as executor:
        assert read_fasta_in_parallel(file.fileno(), 100, False, executor, 2) is None
