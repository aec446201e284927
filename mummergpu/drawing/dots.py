"""The dot plot: each match a line, at its place in the reference and in the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from mummergpu.drawing.colours import FORWARD, REVERSE
from mummergpu.drawing.density import density_image
from mummergpu.drawing.record_axis import label_axis
from mummergpu.drawing.records import TURNED_MARK
from mummergpu.drawing.segments import Segments
from mummergpu.drawing.style import add_head, add_strand_legend
from mummergpu.runtime.arrays import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
) -> None:
    """Draw a dot plot of matches in the order and orientation to be drawn in."""
    label_axis(axes, "x", segments.references)
    label_axis(axes, "y", segments.queries)
    add_strand_legend(axes)
    add_head(axes, title, remarks(segments, what))
    if segments.count > _MAX_LINES:
        _draw_image(axes, segments)
    else:
        _draw_lines(axes, segments, line_width)


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


def _draw_lines(axes: Axes, segments: Segments, line_width: float) -> None:
    from matplotlib.collections import LineCollection

    for colour, way in ((FORWARD, False), (REVERSE, True)):
        lines = LineCollection(
            _end_points(segments, way),  # type: ignore[arg-type]
            colors=colour,
            linewidths=line_width,
            capstyle="round",
            rasterized=segments.count > _MAX_VECTORS,
            zorder=2,
        )
        axes.add_collection(lines, autolim=False)


def _end_points(segments: Segments, is_reverse: bool) -> Float64Array:
    """Return the ends of the matches of a way: float64, shape=(n_lines, 2 ends, x and y)."""
    chosen = segments.is_reverse == is_reverse
    lengths = segments.lengths[chosen]
    points = np.empty((lengths.size, 2, 2), dtype=np.float64)
    points[:, 0, 0] = segments.reference_positions[chosen]
    points[:, 1, 0] = points[:, 0, 0] + lengths
    low = segments.query_positions[chosen]
    points[:, int(is_reverse), 1] = low
    points[:, 1 - int(is_reverse), 1] = low + lengths
    return points


def _draw_image(axes: Axes, segments: Segments) -> None:
    from matplotlib.colors import to_rgb

    # With the pixels of the axes as they are now, the image is not scaled, which would blur it.
    box = axes.get_window_extent()
    width, height = (min(_MAX_PIXELS, max(1, round(side))) for side in (box.width, box.height))
    image = density_image(segments, width, height, (to_rgb(FORWARD), to_rgb(REVERSE)))
    extent = (0, segments.references.base_count, 0, segments.queries.base_count)
    axes.imshow(
        image, extent=extent, origin="lower", aspect="auto", interpolation="nearest", zorder=2
    )
