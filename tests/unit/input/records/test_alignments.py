"""Queries from SAM, BAM and CRAM."""

import gzip
import os
import random
import tempfile
import threading
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pysam
import pytest
from helpers.naive import fold, pairs_of
from helpers.sequences import reverse_complement

from mummergpu.errors import InputError, OutputError
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.records import alignments

REFERENCE = "".join(random.Random(1).choices("ACGT", k=2000))
HEADER = {"HD": {"VN": "1.6"}, "SQ": [{"SN": "c1", "LN": len(REFERENCE)}]}
NAMES = ("reads.sam", "reads.bam", "reads.cram", "reads.sam.gz", "bare.sam", "bare.sam.gz")
COUNT = 5000


@pytest.fixture(scope="module")
def expected():
    return []


@pytest.fixture(scope="module")
def folder(tmp_path_factory, expected):
    """A folder that holds the same records in every form; fills `expected` with the reads."""
    folder = tmp_path_factory.mktemp("alignments")
    (folder / "reference.fa").write_text(f">c1\n{REFERENCE}\n")
    generator = random.Random(2)
    header = pysam.AlignmentHeader.from_dict(HEADER)
    records = [make_record(header, i, generator) for i in range(COUNT)]
    reference = str(folder / "reference.fa")
    for name, mode in (("reads.sam", "w"), ("reads.bam", "wb"), ("reads.cram", "wc")):
        path = str(folder / name)
        with pysam.AlignmentFile(path, mode, header=header, reference_filename=reference) as file:
            for record in records:
                file.write(record)
    lines = (folder / "reads.sam").read_bytes()
    bare = b"".join(line for line in lines.splitlines(True) if not line.startswith(b"@"))
    (folder / "bare.sam").write_bytes(bare)
    (folder / "bare.sam.gz").write_bytes(gzip.compress(bare))
    (folder / "reads.sam.gz").write_bytes(gzip.compress(lines))
    for record in records:
        if not record.flag & 0x900:
            sequence = record.query_sequence or ""
            if record.flag & 0x10:
                sequence = reverse_complement(sequence)
            assert record.query_name is not None
            expected.append((record.query_name.encode(), fold(sequence.encode())))
    return folder


def make_record(header, number, generator):
    record = pysam.AlignedSegment(header)
    record.query_name = f"read/{number}"
    record.flag = (0, 0x10, 0x4, 0x100, 0x800, 0x4D, 0x910, 0x14)[number % 8]
    begin = generator.randrange(1800)
    sequence = REFERENCE[begin : begin + generator.randrange(1, 200)]
    if number % 7 == 0:
        sequence = "N" + sequence[1:]
    record.query_sequence = sequence if number % 11 else None
    if record.query_sequence is None:
        record.flag |= 0x4
    elif not record.flag & 0x4:
        record.reference_id = 0
        record.reference_start = begin
        record.cigarstring = f"{len(sequence)}M"
    return record


def read(path, block_size=10_000):
    with query_reader([path], block_size) as reader:
        return pairs_of(reader)


@pytest.mark.parametrize("name", NAMES)
def test_primary_records_are_read_on_their_own_strand(folder, expected, name):
    assert any(not sequence for _, sequence in expected)
    assert read(str(folder / name)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_alignments_from_standard_input(folder, expected, name, monkeypatch):
    content = (folder / name).read_bytes()
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content)))
    with query_reader(["-"], 10_000) as reader:
        assert pairs_of(reader) == expected
        assert reader.bytes_read == len(content)


@pytest.mark.parametrize("name", ["reads.bam", "bare.sam"])
def test_alignments_from_a_pipe(folder, expected, name, tmp_path):
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    content = (folder / name).read_bytes()
    feeder = threading.Thread(target=lambda: Path(pipe).write_bytes(content))
    feeder.start()
    assert read(pipe) == expected
    feeder.join()


@pytest.mark.parametrize("name", ["reads.sam", "reads.bam", "reads.cram"])
def test_blocks_end_at_their_size(folder, expected, name):
    path = str(folder / name)
    with query_reader([path], 5000) as reader:
        assert reader.bytes_total == os.path.getsize(path)
        blocks = list(reader)
        assert reader.bytes_read == reader.bytes_total
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert all(5000 <= block.base_count < 5200 for block in blocks[:-1])
    assert pairs_of(blocks) == expected


def test_reads_without_bases_do_not_make_endless_blocks(tmp_path):
    path = tmp_path / "empty.sam"
    path.write_bytes(b"r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n" * 10_000)
    with query_reader([str(path)], 4000) as reader:
        sizes = [block.query_count for block in reader]
    assert sum(sizes) == 10_000
    assert max(sizes) <= 1000


def test_header_alone_holds_no_query(tmp_path):
    path = tmp_path / "header.sam"
    path.write_text("@HD\tVN:1.6\n@SQ\tSN:c1\tLN:2000\n")
    assert read(str(path)) == []


def cut(content):
    return content[: len(content) // 2]


def without_end(content):
    return content[:-28]


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def with_short_line(content):
    return content + b"r\t0\tc1\t5\n"


def with_short_quality(content):
    return content + b"r\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tIII\n"


@pytest.mark.parametrize(
    "name, damage",
    [
        ("reads.bam", cut),
        ("reads.bam", without_end),
        ("reads.bam", flipped),
        ("reads.cram", cut),
        ("reads.cram", flipped),
        ("reads.sam", with_short_line),
        ("reads.sam", with_short_quality),
        ("bare.sam", with_short_line),
        ("bare.sam", with_short_quality),
        ("reads.sam.gz", cut),
        ("bare.sam.gz", cut),
    ],
)
@pytest.mark.parametrize("from_pipe", [False, True])
def test_damaged_alignments_are_refused(
    folder, tmp_path, name, damage, from_pipe, monkeypatch, capfd
):
    assert callable(damage)
    content = damage((folder / name).read_bytes())
    path = "-" if from_pipe else str(tmp_path / name)
    if from_pipe:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content)))
    else:
        Path(path).write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.path == path
    expected = "the compressed data are corrupt" if (name, damage) == ("reads.bam", flipped) else ""
    assert (expected or "truncated") in caught.value.message
    assert capfd.readouterr() == ("", "")


def test_cram_without_its_reference_says_so(folder, tmp_path):
    reference = tmp_path / "reference.fa"
    reference.write_bytes((folder / "reference.fa").read_bytes())
    path = str(tmp_path / "reads.cram")
    header = pysam.AlignmentHeader.from_dict(HEADER)
    with pysam.AlignmentFile(path, "wc", header=header, reference_filename=str(reference)) as file:
        file.write(make_record(header, 8, random.Random(3)))
    for other in tmp_path.glob("reference.fa*"):
        other.unlink()
    with pytest.raises(InputError, match="or their reference is not found"):
        read(path)


def test_verbosity_of_htslib_is_left_as_it_was(folder):
    before = pysam.get_verbosity()
    read(str(folder / "reads.bam"))
    assert pysam.get_verbosity() == before


def test_a_full_folder_for_temporary_files_is_not_blamed_on_the_input(
    folder, tmp_path, monkeypatch
):
    """/dev/full takes a file that is opened, and has no room for what is written."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(alignments, "open_temporary_file", lambda: open("/dev/full", "w+b"))
    for name in ("reads.cram", "reads.sam", "bare.sam", "bare.sam.gz"):
        content = (folder / name).read_bytes()
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content)))
        with pytest.raises(OutputError) as caught:
            read("-")
        assert caught.value.path == str(tmp_path)
        assert "no space left on device" in caught.value.message
    with pytest.raises(OutputError):
        read(str(folder / "bare.sam"))
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content[:-9])))
    monkeypatch.setattr(alignments, "open_temporary_file", tempfile.TemporaryFile)
    with pytest.raises(InputError, match="truncated"):
        read("-")


def test_no_folder_for_temporary_files_is_told(folder, monkeypatch):
    missing = str(folder / "missing")
    monkeypatch.setattr(tempfile, "tempdir", missing)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO((folder / "reads.cram").read_bytes())))
    with pytest.raises(OutputError, match=f"^{missing}: temporary data cannot be kept: no such"):
        read("-")
