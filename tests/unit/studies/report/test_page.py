"""Numbers as text."""

import math

from helpers.loops import each

from mummergpu.studies.report.page import (
    bytes_text,
    digits,
    listed,
    noise_text,
    percent_text,
    range_text,
    time_text,
)


@each(
    "seconds, text",
    [
        (1.5, "1.50 s"),
        (123.4, "123 s"),
        (4321.0, "4,321 s"),
        (0.00654, "6.54 ms"),
        (2.5e-5, "25.0 µs"),
        (2e-8, "0.0200 µs"),
        (0.0, "0 s"),
        (None, "-"),
        (math.nan, "-"),
    ],
)
def test_times_have_three_digits_and_a_unit(seconds, text):
    assert time_text(seconds) == text


@each(
    "percent, text",
    [(3.21, "+3.2%"), (-0.04, "0.0%"), (-11.0, "-11.0%"), (250.2, "+250%"), (None, "-")],
)
def test_changes_have_a_sign(percent, text):
    assert percent_text(percent) == text


def test_other_numbers():
    assert range_text(-1.0, 2.0) == "-1.0% to +2.0%"
    assert range_text(None, 2.0) == "-"
    assert (noise_text(0.7213), noise_text(None)) == ("±0.72%", "unknown")
    assert [bytes_text(n) for n in (5, 2048, 3 << 20, 5 << 30)] == [
        *("5 bytes", "2.00 KiB", "3.00 MiB", "5.00 GiB")
    ]
    assert (digits(0), digits(12345.6), digits(0.01234)) == ("0", "12,346", "0.0123")
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")
