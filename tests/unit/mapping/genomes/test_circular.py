"""Alignments with circular records go on behind the last base at the first one."""

import random

import numpy as np
import pytest
from helpers.genomes import align, changed, sides_of
from helpers.sequences import random_bases, reverse_complement

from mummergpu.errors import OptionError
from mummergpu.mapping.genomes.options import GenomeOptions

ALL = GenomeOptions(circular=["all"])
MADE = random.Random(6)
GENOME = random_bases(MADE, 6000)


def places(found):
    """Where alignments lie in the query and in the reference."""
    columns = found.query_starts, found.query_ends, found.reference_starts, found.reference_ends
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def check_edits(found, reference, queries):
    """The operations make the query of the reference with the differences that are counted."""
    for row in range(found.count):
        query, bases = sides_of(found, row, reference, queries)
        begin, end = found.cigar_offsets[row : row + 2]
        i, j, mismatches, gaps = 0, 0, 0, 0
        for operation in found.cigars[begin:end].tolist():
            kind, length = operation & 15, operation >> 4
            if kind == 0:
                mismatches += int((query[i : i + length] != bases[j : j + length]).sum())
            else:
                gaps += length
            i += length * (kind != 2)
            j += length * (kind != 1)
        assert (i, j) == (query.size, bases.size)
        assert (mismatches, gaps) == (found.mismatches[row], found.gap_bases[row])
        assert {found.cigars[begin] & 15, found.cigars[end - 1] & 15} == {0}


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
        expected = [(0, before, shift, 6000), (before, len(query), 0, shift)]
        assert places(found) == expected
        assert set(found.strands.tolist()) == {int(is_reverse)}
        check_edits(found, [GENOME], [turned])


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
        check_edits(found, [GENOME], [query])


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
