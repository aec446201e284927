"""How figures look, their heads, and how they become the same bytes for the same data."""

from __future__ import annotations

import logging
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from mummergpu.drawing.colours import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH: Final = 150

_LONGEST_TITLE: Final = 60

_SETTINGS: Final = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "grid.linewidth": 0.5,
    "grid.alpha": 0.35,
    "hatch.linewidth": 0.6,
    "text.parse_math": False,
    "svg.hashsalt": "mummergpu",
    "svg.fonttype": "none",
} | dict.fromkeys(
    ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"),
    INK,
)

_NO_METADATA: Final[dict[str, dict[str, Any]]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""What matplotlib must leave out, as it differs from day to day or between versions."""


def hush() -> None:
    """Keep matplotlib from writing to standard error that it collects the machine's fonts."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)


@contextmanager
def plain_settings() -> Iterator[None]:
    """Draw in the style of this program, whatever the user's own settings of matplotlib are."""
    hush()
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name may hold letters that the font lacks; the SVG still has them.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)  # type: ignore[arg-type]
        yield


def on_one_line(text: str) -> str:
    """Return a text with blanks for line ends and all else that cannot be drawn."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def shortened(text: str, longest: int = _LONGEST_TITLE) -> str:
    """Return a text on one line with at most `longest` letters.

    Letters are taken from the middle: names are alike there, and differ at their ends.
    """
    clean = on_one_line(text)
    if len(clean) <= longest:
        return clean
    head = longest // 2
    return clean[:head] + "…" + clean[len(clean) - (longest - 1 - head) :]


def saved(figure: Figure, kind: str) -> bytes:
    """Return a figure as ``png``, ``svg`` or ``pdf``, without the date and the like."""
    buffer = BytesIO()
    figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=_NO_METADATA[kind])
    return buffer.getvalue()


def text_points(text: str, size: float) -> float:
    """Return the breadth of a text in points, in the font of the current settings."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text, prop=FontProperties(size=size)).get_extents().width)


def points_of(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of axes in points, in which the size of text is measured."""
    box, scale = axes.get_window_extent(), 72 / axes.figure.dpi
    return box.width * scale, box.height * scale


_LETTER_POINTS: Final = 4.3
"""The mean width of a letter of a title in points."""
_LEGEND_POINTS: Final = 14.0
"""The height of the legend in points: titles stand above it."""
_LONGEST_HEAD: Final = 200


def add_head(axes: Axes, title: str | None, remarks: Sequence[str]) -> None:
    """Write a title and remarks above the axes and their legend, broken into lines that fit."""
    root = axes.figure.canvas.figure
    if root.get_layout_engine() is not None:
        # Labels take their room from the axes.
        root.draw_without_rendering()
    letters = max(20, int(points_of(axes)[0] / _LETTER_POINTS))
    texts = [shortened(title, _LONGEST_HEAD)] if title else []
    texts.append(" · ".join(remarks))
    lines = [line for text in texts for line in textwrap.wrap(text, letters)]
    pad = _LEGEND_POINTS if axes.get_legend() else None
    axes.set_title("\n".join(lines), loc="left", pad=pad)


def add_colour_legend(axes: Axes, colours: Sequence[tuple[str, str]]) -> None:
    """Say above the axes, on the right, what each colour stands for."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, linewidth=2, label=label) for colour, label in colours]
    axes.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(colours),
        borderaxespad=0.2,
        frameon=False,
    )
