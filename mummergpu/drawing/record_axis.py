"""An axis with records: ticks that count from the start of each record, names, and borders."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from mummergpu.drawing.chromosomes import Chromosomes
from mummergpu.drawing.colours import FAINT
from mummergpu.drawing.style import points_of, shortened, text_points
from mummergpu.runtime.arrays import Float64Array, Int64Array

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
"""Names have about so many letters for the breadth of the axes in heights of the font."""
_MAX_NAMES: Final = 2000
"""Only so many of the largest records are candidates for a name."""
_MOSTLY: Final = 0.8
"""Names are written along the axis if the records that have room for theirs have this share of all
bases, else across."""
_MAX_BORDERS: Final = 400
"""So many borders between records are drawn at most: more would hide the matches."""


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
    """Return where the ticks of an axis are, and what they count.

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
    """Return the least round number of bases of which an axis has at most so many steps."""
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
