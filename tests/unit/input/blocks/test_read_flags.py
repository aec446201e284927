"""Reads of SAM, BAM and CRAM with their qualities, single and in pairs as their flags say."""

import random
import subprocess

import pysam
import pytest
from helpers.loops import each
from helpers.naive import fold, parse_fastq_qualities, reads_of

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.input.blocks.reader import read_reader
from mummergpu.input.records.qualities import NO_QUALITY

HEADER = pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6"}, "SQ": [{"SN": "chr1", "LN": 10**6}]})
MODES = {"sam": "w", "bam": "wb", "cram": "wc"}
FIRST, LAST, REVERSE, SECONDARY, SUPPLEMENTARY = 0x41, 0x81, 0x10, 0x100, 0x800
UNMAPPED = 4


def record(name, bases, qualities, flag):
    made = pysam.AlignedSegment(HEADER)
    made.query_name, made.flag = name, flag
    made.query_sequence = bases or None
    if bases and qualities is not None:
        made.query_qualities = pysam.qualitystring_to_array(
            bytes(number + 33 for number in qualities).decode()
        )
    if not flag & UNMAPPED:
        made.reference_id, made.reference_start = 0, 99
        made.cigarstring = f"{len(bases)}M"
    return made


def write(folder, suffix, records):
    path = folder / f"reads.{suffix}"
    options = ["no_ref"] if suffix == "cram" else []
    with pysam.AlignmentFile(
        str(path), MODES[suffix], header=HEADER, format_options=[*map(str.encode, options)]
    ) as file:
        for each_record in records:
            file.write(each_record)
    return str(path)


def read(source, block_size=1000):
    with read_reader([source], block_size) as reader:
        blocks = list(reader)
        assert reader.bytes_read == reader.bytes_total
    return blocks


def random_records(paired, count, seed):
    """Return reads, some of them mapped, some with other alignments, some without qualities."""
    chance = random.Random(seed)
    records = []
    for number in range(count):
        for mate in (FIRST, LAST) if paired else (0,):
            length = chance.choice([1, 2, 35, 36, 151])
            bases = "".join(chance.choices("ACGTN", k=length))
            # SAM writes quality 9 of a single base as "*", which means that there is none.
            qualities = bytes(chance.choices([*range(9), *range(10, 94)], k=length))
            kept = qualities if chance.random() < 0.9 else None
            flag = mate | chance.choice([UNMAPPED, 0, REVERSE])
            records.append(record(f"r{number}", bases, kept, flag))
            if not flag & UNMAPPED and chance.random() < 0.3:
                more = chance.choice([SECONDARY, SUPPLEMENTARY])
                records.append(record(f"r{number}", bases, kept, flag | more))
    return records


def qualities_of(made):
    if made.query_qualities is None:
        return bytes([NO_QUALITY]) * len(made.query_sequence or "")
    return bytes(made.get_forward_qualities() or ())


def expected_of(records):
    return [
        (
            (each_record.query_name or "").encode(),
            fold((each_record.get_forward_sequence() or "").encode()),
            qualities_of(each_record),
        )
        for each_record in records
        if not each_record.flag & (SECONDARY | SUPPLEMENTARY)
    ]


@pytest.mark.parametrize("suffix", ["sam", "bam", "cram"])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("block_size", [1, 100, 1 << 20])
def test_reads_are_as_they_were_sequenced(suffix, paired, block_size, tmp_path):
    records = random_records(paired, 80, block_size)
    path = write(tmp_path, suffix, records)
    blocks = read(ReadFile(path), block_size)
    assert all(block.paired == paired for block in blocks)
    assert all(block.query_count % 2 == 0 for block in blocks if paired)
    assert reads_of(blocks) == expected_of(records)
    assert reads_of(read(ReadFile(path, paired), block_size)) == expected_of(records)


@pytest.mark.parametrize("suffix", ["sam", "bam", "cram"])
@pytest.mark.parametrize("paired", [False, True])
def test_reads_are_those_of_samtools_fastq(suffix, paired, tmp_path, samtools_binary):
    records = [made for made in random_records(paired, 100, 7) if made.query_qualities is not None]
    names = [made.query_name for made in records]
    pairs = {name for name in names if names.count(name) >= 2}
    chosen = [made for made in records if not paired or made.query_name in pairs]
    kinds = {}
    for made in chosen:
        kinds.setdefault(made.query_name, set()).add(made.flag & 0xC0)
    chosen = [made for made in chosen if not paired or len(kinds[made.query_name]) == 2]
    path = write(tmp_path, suffix, chosen)
    text = subprocess.run([samtools_binary, "fastq", "-n", path], capture_output=True, check=True)
    found = reads_of(read(ReadFile(path)))
    assert len(found) > 50
    assert found == parse_fastq_qualities(text.stdout)


@pytest.mark.parametrize("suffix", ["sam", "bam"])
@pytest.mark.parametrize("block_size", [1, 9, 1000])
def test_first_mates_come_first(suffix, block_size, tmp_path):
    records = [
        record("a/2", "ACG", b"\1\2\3", LAST),
        record("a/1", "TTTTTT", b"\4" * 6, FIRST | REVERSE),
        record("b", "GG", None, FIRST | UNMAPPED),
        record("b", "", None, LAST | UNMAPPED),
        record("c", "AC", b"\5\6", LAST | REVERSE),
        record("c", "A", b"\7", FIRST),
    ]
    path = write(tmp_path, suffix, records)
    blocks = read(ReadFile(path), block_size)
    assert all(block.paired for block in blocks)
    assert reads_of(blocks) == [
        (b"a", b"AAAAAA", b"\4" * 6),
        (b"a", b"ACG", b"\1\2\3"),
        (b"b", b"GG", b"\xff\xff"),
        (b"b", b"", b""),
        (b"c", b"A", b"\7"),
        (b"c", b"GT", b"\6\5"),
    ]


SINGLE = UNMAPPED


@each(
    "flags, names, message, record_name",
    [
        ([FIRST, LAST, SINGLE, FIRST, LAST, SINGLE], "aabccd", "a single read among pairs", "b"),
        ([SINGLE, SINGLE, FIRST, LAST], "abcc", "a read of a pair among single reads", "c"),
        ([FIRST, LAST, FIRST, FIRST, LAST, LAST], "aabcbc", "mates must follow each other", "b"),
        ([FIRST, LAST, FIRST, LAST], "aabc", "mates must follow each other", "b"),
        ([FIRST, LAST, FIRST, FIRST], "aabb", "must tell which one is the first", "b"),
        ([FIRST, LAST, 1, 1], "aabb", "must tell which one is the first", "b"),
        ([FIRST, LAST, FIRST | LAST, 1], "aabb", "must tell which one is the first", "b"),
        ([FIRST, LAST, FIRST], "aab", "the last read has no mate", "b"),
    ],
)
@pytest.mark.parametrize("suffix", ["sam", "bam"])
def test_flags_that_make_no_pairs(suffix, flags, names, message, record_name, tmp_path):
    records = [
        record(name, "ACGT", b"IIII", flag | UNMAPPED)
        for name, flag in zip(names, flags, strict=True)
    ]
    for made in records:
        made.query_qualities = pysam.qualitystring_to_array("IIII")
    path = write(tmp_path, suffix, records)
    for block_size in (1, 8, 1000):
        with pytest.raises(InputError, match=message) as caught:
            read(ReadFile(path), block_size)
        assert (caught.value.path, caught.value.record) == (path, record_name)


def test_single_flags_in_a_file_in_which_mates_alternate(tmp_path):
    records = [record(name, "ACGT", b"\1\2\3\4", UNMAPPED) for name in ("a/1", "a/2", "b", "b")]
    path = write(tmp_path, "bam", records)
    (block,) = read(ReadFile(path, interleaved=True))
    assert block.paired
    assert [name for name, _, _ in reads_of([block])] == [b"a", b"a", b"b", b"b"]
    second = [record(name, "AC", None, UNMAPPED) for name in ("a/1/2", "a/2/2", "b/2", "b")]
    first = [record(name, "ACGT", b"\1\2\3\4", UNMAPPED) for name in ("a/1", "a/2/1", "b", "b/1")]
    first[0].query_name = "a/1/1"
    mates = MateFiles(write(tmp_path, "bam", first), write(tmp_path, "sam", second))
    (block,) = read(mates)
    assert block.paired and block.pair_count == 4
    assert reads_of([block])[:2] == [(b"a/1", b"ACGT", b"\1\2\3\4"), (b"a/1", b"AC", b"\xff\xff")]


def test_numbers_are_no_characters_of_old_illumina(tmp_path):
    path = write(tmp_path, "bam", [record("a", "ACGT", bytes([31, 71, 71, 31]), UNMAPPED)])
    told = []
    with read_reader([ReadFile(path)], 100, rules=QueryRules(warn=told.append)) as reader:
        list(reader)
    assert told == []


@pytest.mark.parametrize("suffix", ["sam", "bam", "cram"])
def test_single_reads_whatever_the_flags_say(suffix, tmp_path):
    flags = (FIRST | UNMAPPED, FIRST, UNMAPPED, LAST | UNMAPPED, FIRST | REVERSE)
    records = [
        record(f"r{number // 2}", "ACGGT", bytes([number] * 5), flag)
        for number, flag in enumerate(flags)
    ]
    path = write(tmp_path, suffix, records)
    blocks = read(ReadFile(path, ignores_flags=True), 8)
    assert not any(block.paired for block in blocks)
    assert reads_of(blocks) == expected_of(records)
    blocks = read(ReadFile(write(tmp_path, suffix, records[:4]), True, True), 8)
    assert [block.paired for block in blocks] == [True, True]


def test_qualities_too_high(tmp_path):
    made = record("a", "ACGT", b"\1\2\3\4", UNMAPPED)
    made.query_qualities[2] = 94
    made.query_qualities = made.query_qualities
    for suffix in ("bam", "cram"):
        path = write(tmp_path, suffix, [made])
        with pytest.raises(InputError, match="a base quality is higher than 93") as caught:
            read(ReadFile(path))
        assert caught.value.path == path
