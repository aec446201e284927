"""What programs of hidden Markov models print, sequence by sequence: TSV, JSON, Parquet and BED."""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.hmm.language.evaluation import Evaluation
from mummergpu.hmm.language.program import Attribute
from mummergpu.hmm.language.traces import Runs, StateNames
from mummergpu.output.matches.arrow import import_pyarrow
from mummergpu.output.sink import Emit
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array
from mummergpu.runtime.jit import as_index, jit

Value = float | str | dict[str, list[float | None]] | None
"""A score, the text of a path, a table by state; None for an impossible sequence."""


class PrintedColumn(NamedTuple):
    """A printed expression for the sequences of a block.

    `attribute` is what is printed of `found`, the result of its algorithm. `scores` are those, or
    log-odds; `visits` are the states that paths visit, and `states` those of tables.
    """

    text: str
    attribute: Attribute
    found: Evaluation
    scores: Float64Array
    visits: StateNames
    states: list[str]

    def values(self) -> list[Value]:
        """Return a value for each sequence."""
        possible = ~np.isneginf(self.found.scores)
        if self.attribute is Attribute.SCORE:
            return [_number(score) for score in self.scores.tolist()]
        if self.attribute is Attribute.TRACEBACK:
            return self._paths(possible)
        assert self.found.tables is not None
        return [
            self._table(table) if is_possible else None
            for table, is_possible in zip(self.found.tables, possible.tolist(), strict=True)
        ]

    def _paths(self, possible: BoolArray) -> list[Value]:
        """Return runs as text: ``fair*120 loaded*8``.

        A state that transitions emit into counts its symbols alone, however it is entered.
        """
        runs, names, emits = self.found.runs, self.visits.names, self.visits.emits
        assert runs is not None
        emitting = {
            name for name, is_emitting in zip(names, emits.tolist(), strict=True) if is_emitting
        }
        counts = np.array([name not in emitting for name in names], dtype=np.bool_) | emits
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        of_visits = np.array([numbers[name] for name in names], dtype=np.int64)
        shown = counts[runs.visits] if names else np.empty(0, dtype=np.bool_)
        paths = np.repeat(np.arange(runs.offsets.size - 1), np.diff(runs.offsets))[shown]
        states, lengths = of_visits[runs.visits[shown]], runs.lengths[shown]
        begins = np.flatnonzero(np.diff(states, prepend=-1) | np.diff(paths, prepend=-1))
        if begins.size:
            lengths = np.add.reduceat(lengths, begins)
        words_of = list(numbers)
        words = [
            f"{words_of[state]}*{length}"
            for state, length in zip(states[begins].tolist(), lengths.tolist(), strict=True)
        ]
        sequences = np.arange(runs.offsets.size)
        offsets = np.searchsorted(paths[begins], sequences).tolist()
        return [
            " ".join(words[offsets[at] : offsets[at + 1]]) if is_possible else None
            for at, is_possible in enumerate(possible.tolist())
        ]

    def _table(self, table: Float64Array) -> dict[str, list[float | None]]:
        rows = zip(self.states, table.tolist(), strict=True)
        return {state: [_number(value) for value in row] for state, row in rows}


def _number(value: float) -> float | None:
    return None if value == -np.inf else value


class PrintedBlock(NamedTuple):
    """Consecutive sequences, and their printed values."""

    names: list[str]
    columns: list[PrintedColumn]


class ValueSink(ABC):
    """Receives the printed values, block by block."""

    @abstractmethod
    def write(self, block: PrintedBlock) -> None:
        """Take a block."""

    def finish(self) -> None:
        """Write what follows the last block."""
        return None


class TsvSink(ValueSink):
    """A line for each sequence, and a first one with the expressions."""

    def __init__(self, emit: Emit, texts: list[str]) -> None:
        self._emit = emit
        self._head = "\t".join(["sequence", *texts]) + "\n"

    def write(self, block: PrintedBlock) -> None:
        """Write the lines of a block."""
        columns = [[_tsv(value) for value in column.values()] for column in block.columns]
        rows = zip(block.names, *columns, strict=True)
        lines = "".join("\t".join(row) + "\n" for row in rows)
        self._emit((self._head + lines).encode("utf-8", "surrogateescape"))
        self._head = ""

    def finish(self) -> None:
        """Write the first line if there is no sequence."""
        if self._head:
            self._emit(self._head.encode())


def _tsv(value: Value) -> str:
    """Return a value in a field: states of a table are separated by semicolons."""
    if value is None:
        return "-inf"
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ";".join(f"{state}=" + ",".join(map(_tsv, row)) for state, row in value.items())
    return f"{value:.10g}"


class JsonSink(ValueSink):
    """An object a line for each sequence: null stands for an impossible value."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def write(self, block: PrintedBlock) -> None:
        """Write the lines of a block."""
        texts = dict.fromkeys(["sequence", *(column.text for column in block.columns)])
        keys = [json.dumps(text) for text in texts]
        columns = {column.text: column.values() for column in block.columns}
        lines = []
        for row in zip(block.names, *columns.values(), strict=True):
            pairs = zip(keys, map(_json, row), strict=True)
            lines.append("{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}\n")
        self._emit("".join(lines).encode())


def _json(value: Value) -> str:
    """Return a value in JSON, which has no infinity: programs read that from a number too large."""
    return "1e999" if value == np.inf else json.dumps(value, allow_nan=False)


class ParquetSink(ValueSink):
    """A row for each sequence; a table is a list of states with their values."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._library = import_pyarrow("parquet")
        self._tables: list[Any] = []

    def write(self, block: PrintedBlock) -> None:
        """Keep a block."""
        pa = self._library
        kinds = {
            Attribute.SCORE: pa.float64(),
            Attribute.TRACEBACK: pa.string(),
            Attribute.TABLE: pa.list_(
                pa.struct([("state", pa.string()), ("values", pa.list_(pa.float64()))])
            ),
        }
        # Text in Parquet is UTF-8.
        names = [name.encode("utf-8", "surrogateescape") for name in block.names]
        readable = [name.decode("utf-8", "replace") for name in names]
        arrays = {"sequence": pa.array(readable, pa.string())}
        for column in block.columns:
            values: list[Any] = list(column.values())
            if column.attribute is Attribute.TABLE:
                values = [value and _states_of(value) for value in values]
            arrays[column.text] = pa.array(values, kinds[column.attribute])
        self._tables.append(pa.table(arrays))

    def finish(self) -> None:
        """Write all rows."""
        import pyarrow.parquet

        text = io.BytesIO()
        tables = self._tables or [self._library.table({"sequence": []})]
        pyarrow.parquet.write_table(self._library.concat_tables(tables), text)
        self._emit(text.getvalue())


def _states_of(table: dict[str, list[float | None]]) -> list[dict[str, Any]]:
    return [{"state": state, "values": values} for state, values in table.items()]


class BedSink(ValueSink):
    """The segments of the states of the first traceback.

    Neighbours whose names differ in the number after them alone, as ``island[1]`` and
    ``island[2]``, are one segment of the name before it.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def write(self, block: PrintedBlock) -> None:
        """Write the segments of a block."""
        column = next(one for one in block.columns if one.attribute is Attribute.TRACEBACK)
        runs, visits = column.found.runs, column.visits
        assert runs is not None
        groups: dict[str, int] = {}
        names = [name.partition("[")[0] for name in visits.names]
        # Silent states have no symbols.
        of_visits = np.array(
            [
                groups.setdefault(name, len(groups)) if emits else -1
                for name, emits in zip(names, visits.emits.tolist(), strict=True)
            ],
            dtype=np.int64,
        )
        counts = np.empty(len(block.names) + 1, dtype=np.int64)
        nothing = np.empty((0, 3), dtype=np.int64)
        total = _list_segments(runs, of_visits, counts, nothing)
        segments = np.empty((total, 3), dtype=np.int64)
        _list_segments(runs, of_visits, counts, segments)
        shown = list(groups)
        lines = []
        for name, (first, last) in zip(block.names, pairwise(counts.tolist()), strict=True):
            rows = segments[first:last].tolist()
            lines += [f"{name}\t{start}\t{stop}\t{shown[state]}\n" for start, stop, state in rows]
        self._emit("".join(lines).encode("utf-8", "surrogateescape"))


@jit
def _list_segments(
    runs: Runs, of_visits: Int64Array, offsets: Int64Array, segments: Int64Array
) -> int:
    """Write begins, ends and groups of segments, unless there is no room, and where paths begin."""
    count = 0
    for path in range(offsets.size - 1):
        offsets[path] = count
        at, group = 0, -1
        for place in range(runs.offsets[path], runs.offsets[path + 1]):
            own = of_visits[as_index(runs.visits[as_index(place)])]
            if own < 0:
                continue
            if own != group:
                group = own
                count += 1
                if segments.size:
                    segments[count - 1, 0], segments[count - 1, 2] = at, own
            at += runs.lengths[as_index(place)]
            if segments.size:
                segments[count - 1, 1] = at
    offsets[offsets.size - 1] = count
    return count


FORMATS: Final = ("tsv", "json", "parquet", "bed")


def open_value_sink(kind: str, emit: Emit, printed: list[tuple[str, Attribute]]) -> ValueSink:
    """Return the sink of a format for some expressions.

    `OptionError` if BED is asked for, and no traceback is printed; `LibraryError` if Parquet is
    asked for without its library.
    """
    if kind == "bed" and Attribute.TRACEBACK not in [attribute for _, attribute in printed]:
        raise OptionError("--bed", "the program prints no traceback")
    if kind == "tsv":
        return TsvSink(emit, [text for text, _ in printed])
    makers: dict[str, Callable[[Emit], ValueSink]] = {
        "json": JsonSink,
        "parquet": ParquetSink,
        "bed": BedSink,
    }
    return makers[kind](emit)
