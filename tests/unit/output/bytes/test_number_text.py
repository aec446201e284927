"""The numbers of rows as text: of any size, in any column."""

import pytest
from helpers.text_cases import AWKWARD_NUMBERS, TextCase, columns_of, named_block, named_reference
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.output.options import TextStyle
from mummergpu.sequence.strand import Strand


def text_of_numbers(numbers, style, names):
    """Format rows of any reference position, query position and length, all 1-based.

    They lie in the last record; those before it have one base.
    """
    largest = max(max(row) for row in numbers)
    reference = named_reference(names, [1] * (len(names) - 1) + [2 * largest])
    first = int(reference.record_starts[-1])
    rows = [(query - 1, first + start - 1, length) for start, query, length in numbers]
    block = named_block([b"q"], [2 * largest])
    return TextCase("numbers", reference, block, {Strand.FORWARD: columns_of([rows])}).text(style)


def rows_of_numbers(numbers, name=b""):
    return b"> q\n" + b"".join(name + b"%8d  %8d  %8d\n" % row for row in numbers)


@pytest.mark.parametrize("column", range(3))
def test_numbers_around_every_power_of_ten(column):
    numbers = []
    for number in AWKWARD_NUMBERS:
        for other in (1, 99_999_999, 100_000_000):
            row = [other, 7, 20]
            row[column] = number
            numbers.append((row[0], row[1], row[2]))
    assert text_of_numbers(numbers, TextStyle(), [b"r"]) == rows_of_numbers(numbers)
    names = [b"a_name_of_more_than_16_bytes", b"last"]
    name = b"  last" + b" " * 24 + b"  "
    assert text_of_numbers(numbers, TextStyle(), names) == rows_of_numbers(numbers, name)


def test_every_group_of_four_digits_in_every_place():
    numbers = [(n, n * 10_000, 99_999_999 - n) for n in range(1, 10_000)]
    assert text_of_numbers(numbers, TextStyle(), [b"r"]) == rows_of_numbers(numbers)


NUMBERS = st.one_of(st.sampled_from(AWKWARD_NUMBERS), st.integers(1, 10**8), st.integers(1, 10**15))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_any_numbers(numbers):
    assert text_of_numbers(numbers, TextStyle(), [b"r"]) == rows_of_numbers(numbers)
