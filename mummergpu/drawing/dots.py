"""The dot plot: each match a line, at its place in the reference and in the query.

Very many matches are an image: how many matched bases fall into each pixel. Axes have ticks that
count from the start of each record, the names of records, and their borders.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

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
from mummergpu.drawing.segments import TURNED_MARK, Chromosomes, Segments
from mummergpu.drawing.style import add_colour_legend, add_head, points_of, shortened, text_points
from mummergpu.errors import OptionError
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array
from mummergpu.runtime.frozen import frozen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


_UNITS: Final = ((1_000_000, "Mb"), (1_000, "kb"), (1, "bp"))
_STEPS: Final = (1, 2, 5)

_LINE: Final = 1.3
"""The height of a line of text, and a little air, in heights of its font."""
_LETTER: Final = 0.75
"""The mean width of a letter of an axis's title, in heights of the font of its ticks."""
_MIN_POINTS: Final = 1.0
"""A record that is smaller than that in the picture has no name."""
_TICK: Final = 5.0
"""The least distance between two labelled ticks."""
_GAP_POINTS: Final = 10.0
"""The distance of names from numbers in points, with the ticks."""
_LABEL_POINTS: Final = 6.0
_SHORTEST_NAME: Final = 6
_NAME_SHARE: Final = 0.4
"""The letters of a name for the breadth of the axes in heights of the font."""
_MAX_NAMES: Final = 2000
"""The largest records, which are candidates for a name."""
_MOSTLY: Final = 0.8
"""Names are written along the axis if the records that have room for theirs have this share of all
bases, else across."""
_MAX_BORDERS: Final = 400
"""The most borders between records that are drawn: more would hide the matches."""


def label_axis(axes: Axes, which: str, records: Chromosomes) -> None:
    """Label the ``x`` or ``y`` axis with records, set its limits, and draw the records' borders."""
    horizontal = which == "x"
    axis: Axis = axes.xaxis if horizontal else axes.yaxis
    points, breadth = points_of(axes)[:: 1 if horizontal else -1]
    total = max(1, records.base_count)
    (axes.set_xlim if horizontal else axes.set_ylim)(0, total)
    unit, unit_name = unit_of(int(records.lengths.max(initial=0)))
    size = _label_size(axis)
    step = tick_step(total, max(2, int(points / size / _TICK)))
    places, numbers = record_ticks(records, step)
    axis.set_ticks(places.tolist(), [f"{number / unit:g}" for number in numbers.tolist()])
    scale = f"({unit_name})" if places.size else f"({length_text(total)})"
    if records.count != 1:
        scale = f"{records.count:,} records {scale}"
    letters = max(10, int(points / size / _LETTER) - len(scale) - 2)
    if records.count == 1:
        what = shortened(records.label(0), letters) or records.title
    else:
        what = shortened(records.title, letters) + ","
        longest = max(_SHORTEST_NAME, int(_NAME_SHARE * breadth / size))
        _name_records(axes, horizontal, records, points, size, longest)
    axis.set_label_text(f"{what} {scale}")
    axis.labelpad = _LABEL_POINTS
    if 1 < records.count <= _MAX_BORDERS:
        line = axes.axvline if horizontal else axes.axhline
        for border in records.offsets[1:-1].tolist():
            line(border, color=FAINT, linewidth=0.4, alpha=0.6, zorder=0.5)


def record_ticks(records: Chromosomes, step: int) -> tuple[Int64Array, Int64Array]:
    """Return the positions of the ticks of an axis, and the base that each counts.

    They count on the forward strand of the record. Its start has no tick of its own if there are
    several records.
    """
    first = 0 if records.count == 1 else 1
    has_ticks = np.flatnonzero(records.lengths >= step)
    counts = records.lengths[has_ticks] // step + 1 - first
    numbers = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + first
    inside = numbers * step
    owners = np.repeat(has_ticks, counts)
    from_end = records.lengths[owners] - inside
    places = records.offsets[owners] + np.where(records.is_turned[owners], from_end, inside)
    return places, inside


def unit_of(bases: int) -> tuple[int, str]:
    """Return the unit for positions up to a number of bases: its bases and its name."""
    return next(((size, name) for size, name in _UNITS if bases >= size), _UNITS[-1])


def length_text(bases: int) -> str:
    """Return a number of bases in words, such as ``4.64 Mb``."""
    size, name = unit_of(bases)
    return f"{bases / size:,.3g} {name}" if bases < 1000 * size else f"{bases / size:,.0f} {name}"


def tick_step(total: int, max_ticks: int) -> int:
    """Return the least round number of bases between ticks, of which there are `max_ticks`."""
    power = 1
    while True:
        for factor in _STEPS:
            if total <= factor * power * max_ticks:
                return factor * power
        power *= 10


def _label_size(axis: Axis) -> float:
    """Return the size of the font of the labels of ticks, in points."""
    return float(axis.get_major_ticks(1)[0].label1.get_fontsize())


def _name_records(
    axes: Axes, horizontal: bool, records: Chromosomes, points: float, size: float, longest: int
) -> None:
    """Write the names of records beyond the numbers, as far as there is room for them.

    `points` is the length of the axis, and `size` the height of the font, both in points; `longest`
    is the most letters of a name.
    """
    largest = np.argsort(-records.lengths, kind="stable")[:_MAX_NAMES]
    names = {number: shortened(records.label(number), longest) for number in largest.tolist()}
    scale = points / max(1, records.base_count)
    # A name needs about as much room as a line is high, if it has but one letter.
    chosen = [
        number
        for number, name in sorted(names.items())
        if size <= (there := float(records.lengths[number]) * scale)
        and text_points(name, size) + size / 2 <= there
    ]
    middles = (records.offsets[:-1] + records.offsets[1:]) / 2
    is_along = bool(records.lengths[chosen].sum() >= _MOSTLY * records.base_count)
    if not is_along:
        visible = [number for number in names if records.lengths[number] * scale >= _MIN_POINTS]
        chosen = _spread_out(middles * scale, visible, _LINE * size)
    axis: Axis = axes.xaxis if horizontal else axes.yaxis
    axis.remove_overlapping_locs = False
    places = [float(middles[number]) for number in chosen]
    axis.set_ticks(places, [names[number] for number in chosen], minor=True)
    numbers = [label.get_text() for label in axis.get_majorticklabels()]
    widths = [text_points(number, size) for number in numbers]
    taken = max(widths, default=0.0) if not horizontal else _LINE * size if numbers else 0.0
    axes.tick_params(
        "x" if horizontal else "y",
        which="minor",
        length=0,
        pad=taken + _GAP_POINTS,
        labelrotation=90 if horizontal != is_along else 0,
        labelsize=size,
    )


def _spread_out(places: Float64Array, candidates: Sequence[int], gap: float) -> list[int]:
    """Return the candidates that are nowhere nearer than `gap`; the first ones have priority."""
    taken: list[tuple[float, int]] = []
    for number in candidates:
        place = float(places[number])
        at = bisect(taken, (place, number))
        if all(abs(place - other) >= gap for other, _ in taken[max(0, at - 1) : at + 1]):
            insort(taken, (place, number))
    return [number for _, number in taken]


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
"""The steps of matches that are computed at once: they take little memory."""

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
    their bases. `members` are the matches of each group. Colours, and the picture's red,
    green, blue and opacity, are from 0 to 1.
    """
    bases = np.stack([_spread(bases_in_pixels(segments, width, height, of)) for of in members])
    total = bases.sum(axis=0)
    image = np.empty((height, width, 4), dtype=np.float32)
    first, *others = np.array(colours)
    shares = [_in_steps(part / np.maximum(total, 1e-300))[..., np.newaxis] for part in bases[1:]]
    # The first group has the rest.
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
    """Return the remarks below a title: the number of matches, and those that are missing."""
    texts = [f"{segments.match_count:,} {what}"]
    if segments.count < segments.match_count:
        texts = [f"the longest {segments.count:,} of {texts[0]}"]
    if segments.queries.count < segments.query_count:
        texts.append(f"the first {segments.queries.count:,} of {segments.query_count:,} queries")
    if segments.queries.is_turned.any():
        texts.append(f"{TURNED_MARK} reverse complement")
    return texts


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
