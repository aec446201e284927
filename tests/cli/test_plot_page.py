"""The page of a dot plot in a real browser: drawn, moved, zoomed, and asked for positions."""

import html
import json
import re
from pathlib import Path

import pytest
from helpers.browser import visit
from helpers.made_matches import made_matches

from mummergpu.drawing.colours import FORWARD, REVERSE
from mummergpu.plot import page

LENGTH = 10_000

ROWS = [
    (0, 0, 1000, 2000, 3000, False),
    (1, 0, 500, 6000, 2000, True),
    (1, 0, 4000, 500, 1000, False),
]
"""The second query matches mostly in reverse, so it is turned around and comes second."""

FIXED_SIZE = "<style>#plot { width: 1168px; height: 700px }</style>"
"""The browser may change the size of its window while it starts: the plot keeps its own."""

QUESTIONS = Path(__file__).with_name("plot_page.js").read_text()
"""What uses the page, and writes what it finds as JSON into the element `answers`."""


@pytest.fixture(scope="module")
def made():
    matches = made_matches(ROWS, [LENGTH, LENGTH], [LENGTH])
    matches.query_names[1] = "<img src=x onerror=alert(1)>"
    return page(matches, title="Two queries")


@pytest.fixture(scope="module")
def visited(browser_binary, made, tmp_path_factory):
    """The page, opened from a folder in which there is nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "dots.html").write_text(made)
    return visit(browser_binary, folder / "dots.html", tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def answers(browser_binary, made, tmp_path_factory):
    """What a script that uses the page finds; the page itself allows no script but its own."""
    folder = tmp_path_factory.mktemp("asked")
    free = re.sub(r"<meta http-equiv[^>]*>", "", made)
    asking = f'<pre id="answers"></pre><script>{QUESTIONS}</script>'
    fixed = free.replace("</head>", FIXED_SIZE + "</head>")
    (folder / "dots.html").write_text(fixed.replace("</body>", asking + "</body>"))
    opened = visit(browser_binary, folder / "dots.html", tmp_path_factory.mktemp("browser"))
    text = re.search(r'<pre id="answers">(.*?)</pre>', opened.document, re.DOTALL)
    assert text and text[1].startswith("{"), (text and text[1], opened.console)
    return json.loads(html.unescape(text[1]))


def bases_of(place):
    """The positions in what the page says of a place: in the reference, and in the query."""
    return [int(number.replace(",", "")) for number in re.findall(r": ([\d,]+)", place)]


def test_the_page_asks_for_nothing_and_complains_of_nothing(visited):
    assert visited.requests == set()
    assert visited.console == []
    assert "<h1>Two queries</h1>" in visited.document
    assert "3 matches · * reverse complement" in visited.document


def test_matches_are_drawn_in_both_colours(answers):
    assert min(answers["size"]) > 300
    assert answers["colours"].get(FORWARD, 0) > 300
    # The short match of the turned query falls.
    assert answers["colours"].get(REVERSE, 0) > 30


def test_a_match_tells_its_positions(answers):
    assert sorted(one.replace("\N{EN DASH}", "-") for one in answers["found"]) == sorted(
        [
            "reference r0: 2,001-5,000\nquery q0: 1,001-4,000\n3,000 bp, forward",
            "reference r0: 6,001-8,000\nquery *<img src=x onerror=alert(1)>: 501-2,500\n"
            "2,000 bp, reverse",
            "reference r0: 501-1,500\nquery *<img src=x onerror=alert(1)>: 4,001-5,000\n"
            "1,000 bp, forward",
        ]
    )


def test_the_place_of_the_pointer_is_told(answers):
    reference, query = bases_of(answers["corner"])
    # At the left, and near the top, where the turned query begins.
    assert 1 <= reference < 200 and 1 <= query < 900
    assert answers["corner"].startswith("r0: ") and "*<img" in answers["corner"]
    assert answers["outside"] == {"place": "", "found": None}


def test_the_wheel_zooms_around_the_pointer(answers):
    (corner, middle), (near, same) = (
        map(bases_of, answers["zoomed"][at]) for at in ("before", "after")
    )
    assert abs(middle[0] - same[0]) <= 60
    assert abs(near[0] - same[0]) < 0.2 * abs(corner[0] - middle[0])


def test_a_drag_moves_and_a_key_shows_all_again(answers):
    # What was at 200 is at 300 now.
    assert abs(bases_of(answers["dragged"])[0] - bases_of(answers["zoomed"]["after"][0])[0]) <= 2
    assert answers["reset"] == answers["zoomed"]["before"][0]


def test_short_matches_can_be_left_out(answers):
    assert answers["filtered"] == [
        ["1,000 bp: 3 of 3", 3],
        # In the middle is the square root of 1,000 x 3,000.
        ["1,732 bp: 2 of 3", 2],
        ["3,000 bp: 1 of 3", 1],
    ]
