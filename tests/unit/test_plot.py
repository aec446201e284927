"""The public plots: axes of matplotlib from matches, on axes of the caller or new ones."""

import random
import subprocess
import sys

import matplotlib
import pytest
from helpers.made_matches import made_matches
from helpers.sequences import reverse_complement

import mummergpu
from mummergpu import plot
from mummergpu.errors import LibraryError


@pytest.fixture(autouse=True)
def no_window():
    from matplotlib import pyplot

    before = matplotlib.get_backend()
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


@pytest.fixture
def matches():
    rows = [(0, 0, 5, 60, 20, True), (1, 0, 0, 3, 30, False), (1, 1, 0, 3, 9, False)]
    return made_matches(rows, [50, 40], [100, 20])


def test_plots_are_axes(matches, tmp_path):
    dots = mummergpu.plot.dotplot(matches, title="Dots")
    assert dots.get_xlim() == (0, 120) and dots.get_ylim() == (0, 90)
    assert dots.get_title("left").splitlines()[0] == "Dots"
    assert len(dots.collections) == 2
    dots.figure.savefig(tmp_path / "dots.png")


def test_matches_of_an_index_can_be_drawn(tmp_path):
    text = "".join(random.Random(1).choices("ACGT", k=400))
    turned = reverse_complement(text[200:300])
    index = mummergpu.Index.build([("whole", text)], min_length=20)
    found = index.match([("turned", turned), ("same", text[:150])], min_length=20, strands="both")
    axes = plot.dotplot(found)
    names = [label.get_text() for label in axes.yaxis.get_ticklabels(minor=True)]
    assert names == ["same", "*turned"]
    assert "*turned" in plot.page(found)
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

    assert names(None) == names(True) == ["q1", "*q0"]
    assert names(False) == ["q0", "q1"]


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
