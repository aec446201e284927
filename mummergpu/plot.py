"""Pictures of matches: `dotplot`, `coverage` and `lengths` return axes of matplotlib.

    axes = mummergpu.plot.dotplot(matches)
    axes.figure.savefig("dots.png")

They need matplotlib (``pip install 'mummergpu[plot]'``); `page` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mummergpu.drawing.coverage import BINS, CoverageCounter, draw_coverage
from mummergpu.drawing.dots import LINE_WIDTH, draw_dots
from mummergpu.drawing.lengths import LengthCounter, draw_lengths
from mummergpu.drawing.page import page_of
from mummergpu.drawing.picture import default_size, require_matplotlib
from mummergpu.drawing.query_layout import in_layout
from mummergpu.drawing.segments import (
    Matches,
    reference_positions_of,
    reference_records,
    segments_of,
)
from mummergpu.errors import OptionError
from mummergpu.runtime.option_values import number, positive, shown, text, truth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Matches", "coverage", "dotplot", "lengths", "page"]


def dotplot(
    matches: Matches,
    ax: Axes | None = None,
    *,
    order: bool | None = None,
    title: str | None = None,
    linewidth: float = LINE_WIDTH,
) -> Axes:
    """Draw each match as a line, at its place in the reference and in the query.

    Parameters
    ----------
    matches : Matches
        The matches.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.
    order : bool, optional
        Whether to order the queries by where they lie on the reference, and to turn around those
        that match mostly on the reverse strand; a turned one has ``*`` before its name. By default
        if there are several queries.
    title : str, optional
        A title.
    linewidth : float
        The width of the lines in points.

    Returns
    -------
    matplotlib.axes.Axes
        The axes: the reference from left to right, the queries from the bottom to the top, both in
        bases.

    Raises
    ------
    LibraryError
        If matplotlib is missing.
    """
    segments, caption = in_layout(segments_of(_checked(matches)), _order(order)), _title(title)
    width = number("linewidth", linewidth)
    axes = _axes(ax, "dots")
    draw_dots(axes, segments, caption, line_width=width)
    return axes


def coverage(
    matches: Matches, ax: Axes | None = None, *, bins: int = BINS, title: str | None = None
) -> Axes:
    """Draw how many matches lie over the bases of the reference.

    Parameters
    ----------
    matches : Matches
        The matches.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.
    bins : int
        About how many bins the reference is divided into. The picture shows the mean of each.
    title : str, optional
        A title.

    Returns
    -------
    matplotlib.axes.Axes
        The axes: bases of the reference against matches, reverse matches upon forward ones.

    Raises
    ------
    LibraryError
        If matplotlib is missing.
    """
    references, caption = reference_records(_checked(matches)), _title(title)
    counter = CoverageCounter(references, positive("bins", bins))
    axes = _axes(ax, "coverage")
    positions = reference_positions_of(matches, references)
    counter.add(positions, matches.length, matches.reverse)
    draw_coverage(axes, counter, caption)
    return axes


def lengths(matches: Matches, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw a histogram of the lengths of matches, on logarithmic scales.

    Parameters
    ----------
    matches : Matches
        The matches.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.
    title : str, optional
        A title.

    Returns
    -------
    matplotlib.axes.Axes
        The axes: lengths in bases against numbers of matches.

    Raises
    ------
    LibraryError
        If matplotlib is missing.
    """
    counter, caption = LengthCounter(), _title(title)
    counter.add(_checked(matches).length)
    axes = _axes(ax, "lengths")
    draw_lengths(axes, counter, caption)
    return axes


def page(matches: Matches, *, order: bool | None = None, title: str = "") -> str:
    """Return a dot plot as a page of HTML, to look at closely: it can be moved and zoomed.

    Parameters
    ----------
    matches : Matches
        The matches.
    order : bool, optional
        As for `dotplot`.
    title : str
        The title of the page.

    Returns
    -------
    str
        The page, of about 5 MB at most; of more matches than that, it holds the longest, and says
        so. It needs neither a network nor other files.
    """
    segments = in_layout(segments_of(_checked(matches)), _order(order))
    return page_of(segments, text("title", title))


def _checked(matches: Matches) -> Matches:
    """Return matches; refuse what has none in the memory of the host."""
    if not isinstance(getattr(matches, "length", None), np.ndarray):
        raise OptionError("matches", f"{shown(matches)} has no matches in columns of numpy")
    return matches


def _order(order: bool | None) -> bool | None:
    return None if order is None else truth("order", order)


def _title(title: str | None) -> str | None:
    return None if title is None else text("title", title)


def _axes(axes: Axes | None, kind: str) -> Axes:
    """Return the axes of the caller, or those of a new figure."""
    if axes is not None:
        if not hasattr(axes, "figure"):
            raise OptionError("ax", f"{shown(axes)} are no axes of matplotlib")
        return axes
    require_matplotlib("mummergpu.plot")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=default_size(kind), layout="constrained")
    return figure.add_subplot()
