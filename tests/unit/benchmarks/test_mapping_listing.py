"""Single reads to study: the wrong ones of a mapper, and those that two differ in."""

from mapping.judge import Verdict
from mapping.listing import differing_lines, wrong_lines
from mapping.sam import Placement
from mapping.truth import Span

TRUTH = Span("a", 100, 150, True)


def read(name, start, quality=60):
    span = None if start is None else Span("a", start, start + 50, False)
    placed = Placement(name, 1, 50, span, quality, "50M", "AS:i:50\tXS:i:44")
    return Verdict(placed, TRUTH, start == 100)


def cells(lines):
    head, *rest = (line.split("\t") for line in lines)
    return [dict(zip(head, words, strict=True)) for words in rest]


def test_wrong_and_unmapped_reads_are_listed():
    found = cells(wrong_lines([read("x", 100), read("y", 900, 7), read("z", None, 0)]))
    assert found[0] == {
        "read": "y",
        "mate": "1",
        "truth": "a:101-150:-",
        "placed": "a:901-950:+",
        "mapq": "7",
        "cigar": "50M",
        "AS": "50",
        "XS": "44",
    }
    assert [(row["read"], row["placed"]) for row in found] == [("y", "a:901-950:+"), ("z", "-")]


def test_reads_of_low_quality_can_be_left_out():
    found = cells(wrong_lines([read("y", 900, 7), read("z", 900, 8)], 8))
    assert [row["read"] for row in found] == ["z"]


def test_reads_that_two_mappers_differ_in_are_listed_in_any_order():
    first = [read("both", 100), read("mine", 100), read("theirs", 700), read("neither", 700)]
    second = [read("theirs", 100), read("neither", 800), read("both", 100), read("mine", 900, 3)]
    found = cells(differing_lines(first, second))
    assert [(row["read"], row["right"]) for row in found] == [("mine", "1"), ("theirs", "2")]
    assert (found[0]["1_placed"], found[0]["2_placed"]) == ("a:101-150:+", "a:901-950:+")
    assert found[0]["2_mapq"] == "3"


def test_a_read_that_one_mapper_left_out_is_listed_if_the_other_is_right():
    found = cells(differing_lines([read("x", 100), read("y", 900)], [read("z", 100)]))
    assert [(row["read"], row["right"]) for row in found] == [("x", "1"), ("z", "2")]
    assert (found[0]["2_placed"], found[1]["1_placed"]) == ("-", "-")


def test_differing_reads_of_low_quality_in_both_can_be_left_out():
    first = [read("x", 100, 3), read("y", 100, 3)]
    second = [read("x", 900, 9), read("y", 900, 4)]
    found = cells(differing_lines(first, second, 5))
    assert [row["read"] for row in found] == ["x"]
