"""The dot plot: each match a line, at its place in the reference and in the query.

Very many matches are an image: how many matched bases fall into each pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from mummergpu.drawing.chromosomes import TURNED_MARK
from mummergpu.drawing.colours import (
    BLUE,
    FAINT,
    FORWARD,
    IDENTITY,
    ORANGE,
    REVERSE,
    SKY,
    STRAND,
    VERMILION,
)
from mummergpu.drawing.record_axis import label_axis
from mummergpu.drawing.segments import Segments
from mummergpu.drawing.style import add_colour_legend, add_head
from mummergpu.errors import OptionError
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array
from mummergpu.runtime.frozen import frozen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_IDENTITIES: Final = ((99, BLUE), (95, SKY), (90, ORANGE), (80, VERMILION), (0, FAINT))
"""The least percentage of equal columns of each colour."""


@frozen
class Group:
    """Matches of one colour."""

    label: str
    colour: str
    members: BoolArray


def no_identities() -> OptionError:
    """Return the error that identities are asked for and are not known."""
    text = "exact matches are all alike; draw the alignments of a .paf or .delta"
    return OptionError(f"colouring={IDENTITY}", text)


def groups_of(segments: Segments, colouring: str) -> tuple[Group, ...]:
    """Return the groups of matches by colour, to be drawn in this order."""
    if colouring == STRAND:
        ways = ~segments.is_reverse, segments.is_reverse
        return Group("forward", FORWARD, ways[0]), Group("reverse", REVERSE, ways[1])
    if segments.identities is None:
        raise no_identities()
    groups = []
    above = np.inf
    for least, colour in _IDENTITIES:
        members = (segments.identities >= least) & (segments.identities < above)
        label = f"{least}% and more" if least == _IDENTITIES[0][0] else f"{least} to {above:g}%"
        if least == 0:
            label = f"under {above:g}%"
        groups.append(Group(label, colour, members))
        above = least
    return tuple(groups)


_MAX_STEPS: Final = 1 << 20
"""So many steps of matches are computed at once: they take little memory."""

_SHADES: Final = 16

_FAINTEST: Final = 0.35
"""The opacity of a single short match in an empty picture."""


def density_image(
    segments: Segments,
    width: int,
    height: int,
    colours: Sequence[tuple[float, float, float]],
    members: Sequence[BoolArray],
) -> npt.NDArray[np.float32]:
    """Return a picture of matches: float32, shape=(height, width, 4), the lowest row first.

    The more matched bases a pixel holds, the more opaque it is; a pixel that a match crosses from
    one corner to the other is wholly so. Its colour is that of the groups of matches, mixed by
    their bases. `members` tells which matches are of each group. Colours, and the picture's red,
    green, blue and opacity, are from 0 to 1.
    """
    bases = np.stack([_spread(bases_in_pixels(segments, width, height, of)) for of in members])
    total = bases.sum(axis=0)
    image = np.empty((height, width, 4), dtype=np.float32)
    first, *others = np.array(colours)
    shares = [_in_steps(part / np.maximum(total, 1e-300))[..., np.newaxis] for part in bases[1:]]
    # The first group has what the others leave.
    image[..., :3] = first * np.maximum(1 - sum(shares), 0)
    for colour, share in zip(others, shares, strict=True):
        image[..., :3] += colour * share
    np.minimum(image[..., :3], 1, out=image[..., :3])
    full = max(segments.references.base_count / width, segments.queries.base_count / height, 1.0)
    is_hit = total > 0
    # In a full picture single matches are but a haze, and must not hide the lines.
    faintest = _FAINTEST * (1 - float(is_hit.mean()))
    strength = np.sqrt(np.minimum(1.0, total / full))
    image[..., 3] = np.where(is_hit, faintest + (1 - faintest) * _in_steps(strength), 0.0)
    return image


def bases_in_pixels(
    segments: Segments, width: int, height: int, members: BoolArray
) -> Float64Array:
    """Return the matched bases in each pixel, of some matches.

    Their sum is that of the lengths; the first row is the lowest.
    """
    bases = np.zeros(width * height, dtype=np.float64)
    for way in (False, True):
        (chosen,) = np.nonzero(members & (segments.is_reverse == way))
        _add_matches(bases.reshape(height, width), segments, chosen, way)
    return bases.reshape(height, width)


def _add_matches(bases: Float64Array, segments: Segments, chosen: Int64Array, way: bool) -> None:
    """Add the bases of matches that rise, or fall, to the pixels in which they lie."""
    height, width = bases.shape
    scales = (width / segments.references.base_count, height / segments.queries.base_count)
    steps = np.maximum(1, np.ceil(segments.lengths[chosen] * max(scales))).astype(np.int64)
    sums = np.cumsum(steps)
    at = done = 0
    while at < chosen.size:
        end = max(at + 1, int(np.searchsorted(sums, done + _MAX_STEPS, side="right")))
        part = chosen[at:end]
        _add_bases(
            bases,
            segments.reference_positions[part],
            segments.query_positions[part],
            segments.lengths[part],
            steps[at:end],
            scales,
            way,
        )
        at, done = end, int(sums[end - 1])


def _add_bases(
    bases: Float64Array,
    lefts: Int64Array,
    bottoms: Int64Array,
    lengths: Int64Array,
    steps: Int64Array,
    scales: tuple[float, float],
    way: bool,
) -> None:
    """Divide each match into equal steps, and add the bases of a step where its middle is.

    `scales` are the pixels of a base in breadth and in height.
    """
    height, width = bases.shape
    begins = np.cumsum(steps) - steps
    done = (np.arange(steps.sum()) - np.repeat(begins, steps) + 0.5) / np.repeat(steps, steps)
    done *= np.repeat(lengths, steps)
    x = np.repeat(lefts, steps) + done
    if way:
        done = np.repeat(lengths, steps) - done
    y = np.repeat(bottoms, steps) + done
    columns = np.minimum((x * scales[0]).astype(np.int64), width - 1)
    rows = np.minimum((y * scales[1]).astype(np.int64), height - 1)
    weights = np.repeat(lengths / steps, steps)
    flat = np.bincount(rows * width + columns, weights=weights, minlength=bases.size)
    bases += flat.reshape(height, width)


def _in_steps(shades: Float64Array) -> Float64Array:
    """Return shades from 0 to 1 as a few ones: files become much smaller, and look the same."""
    return np.round(shades * _SHADES) / _SHADES


def _spread(bases: Float64Array) -> Float64Array:
    """Let each pixel hold the most of itself and its neighbours to the left and below."""
    spread = bases.copy()
    np.maximum(spread[:, 1:], bases[:, :-1], out=spread[:, 1:])
    np.maximum(spread[1:], spread[:-1].copy(), out=spread[1:])
    return spread


LINE_WIDTH: Final = 1.2
"""The width of a match in points."""

_MAX_LINES: Final = 100_000
"""More matches than this are drawn as an image."""
_MAX_VECTORS: Final = 1_000
"""More lines than this are pixels in a file of vectors, which would become large and slow."""
_MAX_PIXELS: Final = 3000
"""The most pixels of an image in breadth and in height."""


def draw_dots(
    axes: Axes,
    segments: Segments,
    title: str | None = None,
    what: str = "matches",
    line_width: float = LINE_WIDTH,
    groups: Sequence[Group] = (),
) -> None:
    """Draw a dot plot of matches in the order and orientation to be drawn in.

    `groups` are the matches by colour, by default by strand.
    """
    groups = groups or groups_of(segments, STRAND)
    label_axis(axes, "x", segments.references)
    label_axis(axes, "y", segments.queries)
    add_colour_legend(axes, [(group.colour, group.label) for group in groups])
    add_head(axes, title, remarks(segments, what))
    if segments.count > _MAX_LINES:
        _draw_image(axes, segments, groups)
    else:
        _draw_lines(axes, segments, line_width, groups)


def remarks(segments: Segments, what: str = "matches") -> list[str]:
    """Return what a reader of a dot plot must know: the number of matches, and what is missing."""
    told = [f"{segments.match_count:,} {what}"]
    if segments.count < segments.match_count:
        told = [f"the longest {segments.count:,} of {told[0]}"]
    if segments.queries.count < segments.query_count:
        told.append(f"the first {segments.queries.count:,} of {segments.query_count:,} queries")
    if segments.queries.is_turned.any():
        told.append(f"{TURNED_MARK} reverse complement")
    return told


def _draw_lines(axes: Axes, segments: Segments, line_width: float, groups: Sequence[Group]) -> None:
    from matplotlib.collections import LineCollection

    for group in groups:
        ways = [_end_points(segments, group.members, way) for way in (False, True)]
        lines = LineCollection(
            np.concatenate(ways),  # type: ignore[arg-type]
            colors=group.colour,
            linewidths=line_width,
            capstyle="round",
            rasterized=segments.count > _MAX_VECTORS,
            zorder=2,
        )
        axes.add_collection(lines, autolim=False)


def _end_points(segments: Segments, members: BoolArray, is_reverse: bool) -> Float64Array:
    """Return the ends of some matches of a way: float64, shape=(n_lines, 2 ends, x and y)."""
    chosen = members & (segments.is_reverse == is_reverse)
    lengths = segments.lengths[chosen]
    points = np.empty((lengths.size, 2, 2), dtype=np.float64)
    points[:, 0, 0] = segments.reference_positions[chosen]
    points[:, 1, 0] = points[:, 0, 0] + lengths
    low = segments.query_positions[chosen]
    points[:, int(is_reverse), 1] = low
    points[:, 1 - int(is_reverse), 1] = low + lengths
    return points


def _draw_image(axes: Axes, segments: Segments, groups: Sequence[Group]) -> None:
    from matplotlib.colors import to_rgb

    # With the pixels of the axes as they are now, the image is not scaled, which would blur it.
    box = axes.get_window_extent()
    width, height = (min(_MAX_PIXELS, max(1, round(side))) for side in (box.width, box.height))
    colours = [to_rgb(group.colour) for group in groups]
    members = [group.members for group in groups]
    image = density_image(segments, width, height, colours, members)
    extent = (0, segments.references.base_count, 0, segments.queries.base_count)
    axes.imshow(
        image, extent=extent, origin="lower", aspect="auto", interpolation="nearest", zorder=2
    )
