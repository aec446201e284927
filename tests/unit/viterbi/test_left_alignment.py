"""Gaps moved to the left, against a search of all places in plain Python."""

from itertools import pairwise

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mummergpu.sequence.codes import BREAK, encode
from mummergpu.viterbi.left_alignment import align_left
from mummergpu.viterbi.recurrence.model import Costs

EXAMPLES = settings(max_examples=300)
OPERATIONS = "MIDNSHP=X"


def parsed(cigar):
    found = []
    length = 0
    for letter in cigar:
        if letter.isdigit():
            length = 10 * length + int(letter)
        else:
            found.append((length, letter))
            length = 0
    return found


def text_of(operations):
    return "".join(f"{length}{kind}" for length, kind in operations)


def aligned(cigar, read, reference, over_ties=False):
    """What the compiled function makes of a CIGAR, at indices that are not 0."""
    packed = [length << 4 | OPERATIONS.index(kind) for length, kind in parsed(cigar)]
    operations = np.array([9, 9, *packed, 9], dtype=np.uint32)
    arrays = [np.array([7, *codes, 7], dtype=np.uint8) for codes in (read, reference)]
    count = align_left(operations, 2, len(packed), arrays[0], 1, arrays[1], 1, Costs(), over_ties)
    assert operations[:2].tolist() == [9, 9] and operations[-1] == 9
    return text_of([(int(one) >> 4, OPERATIONS[one & 15]) for one in operations[2:][:count]])


def aligned_text(cigar, read, reference, over_ties=False):
    codes = encode(read.encode()).tolist(), encode(reference.encode()).tolist()
    return aligned(cigar, *codes, over_ties)


def test_gaps_move_over_repeats():
    assert aligned_text("6M1D3M", "CAAAAAGTT", "CAAAAAAGTT") == "1M1D8M"
    assert aligned_text("6M1I3M", "CAAAAAAGTT", "CAAAAAGTT") == "1M1I8M"
    assert aligned_text("6M2D2M", "GACACATT", "GACACACATT") == "1M2D7M"
    assert aligned_text("5M2D3M", "GACACATT", "GACACACATT") == "1M2D7M"
    assert aligned_text("2S4M1D3M1S", "TTCAAAGTTT", "CAAAAGTTT") == "2S1M1D6M1S"


def test_gaps_stay_where_nothing_repeats():
    for cigar in ("8M", "3M1D5M", "4M1I3M", "2S4M1I1M", "3H5M", "4M1I1D3M", "4M3N4M"):
        assert aligned_text(cigar, "ACGTCAGT", "ACGTTCAGTACGTACGT") == cigar


def test_a_gap_does_not_move_over_breaks():
    assert aligned_text("6M1D3M", "CAANAAGTT", "CAANAAAGTT") == "4M1D5M"
    # A break equals nothing, not even another break, and the gap may consist of one.
    for other in "NR":
        assert aligned_text("3M1D3M", f"CA{other}GTT", f"CA{other}NGTT") == "3M1D3M"
        assert aligned_text("3M1I3M", f"CA{other}NGTT", f"CA{other}GTT") == "3M1I3M"
    assert aligned_text("4M2D2M", "CANATT", "CANANATT") == "3M2D3M"


def test_gaps_of_one_kind_that_meet_become_one():
    assert aligned_text("3M1D2M1D3M", "CAAAAGTT", "CAAAAAAGTT") == "1M2D7M"
    assert aligned_text("3M1I1I4M", "CAAAAAGTT", "CAAAGTT") == "1M2I6M"
    assert aligned_text("2M3M", "CAAAA", "CAAAA") == "5M"


def test_a_base_stays_between_gaps_of_two_kinds():
    assert aligned_text("2M1I4M1D3M", "CAAAAAAGTT", "CAAAAAAGTT") == "1M1I1M1D7M"


def test_a_gap_does_not_come_first():
    assert aligned_text("3M1D2M", "AAAAA", "AAAAAA") == "1M1D4M"
    assert aligned_text("1S3M1I2M", "GAAAAAA", "AAAAA") == "1S1M1I4M"


def columns(operations, read, reference):
    """The pairs of bases of an alignment that are not equal, and the gaps' lengths, sorted."""
    i = j = differences = 0
    gaps = []
    for length, kind in operations:
        if kind == "M":
            for step in range(length):
                differences += read[i + step] != reference[j + step] or read[i + step] == BREAK
            i, j = i + length, j + length
        elif kind == "I":
            gaps.append(length)
            i += length
        else:
            gaps.append(-length)
            j += length
    assert (i, j) == (len(read), len(reference))
    return [differences, *sorted(gaps)]


def moved_by_one(operations, read, reference):
    """Whether some gap could move by one more base."""
    i = j = 0
    for number, (length, kind) in enumerate(operations):
        if kind != "M":
            codes, at = (read, i) if kind == "I" else (reference, j)
            before = operations[number - 1]
            if before[0] > 1 and codes[at - 1] == codes[at + length - 1] != BREAK:
                return True
        i += length * (kind != "D")
        j += length * (kind != "I")
    return False


@st.composite
def alignments(draw):
    """An alignment whose gaps are anywhere between matches."""
    base = st.integers(0, draw(st.sampled_from([1, 2, 3])) - 1)
    operations = [(draw(st.integers(1, 6)), "M")]
    for _ in range(draw(st.integers(0, 4))):
        operations.append((draw(st.integers(1, 4)), draw(st.sampled_from("ID"))))
        operations.append((draw(st.integers(1, 6)), "M"))
    read = []
    reference = []
    for length, kind in operations:
        bases = [draw(base) for _ in range(length)]
        if kind != "D":
            read += bases
        if kind != "I":
            reference += bases
    for codes in (read, reference):
        if draw(st.booleans()):
            codes[draw(st.integers(0, len(codes) - 1))] = draw(st.sampled_from([0, BREAK]))
    return operations, read, reference


@EXAMPLES
@given(alignments())
@example((parsed("1M1D1M1I1M"), [0, 0, 0, 0], [0, 0, 0, 0]))
def test_any_alignment(alignment):
    operations, read, reference = alignment
    found = parsed(aligned(text_of(operations), read, reference))
    before, after = (columns(each, read, reference) for each in (operations, found))
    # Gaps of one kind may have met; else the alignment has the same gaps and differences.
    assert after[0] == before[0]
    for sign in (1, -1):
        lengths = [[sign * gap for gap in each[1:] if sign * gap > 0] for each in (before, after)]
        assert sum(lengths[0]) == sum(lengths[1]) and len(lengths[1]) <= len(lengths[0])
    assert not moved_by_one(found, read, reference)
    kinds = [kind for _, kind in found]
    assert all(one != other for one, other in pairwise(kinds))
    assert aligned(text_of(found), read, reference) == text_of(found)


def test_gaps_move_over_a_variant_beside_them():
    # TG is deleted, or CT, and then G is a mismatch; of C, T and G one is an A in the read.
    read, reference = "TTACAATGAA", "TTACTGATGAA"
    assert aligned_text("5M1D5M", read, reference) == "5M1D5M"
    assert aligned_text("5M1D5M", read, reference, True) == "4M1D6M"
    # The same for an insertion.
    assert aligned_text("5M1I5M", "TTACTGATGAA", "TTACAATGAA", True) == "4M1I6M"
    # N in the read costs 1 wherever it is, and N in the reference what a mismatch does.
    assert aligned_text("4M1D4M", "ACGNACGT", "ACGTCACGT", True) == "3M1D5M"
    assert aligned_text("4M1D4M", "ACGAACGT", "ACGNCACGT", True) == "3M1D5M"
    # With the gap before it, N would be in the place of a base that differs: 3 less.
    assert aligned_text("4M1I3M", "ACGNAACC", "ACGTACC", True) == "4M1I3M"
    assert aligned_text("4M1D4M", "ACGTACGT", "ACGTCACGT", True) == "4M1D4M"


def score_at(before, gap, read, reference):
    """The score of an alignment but for its gap, of bases of the reference if it is positive."""
    costs = Costs()
    pairs = list(zip(read[:before], reference[:before], strict=False))
    pairs += zip(read[before + max(-gap, 0) :], reference[before + max(gap, 0) :], strict=False)
    scores = {True: costs.match, False: -costs.mismatch}
    return sum(-costs.unknown if base == BREAK else scores[base == other] for base, other in pairs)


@EXAMPLES
@given(
    read=st.lists(st.sampled_from((0, 1, 1, 4)), min_size=8, max_size=14),
    other=st.lists(st.sampled_from((0, 1, 1, 4)), min_size=18, max_size=18),
    gap=st.integers(-3, 3).filter(bool),
    is_near=st.booleans(),
)
def test_gaps_go_to_the_leftmost_place_with_the_best_score(read, other, gap, is_near):
    reference = (read[:4] + other[: max(gap, 0)] + read[4:] if is_near else []) + other
    kept = len(read) - max(-gap, 0)
    scores = {n: score_at(n, gap, read, reference) for n in range(1, kept)}
    best = [n for n, score in scores.items() if score == max(scores.values())]
    kind = f"{gap}D" if gap > 0 else f"{-gap}I"
    for n in best:
        expected = f"{best[0]}M{kind}{kept - best[0]}M"
        assert aligned(f"{n}M{kind}{kept - n}M", read, reference, True) == expected
