"""Matches as columns that stay on a device, in the order and with the positions of the output."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import numpy as np

from mummergpu.cuda.device import Device, DeviceMemoryError, Stream
from mummergpu.cuda.device_array import DeviceArray
from mummergpu.errors import BackendError
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen

RecordPlaces = tuple[Int64Array, Int32Array, int]
"""Where the records of a reference begin, the last record at or before each bucket of positions,
and the binary logarithm of the positions in a bucket: `input.reference.RecordLookup`."""

COLUMN_TYPES: Final[dict[str, type[np.generic]]] = {
    "query": np.uint32,
    "reference": np.uint32,
    "query_start": np.int64,
    "reference_start": np.int64,
    "length": np.int64,
    "reverse": np.bool_,
}
"""The types of the columns with a number for each match, in the order of the kernel's pointers."""


@frozen
class DeviceColumns:
    """Matches of some queries: query by query, forward strand before reverse.

    Attributes
    ----------
    query, reference : DeviceArray, dtype=uint32, shape=(n_matches,)
        The numbers of the query, and of the record of the reference.
    query_start, reference_start : DeviceArray, dtype=int64, shape=(n_matches,)
        0-based, on the forward strand of the query and in the record.
    length : DeviceArray, dtype=int64, shape=(n_matches,)
        In bases.
    reverse : DeviceArray, dtype=bool, shape=(n_matches,)
        Whether the reverse complement of the query matches.
    offsets : DeviceArray, dtype=int64, shape=(n_queries + 1,)
        Where the matches of each query begin, and where the last ones end.
    """

    query: DeviceArray[np.uint32]
    reference: DeviceArray[np.uint32]
    query_start: DeviceArray[np.int64]
    reference_start: DeviceArray[np.int64]
    length: DeviceArray[np.int64]
    reverse: DeviceArray[np.bool_]
    offsets: DeviceArray[np.int64]


def new_columns_on(device: Device, rows: int, queries: int) -> DeviceColumns:
    """Return unfilled columns for `rows` matches of `queries` queries, or raise `BackendError`."""
    numbers: dict[str, Any] = {
        name: _new_array(device, kind, rows, rows) for name, kind in COLUMN_TYPES.items()
    }
    return DeviceColumns(**numbers, offsets=_new_array(device, np.int64, queries + 1, rows))


class ColumnParts:
    """The columns of blocks of queries, gathered on a device until there are no more.

    The device must be current in the thread that calls `join`. `rows` and `queries` count those of
    all blocks so far.
    """

    def __init__(self, device: Device) -> None:
        self.rows = 0
        self.queries = 0
        self._device = device
        self._parts: dict[str, list[DeviceArray[Any]]] = {
            field.name: [] for field in fields(DeviceColumns)
        }

    def add(self, columns: DeviceColumns) -> None:
        """Add the columns of the next block, which are numbered from the first block on."""
        for name, parts in self._parts.items():
            parts.append(getattr(columns, name))
        self.rows += columns.length.size
        self.queries += columns.offsets.size - 1

    def join(self, stream: Stream) -> DeviceColumns:
        """Return the columns of all blocks, and release the parts.

        One column after the other is joined, so that at most one is on the device twice. The stream
        is waited for; `BackendError` is raised if the columns do not fit.
        """
        if len(self._parts["offsets"]) == 0:
            nothing = new_columns_on(self._device, 0, 0)
            stream.fill_zero(nothing.offsets.address, nothing.offsets.nbytes)
            stream.synchronize()
            return nothing
        joined: dict[str, Any] = {name: self._join(stream, name) for name in self._parts}
        return DeviceColumns(**joined)

    def _join(self, stream: Stream, name: str) -> DeviceArray[Any]:
        parts = self._parts[name]
        self._parts[name] = []
        if len(parts) == 1:
            return parts[0]
        # The last offset of a block is the first one of the next.
        common = int(name == "offsets")
        count = sum(part.size - common for part in parts) + common
        whole = _new_array(self._device, parts[0].dtype.type, count, self.rows)
        to = whole.address
        for part in parts:
            stream.copy_on_device(to, part.address, part.nbytes)
            to += part.nbytes - common * part.dtype.itemsize
        # The parts are freed when this returns.
        stream.synchronize()
        return whole


def _new_array(device: Device, kind: type[np.generic], count: int, rows: int) -> DeviceArray[Any]:
    """Return the array of a column; its error names the number of matches."""
    size = max(1, count * np.dtype(kind).itemsize)
    try:
        return DeviceArray(device.allocate_exported(size), kind, count)
    except DeviceMemoryError as error:
        raise BackendError(
            "cuda",
            f"the columns of {rows:,} matches do not fit the device's memory ({error}); search "
            "fewer queries at a time, or use 'match' or 'stream'",
        ) from error
