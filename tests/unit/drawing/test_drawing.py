"""Dot plots: records on axes, the order of queries, pixels, pages, files of matches."""

import base64
import hashlib
import json
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from io import BytesIO
from itertools import combinations
from unittest.mock import patch

import matplotlib
import numpy as np
import pytest
from helpers.loops import each
from helpers.made_matches import made_matches
from helpers.sequences import reverse_complement
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.image import imread

import mummergpu
from mummergpu import plot
from mummergpu.drawing import dots
from mummergpu.drawing.colours import FORWARD, REVERSE
from mummergpu.drawing.dots import (
    bases_in_pixels,
    density_image,
    draw_dots,
    groups_of,
    label_axis,
    length_text,
    record_ticks,
    remarks,
    tick_step,
)
from mummergpu.drawing.html_plot import html_plot
from mummergpu.drawing.match_files import format_of_matches, read_matches
from mummergpu.drawing.picture import PictureStyle, picture_bytes
from mummergpu.drawing.segments import Chromosomes, arranged, best_layout, in_layout, segments_of
from mummergpu.drawing.style import plain_settings, shortened
from mummergpu.errors import LibraryError, OptionError


def test_positions_belong_to_records_that_are_not_empty():
    made = axis_of(0, 3, 0, 0, 2, 0)
    assert made.base_count == 5 and made.numbers_of(np.arange(5)).tolist() == [1, 1, 1, 4, 4]


def axis_of(*lengths, names=None, **more):
    names = names or [f"record_{number}" for number in range(len(lengths))]
    return Chromosomes(names, np.array(lengths, dtype=np.int64), "genome", **more)


@pytest.mark.parametrize(
    ("lengths", "turned", "places", "numbers"),
    [
        # A single record has a tick at its start.
        ([1050], None, [0, 500, 1000], [0, 500, 1000]),
        ([1050, 100, 0, 600], None, [500, 1000, 1650], [500, 1000, 500]),
        # Those of a turned record count from its other end.
        ([1050, 600], [True, False], [550, 50, 1550], [500, 1000, 500]),
    ],
)
def test_ticks_count_within_their_record(lengths, turned, places, numbers):
    turns = None if turned is None else np.array(turned)
    found = record_ticks(axis_of(*lengths, turned=turns), 500)
    assert [array.tolist() for array in found] == [places, numbers]


@pytest.mark.parametrize(
    ("total", "most", "step"),
    [(4_639_675, 10, 500_000), (10, 10, 1), (11, 10, 2), (16_569, 14, 2000), (3, 20, 1)],
)
def test_steps_are_round(total, most, step):
    assert tick_step(total, most) == step


def test_lengths_in_words():
    told = [length_text(bases) for bases in (1, 999, 4640, 48_502, 4_639_675, 3_100_000_000)]
    assert told == ["1 bp", "999 bp", "4.64 kb", "48.5 kb", "4.64 Mb", "3,100 Mb"]


def test_a_long_name_keeps_its_end():
    name = "gi|49175990|ref|NC_000913.2|"
    assert shortened(name, 24) == "gi|49175990|…C_000913.2|" and shortened(name, 28) == name
    assert len(shortened(name, 7)) == 7 and shortened(name, 7) == "gi|….2|"
    assert shortened("a\nb") == "a b"


AXES = {
    "one": axis_of(4_639_675, names=["NC_000913.2"]),
    "a plasmid": axis_of(5_845_528, 94_000, names=["NZ_CP016625.1", "NZ_CP016626.1"]),
    "chromosomes": axis_of(*(230_000 + 97_000 * n % 1_300_000 for n in range(16))),
    "contigs": axis_of(*(300 + 7919 * n % 43_000 for n in range(33))),
    "many contigs": axis_of(*(500 + 104_729 * n % 90_000 for n in range(3000))),
    "long names": axis_of(*[10_000] * 5, names=["a_name_that_never_ends_" * 3] * 5),
    "reads": axis_of(*[100] * 20_000),
    "no bases": axis_of(0, 0),
    "nothing": axis_of(names=[]),
}


CROWDED = ("chromosomes", "many contigs", "long names")


@each(
    "size, case",
    [
        *(((7.0, 7.0), case) for case in AXES),
        *((size, case) for size in ((3.0, 3.0), (12.0, 4.0)) for case in CROWDED),
    ],
)
def test_labels_do_not_overlap(size, case):
    with plain_settings():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        label_axis(axes, "x", AXES[case])
        label_axis(axes, "y", AXES[case])
        figure.draw_without_rendering()
        for axis in (axes.xaxis, axes.yaxis):
            labels = [*axis.get_ticklabels(), *axis.get_ticklabels(minor=True), axis.label]
            boxes = [label.get_window_extent() for label in labels if label.get_text()]
            assert boxes and not any(a.overlaps(b) for a, b in combinations(boxes, 2))
            # They are inside the picture.
            edges = figure.bbox
            for box in boxes:
                assert edges.x0 - 1 <= box.x0 and box.x1 <= edges.x1 + 1
                assert edges.y0 - 1 <= box.y0 and box.y1 <= edges.y1 + 1


def test_there_are_names_and_borders():
    with plain_settings():
        axes = Figure(figsize=(7, 7)).add_subplot()
        label_axis(axes, "x", AXES["chromosomes"])
        label_axis(axes, "y", AXES["a plasmid"])
        assert axes.get_xlabel() == "genome, 16 records (12.7 Mb)"
        assert axes.get_ylabel() == "genome, 2 records (Mb)" and len(axes.lines) == 15 + 1
        names = [label.get_text() for label in axes.yaxis.get_ticklabels(minor=True)]
        assert names == ["NZ_CP016625.1"]
        names = [label.get_text() for label in axes.xaxis.get_ticklabels(minor=True)]
        assert len(names) >= 10


def layout_of(rows, queries, references):
    order, is_turned = best_layout(segments_of(made_matches(rows, queries, references)))
    return order.tolist(), is_turned.tolist()


def test_queries_come_in_the_order_of_the_reference():
    rows = [
        (0, 1, 0, 10, 30, False),
        (1, 0, 0, 200, 30, False),
        (2, 0, 0, 50, 30, True),
        (4, 1, 0, 0, 10, False),
    ]
    order, is_turned = layout_of(rows, [40, 40, 40, 40, 40], [300, 100])
    # The fourth matches nowhere, and the fifth before the first in the second record.
    assert order == [2, 1, 4, 0, 3] and is_turned == [False, False, True, False, False]


def test_the_record_that_shares_most_bases_counts_and_of_equal_ones_the_first():
    rows = [
        *((0, 0, start, start, 20, False) for start in (0, 30, 60)),
        (0, 1, 0, 0, 50, True),
        (1, 1, 0, 60, 5, False),
    ]
    assert layout_of(rows, [100, 100], [100, 100]) == ([0, 1], [False, False])
    rows = [(0, 1, 0, 5, 20, False), (0, 0, 30, 50, 20, False), (1, 0, 0, 99, 1, False)]
    assert layout_of(rows, [100, 100], [100, 100])[0] == [0, 1]
    # A far copy does not move a query.
    rows = [(0, 0, 0, 900, 10, False), (0, 0, 20, 120, 50, False), (1, 0, 0, 500, 50, False)]
    assert layout_of(rows, [100, 100], [1000])[0] == [0, 1]
    assert layout_of([], [5, 5], [10]) == ([0, 1], [False, False])


def shown_rows(segments):
    """The rows of segments as the records have them, from the places on the axes."""
    queries, references = segments.queries, segments.references
    numbers = queries.numbers_of(segments.query_positions)
    rows = []
    for at, number in enumerate(numbers.tolist()):
        inside = int(segments.query_positions[at] - queries.offsets[number])
        length = int(segments.lengths[at])
        turned = bool(queries.is_turned[number])
        start = int(queries.lengths[number]) - inside - length if turned else inside
        reverse = bool(segments.is_reverse[at]) != turned
        place = int(segments.reference_positions[at])
        rows.append((queries.names[number], start, place, length, reverse))
    assert references.base_count >= 0
    return rows


@given(st.data(), st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_arranged_matches_are_the_same_matches(data, queries):
    filled = [number for number, length in enumerate(queries) if length]
    rows = []
    for _ in range(data.draw(st.integers(0, 8)) if filled else 0):
        query = data.draw(st.sampled_from(filled))
        start = data.draw(st.integers(0, queries[query] - 1))
        length = data.draw(st.integers(1, queries[query] - start))
        place = data.draw(st.integers(0, 20))
        rows.append(
            (query, data.draw(st.integers(0, 1)), start, place, length, data.draw(st.booleans()))
        )
    segments = segments_of(made_matches(rows, queries, [40, 40]))
    placed = arranged(segments)
    assert shown_rows(placed) == shown_rows(segments)
    assert sorted(placed.queries.names) == sorted(segments.queries.names)
    # Most matched bases of a query rise.
    rising = np.where(placed.is_reverse, -placed.lengths, placed.lengths)
    by_query = np.bincount(
        placed.queries.numbers_of(placed.query_positions), rising, minlength=len(queries)
    )
    assert len({row[1] for row in rows}) > 1 or (by_query >= 0).all()


def test_one_query_stays_as_it_is_unless_asked():
    segments = segments_of(made_matches([(0, 0, 10, 20, 5, True)], [50], [50]))
    assert in_layout(segments, None) is segments
    turned = in_layout(segments, True)
    assert turned.queries.label(0) == "*q0"
    assert turned.query_positions.tolist() == [35] and turned.is_reverse.tolist() == [False]
    several = segments_of(made_matches([(0, 0, 10, 20, 5, True)], [50, 1], [50]))
    assert in_layout(several, None).queries.is_turned.any()
    assert in_layout(several, False) is several


SIZE = 1000

FORWARD_ROW = (0, 0, 100, 200, 300, False)
REVERSE_ROW = (0, 0, 600, 550, 350, True)


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
    assert (pixels[190:210, 190:210].sum(axis=2) < 700).any()
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
    less = replace(made, match_count=1234, query_count=7)
    assert remarks(less, "MUMs") == ["the longest 1 of 1,234 MUMs", "the first 2 of 7 queries"]


def many_rows(count):
    ends = [0, 0, 1, 0], [900, 900, 100, 2]
    numbers = np.random.default_rng(5).integers(*ends, (count, 4)).tolist()
    return [(0, 0, query, place, length, bool(way)) for query, place, length, way in numbers]


@pytest.mark.parametrize(("count", "images"), [(0, 0), (40, 0), (1500, 1), (110_000, 1)])
def test_an_svg_is_small_and_well_formed(count, images):
    segments = segments_of(made_matches(many_rows(count), [SIZE], [SIZE]))
    picture = picture_bytes(segments, PictureStyle(title='<a> & "b"', size=(4.0, 4.0)), "svg")
    text = picture.decode()
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    found = [one for one in root.iter() if one.tag.endswith("image")]
    assert len(found) == images and len(text) < 1_000_000
    assert '&lt;a&gt; &amp; "b"' in text or "&lt;a&gt; &amp; &quot;b&quot;" in text
    # The lines are there as lines, in both colours.
    strokes = [len(re.findall(f"stroke: {one}", text)) for one in (FORWARD, REVERSE)]
    assert count != 40 or min(strokes) > 5


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
    for width, count in ((None, 0), (6.0, 1)):
        picture = picture_bytes(segments, PictureStyle(line_width=width), "svg")
        assert picture.count(b"stroke-width: 6") == count


COLOURS = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))


def image_of(matches, pixels):
    segments = segments_of(matches)
    members = [~segments.is_reverse, segments.is_reverse]
    return density_image(segments, pixels, pixels, COLOURS, members)


@given(st.data(), st.integers(1, 5))
def test_pixels_hold_all_bases_where_they_lie(data, max_steps):
    size, pixels = 60, 6
    rows = []
    for _ in range(data.draw(st.integers(1, 6))):
        query, place = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
        length = data.draw(st.integers(1, size - max(query, place)))
        rows.append((0, 0, query, place, length, data.draw(st.booleans())))
    segments = segments_of(made_matches(rows, [size], [size]))
    with patch.object(dots, "_MAX_STEPS", max_steps):
        for way in (0, 1):
            found = bases_in_pixels(segments, pixels, pixels, segments.is_reverse == way)
            chosen = [row for row in rows if row[5] == bool(way)]
            assert np.isclose(found.sum(), sum(row[4] for row in chosen))
            reached = np.zeros((pixels, pixels), dtype=bool)
            for _, _, query, place, length, reverse in chosen:
                for at in range(length):
                    y = query + (length - 1 - at if reverse else at)
                    row, column = y * pixels // size, (place + at) * pixels // size
                    reached[max(0, row - 1) : row + 2, max(0, column - 1) : column + 2] = True
            assert not found[~reached].any()


def test_directions_and_colours():
    rows = [(0, 0, 0, 0, 40, False), (0, 0, 60, 60, 40, True)]
    image = image_of(made_matches(rows, [100], [100]), 10)
    for at in range(4):
        assert image[at, at].tolist() == [0, 0, 1, 1]
        assert image[9 - at, 6 + at].tolist() == [1, 0, 0, 1]
    assert image[9, 0, 3] == 0 and image[0, 9, 3] == 0


def test_a_short_match_is_fainter_than_a_long_one_but_seen():
    rows = [(0, 0, 0, 0, 500, False), (0, 0, 100, 900, 20, False)]
    image = image_of(made_matches(rows, [1000], [1000]), 100)
    assert image[5, 5, 3] == 1
    assert 0.3 < image[10, 90, 3] <= 1 and image[10, 91, 3] == image[10, 90, 3]
    # Two bases of ten that a full pixel has, and the pixels right of and above it: of a root of a
    # fifth 7 / 16 are left. In a picture of which a quarter is full the faintest are 0.35 * 3 / 4.
    image = image_of(made_matches([(0, 0, 0, 0, 2, False)], [40], [40]), 4)
    assert np.allclose(image[:2, :2, 3], 0.2625 + 0.7375 * 7 / 16, atol=1e-7)
    assert not image[2:, :, 3].any() and not image[:, 2:, 3].any()
    # Where two strands meet, their colours mix by the bases.
    rows = [(0, 0, 0, 0, 30, False), (0, 0, 0, 0, 10, True)]
    image = image_of(made_matches(rows, [1000], [1000]), 10)
    assert np.allclose(image[0, 0, :3], [0.25, 0, 0.75])


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    made = json.loads(found[1])
    kinds = ["<u4", "<u4", "<i4"] if made["small"] else ["<f8"] * 3
    raw = base64.b64decode(made["columns"])
    breadth = len(raw) // 3
    made["columns"] = [
        np.frombuffer(raw[at * breadth : (at + 1) * breadth], kind).tolist()
        for at, kind in enumerate(kinds)
    ]
    return made


def test_the_page_holds_the_matches_longest_first():
    rows = [(0, 0, 5, 10, 20, False), (1, 1, 0, 3, 30, True), (0, 1, 9, 0, 20, True)]
    found = data_of(html_plot(segments_of(made_matches(rows, [50, 40, 7], [100, 60])), "title"))
    assert found["count"] == 3 and found["columns"] == [[103, 10, 100], [50, 5, 9], [-30, 20, -20]]
    assert found["reference"] == {
        "title": "reference",
        "total": 160,
        "names": ["r0", "r1"],
        "starts": [0, 100],
        "lengths": [100, 60],
        "turned": [False, False],
    }
    none = data_of(html_plot(segments_of(made_matches([], [10, 20], [30])), "none"))
    assert none["count"] == 0 and none["query"]["total"] == 30
    # A query without a match has no name on the page, but its place.
    assert found["query"]["names"] == ["q0", "q1"] and found["query"]["total"] == 97


def test_turned_queries_are_marked():
    rows = [(0, 0, 5, 60, 20, True), (1, 0, 0, 3, 30, False)]
    found = data_of(html_plot(arranged(segments_of(made_matches(rows, [50, 40], [100]))), "t"))
    assert found["query"]["names"] == ["q1", "*q0"] and found["query"]["turned"] == [False, True]
    assert found["columns"] == [[3, 60], [0, 65], [30, 20]]


def test_long_genomes_keep_their_positions():
    rows = [(0, 1, 5, 7, 20, True)]
    found = data_of(html_plot(segments_of(made_matches(rows, [50], [5_000_000_000, 100])), ""))
    assert not found["small"] and found["columns"] == [[5_000_000_007.0], [5.0], [-20.0]]


def test_a_page_leaves_out_the_shortest_and_says_so():
    numbers = np.random.default_rng(3).integers([0, 0, 20], [50, 900, 90], (4000, 3)).tolist()
    rows = [(query, 0, 0, place, length, False) for query, place, length in numbers]
    matches = made_matches(rows, [100] * 50, [1000])
    page = html_plot(segments_of(matches), "many", "MUMs", max_bytes=20_000)
    found = data_of(page)
    assert 1000 < found["count"] < 1250
    assert found["columns"][2] == sorted((row[4] for row in rows), reverse=True)[: found["count"]]
    assert f"the longest {found['count']:,} of 4,000 MUMs" in page
    whole = html_plot(segments_of(matches), "many")
    assert data_of(whole)["count"] == 4000 and len(page) - 20_000 < len(whole) - 4000 * 16 + 1000


def named(name):
    matches = made_matches([(0, 0, 0, 0, 5, False)], [10], [10])
    matches.query_names[0] = matches.reference_names[0] = name
    return matches


@pytest.mark.parametrize(
    "name", ["</script><b>", "{{script}}", "<!--<script>", 'a"b\\', "β", "\udcff"]
)
def test_names_do_no_harm(name):
    page = html_plot(segments_of(named(name)), name)
    plain = html_plot(segments_of(named("x")), "x")
    assert data_of(page)["query"]["names"] == [name]
    assert page.count("<script") == plain.count("<script") == 2
    assert page.count("</script>") == 2 and "<b>" not in page
    assert ("<title>{{script}}</title>" in page) == (name == "{{script}}")


def test_only_its_own_script_may_run():
    page = html_plot(segments_of(named("x")), "")
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page and "<title>Dot plot</title>" in page
    assert not re.findall(r"https?:", page)


def test_a_page_tells_groups_of_matches_by_their_numbers():
    rows = [(0, 0, 5, 10, 20, False), (0, 1, 0, 3, 30, True)]
    segments = segments_of(made_matches(rows, [50], [100, 60]))
    page = html_plot(segments, "t")
    found = data_of(page)
    assert list(base64.b64decode(found["kinds"])) == [1, 0]
    assert found["colours"] == ["--forward", "--reverse"] and found["width"] == pytest.approx(1.7)
    assert 'style="--swatch: var(--reverse)">reverse</span>' in page
    segments = replace(segments, identities=np.array([91.0, 99.5]))
    page = html_plot(segments, "t", "alignments", groups_of(segments, "identity"), 2.4)
    found = data_of(page)
    assert list(base64.b64decode(found["kinds"])) == [0, 2]
    assert found["labels"][2] == "90 to 95%" and found["width"] == pytest.approx(3.4)
    assert 'style="--swatch: #0072b2">99% and more</span>' in page
    assert "2 alignments" in page


MATCHED_RECORDS = [("r", "ACGTTGCAGGATCCTTAGCA" * 2), ("s", "TTTTGGGGCATCATCGAC")]
QUERIES = [("none", "AC"), ("q", "TGCTAAGGATCCTGCAACGT"), ("p", "GGGGCATCATAAAACGTTGCAGG")]


@pytest.mark.parametrize("name", ["x.paf", "x.paf.gz"])
def test_matches_come_back(name, tmp_path):
    found = mummergpu.Index.build(MATCHED_RECORDS, min_length=6).match(
        QUERIES, backend="cpu", strands="both"
    )
    path = str(tmp_path / name)
    found.write(path)
    read = read_matches(path)

    def rows(matches):
        queries, references = matches.query_names, matches.reference_names
        columns = (matches.query_start, matches.reference_start, matches.length, matches.reverse)
        places = zip(*(column.tolist() for column in columns), strict=True)
        names = [queries[number] for number in matches.query.tolist()]
        others = [references[number] for number in matches.reference.tolist()]
        return sorted(zip(names, others, places, strict=True))

    assert rows(read) == rows(found)
    assert len(rows(read)) > 5 and read.reverse.any() and not read.reverse.all()
    assert dict(zip(read.query_names, read.query_lengths.tolist(), strict=True)) == {
        name: len(bases) for name, bases in QUERIES[1:]
    }
    least = int(read.length.max())
    longest = read_matches(path, least)
    assert longest.length.tolist() == [one for one in read.length if one == least]
    assert set(read.identity.tolist()) == {100} and longest.identity.size < len(rows(read))


def test_an_alignment_with_gaps_has_the_length_of_its_shorter_side(tmp_path):
    path = tmp_path / "x.paf"
    path.write_text("q\t80\t10\t40\t-\tr\t90\t1\t35\t30\t36\t60\tcg:Z:30M\n\n")
    read = read_matches(str(path))
    assert (read.query_start[0], read.reference_start[0], read.length[0]) == (10, 1, 30)
    assert read.identity.tolist() == [100 * 30 / 36]
    path = tmp_path / "x.delta"
    path.write_text("r q\nNUCMER\n>r q 90 80\n2 35 40 11 4 4 0\n-12\n3\n0\n")
    read = read_matches(str(path))
    assert (read.query_start[0], read.reference_start[0], read.length[0]) == (10, 1, 30)
    assert read.reverse.tolist() == [True]
    # Four errors in the 34 bases of the longer side.
    assert read.identity.tolist() == [pytest.approx(100 * 30 / 34)]


def test_the_name_tells_the_format():
    names = ("x.paf", "x.PAF.gz", "a.b/x.delta", "x.mums", "paf", "x.fa.gz", "-")
    assert list(map(format_of_matches, names)) == ["paf", "paf", "delta", None, None, None, None]


@pytest.fixture
def no_window():
    from matplotlib import pyplot

    before = matplotlib.get_backend()
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


@pytest.fixture
def matches(no_window):
    rows = [(0, 0, 5, 60, 20, True), (1, 0, 0, 3, 30, False), (1, 1, 0, 3, 9, False)]
    return made_matches(rows, [50, 40], [100, 20])


def test_plots_are_axes(matches, tmp_path):
    dots = mummergpu.plot.dotplot(matches, title="Dots")
    assert dots.get_xlim() == (0, 120) and dots.get_ylim() == (0, 90)
    assert dots.get_title("left").splitlines()[0] == "Dots" and len(dots.collections) == 2
    dots.figure.savefig(tmp_path / "dots.png")


def test_matches_of_an_index_can_be_drawn(no_window, tmp_path):
    text = "".join(random.Random(1).choices("ACGT", k=400))
    turned = reverse_complement(text[200:300])
    index = mummergpu.Index.build([("whole", text)], min_length=20)
    found = index.match([("turned", turned), ("same", text[:150])], min_length=20, strands="both")
    names = [label.get_text() for label in plot.dotplot(found).yaxis.get_ticklabels(minor=True)]
    assert names == ["same", "*turned"] and "*turned" in plot.page(found)
    found.write(str(tmp_path / "x.svg"))
    assert (tmp_path / "x.svg").read_text().startswith("<?xml")


def test_plots_take_the_axes_of_the_caller(matches, tmp_path):
    from matplotlib import pyplot

    settings = dict(matplotlib.rcParams)
    figure, grid = pyplot.subplots(2, 2)
    inside = figure.add_subfigure(grid[1, 1].get_gridspec()[1, 1]).subplots()
    assert plot.dotplot(matches, grid[0, 0]) is grid[0, 0]
    assert plot.dotplot(matches, inside) is inside
    figure.savefig(tmp_path / "all.png")
    assert pyplot.get_fignums() == [1] and dict(matplotlib.rcParams) == settings


def test_queries_are_ordered_unless_the_caller_says_otherwise(matches):
    def names(order):
        axes = plot.dotplot(matches, order=order)
        return [label.get_text() for label in axes.yaxis.get_ticklabels(minor=True)]

    assert names(None) == names(True) == ["q1", "*q0"] and names(False) == ["q0", "q1"]


def test_a_page_needs_no_library(matches, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "<title>A page</title>" in plot.page(matches, title="A page")
    with pytest.raises(LibraryError, match=r"mummergpu.plot needs .*'mummergpu\[plot\]'"):
        plot.dotplot(matches)


def test_the_package_finds_its_plots_when_asked():
    program = (
        "import sys, mummergpu; assert 'mummergpu.plot' not in sys.modules;"
        "mummergpu.plot.dotplot; assert 'matplotlib' not in sys.modules;"
        "assert not hasattr(mummergpu, 'plots')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
