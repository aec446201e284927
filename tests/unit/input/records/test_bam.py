"""Reads from BAM: what pysam reads, whatever the blocks and chunks; and damage is an error."""

import gzip
import random

import numpy as np
import pysam
import pytest
from helpers.sequences import random_bases
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import Input
from mummergpu.input.bytes.formats import BGZF_END
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.bam import BamReader
from mummergpu.input.records.record_arrays import Limits, RecordOptions
from mummergpu.sequence.codes import BREAK, MARGIN, encode

Read = tuple[bytes, bytes]
"""A name, and codes."""

LETTERS = "ACGT" * 4 + "NRYKMSWBDHV="
HEADER = {"HD": {"VN": "1.6"}, "SQ": [{"SN": f"chromosome{n}", "LN": 10**8} for n in range(40)]}
FLAGS = (0, 4, 16, 20, 77, 141, 99, 147, 256, 272, 2048, 2064, 1024)


def record(name, bases, flag, some):
    made = pysam.AlignedSegment(pysam.AlignmentHeader.from_dict(HEADER))
    made.query_name, made.flag = name, flag
    if bases:
        made.query_sequence = bases
        made.query_qualities = pysam.qualitystring_to_array("I" * len(bases))
    if not flag & 4 and bases:
        made.reference_id, made.reference_start = some.randrange(40), some.randrange(10**8)
        made.cigarstring = f"{len(bases)}M"
        made.set_tag("NM", 3)
    return made


def write(path, records):
    with pysam.AlignmentFile(str(path), "wb", header=HEADER) as file:
        for each in records:
            file.write(each)


def expected_of(path):
    """The reads as pysam gives them."""
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return [
            (
                (each.query_name or "").encode(),
                encode((each.get_forward_sequence() or "").encode()).tobytes(),
            )
            for each in file.fetch(until_eof=True)
            if not each.flag & 0x900
        ]


def read(path, block_size=1 << 20, chunk_size=1 << 20, threads=None):
    found = []
    limits = Limits.of_block(block_size)
    with Input(str(path), threads) as file:
        reader = BamReader(file, RecordOptions(limits, chunk_size))
        while (block := reader.next_block()) is not None:
            count = block.offsets.size - 1
            assert block.name_offsets.size == count + 1
            assert (block.padded_codes[:MARGIN] == BREAK).all()
            assert (block.padded_codes[-MARGIN:] == BREAK).all()
            assert np.shares_memory(block.codes, block.padded_codes) or not block.codes.size
            assert block.offsets[-1] == block.codes.size
            names = block.names.tobytes()
            for number in range(count):
                begin, end = block.name_offsets[number : number + 2]
                first, last = block.offsets[number : number + 2]
                found.append((names[begin:end], block.codes[first:last].tobytes()))
            before = block.offsets[-2]
            assert before < limits.bases
            assert count <= limits.records
        assert reader.bytes_read == path.stat().st_size
        reader.close()
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    some = random.Random(5)
    records = []
    for number in range(3000):
        length = some.choice((0, 1, 2, 3, 75, 150, 151, 1000))
        bases = "".join(some.choices(LETTERS, k=length))
        records.append(record(f"read{number}", bases, some.choice(FLAGS), some))
    records.append(record("long", random_bases(some, 300_001), 16, some))
    made = tmp_path_factory.mktemp("bam") / "reads.bam"
    write(made, records)
    return made


@pytest.mark.parametrize("block_size", [1, 8, 1000, 1 << 20])
@pytest.mark.parametrize("chunk_size", [64, 5000, 1 << 20])
def test_reads_are_those_of_pysam(path, block_size, chunk_size):
    expected = expected_of(path)
    assert len(expected) > 2000
    assert read(path, block_size, chunk_size) == expected


@given(data=st.data())
def test_any_records_are_read(data, tmp_path_factory):
    some = random.Random(data.draw(st.integers(0, 1 << 30)))
    texts = data.draw(st.lists(st.text("ACGTN=RY", max_size=40), max_size=30))
    names = [data.draw(st.text("abcXYZ019:/_*", min_size=1, max_size=30)) for _ in texts]
    made = tmp_path_factory.mktemp("any") / "reads.bam"
    pairs = zip(names, texts, strict=True)
    write(made, [record(name, text, some.choice(FLAGS), some) for name, text in pairs])
    chunk = data.draw(st.integers(16, 500))
    assert read(made, data.draw(st.integers(1, 200)), chunk) == expected_of(made)


def test_plain_gzip_and_no_compression_of_blocks_are_read(path, tmp_path):
    content = gzip.decompress(path.read_bytes())
    (tmp_path / "plain.bam").write_bytes(gzip.compress(content))
    (tmp_path / "stored.bam").write_bytes(gzip.compress(content, 0))
    for name in ("plain.bam", "stored.bam"):
        assert read(tmp_path / name) == expected_of(path)


def test_a_header_alone_has_no_reads(tmp_path):
    write(tmp_path / "none.bam", [])
    assert read(tmp_path / "none.bam") == []


def test_a_file_that_ends_anywhere_is_truncated(tmp_path):
    some = random.Random(1)
    made = tmp_path / "small.bam"
    write(made, [record(f"r{n}", "ACGTN", 16 * (n % 2), some) for n in range(4)])
    content = gzip.decompress(made.read_bytes())
    whole = read(made)
    borders = {len(content)}
    for end in range(5, len(content)):
        made.write_bytes(gzip.compress(content[:end], 1))
        try:
            assert read(made) == whole[: len(read(made))]
            borders.add(end)
        except InputError as error:
            assert error.message == "the BAM data are truncated or corrupt"
    # Plain gzip has no end mark: only a cut between records cannot be seen.
    assert len(borders) == len(whole) + 1
    made.write_bytes(gzip.compress(content) + b"x")
    # What follows the compressed data is no part of them, as for gzip.
    assert read(made) == whole


def test_a_block_without_the_end_mark_is_truncated(path, tmp_path):
    made = tmp_path / "cut.bam"
    made.write_bytes(path.read_bytes().removesuffix(BGZF_END))
    with pytest.raises(InputError, match="lack bgzf's empty block"):
        read(made)


def test_any_damage_to_records_is_an_error_or_gives_reads(tmp_path):
    """Nothing outside the record is read, whatever its numbers say."""
    some = random.Random(9)
    made = tmp_path / "damaged.bam"
    write(made, [record(f"r{n}", "ACGTN" * 7, some.choice(FLAGS), some) for n in range(30)])
    content = gzip.decompress(made.read_bytes())
    refused = 0
    for _ in range(1500):
        damaged = bytearray(content)
        for _ in range(some.choice((1, 1, 4))):
            damaged[some.randrange(4, len(damaged))] = some.choice((0, 1, 127, 128, 255))
        made.write_bytes(gzip.compress(bytes(damaged), 1))
        try:
            read(made, chunk_size=some.choice((64, 1 << 16)))
        except InputError as error:
            refused += 1
            assert error.message == "the BAM data are truncated or corrupt"
    assert 100 < refused < 1400


def test_threads_decompress_a_large_file(tmp_path):
    """The reads, and the error at a damaged block, are those without threads."""
    chance = random.Random(9)
    records = []
    for number in range(3000):
        record = pysam.AlignedSegment()
        record.query_name = f"read{number}"
        record.flag = 4
        record.query_sequence = random_bases(chance, 900)
        records.append(record)
    path = tmp_path / "large.bam"
    write(path, records)
    content = path.read_bytes()
    with ReadingThreads(3) as threads:
        assert read(path, 10_000, 1 << 16, threads) == expected_of(path)
        path.write_bytes(content[:-60_000] + bytes(10) + content[-59_990:])
        messages = []
        for each in (None, threads):
            with pytest.raises(InputError) as caught:
                read(path, 10_000, 1 << 16, each)
            messages.append(str(caught.value))
    assert messages[0] == messages[1]
