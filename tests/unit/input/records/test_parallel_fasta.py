"""FASTA that threads parse in pieces, against the parser that reads it from beginning to end."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input import reference
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records import parallel_fasta
from mummergpu.input.records.parallel_fasta import read_fasta_in_parallel
from mummergpu.input.reference import read_reference


def read_whole(path, any_letters):
    try:
        return read_reference(str(path), any_letters=any_letters)
    except InputError as error:
        return str(error)


def read_in_pieces(path, any_letters, monkeypatch, piece, header):
    """What is read, and whether the pieces sufficed."""
    sufficed = []

    def spy(*given):
        found = read_fasta_in_parallel(*given)  # type: ignore[arg-type]
        sufficed.append(found is not None)
        return found

    with monkeypatch.context() as patch, ReadingThreads(3) as threads:
        patch.setattr(parallel_fasta, "PIECE_BYTES", piece)
        patch.setattr(parallel_fasta, "LONGEST_HEADER", header)
        patch.setattr(reference, "LEAST_BYTES", 1)
        patch.setattr(reference, "read_fasta_in_parallel", spy)
        try:
            found = read_reference(str(path), any_letters=any_letters, threads=threads)
        except InputError as error:
            found = str(error)
    return found, sufficed == [True]


def assert_same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert np.array_equal(one.padded_codes, other.padded_codes)
    assert np.array_equal(one.record_starts, other.record_starts)
    assert np.array_equal(one.record_lengths, other.record_lengths)
    assert one.names == other.names


lines = st.one_of(
    st.text("ACGTacgtuN", min_size=1, max_size=30),
    st.sampled_from(["", ">", ">a", ">record two", ">r\tx", "NNNN", "AC GT", "AC-GT*", "EFIL"]),
    st.text("ACGT>;@ ", max_size=12),
    st.just("ACGTTGCA" * 12),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=st.lists(lines, min_size=1, max_size=14),
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
    monkeypatch.setattr(reference, "read_fasta_in_parallel", pytest.fail)
    with ReadingThreads(2) as threads:
        assert read_reference(str(path), threads=threads).names == (b"r",)
    monkeypatch.setattr(reference, "LEAST_BYTES", 1)
    with ReadingThreads(1) as threads:
        assert read_reference(str(path), threads=threads).names == (b"r",)


def test_a_file_that_shrinks_is_read_from_the_beginning(tmp_path, monkeypatch):
    path = tmp_path / "r.fa"
    path.write_text(">r\nACGT\n")
    with path.open("rb") as file, ThreadPoolExecutor(2) as executor:
        assert read_fasta_in_parallel(file.fileno(), 100, False, executor, 2) is None
