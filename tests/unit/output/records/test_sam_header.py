"""The header of SAM, its read group, and the names that it refuses."""

import re
from ast import literal_eval

import numpy as np
import pytest
from helpers.loops import each
from helpers.match_cases import MatchCase
from helpers.tables import table
from helpers.text_cases import named_block, named_reference

from mummergpu.errors import InputError, OptionError
from mummergpu.output.bytes.texts import query_columns
from mummergpu.output.options import read_group_of, usual_read_group
from mummergpu.output.records.header import BY_COORDINATE, AlignmentHead, sam_header, unusual_names
from mummergpu.output.records.rows import check_reads
from mummergpu.version import __version__


def header_of(names, **told):
    return sam_header(named_reference(names, [9] * len(names)), AlignmentHead(**told)).text


def test_records_without_bases_are_left_out():
    case = MatchCase([(b"", b""), (b"chr1", b"ACGT"), (b"a,b", b""), (b"chr2", b"AC")], [])
    header = sam_header(case.reference, AlignmentHead(command="mummergpu 'a b' c\td"))
    assert header.text == (
        b"@HD\tVN:1.6\tSO:unsorted\tGO:query\n"
        b"@SQ\tSN:chr1\tLN:4\n@SQ\tSN:chr2\tLN:2\n"
        b"@PG\tID:mummergpu\tPN:mummergpu\tVN:%b\tCL:mummergpu 'a b' c d\n" % __version__.encode()
    )
    assert header.record_ids.tolist() == [-1, 0, -1, 1] and header.record_ids.dtype == np.int32


def test_what_a_header_may_tell():
    group = read_group_of("@RG\\tID:x\tSM:a b")
    assert group.name == "x"
    command = "mummergpu \udcff ä"
    checksums = [f"{number:032x}" for number in range(2)]
    told = {"read_group": group, "command": command, "order": BY_COORDINATE, "checksums": checksums}
    lines = header_of([b"a", b"b"], **told).splitlines()
    assert lines[0] == b"@HD\tVN:1.6\tSO:coordinate"
    assert [line.split(b"\t")[3] for line in lines[1:3]] == [b"M5:%032x" % n for n in range(2)]
    assert lines[3] == b"@RG\tID:x\tSM:a b"
    assert lines[4].endswith("\tCL:mummergpu ? ä".encode())
    assert b"CL:" not in header_of([b"r"])


@each("name", [b"", b"*", b"=r", b"a b", b"a\tb", b"a\x7f", b"a\x01", b"r\n", b"r\ns"])
def test_names_of_records_that_break_the_format_are_refused(name):
    with pytest.raises(InputError, match=r"r\.fa: SAM allows no such name"):
        header_of([name])


UNUSUAL = (b"A/duck/1/2015(H5N8)", b"aac(6')-Ib_1", b"a,b", b"a[1]", b'"q"', b"<x>", b"a\xc3\xa9")


@each("name", UNUSUAL)
def test_names_that_only_specifications_refuse_are_written_and_told(name):
    assert b"@SQ\tSN:" + name + b"\tLN:9\n" in header_of([b"chr1", name])
    reference = named_reference([b"chr1", name], [9, 9])
    assert name.decode(errors="backslashreplace") in unusual_names(reference)
    assert not unusual_names(named_reference([b"chr1", b"a:1|=*x"], [9, 9]))


def test_records_need_different_names():
    with pytest.raises(InputError, match=r"different names \(record 'a'\)"):
        header_of([b"a", b"b", b"a"])


def test_lengths_have_31_and_28_bits():
    longest = (1 << 31) - 1
    reference = named_reference([b"a"], [longest])
    assert b"LN:2147483647\n" in sam_header(reference, AlignmentHead()).text
    with pytest.raises(InputError, match=r"2,147,483,647 bases \(record 'a'\)"):
        sam_header(named_reference([b"a"], [longest + 1]), AlignmentHead())
    longest = (1 << 28) - 1
    check_reads(query_columns(named_block([b"a"], [longest])), "q.fa")
    with pytest.raises(InputError, match=r"268,435,455 bases \(record 'b'\)"):
        check_reads(query_columns(named_block([b"a", b"b"], [longest, longest + 1])), "q.fa")


@each(
    "name, message",
    [
        (b"n" * 255, "names of at most 254 bytes"),
        (b"@a", "no name that begins with '@' (record '@a')"),
        (b"@", "no name that begins with '@'"),
        ("ä".encode(), r"no byte 195 in a name (record 'ä')"),
        (b"\x7f", "no byte 127 in a name"),
    ],
)
def test_names_of_queries_that_break_the_format_are_refused(name, message):
    letters = bytes(range(33, 127))
    check_reads(query_columns(named_block([letters, b"", b"n" * 254], [1, 1, 1])), "q.fa")
    block = named_block([b"fine", b"", name, b"fine"], [1, 1, 1, 1])
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        check_reads(query_columns(block), "q.fa")
    assert caught.value.path == "q.fa"


@each("text, message", table(__file__, "read groups", literal_eval))
def test_other_lines_are_no_read_group(text, message):
    with pytest.raises(OptionError, match=re.escape(message)) as caught:
        read_group_of(text)
    assert caught.value.option == "read_group"


SAMPLES = """
lane1.fq.gz > lane1
in/lane1.R1.fastq.gz in/lane1.R2.fastq.gz > lane1
lane1_R1.fq > lane1
lane1_R2.fq.zst > lane1
lane1-R2.fq.bz2 > lane1
lane1_r1.fq > lane1
x_S1_L001_R1_001.fastq.gz x_S1_L001_R2_001.fastq.gz > x_S1_L001
x_S1_L001_R2_001.fastq > x_S1_L001
x.R1.bam > x
x_R1.fa > x
SRR2838702_1.fastq.gz SRR2838702_2.fastq.gz > SRR2838702
SRR2838702_1.fastq.gz > SRR2838702
SRR2838702_2.fq > SRR2838702
a_1.fa a_2.fa > a
a.1.fq a.2.fq > a
a.1.fq > a.1
a.1.fq b.2.fq > a.1
one/a_2.fa two/a_2.fa > a_2
a_1.fa > a_1
a_1.bam > a_1
a_3.fq > a_3
a_11.fq > a_11
a1.fq a2.fq > a1
aR1.fq > aR1
a_R1_01.fq > a_R1_01
_1.fq _2.fq > _1
R1.fq R2.fq > R1
1.fq 2.fq > 1
- x_2.fq > reads
"""
"""Files, and the sample; a single one that ends in 1 may be the first of many samples."""


@each("line", SAMPLES.strip().splitlines())
def test_the_sample_is_not_named_after_mates(line):
    paths, sample = line.split(" > ")
    tags = dict(tag.split(":") for tag in usual_read_group(paths.split()).line.split("\t")[1:])
    assert tags["SM"] == sample


def test_the_group_has_the_name_of_the_first_file():
    group = usual_read_group(["in/lane 1.R1.fq.gz", "in/lane 1.R2.fq.gz"])
    assert group.name == "lane_1.R1"
    assert group.line == "@RG\tID:lane_1.R1\tSM:lane_1\tPL:OTHER"
