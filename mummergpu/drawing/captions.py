"""What stands above a picture: its title, what it shows, and the colours of the strands."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import FORWARD, REVERSE
from mummergpu.drawing.style import points_of, short_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTER_POINTS: Final = 4.3
"""The mean width of a letter of a title in points."""
_LEGEND_POINTS: Final = 14.0
"""The height of the legend in points: titles stand above it."""
_LONGEST_TITLE: Final = 200


def add_head(axes: Axes, title: str | None, remarks: Sequence[str]) -> None:
    """Write a title and remarks above the axes and their legend, broken into lines that fit."""
    root = axes.figure.canvas.figure
    if root.get_layout_engine() is not None:
        # Labels take their room from the axes.
        root.draw_without_rendering()
    letters = max(20, int(points_of(axes)[0] / _LETTER_POINTS))
    texts = [short_title(title, _LONGEST_TITLE)] if title else []
    texts.append(" · ".join(remarks))
    lines = [line for text in texts for line in textwrap.wrap(text, letters)]
    pad = _LEGEND_POINTS if axes.get_legend() else None
    axes.set_title("\n".join(lines), loc="left", pad=pad)


def add_strand_legend(axes: Axes) -> None:
    """Say above the axes, on the right, which colour is which strand."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linewidth=2, label=label)
        for colour, label in ((FORWARD, "forward"), (REVERSE, "reverse"))
    ]
    axes.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=2,
        borderaxespad=0.2,
        frameon=False,
    )
