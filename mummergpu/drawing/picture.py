"""A dot plot as a file: its style, its formats, and its bytes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import STRAND
from mummergpu.errors import LibraryError
from mummergpu.runtime import optional_imports
from mummergpu.runtime.frozen import frozen

if TYPE_CHECKING:
    from mummergpu.drawing.segments import Segments

DEFAULT_INCHES: Final = (7.0, 7.0)

_PAGE: Final = "html"
"""The format that is a page; matplotlib draws the others."""


@frozen
class PictureStyle:
    """The style of a dot plot.

    `order` says whether to order and turn the queries (None: if there are several), `size` is in
    inches and `line_width` in points, `what` is the name of the matches, and `colouring` one of
    `colours.COLOURINGS`.
    """

    order: bool | None = None
    size: tuple[float, float] | None = None
    title: str | None = None
    what: str = "matches"
    colouring: str = STRAND
    line_width: float | None = None


def require_matplotlib(purpose: str) -> None:
    """Raise `LibraryError` if matplotlib is not installed or does not work."""
    library = optional_imports.find("matplotlib", "matplotlib.figure")
    if library.problem:
        raise LibraryError(purpose, "matplotlib", "plot", library.problem)


def picture_format(path: str) -> str:
    """Return the format of a picture's file; `LibraryError` if it cannot be drawn here."""
    file_format = os.path.splitext(path)[1].lower().removeprefix(".")
    if file_format != _PAGE:
        from mummergpu.drawing.style import hush

        hush()
        require_matplotlib("a picture")
    return file_format


def picture_bytes(segments: Segments, style: PictureStyle, file_format: str) -> bytes:
    """Return a dot plot as a ``png``, ``svg``, ``pdf`` or ``html`` file.

    The queries are in the order of the input. The same matches and style give the same bytes.
    """
    from mummergpu.drawing.dots import LINE_WIDTH, draw_dots, groups_of
    from mummergpu.drawing.segments import in_layout

    shown = in_layout(segments, style.order)
    groups = groups_of(shown, style.colouring)
    line_width = style.line_width or LINE_WIDTH
    if file_format == _PAGE:
        from mummergpu.drawing.html_plot import html_plot

        return html_plot(shown, style.title or "", style.what, groups, line_width).encode()
    from mummergpu.drawing.style import DOTS_PER_INCH, plain_settings, saved

    with plain_settings():
        from matplotlib.figure import Figure

        size = style.size or DEFAULT_INCHES
        figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
        draw_dots(figure.add_subplot(), shown, style.title, style.what, line_width, groups)
        return saved(figure, file_format)
