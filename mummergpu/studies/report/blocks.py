"""The parts that a report is made of, before they become a page or Markdown."""

from __future__ import annotations

from mummergpu.runtime.frozen import frozen


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
    """A table whose columns have units; the first cell of each row is its name."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    kind: str = "table"


@frozen
class Drawing:
    """A figure, drawn.

    Attributes
    ----------
    name : str
        The name of its files, without the ending.
    alternative : str
        What it shows, for those who do not see it.
    inline : str
        The SVG element for a page, whose ink has the colour of the page's text.
    """

    name: str
    caption: str
    alternative: str
    svg: bytes
    png: bytes
    inline: str
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

    @property
    def drawings(self) -> tuple[Drawing, ...]:
        """All figures, in order."""
        return tuple(
            block
            for section in self.sections
            for block in section.blocks
            if isinstance(block, Drawing)
        )
