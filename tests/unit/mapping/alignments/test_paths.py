import numpy as np
import pytest

from mummergpu.mapping.alignments.paths import add_operations, measure_path
from mummergpu.sequence.codes import encode
from mummergpu.viterbi.recurrence.operations import append_operation

M, I, D, S = 0, 1, 2, 4  # noqa: E741


def packed(operations):
    return np.array([length << 4 | kind for kind, length in operations], dtype=np.uint32)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([(M, 5), (M, 3), (I, 2)], [(M, 8), (I, 2)]),
        ([(S, 0), (M, 5), (S, 0)], [(M, 5)]),
        ([(M, 1), (D, 0), (M, 1)], [(M, 2)]),
        ([(I, 1), (D, 1), (I, 1)], [(I, 1), (D, 1), (I, 1)]),
    ],
)
def test_operations_of_one_kind_are_joined(operations, expected):
    # What is before the CIGAR is of another read, and must not grow.
    cigars = packed([(M, 9)] + [(M, 0)] * 4)
    end = 1
    for kind, length in operations:
        end = append_operation(cigars, 1, end, kind, length)
    assert cigars[:end].tolist() == packed([(M, 9), *expected]).tolist()
    for is_reversed in (False, True):
        flank = packed(operations[::-1] if is_reversed else operations)
        end = add_operations(cigars, 1, 1, flank, len(operations), is_reversed)
        assert cigars[:end].tolist() == packed([(M, 9), *expected]).tolist()


@pytest.mark.parametrize(
    ("read", "reference", "operations", "edits"),
    [
        (b"ACGTACGT", b"ACGTACGT", [(M, 8)], 0),
        (b"ACGTACGT", b"ACCTACGA", [(M, 8)], 2),
        # An unknown base is a difference, whatever it lies on.
        (b"ACNTNCGT", b"ACGTNCGT", [(M, 8)], 2),
        (b"ACGTTTACGT", b"ACGTACGA", [(M, 4), (I, 2), (M, 4)], 3),
        (b"ACGTACGT", b"ACGTTTTACGT", [(M, 4), (D, 3), (M, 4)], 3),
    ],
)
def test_edits_are_counted_along_the_path(read, reference, operations, edits):
    codes, others = encode(b"T" + read), encode(b"GG" + reference)
    found = measure_path(codes, 1, others, 2, packed(operations), 0, len(operations))
    assert found == (2 + len(reference), edits)
