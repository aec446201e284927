"""The header of SAM, and the names that it refuses."""

import re

import numpy as np
import pytest
from helpers.match_cases import MatchCase
from helpers.text_cases import named_block, named_reference

from mummergpu.errors import InputError, OptionError
from mummergpu.output.bytes.texts import query_columns
from mummergpu.output.options import read_group_of
from mummergpu.output.records.header import AlignmentHead, sam_header, unusual_names
from mummergpu.output.records.rows import check_reads
from mummergpu.version import __version__


def test_records_without_bases_are_left_out():
    case = MatchCase([(b"", b""), (b"chr1", b"ACGT"), (b"a,b", b""), (b"chr2", b"AC")], [])
    header = sam_header(case.reference, AlignmentHead(command="mummergpu 'a b' c\td"))
    assert header.text == (
        b"@HD\tVN:1.6\tSO:unsorted\tGO:query\n"
        b"@SQ\tSN:chr1\tLN:4\n@SQ\tSN:chr2\tLN:2\n"
        b"@PG\tID:mummergpu\tPN:mummergpu\tVN:%b\tCL:mummergpu 'a b' c d\n" % __version__.encode()
    )
    assert header.record_ids.tolist() == [-1, 0, -1, 1]


def test_a_run_without_a_command_has_no_command_line():
    header = sam_header(named_reference([b"r"], [9]), AlignmentHead())
    assert b"CL:" not in header.text


def test_a_command_that_is_no_text_is_written():
    header = sam_header(named_reference([b"r"], [9]), AlignmentHead(command="mummergpu \udcff ä"))
    assert header.text.endswith("\tCL:mummergpu ? ä\n".encode())


def test_the_read_group_is_a_line():
    head = AlignmentHead(read_group_of(r"@RG\tID:x\tSM:a b"))
    header = sam_header(named_reference([b"r"], [9]), head)
    assert header.text.splitlines()[2] == b"@RG\tID:x\tSM:a b"


@pytest.mark.parametrize(
    "name", [b"", b"*", b"=r", b"a b", b"a\tb", b"a\x7f", b"a\x01", b"r\n", b"r\ns"]
)
def test_names_of_records_that_break_the_format_are_refused(name):
    with pytest.raises(InputError, match=r"r\.fa: SAM allows no such name"):
        sam_header(named_reference([name], [9]), AlignmentHead())


UNUSUAL = (b"A/duck/1/2015(H5N8)", b"aac(6')-Ib_1", b"a,b", b"a[1]", b'"q"', b"<x>", b"a\xc3\xa9")


@pytest.mark.parametrize("name", UNUSUAL)
def test_names_that_only_specifications_refuse_are_written_and_told(name):
    reference = named_reference([b"chr1", name], [9, 9])
    assert b"@SQ\tSN:" + name + b"\tLN:9\n" in sam_header(reference, AlignmentHead()).text
    assert name.decode(errors="backslashreplace") in unusual_names(reference)
    assert not unusual_names(named_reference([b"chr1", b"a:1|=*x"], [9, 9]))


def test_records_need_different_names():
    with pytest.raises(InputError, match=r"different names \(record 'a'\)"):
        sam_header(named_reference([b"a", b"b", b"a"], [9, 9, 9]), AlignmentHead())


def test_records_have_lengths_of_31_bits():
    longest = (1 << 31) - 1
    assert (
        b"LN:2147483647\n" in sam_header(named_reference([b"a"], [longest]), AlignmentHead()).text
    )
    with pytest.raises(InputError, match=r"2,147,483,647 bases \(record 'a'\)"):
        sam_header(named_reference([b"a"], [longest + 1]), AlignmentHead())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (b"n" * 255, "names of at most 254 bytes"),
        (b"@a", "no name that begins with '@' (record '@a')"),
        (b"@", "no name that begins with '@'"),
        ("ä".encode(), r"no byte 195 in a name (record 'ä')"),
        (b"\x7f", "no byte 127 in a name"),
    ],
)
def test_names_of_queries_that_break_the_format_are_refused(name, message):
    block = named_block([b"fine", b"", name, b"fine"], [1, 1, 1, 1])
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        check_reads(query_columns(block), "q.fa")
    assert caught.value.path == "q.fa"


def test_names_of_all_allowed_bytes_pass():
    letters = bytes(range(33, 127))
    check_reads(query_columns(named_block([letters, b"", b"n" * 254], [1, 1, 1])), "q.fa")


def test_queries_have_lengths_of_28_bits():
    longest = (1 << 28) - 1
    check_reads(query_columns(named_block([b"a"], [longest])), "q.fa")
    with pytest.raises(InputError, match=r"268,435,455 bases \(record 'b'\)"):
        check_reads(query_columns(named_block([b"a", b"b"], [longest, longest + 1])), "q.fa")


def test_a_read_group_has_a_name():
    group = read_group_of("@RG\\tSM:x\tID:lane 1")
    assert (group.line, group.name) == ("@RG\tSM:x\tID:lane 1", "lane 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ID:x", "does not begin with '@RG'"),
        ("@RG ID:x", "does not begin with '@RG'"),
        ("@RG", "has no ID"),
        (r"@RG\tSM:x", "has no ID"),
        (r"@RG\tID:", "'ID:' is no field"),
        (r"@RG\tID:x\t", "'' is no field"),
        (r"@RG\tID:x\tSMx", "'SMx' is no field"),
        ("@RG\\tID:x\ny", "is no field"),
        ("@RG\\tID:ä", "is no field"),
        (r"@RG\tID:x\tID:y", "has a field twice"),
    ],
)
def test_other_lines_are_no_read_group(text, message):
    with pytest.raises(OptionError, match=re.escape(message)) as caught:
        read_group_of(text)
    assert caught.value.option == "read_group"


def test_numbers_of_records_have_the_type_of_bam():
    header = sam_header(named_reference([b"a"], [1]), AlignmentHead())
    assert header.record_ids.dtype == np.int32
