"""The pixels of a dot plot: where matches are drawn, in which direction and colour."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from io import BytesIO
from unittest.mock import patch

import numpy as np
import pytest
from helpers.made_matches import Row, made_matches
from matplotlib.figure import Figure
from matplotlib.image import imread

from mummergpu.drawing import dots
from mummergpu.drawing.colours import FORWARD, REVERSE
from mummergpu.drawing.dots import draw_dots, groups_of, remarks
from mummergpu.drawing.picture import PictureStyle, picture_bytes
from mummergpu.drawing.segments import in_layout, segments_of
from mummergpu.errors import OptionError

SIZE = 1000

FORWARD_ROW: Row = (0, 0, 100, 200, 300, False)
REVERSE_ROW: Row = (0, 0, 600, 550, 350, True)


def drawn(segments, **how):
    """The pixels inside the axes: uint8, row 0 at the top, 4 pixels for 10 bases."""
    figure = Figure(figsize=(4, 4), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    draw_dots(axes, segments, **how)
    axes.set_axis_off()
    axes.get_legend().remove()
    buffer = BytesIO()
    figure.savefig(buffer, dpi=100)
    buffer.seek(0)
    return (imread(buffer)[..., :3] * 255).round().astype(int)


def colour_at(pixels, reference, query):
    column = int(reference / SIZE * 400)
    row = 399 - int(query / SIZE * 400)
    return "#" + "".join(f"{part:02x}" for part in pixels[row, column])


@pytest.mark.parametrize("as_image", [False, True])
def test_matches_are_where_they_should_be(as_image):
    segments = segments_of(made_matches([FORWARD_ROW, REVERSE_ROW], [SIZE], [SIZE]))
    with patch.object(dots, "_MAX_LINES", 1 if as_image else 10):
        pixels = drawn(segments, line_width=3)
    for done in (0.1, 0.5, 0.9):
        assert colour_at(pixels, 200 + 300 * done, 100 + 300 * done) == FORWARD
        # A reverse match goes down from left to right.
        assert colour_at(pixels, 550 + 350 * done, 950 - 350 * done) == REVERSE
    for reference, query in ((250, 350), (600, 650), (850, 900), (100, 0), (520, 420)):
        assert colour_at(pixels, reference, query) == "#ffffff"


@pytest.mark.parametrize("as_image", [False, True])
def test_a_short_match_is_seen(as_image):
    segments = segments_of(made_matches([(0, 0, 500, 500, 1, False)], [SIZE], [SIZE]))
    with patch.object(dots, "_MAX_LINES", 0 if as_image else 10):
        pixels = drawn(segments)
    part = pixels[190:210, 190:210]
    assert (part.sum(axis=2) < 700).any()
    pixels[190:210, 190:210] = 255
    assert (pixels == 255).all()


def test_a_turned_query_rises():
    rows = [(0, 0, 100, 500, 300, True), (1, 0, 0, 0, 450, False)]
    segments = in_layout(segments_of(made_matches(rows, [500, 500], [SIZE])), True)
    pixels = drawn(segments, line_width=3)
    # The first query is drawn above the second; its bases 100 to 400 are at 600 to 900 from above.
    for done in (0.1, 0.5, 0.9):
        assert colour_at(pixels, 500 + 300 * done, 500 + 100 + 300 * done) == FORWARD
        assert colour_at(pixels, 450 * done, 450 * done) == FORWARD
    assert REVERSE not in {
        colour_at(pixels, x, y) for x in range(0, 999, 9) for y in range(0, 999, 9)
    }
    assert "* reverse complement" in remarks(segments)


def test_what_is_left_out_is_said():
    made = segments_of(made_matches([FORWARD_ROW], [SIZE, SIZE], [SIZE]))
    assert remarks(made) == ["1 matches"]
    from dataclasses import replace

    less = replace(made, match_count=1234, query_count=7)
    assert remarks(less, "MUMs") == ["the longest 1 of 1,234 MUMs", "the first 2 of 7 queries"]


def many_rows(count):
    made = np.random.default_rng(5)
    return [
        (0, 0, int(a), int(b), int(length), bool(way))
        for a, b, length, way in zip(
            made.integers(0, 900, count),
            made.integers(0, 900, count),
            made.integers(1, 100, count),
            made.integers(0, 2, count),
            strict=True,
        )
    ]


@pytest.mark.parametrize(("count", "images"), [(0, 0), (40, 0), (1500, 1), (110_000, 1)])
def test_an_svg_is_small_and_well_formed(count, images):
    segments = segments_of(made_matches(many_rows(count), [SIZE], [SIZE]))
    picture = picture_bytes(segments, PictureStyle(title='<a> & "b"', size=(4.0, 4.0)), "svg")
    text = picture.decode()
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    found = [one for one in root.iter() if one.tag.endswith("image")]
    assert len(found) == images
    assert len(text) < 1_000_000
    assert '&lt;a&gt; &amp; "b"' in text or "&lt;a&gt; &amp; &quot;b&quot;" in text
    # The lines are there as lines, in both colours.
    if count == 40:
        assert all(len(re.findall(f"stroke: {one}", text)) > 5 for one in (FORWARD, REVERSE))


@pytest.mark.parametrize("file_format", ["png", "svg", "pdf", "html"])
def test_the_same_matches_make_the_same_bytes(file_format):
    segments = segments_of(made_matches(many_rows(1200), [SIZE], [SIZE]))
    style = PictureStyle(title="twice", size=(3.0, 3.0))
    assert picture_bytes(segments, style, file_format) == picture_bytes(
        segments, style, file_format
    )


IDENTITIES = {99.0: "#0072b2", 98.9: "#56b4e9", 90.0: "#e69f00", 85.0: "#d55e00", 12.0: "#8a8a8a"}


@pytest.mark.parametrize("as_image", [False, True])
def test_colours_tell_how_alike_the_bases_are(as_image):
    rows = [(0, 0, 100 + 150 * n, 50, 100, n % 2 == 1) for n in range(5)]
    made = segments_of(made_matches(rows, [SIZE], [SIZE]))
    segments = replace(made, identities=np.array(list(IDENTITIES)))
    groups = groups_of(segments, "identity")
    assert [int(group.members.sum()) for group in groups] == [1, 1, 1, 1, 1]
    assert [group.label for group in groups][:2] == ["99% and more", "95 to 99%"]
    with patch.object(dots, "_MAX_LINES", 1 if as_image else 10):
        pixels = drawn(segments, line_width=3, groups=groups)
    for number, colour in enumerate(IDENTITIES.values()):
        assert colour_at(pixels, 100, 150 + 150 * number) == colour


def test_exact_matches_have_no_identities_to_tell():
    segments = segments_of(made_matches([FORWARD_ROW], [SIZE], [SIZE]))
    with pytest.raises(OptionError, match="exact matches are all alike"):
        groups_of(segments, "identity")


def test_lines_are_as_wide_as_asked():
    segments = segments_of(made_matches([FORWARD_ROW], [SIZE], [SIZE]))
    inks = [
        len(
            picture_bytes(segments, PictureStyle(line_width=width), "svg").split(b"stroke-width: 6")
        )
        for width in (None, 6.0)
    ]
    assert inks == [1, 2]
