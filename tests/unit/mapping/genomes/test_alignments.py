"""Alignments of small genomes, some of them circular: scores, operations, and what they cover."""

import random
from itertools import pairwise

import numpy as np
import pytest
from helpers.full_matrix import score_of
from helpers.genomes import align, changed, operations_of, sides_of
from helpers.sequences import random_bases, reverse_complement
from helpers.whole_alignments import ANY_SCORE

from mummergpu.errors import OptionError
from mummergpu.mapping.genomes.options import (
    NUCMER_COSTS,
    ClusterOptions,
    GenomeOptions,
    costs_of_gaps,
)
from mummergpu.sequence.codes import MARGIN, with_margins
from mummergpu.viterbi.recurrence.tile import Tile
from mummergpu.viterbi.whole.whole_matrix import align_whole, new_matrix


def check_rows(found, reference, queries, costs=NUCMER_COSTS):
    """Recompute all that is said of each alignment from the bases."""
    for row in range(found.count):
        query, target = sides_of(found, row, reference, queries)
        operations = operations_of(found, row)
        assert operations[0][1] == operations[-1][1] == 0
        assert all(one[1] != two[1] for one, two in pairwise(operations))
        i = j = mismatches = gap_bases = 0
        for length, kind in operations:
            if kind == 0:
                mismatches += int(np.count_nonzero(query[i : i + length] != target[j : j + length]))
                i, j = i + length, j + length
            else:
                gap_bases += length
                # No gap can move to the left.
                codes, at = (query, i) if kind == 1 else (target, j)
                assert codes[at - 1] != codes[at + length - 1]
                i, j = i + length * (kind == 1), j + length * (kind == 2)
        assert (i, j) == (query.size, target.size) and query[0] == target[0]
        assert query[-1] == target[-1] and found.mismatches[row] == mismatches
        assert found.gap_bases[row] == gap_bases
        assert found.gaps[row] == sum(kind != 0 for _, kind in operations)
        assert found.scores[row] == score_of(operations, query.tolist(), target.tolist(), costs)


def check_whole_matrix(found, reference, queries, costs=NUCMER_COSTS):
    """No path between the ends of an alignment has a higher score."""
    operations = np.empty(10_000, dtype=np.uint32)
    for row in range(found.count):
        sides = sides_of(found, row, reference, queries)
        query, target = (with_margins(side) for side in sides)
        tile = Tile(MARGIN, sides[0].size, MARGIN, sides[1].size, 1)
        score, _ = align_whole(
            *(query, target, tile), *(costs, ANY_SCORE, new_matrix(), operations, 0)
        )
        assert score == found.scores[row]


@pytest.mark.parametrize("seed", range(8))
def test_the_tiles_have_the_score_of_the_whole_matrix(seed):
    some = random.Random(seed)
    reference = [random_bases(some, 1500), random_bases(some, 2500)]
    queries = [
        changed(reference[1], some, 0.03, 0.01),
        reverse_complement(changed(reference[0], some, 0.06, 0.004)),
        changed(reference[0][200:900] + reference[1][1200:2000], some, 0.02, 0.002),
    ]
    found = align(reference, queries)
    assert set(found.queries.tolist()) == {0, 1, 2}
    check_rows(found, reference, queries)
    check_whole_matrix(found, reference, queries)


@pytest.mark.parametrize("gap_open, gap_extend", [(16, 2), (0, 9)])
def test_gaps_may_cost_something_else(gap_open, gap_extend):
    some = random.Random(gap_open)
    costs = costs_of_gaps(gap_open, gap_extend)
    reference = [random_bases(some, 2500)]
    queries = [changed(reference[0], some, 0.04, 0.01)]
    queries[0] = (
        queries[0][:900] + queries[0][930:1400] + random_bases(some, 25) + queries[0][1400:]
    )
    found = align(reference, queries, GenomeOptions(costs=costs))
    assert found.count == 1
    check_rows(found, reference, queries, costs)
    check_whole_matrix(found, reference, queries, costs)
    assert (align(reference, queries).gaps[0] > found.gaps[0]) == (gap_open == 16)


@pytest.mark.parametrize("formats, usual", [((), (3, 7)), (("paf",), (3, 7)), (("vcf",), (16, 1))])
def test_usual_penalties_of_gaps(formats, usual):
    for more, expected in (((), usual), (("vcf",), (16, 1)), (("delta", "vcf"), (3, 7))):
        costs = costs_of_gaps(None, None, (*formats, *more))
        assert (costs.insertion_open, costs.insertion_extend) == expected
        assert (costs.deletion_open, costs.deletion_extend) == expected
    assert costs_of_gaps(5, None, formats).deletion_extend == usual[1]
    assert costs_of_gaps(None, 5, formats).deletion_open == usual[0]


@pytest.mark.parametrize("differences", [0.01, 0.05, 0.1])
def test_a_changed_copy_aligns_from_end_to_end(differences):
    some = random.Random(5)
    reference = random_bases(some, 20_000)
    copy = changed(reference, some, differences, differences / 10)
    for query, strand in ((copy, 0), (reverse_complement(copy), 1)):
        found = align([reference], [query])
        assert found.count == 1 and found.strands[0] == strand
        assert found.reference_starts[0] < 100 and found.reference_ends[0] > 19_900
        check_rows(found, [reference], [query])


def test_both_strands_mirror_each_other():
    some = random.Random(11)
    reference = random_bases(some, 30_000)
    moved = reference[:9000] + reference[15_000:] + reference[9000:15_000]
    query = changed(moved, some, 0.04, 0.004)
    forward = align([reference], [query])
    mirrored = align([reverse_complement(reference)], [query])
    begins = len(reference) - mirrored.reference_ends
    assert sorted(forward.reference_starts.tolist()) == sorted(begins.tolist())
    assert sorted(forward.errors.tolist()) == sorted(mirrored.errors.tolist())
    assert forward.strands.tolist().count(0) == mirrored.strands.tolist().count(1) == 3


def test_an_inversion_is_an_alignment_of_its_own():
    reference = random_bases(random.Random(3), 9000)
    query = reference[:3000] + reverse_complement(reference[3000:6000]) + reference[6000:]
    found = align([reference], [query])
    rows = sorted(zip(found.reference_starts.tolist(), found.strands.tolist(), strict=True))
    assert [strand for _, strand in rows] == [0, 1, 0] and found.errors.sum() <= 3


def test_a_long_insertion_parts_an_alignment_and_a_short_one_does_not():
    some = random.Random(4)
    left, right = random_bases(some, 2000), random_bases(some, 2000)
    short = align([left + right], [left + random_bases(some, 30) + right])
    assert short.count == 1 and short.gap_bases.tolist() == [30]
    assert align([left + right], [left + random_bases(some, 900) + right]).count == 2


@pytest.mark.parametrize("direction", [1, -1])
def test_a_gap_joins_what_a_break_of_matches_makes_up_for(direction):
    some = random.Random(14)
    left, right = random_bases(some, 2000), random_bases(some, 2000)
    for size, count in ((85, 1), (86, 2)):
        reference, query = [left + right, left + random_bases(some, size) + right][::direction]
        found = align([reference], [query])
        assert found.count == count
        check_rows(found, [reference], [query])


@pytest.mark.parametrize("shared", [1, 3, 12])
def test_a_gap_with_repeated_ends_parts_nothing(shared):
    # The matches on both sides of the gap overlap in the query.
    some = random.Random(shared)
    left, right = random_bases(some, 400), random_bases(some, 400)
    reference = left + right[:shared] + random_bases(some, 30) + right
    for texts in ([reference, left + right], [left + right, reference]):
        found = align(texts[:1], texts[1:])
        assert found.count == 1 and found.query_ends.tolist() == [len(texts[1])]
        assert found.gaps.tolist() == [1]
        check_rows(found, texts[:1], texts[1:])
        check_whole_matrix(found, texts[:1], texts[1:])


def test_alignments_that_part_do_not_overlap():
    some = random.Random(15)
    for shared in (1, 8, 30):
        left, right = random_bases(some, 1000), random_bases(some, 1000)
        reference = left + right[:shared] + random_bases(some, 400) + right
        found = align([reference], [left + right])
        assert found.count == 2
        first, second = np.argsort(found.query_starts)
        # By chance some more bases may be equal.
        assert found.query_ends[first] - found.query_starts[second] < shared + 10
        assert found.query_ends[second] == 2000


def with_two_gaps(text):
    """Both are too long for an extension, which does not know what follows."""
    return text[:20] + text[68:-68] + text[-20:]


@pytest.mark.parametrize(
    "size, differences", [(600, 0.0), (1400, 0.03), (2400, 0.03), (7000, 0.02)]
)
def test_what_is_not_unique_joins_its_neighbours(size, differences):
    some = random.Random(size)
    left, right, repeat = random_bases(some, 300), random_bases(some, 300), random_bases(some, size)
    reference = [left + repeat + right, repeat]
    queries = [left + with_two_gaps(changed(repeat, some, differences)) + right]
    found = align(reference, queries)
    assert found.records.tolist() == [0]
    assert found.query_starts.tolist() == found.reference_starts.tolist() == [0]
    assert found.query_ends.tolist() == [len(queries[0])]
    assert found.reference_ends.tolist() == [size + 600] and found.gap_bases.tolist() == [96]
    check_rows(found, reference, queries)
    # The tile of the longest is too large for a matrix.
    if size < 7000:
        check_whole_matrix(found, reference, queries)


def test_no_alignment_goes_along_another_one_after_a_long_repeat():
    # Nothing anchors 12,000 bases: the next cluster is farther away than nucmer looks for it. The
    # gaps end extensions, and do not part what lies before and behind them.
    some = random.Random(17)
    left, right, repeat = (random_bases(some, size) for size in (3000, 3000, 12_000))
    reference = [left + repeat + right, repeat]
    parts = [left[:1500], left[1560:], repeat, right[:1500], right[1560:]]
    queries = [changed("".join(parts), some, 0.02, 0.001)]
    found = align(reference, queries)
    assert found.records.tolist() == [0] and found.reference_ends.tolist() == [18_000]
    check_rows(found, reference, queries)


def test_a_bad_stretch_breaks_an_alignment_at_the_break_length():
    some = random.Random(6)
    left, right = (random_bases(some, 1000) for _ in range(2))
    for size, count in ((60, 1), (600, 2)):
        reference = left + random_bases(some, size) + right
        query = left + random_bases(some, size) + right
        assert align([reference], [query]).count == count
    patient = GenomeOptions(break_length=2000)
    reference, query = (left + random_bases(some, 300) + right for _ in range(2))
    assert align([reference], [query], patient).count == 1


def test_without_extension_alignments_end_with_their_clusters():
    some = random.Random(7)
    reference = random_bases(some, 3000)
    query = changed(reference, some, 0.08)
    plain = align([reference], [query], GenomeOptions(extend=False))
    assert plain.count > 1
    check_rows(plain, [reference], [query])
    whole = align([reference], [query])
    assert (whole.query_ends - whole.query_starts).sum() > (
        plain.query_ends - plain.query_starts
    ).sum()


def test_breaks_match_nothing():
    some = random.Random(8)
    left, right = random_bases(some, 500), random_bases(some, 500)
    found = align([left + "N" * 20 + right], [left + "N" * 20 + right])
    assert found.count == 1 and found.mismatches.tolist() == [20]


def test_alignments_inside_others_are_dropped():
    some = random.Random(10)
    unit = random_bases(some, 400)
    reference = (
        random_bases(some, 1000) + unit + changed(unit, some, 0.1) + random_bases(some, 1000)
    )
    found = align([reference], [reference])
    for one in range(found.count):
        inside = (
            (found.strands == found.strands[one])
            & (found.query_starts <= found.query_starts[one])
            & (found.query_ends >= found.query_ends[one])
            & (found.reference_starts <= found.reference_starts[one])
            & (found.reference_ends >= found.reference_ends[one])
        )
        # Each lies in itself.
        assert np.flatnonzero(inside).tolist() == [one]


def test_nothing_in_common_makes_no_alignment():
    some = random.Random(12)
    assert align([random_bases(some, 500)], [random_bases(some, 500)]).count == 0
    few = GenomeOptions(ClusterOptions(min_bases=1000))
    text = random_bases(some, 500)
    assert align([text], [text], few).count == 0


ALL = GenomeOptions(circular=["all"])
MADE = random.Random(6)
GENOME = random_bases(MADE, 6000)


def places(found):
    """Where alignments lie in the query and in the reference."""
    columns = found.query_starts, found.query_ends, found.reference_starts, found.reference_ends
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("shift", [9, 40, 2500, 5970])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("simplify", [True, False])
def test_a_rotation_is_two_pieces(shift, is_reverse, simplify):
    """Also if a piece is shorter than a match, and there are differences near the origin."""
    rotated = GENOME[shift:] + GENOME[:shift]
    origin = 6000 - shift
    for query in (
        rotated,
        # One base differs at each side of the origin, and two are missing before it.
        rotated[: origin - 9] + rotated[origin - 7 :],
        rotated[: origin - 4] + "ACGT"["CGTA".index(rotated[origin - 4])] + rotated[origin - 3 :],
    ):
        turned = reverse_complement(query) if is_reverse else query
        found = align([GENOME], [turned], GenomeOptions(simplify=simplify, circular=["r0"]))
        before = origin - (6000 - len(query))
        assert places(found) == [(0, before, shift, 6000), (before, len(query), 0, shift)]
        assert set(found.strands.tolist()) == {int(is_reverse)}
        check_rows(found, [GENOME], [turned])


def test_gaps_at_the_origin_belong_to_no_piece():
    for query, expected in (
        (GENOME[3000:] + "ACGTTGCA" + GENOME[:3000], [(0, 3000), (3008, 6008)]),
        (GENOME[3000:-4] + GENOME[5:3000], [(0, 2996), (2996, 5991)]),
    ):
        found = align([GENOME], [query], ALL)
        ends = [place[:2] for place in places(found)]
        # A base more may be equal by chance.
        assert all(
            abs(one - other) <= 4
            for own, known in zip(ends, expected, strict=True)
            for one, other in zip(own, known, strict=True)
        )
        check_rows(found, [GENOME], [query])


def test_queries_of_more_than_a_round():
    query = GENOME[4000:] + GENOME + GENOME[:1000]
    found = align([GENOME], [query], ALL)
    assert places(found) == [(0, 2000, 4000, 6000), (2000, 8000, 0, 6000), (8000, 9000, 0, 1000)]


def test_what_does_not_cross_an_origin_stays():
    """Linear records, and contigs of circular ones, have the rows that they have without."""
    made = random.Random(7)
    others = [random_bases(made, 3000) for _ in range(2)]
    reference = [others[0], GENOME, others[1]]
    parts = (GENOME[20:5900], others[1], GENOME[900:4000])
    queries = [changed(one, made, 0.01, 0.001) for one in parts]
    queries += [reverse_complement(one) for one in queries]
    plain = align(reference, queries)
    for options in (GenomeOptions(circular=["r1"]), ALL):
        found = align(reference, queries, options)
        for name in ("queries", "strands", "records", "cigars", "mismatches", "scores"):
            assert np.array_equal(getattr(found, name), getattr(plain, name)), name
        assert places(found) == places(plain)
    rotated = others[0][1000:] + others[0][:1000]
    assert len(places(align(reference, [rotated], GenomeOptions(circular=["r1"])))) == 2
    assert places(align(reference, [rotated[:2010]], GenomeOptions(circular=["r1"]))) == [
        (0, 2000, 1000, 3000)
    ]
    assert len(places(align(reference, [rotated[:2010]], ALL))) == 2


def test_a_name_that_the_reference_lacks_is_refused():
    with pytest.raises(OptionError, match="no record named 'x'"):
        align([GENOME], [GENOME], GenomeOptions(circular=["x"]))
