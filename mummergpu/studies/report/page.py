"""The parts of a report, and the page of HTML that they become."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.style import plain_settings, saved
from mummergpu.index.tree.policy import Policy
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.report.timings import letters_of

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


ABSENT: Final = "-"
"""The text of an unknown value in a table."""

_STAGE_NAMES: Final = {"match": "match kernel", "print": "print kernel"}
_TIME_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_BYTE_UNITS: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def stage_words(stage: str) -> str:
    """Return the name of a stage in words."""
    return _STAGE_NAMES.get(stage, stage)


def time_text(seconds: float | None) -> str:
    """Return a time with three digits and its unit."""
    if seconds is None or math.isnan(seconds):
        return ABSENT
    if not seconds:
        return "0 s"
    factor, unit = next((one for one in _TIME_UNITS if seconds >= one[0]), _TIME_UNITS[-1])
    return f"{digits(seconds / factor)} {unit}"


def percent_text(percent: float | None) -> str:
    """Return a change in percent with its sign."""
    if percent is None or math.isnan(percent):
        return ABSENT
    text = f"{percent:+.1f}" if abs(percent) < 100 else f"{percent:+.0f}"
    return f"{0.0:.1f}%" if float(text) == 0 else f"{text}%"


def noise_text(percent: float | None) -> str:
    """Return a noise in percent, with the sign of a spread."""
    return "unknown" if percent is None else f"±{percent:.2g}%"


def range_text(low: float | None, high: float | None) -> str:
    """Return a range of percents."""
    return ABSENT if low is None or high is None else f"{percent_text(low)} to {percent_text(high)}"


def bytes_text(count: int) -> str:
    """Return a number of bytes with its unit."""
    factor, unit = next((one for one in _BYTE_UNITS if count >= one[0]), (1, "bytes"))
    return f"{count:,} bytes" if factor == 1 else f"{digits(count / factor)} {unit}"


def digits(value: float) -> str:
    """Return a number with about three digits."""
    if not value:
        return "0"
    size = math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, 2 - size)}f}"


def letters_text(policy: Policy) -> str:
    """Return the code of a policy as it is shown."""
    return letters_of(policy) or "none"


def listed(words: Sequence[str]) -> str:
    """Return words with commas and an 'and' between them."""
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)
