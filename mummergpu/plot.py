"""Dot plots of matches: `dotplot` returns axes of matplotlib, `page` a page of HTML.

    axes = mummergpu.plot.dotplot(matches)
    axes.figure.savefig("dots.png")

`dotplot` needs matplotlib (``pip install 'mummergpu[plot]'``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mummergpu.drawing.dots import LINE_WIDTH, draw_dots
from mummergpu.drawing.html_plot import html_plot
from mummergpu.drawing.picture import DEFAULT_INCHES, require_matplotlib
from mummergpu.drawing.segments import Matches, Segments, in_layout, segments_of
from mummergpu.errors import OptionError
from mummergpu.runtime.option_values import check_bool, check_factor, shown, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Matches", "dotplot", "page"]


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
    segments = _segments(matches, order)
    caption = None if title is None else text("title", title)
    width = check_factor("linewidth", linewidth)
    if ax is None:
        require_matplotlib("mummergpu.plot")
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=DEFAULT_INCHES, layout="constrained").add_subplot()
    elif not hasattr(ax, "figure"):
        raise OptionError("ax", f"{shown(ax)} are no axes of matplotlib")
    draw_dots(ax, segments, caption, line_width=width)
    return ax


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
    return html_plot(_segments(matches, order), text("title", title))


def _segments(matches: Matches, order: bool | None) -> Segments:
    if not isinstance(getattr(matches, "length", None), np.ndarray):
        raise OptionError("matches", f"{shown(matches)} has no matches in columns of numpy")
    return in_layout(segments_of(matches), None if order is None else check_bool("order", order))
