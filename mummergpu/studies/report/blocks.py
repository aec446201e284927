"""The parts that a report is made of, before they become a page or Markdown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paragraph:
    """Plain text.

    Attributes
    ----------
    text : str
        The text.
    warns : bool
        Whether it says that something is missing or wrong.
    """

    text: str
    warns: bool = False
    kind: str = "paragraph"


@dataclass(frozen=True)
class PointList:
    """Short texts, one below the other, under a title."""

    title: str
    points: tuple[str, ...]
    kind: str = "points"


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    caption : str
        What was measured, and on what.
    columns : tuple of str
        The heads of the columns, with units.
    rows : tuple of tuple of str
        The cells; the first of each row is its name.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    kind: str = "table"


@dataclass(frozen=True)
class Drawing:
    """A figure, drawn.

    Attributes
    ----------
    name : str
        The name of its files, without the ending.
    caption : str
        What was measured, and on what.
    alternative : str
        What it shows, for those who do not see it.
    svg, png : bytes
        The content of its files.
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


@dataclass(frozen=True)
class Section:
    """A part of a report under a title.

    Attributes
    ----------
    name : str
        The target of links to it.
    title : str
        The title.
    blocks : tuple of Block
        What is in it.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """A whole report.

    Attributes
    ----------
    title : str
        The title.
    sections : tuple of Section
        Its parts; the first is the summary.
    program : str
        The program that wrote it, and its version.
    """

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
