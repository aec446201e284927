"""What is kept of each record until all are sorted, and the loops that sort it by place.

A row of a table is 32 bytes, and moves as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.output.bytes.texts import TextArray
from mummergpu.output.records.rows import UNMAPPED
from mummergpu.output.records.sam_fields import TAKES_REFERENCE
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt32Array, UInt64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_index, as_int64, jit
from mummergpu.runtime.llvm import address_of, intrinsic, ir, prefetch_address, types

KeyArray = UInt64Array
OrderArray = UInt32Array

MOST_KEYS: Final = 1 << 32
"""The most numbers that can be sorted."""

_DIGIT_BITS: Final = 11
"""The bits of a digit: the places of its values fit the first cache."""

_DIGIT_VALUES: Final = 1 << _DIGIT_BITS


def radix_order(
    keys: KeyArray, bits: int, order: OrderArray | None = None
) -> tuple[OrderArray, KeyArray]:
    """Return the order that sorts numbers; equal ones stay in the order in which they are.

    It takes 24 bytes for each number meanwhile.
    """
    if order is None:
        order = np.arange(keys.size, dtype=np.uint32)
        source = keys.copy()
    else:
        # Indexing would keep the lock of the interpreter.
        source = np.take(keys, order)
    target, target_order = np.empty_like(source), np.empty_like(order)
    for shift in range(0, bits, _DIGIT_BITS):
        places = np.zeros(_DIGIT_VALUES, dtype=np.int64)
        if scatter_by_digit(source, order, target, target_order, places, shift):
            source, target = target, source
            order, target_order = target_order, order
    return order, source


@jit
def scatter_by_digit(
    keys: KeyArray,
    order: OrderArray,
    target: KeyArray,
    target_order: OrderArray,
    places: Int64Array,
    shift: int,
) -> bool:
    """Sort numbers by one digit; return whether that changes anything."""
    bits = np.uint64(shift)
    last = np.uint64(places.size - 1)
    for key in range(keys.size):
        places[keys[as_index(key)] >> bits & last] += 1
    total = 0
    for digit in range(places.size):
        count = places[as_index(digit)]
        if count == keys.size:
            return False
        places[as_index(digit)] = total
        total += count
    for key in range(keys.size):
        number = keys[as_index(key)]
        digit = as_int64(number >> bits & last)
        place = places[as_index(digit)]
        places[as_index(digit)] = place + 1
        target[as_index(place)] = number
        target_order[as_index(place)] = order[as_index(key)]
    return True


NOT_MAPPED: Final = 0
"""The span of a row that is not mapped."""

SpanArray = UInt32Array


@frozen
class Axis:
    """The records of a header one after the other.

    `starts` has the begin of each, and the end of the last one: the key of rows without a place.
    `by_reference` has the begin of each record of the reference, empty ones included.
    """

    starts: Int64Array
    by_reference: Int64Array
    lengths: Int64Array

    @property
    def bits(self) -> int:
        """The bits of the largest key."""
        return int(self.starts[-1]).bit_length()


def axis_of(reference: Reference) -> Axis:
    """Return the axis of the records of a reference, without those that have no base."""
    lengths = reference.record_lengths.astype(np.int64)
    starts = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    has_bases = lengths > 0
    return Axis(
        np.append(starts[:-1][has_bases], starts[-1]), starts[:-1].copy(), lengths[has_bases]
    )


def keys_of(columns: AlignmentColumns, axis: Axis) -> KeyArray:
    """Return the keys that sort alignments by their places."""
    places = axis.by_reference[columns.records] + columns.positions
    return np.where(columns.records >= 0, places, axis.starts[-1]).astype(np.uint64)


def spans_of_rows(columns: AlignmentColumns) -> SpanArray:
    """Return the bases of the reference that alignments take."""
    operations = columns.cigars.astype(np.int64)
    takes = (TAKES_REFERENCE >> (operations & 15)) & 1
    ends = np.zeros(operations.size + 1, dtype=np.int64)
    np.cumsum((operations >> 4) * takes, out=ends[1:])
    spans = np.diff(ends[columns.cigar_offsets])
    is_mapped = columns.flags & UNMAPPED == 0
    return np.where(is_mapped, np.maximum(spans, 1), NOT_MAPPED).astype(np.uint32)


STEP: Final = 32
"""The bytes that `copy_step` copies."""

_LINE_BYTES: Final = 64
_LINES: Final = 6
"""The cache lines of a record that are asked for before they are copied."""

_AHEAD: Final = 8
"""How many records before it is copied a record is asked for."""

_FLAGS: Final = 19
"""Where in a record the upper byte of its flags lies."""

_DUPLICATE: Final = np.uint8(1024 >> 8)


def _generate_copy(typing_context: Any, text: Any, at: Any, address: Any) -> Any:
    """Copy `STEP` bytes from an address in memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), STEP)
        target = address_of(context, builder, kind, signature.args[0], *arguments[:2])
        origin = builder.inttoptr(arguments[2], kind.as_pointer())
        builder.store(builder.load(origin, align=1, typ=kind), target, align=1)
        return context.get_dummy_value()

    return types.void(text, types.int64, types.int64), generate


def _generate_prefetch(typing_context: Any, address: Any) -> Any:
    """Prefetch the cache line of an address in memory, which need not be readable."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        prefetch_address(builder, pointer)
        return context.get_dummy_value()

    return types.void(types.int64), generate


copy_step = cast("Callable[[TextArray, int, int], None]", intrinsic(_generate_copy))
"""Copies `STEP` bytes into a text, at an index, from an address in memory."""

_prefetch_address = cast("Callable[[int], None]", intrinsic(_generate_prefetch))


@jit
def gather_records(
    text: TextArray,
    size: int,
    skipped: int,
    addresses: Int64Array,
    sizes: Int64Array,
    duplicates: ByteArray,
) -> None:
    """Write records one after the other, and flag some of them as duplicates."""
    at = -skipped
    for record in range(addresses.size):
        if record + _AHEAD < addresses.size:
            ahead = addresses[as_index(record + _AHEAD)]
            for line in range(_LINES):
                _prefetch_address(ahead + line * _LINE_BYTES)
        address = addresses[as_index(record)]
        bytes_of_record = sizes[as_index(record)]
        first, last = max(0, -at), min(bytes_of_record, size - at)
        for place in range(first, last, STEP):
            copy_step(text, at + place, address + place)
        flags = at + _FLAGS
        if duplicates[as_index(record)] and 0 <= flags and flags < size:
            text[as_index(flags)] |= _DUPLICATE
        at += bytes_of_record


RowTable = Int64Array
"""Rows in the order of their keys, with the fields below: shape=(n_rows, FIELDS)."""

KEY, PLACE, SIZES, NUMBER = 0, 1, 2, 3
"""The fields: the key by which rows are sorted; where the record begins, in memory or, as the
complement of a number that is not negative, in a file; the bytes of the record and, `SPAN_SHIFT`
bits higher, the bases of the reference that it takes; and the number of the row in the input."""

FIELDS: Final = 4
ROW_BYTES: Final = 8 * FIELDS
SPAN_SHIFT: Final = 32
SIZE_MASK: Final = (1 << SPAN_SHIFT) - 1


def row_table(
    keys: KeyArray, key_bits: int, places: Int64Array, sizes: Int64Array, spans: SpanArray
) -> RowTable:
    """Return the rows of a block in the order of their keys; equal ones stay as they were."""
    order, ordered = radix_order(keys, key_bits)
    rows = np.empty((order.size, FIELDS), dtype=np.int64)
    _fill_rows(rows, order, ordered, places, sizes, spans)
    return rows


def sizes_of(rows: RowTable) -> Int64Array:
    """Return the bytes of the records of rows."""
    return rows[:, SIZES] & SIZE_MASK


@jit
def _fill_rows(
    rows: RowTable,
    order: OrderArray,
    ordered: KeyArray,
    places: Int64Array,
    sizes: Int64Array,
    spans: SpanArray,
) -> None:
    """Fill a table in an order."""
    for place in range(order.size):
        row = as_int64(order[as_index(place)])
        size, span = sizes[as_index(row)], as_int64(spans[as_index(row)])
        rows[as_index(place), KEY] = as_int64(ordered[as_index(place)])
        rows[as_index(place), PLACE] = places[as_index(row)]
        rows[as_index(place), SIZES] = span << SPAN_SHIFT | size
        rows[as_index(place), NUMBER] = row


@jit
def cut_rows(
    rows: RowTable,
    table: int,
    bound_keys: Int64Array,
    bound_tables: Int64Array,
    cuts: Int64Array,
    sizes: Int64Array,
) -> None:
    """Find where a table is cut into ranges, and the bytes of its records in each range."""
    row = 0
    for part in range(bound_keys.size):
        cuts[as_index(part)] = row
        size = 0
        if part + 1 < bound_keys.size:
            # The first key that is not in the range.
            end = bound_keys[as_index(part + 1)] + (table < bound_tables[as_index(part + 1)])
            while row < rows.shape[0] and rows[as_index(row), KEY] < end:
                size += rows[as_index(row), SIZES] & SIZE_MASK
                row += 1
        else:
            while row < rows.shape[0]:
                size += rows[as_index(row), SIZES] & SIZE_MASK
                row += 1
        sizes[as_index(part)] = size
    cuts[as_index(bound_keys.size)] = row


@jit
def collect_rows(
    text: TextArray, addresses: Int64Array, begins: Int64Array, ends: Int64Array
) -> None:
    """Copy rows of several tables, one table after the other."""
    at = 0
    for table in range(addresses.size):
        address = addresses[as_index(table)]
        for row in range(begins[as_index(table)], ends[as_index(table)]):
            copy_step(text, at, address + row * ROW_BYTES)
            at += ROW_BYTES


@jit
def order_rows(
    target: RowTable, ends: Int64Array, rows: RowTable, order: OrderArray, begin: int
) -> None:
    """Put rows into an order, and find where the record of each one ends if they are joined."""
    for place in range(order.size):
        row = as_int64(order[as_index(place)])
        for field in range(FIELDS):
            target[as_index(place), as_index(field)] = rows[as_index(row), as_index(field)]
        begin += rows[as_index(row), SIZES] & SIZE_MASK
        ends[as_index(place)] = begin
