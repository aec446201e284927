"""The options of pictures, for the main job and for the command ``plot``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from mummergpu.drawing.colours import COLOURINGS
from mummergpu.drawing.picture import KINDS, PictureStyle

_STYLES: Final = ("kind", "order", "size", "title", "colouring", "line_width")
_LEAST_INCHES: Final = 2.0
_MOST_INCHES: Final = 60.0


def _size(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[float, float] | None:
    """Return the width and the height that a text such as ``8x6`` or ``7`` spells."""
    if text is None:
        return None
    try:
        sides = [float(word) for word in text.lower().split("x")]
    except ValueError:
        sides = []
    if len(sides) not in (1, 2) or not all(_LEAST_INCHES <= one <= _MOST_INCHES for one in sides):
        raise click.BadParameter(
            f"'{text}' is not a size such as 7 or 8x6, of {_LEAST_INCHES:g} to {_MOST_INCHES:g} "
            "inches"
        )
    return sides[0], sides[-1]


PICTURE_OPTIONS: Final = [
    click.Option(
        ["--kind"],
        type=click.Choice(KINDS),
        default=KINDS[0],
        show_default=True,
        help="Draw each match as a line in a dot plot (dots), the number of matches along the "
        "reference (coverage), or a histogram of the lengths of matches (lengths).",
    ),
    click.Option(
        ["--order/--no-order"],
        default=None,
        help="Draw the queries in the order of where they lie on the reference, and turn around "
        "those that match mostly on the reverse strand, with * before their names; or leave them "
        "as they are.  [default: --order for several queries]",
    ),
    click.Option(
        ["--colour", "--color", "colouring"],
        type=click.Choice(COLOURINGS),
        default=COLOURINGS[0],
        show_default=True,
        help="What the colours of a dot plot tell: the strand, or how many columns of an alignment "
        "of a .paf or .delta are equal (identity).",
    ),
    click.Option(
        ["--line-width"],
        type=click.FloatRange(0.1, 20),
        metavar="POINTS",
        help="The width of the lines of a dot plot; short matches are dots of this size.  "
        "[default: 1.2]",
    ),
    click.Option(
        ["--size"],
        callback=_size,
        metavar="INCHES",
        help="Width and height of the picture in inches, such as 8x6, or one number for both; a "
        "PNG has 150 pixels to the inch.  [default: 7x7, 9x3.2 or 6x4, by the kind]",
    ),
    click.Option(
        ["--title"], metavar="TEXT", help="Write TEXT above.  [default: the names of the files]"
    ),
]
"""The options that say what a picture shows."""


def picture_style(params: Mapping[str, Any]) -> PictureStyle:
    """Return what pictures show: as the options say, or a dot plot if there are no such options."""
    own = {name: params[name] for name in _STYLES if name in params}
    return PictureStyle(**own)
