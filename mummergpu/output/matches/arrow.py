"""Matches as the columns of Arrow and Parquet files.

A file has the columns query, reference, query_start, reference_start, length and reverse, as
`mummergpu.Matches.to_arrow` has them. Queries without matches have no row.

The rows are written in groups, which end after `GROUP_ROWS` rows, or where the names would need
too much memory. Blocks of queries have no influence on the groups, so that the bytes of a file do
not depend on the number of threads.

In an Arrow file the references are coded by one dictionary. The queries are not: there would be a
part of a dictionary for each group, and polars reads no file that has such parts. In a Parquet file
both are strings, with a dictionary in each group, which every reader resolves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mummergpu.errors import LibraryError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.output.matches.match_table import MatchTable, match_tables
from mummergpu.output.sink import Emit, MatchSink, materialize_if_small
from mummergpu.runtime import optional_imports
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt32Array
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems

if TYPE_CHECKING:
    import pyarrow

GROUP_ROWS: Final = 1 << 17
"""The rows of a group. Readers take one group or more at a time, some of them on several threads.
"""

NAME_BYTES: Final = 1 << 26
"""The most bytes of a column of names of one group, unless it has one row."""

_INTEGERS: Final = ("query_start", "reference_start", "length")


class ArrowSink(MatchSink[Iterator[Any]]):
    """Writes matches to an Arrow or Parquet file, in groups of rows."""

    def __init__(
        self, format_name: str, reference: Reference, emit: Emit, stats: Stats, max_rows: int
    ) -> None:
        self._library = import_pyarrow(format_name)
        self._emit = emit
        self._stats = stats
        self._max_rows = max_rows
        self._lookup = record_lookup(reference.record_starts, reference.codes.size)
        self._pieces = _Pieces()
        self._groups = RowGroups(self._library)
        names = self._library.array(list(map(readable_name, reference.names)), "string")
        self._longest_record_name = max(map(len, reference.names), default=0)
        kind: Any = _ArrowWriter if format_name == "arrow" else _ParquetWriter
        self._writer: _ArrowWriter | _ParquetWriter = kind(self._library, self._pieces, names)
        self._pass_on()

    def prepare(self, block: QueryBlock, mems: BlockMems) -> Iterator[Any]:
        """Return the matches of a block as batches of rows (`Sink.prepare`)."""
        batches = self._batches(block, mems)
        return materialize_if_small(batches, mems, self._max_rows, self._stats)

    def write(self, prepared: Iterator[Any]) -> None:
        """Write the groups that the rows of a block complete (`Sink.write`)."""
        for batch in prepared:
            for group in self._groups.add(batch):
                self._write_group(group)

    def finish(self) -> None:
        """Write the last group and the end of the file."""
        group = self._groups.rest()
        if group is not None:
            self._write_group(group)
        self._writer.close()
        self._pass_on()

    def _batches(self, block: QueryBlock, mems: BlockMems) -> Iterator[pyarrow.RecordBatch]:
        longest = int(np.diff(block.name_offsets).max(initial=0))
        longest = max(1, longest, self._longest_record_name)
        max_rows = max(1, min(GROUP_ROWS, NAME_BYTES // longest))
        for table in match_tables(block, mems, self._lookup, max_rows):
            if table.lengths.size:
                yield self._batch(block, table)

    def _batch(self, block: QueryBlock, table: MatchTable) -> pyarrow.RecordBatch:
        pa = self._library
        first, end = int(table.queries[0]), int(table.queries[-1]) + 1
        bounds = block.name_offsets[first : end + 1]
        names = _name_array(pa, block.names[bounds[0] : bounds[-1]], bounds - bounds[0])
        queries = names.take(pa.array(table.queries - np.uint32(first))).cast("string")
        columns = {
            "query": queries,
            "reference": self._writer.records(table.records),
            "query_start": pa.array(table.query_starts),
            "reference_start": pa.array(table.reference_starts),
            "length": pa.array(table.lengths),
            "reverse": pa.array(table.is_reverse),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _write_group(self, group: pyarrow.RecordBatch) -> None:
        with self._stats.stage("format"):
            self._writer.write(group)
        self._pass_on()

    def _pass_on(self) -> None:
        """Write what the library has made.

        The library itself never gets the file: when its writer is thrown away after a failure, it
        still writes the end of the format.
        """
        for piece in self._pieces.take():
            self._emit(piece)


class RowGroups:
    """Cuts the rows of all blocks into groups that depend on the rows alone."""

    def __init__(
        self, library: Any, max_rows: int = GROUP_ROWS, name_bytes: int = NAME_BYTES
    ) -> None:
        self._library = library
        self._max_rows = max_rows
        self._max_bytes = name_bytes
        self._parts: list[pyarrow.RecordBatch] = []
        self._rows = 0
        self._bytes: dict[int, int] = {}

    def add(self, batch: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
        """Add rows, and yield the groups that are complete."""
        while batch.num_rows:
            count = self._take(batch)
            if count < batch.num_rows or self._rows == self._max_rows:
                group = self.rest()
                assert group is not None
                yield group
            batch = batch.slice(count)

    def rest(self) -> pyarrow.RecordBatch | None:
        """Return the rows that are left as a group, None if there are none."""
        parts, self._parts, self._rows, self._bytes = self._parts, [], 0, {}
        if not parts:
            return None
        table = self._library.Table.from_batches(parts)
        (group,) = table.combine_chunks().to_batches()
        return group

    def _take(self, batch: pyarrow.RecordBatch) -> int:
        """Move the rows that fit from a batch into the group, and return their number."""
        count: int = min(batch.num_rows, self._max_rows - self._rows)
        ends = {
            number: _string_ends(column)
            for number, column in enumerate(batch.columns)
            if column.type == self._library.string()
        }
        for number, each in ends.items():
            room = self._max_bytes - self._bytes.get(number, 0)
            count = min(count, int(np.searchsorted(each, room, side="right")) - 1)
        # A name that is too long for any group has one of its own.
        count = max(count, 0 if self._parts else 1)
        if count:
            self._parts.append(batch.slice(0, count))
            self._rows += count
            for number, each in ends.items():
                self._bytes[number] = self._bytes.get(number, 0) + int(each[count])
        return count


class _ArrowWriter:
    """Writes Arrow's file format (IPC), which is also version 2 of Feather."""

    def __init__(self, library: Any, pieces: _Pieces, names: Any) -> None:
        self._library = library
        self._names = names
        numbers = _number_fields(library)
        coded = library.dictionary(library.int32(), library.string())
        schema = library.schema([("query", "string"), ("reference", coded), *numbers])
        # Of the formats of compression, Feather's own readers know this one longest.
        options = library.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
        stream = library.PythonFile(pieces, mode="w")
        self._schema = schema
        self._writer = library.ipc.new_file(stream, schema, options=options)

    def records(self, numbers: UInt32Array) -> Any:
        """Return the column of the reference for some records; any thread may call this."""
        return self._library.array(numbers.astype(np.int32))

    def write(self, group: pyarrow.RecordBatch) -> None:
        """Write a group of rows."""
        # Only here, so that all groups have the same dictionary, which is then written once.
        columns = group.columns
        columns[1] = self._library.DictionaryArray.from_arrays(columns[1], self._names)
        batch = self._library.RecordBatch.from_arrays(columns, schema=self._schema)
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class _ParquetWriter:
    """Writes Parquet, with dictionaries for the names in each group of rows."""

    def __init__(self, library: Any, pieces: _Pieces, names: Any) -> None:
        from pyarrow import parquet

        self._library = library
        self._names = names
        numbers = _number_fields(library)
        schema = library.schema([("query", "string"), ("reference", "string"), *numbers])
        self._writer = parquet.ParquetWriter(
            library.PythonFile(pieces, mode="w"),
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=["query", "reference"],
            # Smaller than plain numbers, and written in half of the time.
            column_encoding=dict.fromkeys(_INTEGERS, "DELTA_BINARY_PACKED"),
            dictionary_pagesize_limit=4 * NAME_BYTES,
            # The types of Parquet say all.
            store_schema=False,
        )

    def records(self, numbers: UInt32Array) -> Any:
        return self._names.take(self._library.array(numbers))

    def write(self, group: pyarrow.RecordBatch) -> None:
        table = self._library.Table.from_batches([group])
        self._writer.write_table(table, row_group_size=GROUP_ROWS)

    def close(self) -> None:
        self._writer.close()


class _Pieces:
    """A file that keeps the bytes written to it until they are taken."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Keep some bytes."""
        self._pieces.append(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: the sink takes the remaining bytes."""

    def take(self) -> list[bytes]:
        """Return the bytes written since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces


def readable_name(name: bytes) -> str:
    r"""Return a name as text.

    Names may have any bytes, but the strings of Arrow are UTF-8: other bytes become escapes, such
    as ``\xe9``.
    """
    return name.decode("utf-8", "backslashreplace")


def _name_array(pa: Any, names: ByteArray, offsets: Int64Array) -> pyarrow.LargeStringArray:
    """Return joined names as an array of strings."""
    if names.max(initial=0) >= 128:
        text = names.tobytes()
        bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        return pa.array([readable_name(text[begin:end]) for begin, end in bounds], "large_string")
    buffers = (pa.py_buffer(np.ascontiguousarray(array)) for array in (offsets, names))
    return pa.LargeStringArray.from_buffers(offsets.size - 1, *buffers)


def _string_ends(column: Any) -> Int64Array:
    """Return where each string of a column begins, from 0 on, and where the last one ends."""
    first: int = column.offset
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[first : first + len(column) + 1]
    ends: Int64Array = offsets.astype(np.int64) - offsets[0]
    return ends


def _number_fields(pa: Any) -> list[Any]:
    return [*((name, pa.int64()) for name in _INTEGERS), ("reverse", pa.bool_())]


def import_pyarrow(format_name: str) -> Any:
    """Import pyarrow, which only these formats need; raise `LibraryError` if that fails."""
    library = optional_imports.find("pyarrow", "pyarrow")
    if library.problem is not None:
        raise LibraryError(f"output as {format_name}", "pyarrow", "arrow", library.problem)
    import pyarrow

    return pyarrow
