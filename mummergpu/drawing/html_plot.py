"""A dot plot as a page that needs nothing else, to be moved, zoomed, and asked for positions."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from mummergpu.drawing.colours import FORWARD, REVERSE, STRAND
from mummergpu.drawing.dots import LINE_WIDTH, Group, groups_of, remarks
from mummergpu.drawing.segments import Chromosomes, Segments
from mummergpu.drawing.style import shortened
from mummergpu.runtime.arrays import Int64Array

MAX_BYTES: Final = 5_000_000
"""The most bytes of the matches and records of a page."""

_FILES: Final = Path(__file__).resolve().parent / "page_files"
_LONGEST_TITLE: Final = 200
_PIXELS_OF_POINT: Final = 1.7 / LINE_WIDTH
"""How broad a line of one point is on a page."""
_STRANDS: Final = {"forward": "--forward", "reverse": "--reverse"}
_RECORD_BYTES: Final = 30
"""The bytes of a record on a page, besides its name."""


def html_plot(
    segments: Segments,
    title: str,
    what: str = "matches",
    groups: Sequence[Group] = (),
    line_width: float = LINE_WIDTH,
    max_bytes: int = MAX_BYTES,
) -> str:
    """Return a dot plot as a page of HTML that needs neither a network nor other files.

    Of what the page knows about matches and records, the shortest matches that have no room in
    `max_bytes` are left out, and the page says so.
    """
    groups = groups or groups_of(segments, STRAND)
    kinds = np.zeros(segments.count, dtype=np.uint8)
    for number, group in enumerate(groups):
        kinds[group.members] = number
    kept = _longest_first(segments, max_bytes)
    shown = _chosen(segments, kept)
    script = (_FILES / "page.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    title = shortened(title, _LONGEST_TITLE) or "Dot plot"
    group_data = {
        "kinds": base64.b64encode(kinds[kept].tobytes()).decode(),
        "colours": [_colour_of(group) for group in groups],
        "labels": [group.label for group in groups],
        "width": _PIXELS_OF_POINT * line_width,
    }
    parts = {
        "title": html.escape(title),
        "remarks": html.escape(" · ".join(remarks(shown, what))),
        "digest": digest,
        "forward": FORWARD,
        "reverse": REVERSE,
        "legend": "".join(map(_legend_entry, groups)),
        # A name may hold the end tag of a script.
        "data": json.dumps(_data(shown) | group_data, separators=(",", ":")).replace(
            "<", "\\u003c"
        ),
        "script": script,
    }
    text = (_FILES / "page.html").read_text()
    pieces = re.split(r"\{\{(\w+)\}\}", text)
    # Every other piece is the name of a part; parts themselves are not searched for names.
    return "".join(parts[piece] if at % 2 else piece for at, piece in enumerate(pieces))


def _colour_of(group: Group) -> str:
    """Return the colour of a group as the page has it: that of strands depends on the light."""
    return _STRANDS.get(group.label, group.colour)


def _legend_entry(group: Group) -> str:
    colour = _colour_of(group)
    value = f"var({colour})" if colour.startswith("--") else colour
    return f'<span class="strand" style="--swatch: {value}">{html.escape(group.label)}</span>'


def _longest_first(segments: Segments, max_bytes: int) -> Int64Array:
    """Return the matches in the order of their lengths, as many as there is room for."""
    bytes_each = 18 if _is_small(segments) else 34
    order = np.argsort(-segments.lengths, kind="stable")[: max_bytes // bytes_each]
    costs = np.full(order.size, bytes_each, dtype=np.int64)
    for records, positions in (
        (segments.references, segments.reference_positions),
        (segments.queries, segments.query_positions),
    ):
        found, first = np.unique(records.numbers_of(positions[order]), return_index=True)
        names = [len(records.names[number].encode(errors="replace")) for number in found.tolist()]
        costs[first] += np.array(names, dtype=np.int64) + _RECORD_BYTES
    return order[: int(np.searchsorted(np.cumsum(costs), max_bytes, side="right"))]


def _chosen(segments: Segments, kept: Int64Array) -> Segments:
    identities = segments.identities
    return replace(
        segments,
        reference_positions=segments.reference_positions[kept],
        query_positions=segments.query_positions[kept],
        lengths=segments.lengths[kept],
        is_reverse=segments.is_reverse[kept],
        identities=None if identities is None else identities[kept],
    )


def _is_small(segments: Segments) -> bool:
    """Return whether all numbers of a page fit into 32 bits."""
    return (
        max(segments.references.base_count, segments.queries.base_count) < 1 << 32
        and int(segments.lengths.max(initial=0)) < 1 << 31
    )


def _data(segments: Segments) -> dict[str, Any]:
    """Return the data of the page's script.

    The columns follow each other in one text in base64: reference positions, query positions, and
    lengths, which are negative for matches that fall.
    """
    position, length = ("<u4", "<i4") if _is_small(segments) else ("<f8", "<f8")
    signed = np.where(segments.is_reverse, -segments.lengths, segments.lengths)
    columns = b"".join(
        (
            segments.reference_positions.astype(position).tobytes(),
            segments.query_positions.astype(position).tobytes(),
            signed.astype(length).tobytes(),
        )
    )
    return {
        "count": segments.count,
        "small": _is_small(segments),
        "columns": base64.b64encode(columns).decode(),
        "reference": _axis(segments.references, segments.reference_positions),
        "query": _axis(segments.queries, segments.query_positions),
    }


def _axis(records: Chromosomes, positions: Int64Array) -> dict[str, Any]:
    """Return the records of an axis that have matches on the page, or all if there is none."""
    numbers = np.unique(records.numbers_of(positions))
    if not numbers.size:
        numbers = np.arange(min(1, records.count))
    return {
        "title": records.title,
        "total": records.base_count,
        "names": [records.label(number) for number in numbers.tolist()],
        "starts": records.offsets[numbers].tolist(),
        "lengths": records.lengths[numbers].tolist(),
        "turned": records.is_turned[numbers].tolist(),
    }
