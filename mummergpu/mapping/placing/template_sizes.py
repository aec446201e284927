"""Measures the templates of pairs that are mapped, from which their sizes are estimated."""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.candidates.candidates import Table
from mummergpu.mapping.placing.choice import CHOSEN, QUALITY
from mummergpu.mapping.placing.pairing import are_facing, template_size
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import as_int64, jit_without_refcounts

WELL_PLACED: Final = 20
"""The least mapping quality of mates whose template's size counts."""


@jit_without_refcounts
def measure_templates(
    offsets: Int64Array, choices: Int32Array, table: Table, sizes: Int64Array
) -> int:
    """Measure the templates whose mates are well placed and face each other; return how many."""
    count = 0
    for read in range(0, offsets.size - 1, 2):
        row, mate = as_int64(choices[read, CHOSEN]), as_int64(choices[read + 1, CHOSEN])
        quality = min(choices[read, QUALITY], choices[read + 1, QUALITY])
        if row < 0 or mate < 0 or quality < WELL_PLACED or not are_facing(table, row, mate):
            continue
        length = offsets[read + 1] - offsets[read]
        size = template_size(table, row, length, mate, offsets[read + 2] - offsets[read + 1])
        if size > 0:
            sizes[count] = size
            count += 1
    return count
