"""What programs of hidden Markov models print, sequence by sequence: TSV, JSON, Parquet and BED."""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.hmm.language.evaluation import Evaluation
from mummergpu.hmm.language.program import Algorithm, Attribute
from mummergpu.hmm.language.traces import Runs, StateNames
from mummergpu.input.records.record_reader import printable
from mummergpu.output.sink import Emit
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array
from mummergpu.runtime.jit import as_index, jit

Value = float | str | dict[str, list[float | None]] | None
"""A score, the text of a path, a table by state; None for an impossible sequence."""


_GROUP_BYTES: Final = 1 << 26
_MAX_TEXT: Final = (1 << 31) - 1
PART_RUNS: Final = 1 << 16
"""About the runs of paths whose text is made at once."""


class _ShownVisits(NamedTuple):
    """The visits of paths as text has them.

    A state that transitions emit into counts its symbols alone, however it is entered.
    """

    names: list[str]
    of_visits: Int64Array  # The number in `names` of each visit
    counts: BoolArray  # Whether it is shown

    @classmethod
    def of(cls, visits: StateNames) -> _ShownVisits:
        """Return those of a model."""
        names, emits = visits.names, visits.emits
        emitting = {
            name for name, is_emitting in zip(names, emits.tolist(), strict=True) if is_emitting
        }
        counts = np.array([name not in emitting for name in names], dtype=np.bool_) | emits
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return cls(list(numbers), np.array([numbers[one] for one in names], dtype=np.int64), counts)

    def words(
        self, states: Int64Array, lengths: Int64Array, paths: Int64Array
    ) -> tuple[list[str], Int64Array]:
        """Return runs as words, neighbours of a state in a path together; and where they begin."""
        begins = np.flatnonzero(np.diff(states, prepend=-1) | np.diff(paths, prepend=-1))
        if begins.size:
            lengths = np.add.reduceat(lengths, begins)
        words = [
            f"{self.names[state]}*{length}"
            for state, length in zip(states[begins].tolist(), lengths.tolist(), strict=True)
        ]
        return words, begins


class PrintedColumn(NamedTuple):
    """A printed expression for the sequences of a block.

    `attribute` is what is printed of `found`, the result of its algorithm. `scores` are those, or
    log-odds; `visits` are the states that paths visit, `states` those of tables, and `ends` the
    start and the end of paths.
    """

    text: str
    algorithm: Algorithm
    attribute: Attribute
    found: Evaluation
    scores: Float64Array
    visits: StateNames
    states: list[str]
    ends: tuple[str, str | None]

    def values(self) -> list[Value]:
        """Return a value for each sequence."""
        possible = ~np.isneginf(self.found.scores)
        if self.attribute is Attribute.SCORE:
            return [_number(score) for score in self.scores.tolist()]
        if self.attribute is Attribute.TRACEBACK:
            return self._paths(possible)
        assert self.found.tables is not None
        return [
            self._table(table, score) if is_possible else None
            for table, score, is_possible in zip(
                self.found.tables, self.found.scores.tolist(), possible.tolist(), strict=True
            )
        ]

    def _paths(self, possible: BoolArray) -> list[Value]:
        """Return runs as text: ``fair*120 loaded*8``."""
        runs = self.found.runs
        assert runs is not None
        shown = self._shown
        states, is_shown = shown.of_visits[runs.visits], shown.counts[runs.visits]
        paths = np.repeat(np.arange(runs.offsets.size - 1), np.diff(runs.offsets))[is_shown]
        words, begins = shown.words(states[is_shown], runs.lengths[is_shown], paths)
        sequences = np.arange(runs.offsets.size)
        offsets = np.searchsorted(paths[begins], sequences).tolist()
        return [
            " ".join(words[offsets[at] : offsets[at + 1]]) if is_possible else None
            for at, is_possible in enumerate(possible.tolist())
        ]

    @property
    def _shown(self) -> _ShownVisits:
        return _ShownVisits.of(self.visits)

    def path_pieces(self) -> Iterator[str]:
        """Yield the text of the path of the only sequence, which has one, piece by piece."""
        runs, shown = self.found.runs, self._shown
        assert runs is not None
        last = np.empty((2, 0), dtype=np.int64)
        for begin in range(0, runs.visits.size, PART_RUNS):
            visits = runs.visits[begin : begin + PART_RUNS]
            is_shown = shown.counts[visits]
            own = shown.of_visits[visits[is_shown]], runs.lengths[begin:][:PART_RUNS][is_shown]
            both = np.append(last, np.array(own), axis=1)
            # The last run may go on in the next piece.
            begins = np.flatnonzero(np.diff(both[0], prepend=-1))
            lengths = np.add.reduceat(both[1], begins) if begins.size else both[1]
            states = both[0, begins]
            last = np.array([states[-1:], lengths[-1:]])
            words, _ = shown.words(states[:-1], lengths[:-1], np.zeros_like(states[:-1]))
            if words:
                yield " ".join([*words, ""])
        yield " ".join(shown.words(last[0], last[1], np.zeros_like(last[0]))[0])

    def part(self, begin: int, end: int) -> PrintedColumn:
        """Return the column for some of the sequences."""
        runs, tables = self.found.runs, self.found.tables
        if runs is not None:
            first, last = runs.offsets[begin], runs.offsets[end]
            offsets = runs.offsets[begin : end + 1] - first
            runs = Runs(runs.visits[first:last], runs.lengths[first:last], offsets)
        scores = self.found.scores[begin:end]
        found = Evaluation(scores, runs, tables and tables[begin:end])
        return self._replace(found=found, scores=self.scores[begin:end])

    def _table(self, table: Float64Array, score: float) -> dict[str, list[float | None]]:
        """Return the rows of states; those of logarithms as in the paper's Figure 5.

        There, the start is the only state before the first symbol, and a path ends after the last.
        """
        rows = zip(self.states, table.tolist(), strict=True)
        states = {state: [_number(value) for value in row] for state, row in rows}
        if self.algorithm is Algorithm.POSTERIOR:
            return states
        values = (score, 0.0) if self.algorithm is Algorithm.BACKWARD else (0.0, score)
        nowhere: list[float | None] = [None] * table.shape[1]
        start, end = self.ends
        found = {start: [values[0], *nowhere]}
        found.update((state, [None, *row]) for state, row in states.items())
        if end is not None:
            found[end] = [*nowhere, values[1]]
        return found


def _number(value: float) -> float | None:
    return None if value == -np.inf else value


class PrintedBlock(NamedTuple):
    """Consecutive sequences, and their printed values."""

    names: list[str]
    columns: list[PrintedColumn]

    def parts(self) -> Iterator[PrintedBlock]:
        """Yield the sequences in parts of about `PART_RUNS` runs; one of more runs stands alone."""
        totals = np.zeros(len(self.names) + 1, dtype=np.int64)
        for column in self.columns:
            if column.attribute is Attribute.TRACEBACK and column.found.runs is not None:
                totals += column.found.runs.offsets
        begin = 0
        while begin < len(self.names):
            end = int(np.searchsorted(totals, totals[begin] + PART_RUNS, side="right")) - 1
            end = max(end, begin + 1)
            columns = [column.part(begin, end) for column in self.columns]
            yield PrintedBlock(self.names[begin:end], columns)
            begin = end


class ValueSink(ABC):
    """Receives the printed values, block by block."""

    @abstractmethod
    def write(self, block: PrintedBlock) -> None:
        """Take a block."""

    def finish(self) -> None:
        """Write what follows the last block."""
        return None

    def close(self) -> None:
        """Release memory, at the end and after a failure."""
        return None


class TsvSink(ValueSink):
    """A line for each sequence, and a first one with the expressions."""

    def __init__(self, emit: Emit, texts: list[str]) -> None:
        self._emit = emit
        self._head = "\t".join(["sequence", *texts]) + "\n"

    def write(self, block: PrintedBlock) -> None:
        """Write the lines of a block."""
        self._write(self._head)
        self._head = ""
        for part in block.parts():
            if len(part.names) == 1:
                self._write(part.names[0])
                for column in part.columns:
                    self._write("\t")
                    for piece in _pieces(column, _tsv, ""):
                        self._write(piece)
                self._write("\n")
                continue
            columns = [[_tsv(value) for value in column.values()] for column in part.columns]
            rows = zip(part.names, *columns, strict=True)
            self._write("".join("\t".join(row) + "\n" for row in rows))

    def _write(self, text: str) -> None:
        self._emit(text.encode("utf-8", "surrogateescape"))

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
        for part in block.parts():
            columns = {column.text: column for column in part.columns}
            keys = [json.dumps(text) for text in ["sequence", *columns]]
            if len(part.names) == 1:
                self._emit(f"{{{keys[0]}: {json.dumps(part.names[0])}".encode())
                for key, column in zip(keys[1:], columns.values(), strict=True):
                    self._emit(f", {key}: ".encode())
                    for piece in _pieces(column, _json, '"'):
                        self._emit(piece.encode())
                self._emit(b"}\n")
                continue
            values = [column.values() for column in columns.values()]
            lines = []
            for row in zip(part.names, *values, strict=True):
                pairs = zip(keys, map(_json, row), strict=True)
                lines.append("{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}\n")
            self._emit("".join(lines).encode())


def _pieces(column: PrintedColumn, text_of: Callable[[Value], str], quote: str) -> Iterator[str]:
    """Yield the value of the only sequence of a column; a path comes in pieces."""
    if column.attribute is not Attribute.TRACEBACK or np.isneginf(column.found.scores[0]):
        yield text_of(column.values()[0])
        return
    yield quote
    yield from column.path_pieces()
    yield quote


def _json(value: Value) -> str:
    """Return a value in JSON, which has no infinity: programs read that from a number too large."""
    return "1e999" if value == np.inf else json.dumps(value, allow_nan=False)


class ParquetSink(ValueSink):
    """A row for each sequence; a table is a list of states with their values."""

    def __init__(self, emit: Emit, printed: list[tuple[str, Attribute]]) -> None:
        from mummergpu.output.matches.arrow import import_pyarrow

        self._library = pa = import_pyarrow("parquet")
        import pyarrow.parquet

        kinds = {
            Attribute.SCORE: pa.float64(),
            Attribute.TRACEBACK: pa.string(),
            Attribute.TABLE: pa.list_(
                pa.struct([("state", pa.string()), ("values", pa.list_(pa.float64()))])
            ),
        }
        columns = {"sequence": pa.string(), **{text: kinds[one] for text, one in printed}}
        self._schema = pa.schema(list(columns.items()))
        self._group: list[Any] = []
        self._bytes = 0
        self._file = _EmittedFile(emit)
        stream = pa.PythonFile(self._file, mode="w")
        # A dictionary and the least and the greatest of paths would be as large as they are.
        short = ["sequence", *(text for text, one in printed if one is Attribute.SCORE)]
        self._writer = pyarrow.parquet.ParquetWriter(
            stream, self._schema, use_dictionary=False, write_statistics=short
        )

    def write(self, block: PrintedBlock) -> None:
        """Write a block, when there is enough for a group of rows."""
        pa = self._library
        for part in block.parts():
            # Text in Parquet is UTF-8.
            names = [name.encode("utf-8", "surrogateescape") for name in part.names]
            readable = [name.decode("utf-8", "replace") for name in names]
            arrays = {"sequence": pa.array(readable, pa.string())}
            for column in part.columns:
                arrays[column.text] = self._array(column, part.names)
            table = pa.table(arrays, schema=self._schema)
            self._group.append(table)
            self._bytes += table.nbytes
            if self._bytes >= _GROUP_BYTES:
                self._write_group()

    def _array(self, column: PrintedColumn, names: list[str]) -> Any:
        pa = self._library
        if len(names) == 1 and column.attribute is Attribute.TRACEBACK:
            text = io.BytesIO()
            for piece in _pieces(column, lambda _: "", ""):
                text.write(piece.encode())
            if text.tell() > _MAX_TEXT:
                name = printable(names[0].encode("utf-8", "surrogateescape"))
                message = f"the path of '{name}' has more than 2 GiB of text"
                raise OptionError("--parquet", f"{message}, which --tsv and --json write")
            is_none = np.array([np.isneginf(column.found.scores[0])])
            ends = np.array([0, text.tell()], dtype=np.int32)
            buffers = pa.py_buffer(ends), pa.py_buffer(text.getbuffer())
            valid = pa.py_buffer(np.packbits(~is_none, bitorder="little"))
            return pa.StringArray.from_buffers(1, *buffers, valid)
        values: list[Any] = list(column.values())
        if column.attribute is Attribute.TABLE:
            values = [value and _states_of(value) for value in values]
        return pa.array(values, self._schema.field(column.text).type)

    def _write_group(self) -> None:
        if self._group:
            self._writer.write_table(self._library.concat_tables(self._group))
        self._group, self._bytes = [], 0

    def finish(self) -> None:
        """Write the last rows and the end of the file."""
        self._write_group()
        self._writer.close()

    def close(self) -> None:
        """Close the writer, which has an end of a file to write after a failure, too."""
        self._file.emit = lambda _piece: None
        self._writer.close()


class _EmittedFile:
    """A file whose bytes are passed on."""

    closed = False

    def __init__(self, emit: Emit) -> None:
        self.emit = emit

    def write(self, data: bytes) -> int:
        """Pass bytes on."""
        self.emit(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: the file is closed by its owner."""


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
    if kind == "parquet":
        return ParquetSink(emit, printed)
    return {"json": JsonSink, "bed": BedSink}[kind](emit)
