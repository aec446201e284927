"""References: their records as one array, and the pages that it is cut into."""

import gzip
import hashlib
import os
import random
from io import BytesIO, TextIOWrapper
from itertools import pairwise

import pytest
from helpers.alignment_tools import samtools
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.index.pages import plan_pages
from mummergpu.input import reference as module
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
    assert len(reference.names) == 1_000_000
    assert reference.codes.size == 1_999_999
    assert reference.codes.tolist()[:4] == [0, 4, 0, 4]


@pytest.mark.parametrize("content", [b">a\n>b", b">a\nNNN\n>b\nRYK-", b">"])
def test_reference_without_a_base_is_refused(tmp_path, content):
    with pytest.raises(InputError, match=r"the reference holds no A, C, G or T$"):
        read(tmp_path, content)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "reference: the file is empty"),
        (b">a\nAC1", "reference:2: '1' is not a sequence character (record 'a')"),
        (
            gzip.compress(b">a\nACGT\n" * 9999, mtime=0)[:-8],
            "reference: the compressed data end too early",
        ),
    ],
)
def test_faults_are_reported(tmp_path, content, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert message in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="no such file or directory"):
        read_reference(str(tmp_path / "missing"))


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


@given(st.integers(0, 5000), st.integers(1, 500), st.integers(0, 100))
def test_pages_cover_the_reference_and_overlap(length, size, overlap):
    if size <= overlap:
        with pytest.raises(ValueError, match=f"pages of {size} bases cannot overlap by {overlap}"):
            plan_pages(length, size, overlap)
        return
    pages = plan_pages(length, size, overlap)
    assert [page.index for page in pages] == list(range(len(pages)))
    assert pages[0].begin == 0
    assert pages[-1].end == pages[-1].owned_end == length
    for page in pages:
        assert page.end - page.begin <= size
        assert page.begin <= page.owned_end <= page.end
    for page, following in pairwise(pages):
        assert page.owned_end == following.begin
        assert page.end - following.begin == overlap
        assert page.end - page.begin == size
        assert page.end < following.end


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
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
    original = module._CHUNK_BYTES
    module._CHUNK_BYTES = chunk  # type: ignore[misc]
    try:
        found = record_checksums(str(path))
    finally:
        module._CHUNK_BYTES = original  # type: ignore[misc]
    assert list(found) == [hashlib.md5(bases.upper().encode()).hexdigest() for _, bases in records]


@pytest.mark.parametrize("compressed", [False, True])
def test_checksums_are_those_of_samtools(tmp_path, compressed):
    made = random.Random(2)
    text = "".join(
        f">r{number} text\n" + "\n".join("".join(made.choices("ACGTNacgtRYK", k=60)) for _ in "ab")
        + "\n"
        for number in range(30)
    )  # fmt: skip
    plain = tmp_path / "x.fa"
    plain.write_text(text)
    lines = samtools("dict", plain).decode().splitlines()[1:]
    path = plain
    if compressed:
        path = tmp_path / "x.fa.gz"
        path.write_bytes(gzip.compress(text.encode()))
    found = record_checksums(str(path))
    assert [f"M5:{one}" for one in found] == [line.split("\t")[3] for line in lines]
    assert len(found) == len(read_reference(str(path)).names)


def test_fastq_is_refused(tmp_path):
    (tmp_path / "x.fq").write_text("@a\nACGT\n+\nIIII\n")
    with pytest.raises(InputError, match="must be FASTA"):
        record_checksums(str(tmp_path / "x.fq"))
