"""How the figures of reports look, as files and on a page: the same bytes for the same data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION
from mummergpu.drawing.style import plain_settings, saved
from mummergpu.studies.report.blocks import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERIES: Final = (BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, FAINT, INK)
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Series differ in their marker as well, for print in grey."""

WIDTH: Final = 7.6
"""The width of all figures in inches."""


def new_figure(height: float) -> Figure:
    """Return an empty figure of a height in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


def panels(figure: Figure, count: int, columns: int = 1, share: bool = True) -> Sequence[Axes]:
    """Return `count` axes, row by row; those of a column share the horizontal axis if asked."""
    rows = -(-count // columns)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=share)
    flat: list[Axes] = list(grid.flat)
    for unused in flat[count:]:
        unused.set_axis_off()
    return flat[:count]


_FAR: Final = 3.0
"""Values so many interquartile ranges above the third quartile are outliers."""


def usual_limit(values: Sequence[float]) -> float:
    """Return up to where an axis shows values, so that a few outliers do not stretch it."""
    if not values:
        return inf
    ordered = sorted(values)
    first, third = (ordered[round(share * (len(ordered) - 1))] for share in (0.25, 0.75))
    limit = third + _FAR * max(third - first, 0.01 * third)
    return max(one for one in ordered if one <= limit)


def mark_outliers(
    axes: Axes, places: Sequence[float], values: Sequence[float], limit: float
) -> None:
    """Draw arrows at the limit in the places of higher values, and write those beside them."""
    for place, value in zip(places, values, strict=True):
        if value > limit:
            axes.plot(
                place, limit, linestyle="none", marker="^", markersize=4, color=INK, clip_on=False
            )
            axes.annotate(
                f"{value:.3g}",
                (place, limit),
                xytext=(-4, 1),
                textcoords="offset points",
                ha="right",
                fontsize=6,
            )


_FONT: Final = "font-family: 'DejaVu Sans', sans-serif; "
"""The font as the drawing library writes it into every piece of text."""


def drawn(name: str, caption: str, alternative: str, draw: Callable[[], Figure]) -> Drawing:
    """Draw a figure as SVG and PNG; `alternative` is what to read in place of it."""
    with plain_settings():
        figure = draw()
        figure.set_facecolor("white")
        png = saved(figure, "png")
        # The parts stay where they were put for the first file.
        figure.set_layout_engine("none")
        figure.set_facecolor("none")
        for axes in figure.axes:
            axes.set_facecolor("none")
        svg = saved(figure, "svg")
    return Drawing(name, caption, alternative, svg, png, _inline(svg, name))


def _inline(svg: bytes, name: str) -> str:
    """Return the SVG element without what a page does not need.

    The names in it get that of the figure, so that they are unique in a page.
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    smaller = _smaller(text.replace(INK, "currentColor")).strip()
    return _with_classes(_renamed(smaller, name), name)


def _renamed(svg: str, figure: str) -> str:
    """Return an SVG element whose names are short, and unique in a page."""
    numbers: dict[str, int] = {}

    def rename(found: re.Match[str]) -> str:
        return f"{found[1]}{figure}-{numbers.setdefault(found[2], len(numbers))}"

    return re.sub(r'\b(id="|href="#|url\(#)([^")]*)', rename, svg)


def _smaller(svg: str) -> str:
    """Return an SVG element with shorter tags: a page has many thousands of them.

    Coordinates keep a tenth of a point. Groups lose names that nothing refers to, the font is named
    once.
    """
    svg = re.sub(r'<g id="[^"]*"', "<g", svg).replace(_FONT, "")
    svg = svg.replace("<svg ", f'<svg style="{_FONT.strip()}" ', 1)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r">\s+<", "><", svg)
    svg = re.sub(r"<[^>]*>", _smaller_tag, svg)
    return _without_plain_groups(svg)


def _without_plain_groups(svg: str) -> str:
    """Return an SVG element without the tags of groups that have no attributes."""
    has_attributes: list[bool] = []

    def keep(tag: re.Match[str]) -> str:
        if tag[0].endswith("/>"):
            return ""
        if tag[0] != "</g>":
            has_attributes.append(tag[0] != "<g>")
            return tag[0] if has_attributes[-1] else ""
        return tag[0] if has_attributes.pop() else ""

    return re.sub(r"<g( [^>]*)?/?>|</g>", keep, svg)


def _smaller_tag(tag: re.Match[str]) -> str:
    text = re.sub(r"\s+", " ", tag[0]).replace("xlink:href", "href")
    text = re.sub(r'( (?:d|x|y|points|transform)=")([^"]*)', _all_rounded, text)
    return re.sub(r'(?<=style=")[^"]*', lambda style: re.sub(r"([:;]) ", r"\1", style[0]), text)


def _all_rounded(attribute: re.Match[str]) -> str:
    rounded = re.sub(r"\d+\.\d{2,}", _rounded, attribute[2])
    return attribute[1] + re.sub(r" ?([MLHVCQz]) ?", r"\1", rounded).rstrip()


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


def _with_classes(svg: str, figure: str) -> str:
    """Return an SVG element whose repeated styles are classes, with names unique in a page."""
    times = Counter(re.findall(r' style="([^"]*)"', svg))
    names = {
        style: f"{figure}-s{number}"
        for number, (style, count) in enumerate(times.most_common())
        if count > 1
    }

    def name(found: re.Match[str]) -> str:
        return f' class="{names[found[1]]}"' if found[1] in names else found[0]

    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    body = re.sub(r' style="([^"]*)"', name, svg)
    return re.sub(r"(<svg[^>]*>)", rf"\1<style>{rules}</style>", body, count=1)
