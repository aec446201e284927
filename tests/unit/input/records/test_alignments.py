"""Queries from SAM, BAM and CRAM: what pysam reads, on their own strand; and damage is an error."""

import gzip
import os
import random
import tempfile
import threading
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pysam
import pytest
from helpers.naive import fold, pairs_of
from helpers.sequences import random_bases
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.errors import InputError, OutputError
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes.files import Input
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records import alignments
from mummergpu.input.records.bam import BamReader
from mummergpu.input.records.record_arrays import Limits, RecordOptions
from mummergpu.sequence.codes import BREAK, MARGIN

REFERENCE = "".join(random.Random(1).choices("ACGT", k=2000))
HEADER = {"HD": {"VN": "1.6"}, "SQ": [{"SN": "c1", "LN": len(REFERENCE)}]}
NAMES = ("reads.sam", "reads.bam", "reads.cram", "reads.sam.gz", "bare.sam", "bare.sam.gz")
COUNT = 2000


@pytest.fixture(scope="module")
def expected(folder):
    return expected_of(folder / "reads.bam")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that holds the same records in every form."""
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
def test_primary_records_are_read_on_their_own_strand(folder, expected, name, monkeypatch):
    """From a file, and from standard input."""
    assert any(not sequence for _, sequence in expected) and read(str(folder / name)) == expected
    content = (folder / name).read_bytes()
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content)))
    with query_reader(["-"], 10_000) as reader:
        assert pairs_of(reader) == expected and reader.bytes_read == len(content)


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
    assert sum(sizes) == 10_000 and max(sizes) <= 1000


def damaged(content, damage):
    middle = len(content) // 2
    return {
        "cut": content[:middle],
        "flipped": content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :],
        "short line": content + b"r\t0\tc1\t5\n",
        "short quality": content + b"r\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tIII\n",
    }[damage]


DAMAGES = """
reads.bam    | flipped       | the compressed data are corrupt
reads.cram   | flipped       | truncated
reads.sam    | short line    | truncated
reads.sam    | short quality | truncated
bare.sam     | short line    | truncated
bare.sam     | short quality | truncated
reads.sam.gz | cut           | truncated
bare.sam.gz  | cut           | truncated
"""


@pytest.mark.parametrize("row", DAMAGES.strip().splitlines())
def test_damaged_alignments_are_refused(folder, tmp_path, row, monkeypatch, capfd):
    name, damage, message = (word.strip() for word in row.split("|"))
    content = damaged((folder / name).read_bytes(), damage)
    path = tmp_path / name
    path.write_bytes(content)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content)))
    for source in (str(path), "-"):
        with pytest.raises(InputError) as caught:
            read(source)
        assert caught.value.path == source and message in caught.value.message
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


LETTERS = "ACGT" * 4 + "NRYKMSWBDHV="
BAM_HEADER = {"HD": {"VN": "1.6"}, "SQ": [{"SN": f"chromosome{n}", "LN": 10**8} for n in range(40)]}
FLAGS = (0, 4, 16, 20, 77, 141, 99, 147, 256, 272, 2048, 2064, 1024)


def record(name, bases, flag, some):
    made = pysam.AlignedSegment(pysam.AlignmentHeader.from_dict(BAM_HEADER))
    made.query_name, made.flag = name, flag
    if bases:
        made.query_sequence = bases
        made.query_qualities = pysam.qualitystring_to_array("I" * len(bases))
    if not flag & 4 and bases:
        made.reference_id, made.reference_start = some.randrange(40), some.randrange(10**8)
        made.cigarstring = f"{len(bases)}M"
        made.set_tag("NM", 3)
    return made


def write_bam(path, records):
    with pysam.AlignmentFile(str(path), "wb", header=BAM_HEADER) as file:
        for one in records:
            file.write(one)


def expected_of(path):
    """The reads as pysam gives them."""
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return [
            ((one.query_name or "").encode(), fold((one.get_forward_sequence() or "").encode()))
            for one in file.fetch(until_eof=True)
            if not one.flag & 0x900
        ]


def read_bam(path, block_size=1 << 20, chunk_size=1 << 20, threads=None):
    found = []
    limits = Limits.of_block(block_size)
    with Input(str(path), threads) as file:
        reader = BamReader(file, RecordOptions(limits, chunk_size))
        while (block := reader.next_block()) is not None:
            assert block.name_offsets.size == block.offsets.size
            assert (block.padded_codes[:MARGIN] == BREAK).all()
            assert (block.padded_codes[-MARGIN:] == BREAK).all()
            assert np.shares_memory(block.codes, block.padded_codes) or not block.codes.size
            assert block.offsets[-2] < limits.bases and block.offsets.size - 1 <= limits.records
            found += pairs_of([block])
        assert reader.bytes_read == path.stat().st_size
        reader.close()
    return found


@pytest.fixture(scope="module")
def bam_path(tmp_path_factory):
    some = random.Random(5)
    records = []
    for number in range(1000):
        bases = "".join(some.choices(LETTERS, k=some.choice((0, 1, 2, 3, 75, 150, 151, 1000))))
        records.append(record(f"read{number}", bases, some.choice(FLAGS), some))
    records.append(record("long", random_bases(some, 300_001), 16, some))
    made = tmp_path_factory.mktemp("bam") / "reads.bam"
    write_bam(made, records)
    return made


@pytest.mark.parametrize(
    ("block_size", "chunk_size"), [(1, 64), (8, 5000), (1000, 64), (1000, 1 << 20), (1 << 20, 5000)]
)
def test_reads_are_those_of_pysam(bam_path, block_size, chunk_size):
    expected = expected_of(bam_path)
    assert len(expected) > 600 and read_bam(bam_path, block_size, chunk_size) == expected


@given(data=st.data())
def test_any_records_are_read(data, tmp_path_factory):
    some = random.Random(data.draw(st.integers(0, 1 << 30)))
    texts = data.draw(st.lists(st.text("ACGTN=RY", max_size=40), max_size=30))
    names = [data.draw(st.text("abcXYZ019:/_*", min_size=1, max_size=30)) for _ in texts]
    made = tmp_path_factory.mktemp("any") / "reads.bam"
    pairs = zip(names, texts, strict=True)
    write_bam(made, [record(name, text, some.choice(FLAGS), some) for name, text in pairs])
    chunk = data.draw(st.integers(16, 500))
    assert read_bam(made, data.draw(st.integers(1, 200)), chunk) == expected_of(made)


def test_plain_gzip_and_no_compression_of_blocks_are_read(bam_path, tmp_path):
    content = gzip.decompress(bam_path.read_bytes())
    (tmp_path / "plain.bam").write_bytes(gzip.compress(content))
    (tmp_path / "stored.bam").write_bytes(gzip.compress(content, 0))
    for name in ("plain.bam", "stored.bam"):
        assert read_bam(tmp_path / name) == expected_of(bam_path)


def test_a_file_that_ends_anywhere_is_truncated(tmp_path):
    some = random.Random(1)
    made = tmp_path / "small.bam"
    write_bam(made, [record(f"r{n}", "ACGTN", 16 * (n % 2), some) for n in range(4)])
    content = gzip.decompress(made.read_bytes())
    whole = read_bam(made)
    borders = {len(content)}
    for end in range(5, len(content)):
        made.write_bytes(gzip.compress(content[:end], 1))
        try:
            found = read_bam(made)
            assert found == whole[: len(found)]
            borders.add(end)
        except InputError as error:
            assert error.message == "the BAM data are truncated or corrupt"
    # Plain gzip has no end mark: only a cut between records cannot be seen.
    assert len(borders) == len(whole) + 1
    made.write_bytes(gzip.compress(content) + b"x")
    # What follows the compressed data is no part of them, as for gzip.
    assert read_bam(made) == whole


def test_any_damage_to_records_is_an_error_or_gives_reads(tmp_path):
    """Nothing outside the record is read, whatever its numbers say."""
    some = random.Random(9)
    made = tmp_path / "damaged.bam"
    write_bam(made, [record(f"r{n}", "ACGTN" * 7, some.choice(FLAGS), some) for n in range(30)])
    content = gzip.decompress(made.read_bytes())
    refused = 0
    for _ in range(500):
        changed = bytearray(content)
        for _ in range(some.choice((1, 1, 4))):
            changed[some.randrange(4, len(changed))] = some.choice((0, 1, 127, 128, 255))
        made.write_bytes(gzip.compress(bytes(changed), 1))
        try:
            read_bam(made, chunk_size=some.choice((64, 1 << 16)))
        except InputError as error:
            refused += 1
            assert error.message == "the BAM data are truncated or corrupt"
    assert 30 < refused < 470


def test_threads_decompress_a_large_file(tmp_path):
    """The reads, and the error at a damaged block, are those without threads."""
    chance = random.Random(9)
    path = tmp_path / "large.bam"
    reads = (random_bases(chance, 900) for _ in range(3000))
    write_bam(path, [record(f"read{n}", bases, 4, chance) for n, bases in enumerate(reads)])
    content = path.read_bytes()
    messages = []
    with ReadingThreads(3) as threads:
        assert read_bam(path, 10_000, 1 << 16, threads) == expected_of(path)
        path.write_bytes(content[:-60_000] + bytes(10) + content[-59_990:])
        for some_threads in (None, threads):
            with pytest.raises(InputError) as caught:
                read_bam(path, 10_000, 1 << 16, some_threads)
            messages.append(str(caught.value))
    assert messages[0] == messages[1]
