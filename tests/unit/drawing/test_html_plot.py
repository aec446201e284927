"""The page of a dot plot: what it holds, what it leaves out, what it must not be broken by."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.made_matches import made_matches

from mummergpu.drawing.dots import groups_of
from mummergpu.drawing.html_plot import html_plot
from mummergpu.drawing.segments import arranged, segments_of


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
    segments = segments_of(made_matches(rows, [50, 40, 7], [100, 60]))
    found = data_of(html_plot(segments, "title"))
    assert found["count"] == 3
    assert found["columns"] == [[103, 10, 100], [50, 5, 9], [-30, 20, -20]]
    assert found["reference"] == {
        "title": "reference",
        "total": 160,
        "names": ["r0", "r1"],
        "starts": [0, 100],
        "lengths": [100, 60],
        "turned": [False, False],
    }
    # A query without a match has no name on the page, but its place.
    assert found["query"]["names"] == ["q0", "q1"] and found["query"]["total"] == 97


def test_turned_queries_are_marked():
    rows = [(0, 0, 5, 60, 20, True), (1, 0, 0, 3, 30, False)]
    found = data_of(html_plot(arranged(segments_of(made_matches(rows, [50, 40], [100]))), "t"))
    assert found["query"]["names"] == ["q1", "*q0"]
    assert found["query"]["turned"] == [False, True]
    assert found["columns"] == [[3, 60], [0, 65], [30, 20]]


def test_long_genomes_keep_their_positions():
    rows = [(0, 1, 5, 7, 20, True)]
    segments = segments_of(made_matches(rows, [50], [5_000_000_000, 100]))
    found = data_of(html_plot(segments, ""))
    assert not found["small"] and found["columns"] == [[5_000_000_007.0], [5.0], [-20.0]]


def test_a_page_leaves_out_the_shortest_and_says_so():
    made = np.random.default_rng(3)
    rows = [
        (int(query), 0, 0, int(place), int(length), False)
        for query, place, length in zip(
            made.integers(0, 50, 4000),
            made.integers(0, 900, 4000),
            made.integers(20, 90, 4000),
            strict=True,
        )
    ]
    matches = made_matches(rows, [100] * 50, [1000])
    page = html_plot(segments_of(matches), "many", "MUMs", max_bytes=20_000)
    found = data_of(page)
    assert 1000 < found["count"] < 1250
    lengths = sorted((row[4] for row in rows), reverse=True)
    assert found["columns"][2] == lengths[: found["count"]]
    assert f"the longest {found['count']:,} of 4,000 MUMs" in page
    whole = html_plot(segments_of(matches), "many")
    assert data_of(whole)["count"] == 4000
    assert len(page) - 20_000 < len(whole) - 4000 * 16 + 1000


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
    assert f"script-src 'sha256-{digest}'" in page
    assert "<title>Dot plot</title>" in page
    assert not re.findall(r"https?:", page)


def test_a_page_without_matches():
    found = data_of(html_plot(segments_of(made_matches([], [10, 20], [30])), "none"))
    assert found["count"] == 0 and found["query"]["total"] == 30


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
