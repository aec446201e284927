"""Pictures of matches as files: which kinds there are, and how they become bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import STRAND
from mummergpu.errors import LibraryError
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.libraries import look_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mummergpu.drawing.coverage import CoverageCounter
    from mummergpu.drawing.lengths import LengthCounter
    from mummergpu.drawing.segments import Segments

KINDS: Final = ("dots", "coverage", "lengths")
"""The kinds of pictures: dot plot, coverage along the reference, histogram of lengths."""

PAGE: Final = "html"
"""The file format that is a page; others are drawn by matplotlib."""

_SIZES: Final = {"dots": (7.0, 7.0), "coverage": (9.0, 3.2), "lengths": (6.0, 4.0)}
"""The default size of each kind: width and height in inches."""


@frozen
class PictureStyle:
    """What a picture shows, and how.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    order : bool or None
        Whether a dot plot orders and turns the queries; None to do so if there are several.
    size : tuple of float, or None
        Width and height in inches; None for the size of the kind.
    title : str or None
        The title; None for the names of the files.
    what : str
        What the matches are called.
    colouring : str
        What the colours of a dot plot tell: one of `colours.COLOURINGS`.
    line_width : float or None
        The width of the lines of a dot plot in points; None for the usual one.
    """

    kind: str = KINDS[0]
    order: bool | None = None
    size: tuple[float, float] | None = None
    title: str | None = None
    what: str = "matches"
    colouring: str = STRAND
    line_width: float | None = None


def default_size(kind: str) -> tuple[float, float]:
    """Return the width and the height of a kind of picture, in inches."""
    return _SIZES[kind]


def require_matplotlib(purpose: str) -> None:
    """Raise `LibraryError` if matplotlib is not installed or does not work."""
    library = look_for("matplotlib", "matplotlib.figure")
    if library.problem:
        raise LibraryError(purpose, "matplotlib", "plot", library.problem)


def dots_file(segments: Segments, style: PictureStyle, file_format: str) -> bytes:
    """Return a dot plot as a ``png``, ``svg``, ``pdf`` or ``html`` file.

    The queries are in the order of the input. The same matches and style give the same bytes.
    """
    from mummergpu.drawing.dots import LINE_WIDTH, draw_dots
    from mummergpu.drawing.groups import groups_of
    from mummergpu.drawing.query_layout import in_layout

    shown = in_layout(segments, style.order)
    groups = groups_of(shown, style.colouring)
    line_width = style.line_width or LINE_WIDTH
    if file_format == PAGE:
        from mummergpu.drawing.page import page_of

        return page_of(shown, style.title or "", style.what, groups, line_width).encode()

    def draw(axes: Axes) -> None:
        draw_dots(axes, shown, style.title, style.what, line_width, groups)

    return _file(style, file_format, draw)


def coverage_file(counter: CoverageCounter, style: PictureStyle, file_format: str) -> bytes:
    """Return the coverage along the reference as a file (`dots_file`, without ``html``)."""
    from mummergpu.drawing.coverage import draw_coverage

    def draw(axes: Axes) -> None:
        draw_coverage(axes, counter, style.title, style.what)

    return _file(style, file_format, draw)


def lengths_file(counter: LengthCounter, style: PictureStyle, file_format: str) -> bytes:
    """Return a histogram of lengths as a file (`dots_file`, without ``html``)."""
    from mummergpu.drawing.lengths import draw_lengths

    def draw(axes: Axes) -> None:
        draw_lengths(axes, counter, style.title, style.what)

    return _file(style, file_format, draw)


def _file(style: PictureStyle, file_format: str, draw: Callable[[Axes], None]) -> bytes:
    from mummergpu.drawing.style import DOTS_PER_INCH, plain_settings, saved

    with plain_settings():
        from matplotlib.figure import Figure

        size = style.size or default_size(style.kind)
        figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
        draw(figure.add_subplot())
        return saved(figure, file_format)
