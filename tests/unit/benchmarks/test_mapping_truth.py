"""Where simulated reads come from: the names of dwgsim, and when two spans agree."""

import pytest
from mapping.truth import Span, overlaps, true_span

NAME = "chr20_2099194_2098997_1_0_0_0_0:0:0_1:0:0_1f"


def test_the_span_of_each_mate_counts_from_zero():
    assert true_span(NAME, 1, 150) == Span("chr20", 2099193, 2099343, True)
    assert true_span(NAME, 2, 100) == Span("chr20", 2098996, 2099096, False)


def test_a_contig_may_have_underscores():
    name = NAME.replace("chr20", "chr1_KI270706v1_random")
    found = true_span(name, 1, 150)
    assert found is not None and found.contig == "chr1_KI270706v1_random"


def test_a_read_of_random_bases_comes_from_nowhere():
    name = "chr20_2099194_2098997_1_0_0_1_0:0:0_1:0:0_1f"
    assert true_span(name, 1, 150) is not None
    assert true_span(name, 2, 150) is None


def test_another_name_is_refused():
    with pytest.raises(ValueError, match=r"dwgsim: LMONO\.17"):
        true_span("LMONO.17", 1, 150)


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        # Of 100 bases moved by 81, 19 are common to both and 181 covered together: over a tenth.
        (81, True),
        # Of 100 moved by 82, 18 of 182 are not.
        (82, False),
        (-81, True),
        (-82, False),
        (100, False),
        (5_000, False),
    ],
)
def test_spans_agree_over_a_tenth_of_their_union(moved, expected):
    true = Span("a", 1_000, 1_100, False)
    assert overlaps(Span("a", 1_000 + moved, 1_100 + moved, False), true) is expected


def test_exactly_a_tenth_is_too_little():
    # 10 common bases, 100 covered together.
    assert not overlaps(Span("a", 0, 55, False), Span("a", 45, 100, False))


def test_a_span_within_the_other_agrees_if_it_is_long_enough():
    true = Span("a", 0, 150, False)
    assert overlaps(Span("a", 60, 76, True), true)
    assert not overlaps(Span("a", 60, 75, True), true)


def test_spans_of_two_contigs_never_agree():
    assert not overlaps(Span("a", 0, 100, False), Span("b", 0, 100, False))
