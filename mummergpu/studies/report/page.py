"""The parts of a report, and the page of HTML that they become."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.style import plain_settings, saved
from mummergpu.runtime.frozen import frozen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEMPLATES: Final = Path(__file__).resolve().parent.parent / "templates"


@frozen
class Paragraph:
    """Plain text; `warns` says that something is missing or wrong."""

    text: str
    warns: bool = False
    kind: str = "paragraph"


@frozen
class PointList:
    """Short texts, one below the other, under a title."""

    title: str
    points: tuple[str, ...]
    kind: str = "points"


@frozen
class Table:
    """A table; the first cell of each row is its name."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    kind: str = "table"


@frozen
class Drawing:
    """A figure as SVG in base64; `alternative` is read to those who do not see it."""

    name: str
    caption: str
    alternative: str
    data: str
    kind: str = "drawing"


Block = Paragraph | PointList | Table | Drawing


@frozen
class Section:
    """A part of a report under a title; `name` is the target of links to it."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@frozen
class Report:
    """A whole report; its first section is the summary."""

    title: str
    sections: tuple[Section, ...]
    program: str


def drawn(name: str, caption: str, alternative: str, draw: Callable[[], Figure]) -> Drawing:
    """Draw a figure, the same bytes for the same data."""
    with plain_settings():
        svg = saved(draw(), "svg")
    return Drawing(name, caption, alternative, base64.b64encode(svg).decode())


def page_text(report: Report) -> str:
    """Return the page of a report, which needs no other file and no network."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
    )
    return environment.get_template("report.html.j2").render(report=report)
