"""The common base of results: columns of numpy as rows, and as tables of other libraries."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from mummergpu.errors import LibraryError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import RecordLookup, Reference, record_lookup
from mummergpu.output.matches.arrow import readable_name
from mummergpu.output.records.sam_fields import OPERATION_LETTERS, cigar_texts

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Row = TypeVar("Row", bound=tuple[Any, ...])
Scalar = TypeVar("Scalar", bound=np.generic)

ROWS_SHOWN: Final = 5
"""The number of rows in the ``repr`` of a result."""

_ROWS_AT_ONCE: Final = 1 << 12
"""The number of rows that iteration makes at once."""

_CIGAR: Final = "cigar"


class SearchedReference:
    """A reference, with the tables that all results share: each is made once, when needed.

    Parameters
    ----------
    reference : Reference
        The reference.
    """

    def __init__(self, reference: Reference) -> None:
        self.reference = reference

    @cached_property
    def lookup(self) -> RecordLookup:
        """The table that finds the record of a position."""
        return record_lookup(self.reference.record_starts, self.reference.codes.size)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the records."""
        return tuple(decoded_name(name) for name in self.reference.names)


class FoundInReference:
    """A result that knows the reference in which it was found."""

    _searched: SearchedReference

    @cached_property
    def reference_names(self) -> list[str]:
        """The names of the records of the reference."""
        return list(self._searched.names)

    @property
    def _record_names(self) -> tuple[str, ...]:
        """The same names, immutable."""
        return self._searched.names

    @property
    def reference_lengths(self) -> npt.NDArray[np.int64]:
        """The bases of each record: ndarray, dtype=int64, shape=(n_records,)."""
        return self._searched.reference.record_lengths


class ResultRows(Sequence[Row], Generic[Row]):
    """Columns of numpy that are also a sequence of rows, and tables.

    The fields of a row are the columns of a table, and attributes of this class: arrays of numbers,
    or for `_names` the numbers of names, where a negative number stands for None.
    """

    _row: ClassVar[Any]
    """The class of the rows, a named tuple."""

    _names: ClassVar[dict[str, tuple[str, str]]]
    """For each field that is a name, the attributes with its numbers and its names."""

    _can_lack: ClassVar[tuple[str, ...]] = ()
    """The numeric fields in which -1 stands for none: tables have null there."""

    def __iter__(self) -> Iterator[Row]:
        for first in range(0, len(self), _ROWS_AT_ONCE):
            yield from self._rows(slice(first, first + _ROWS_AT_ONCE))

    @overload
    def __getitem__(self, key: int) -> Row: ...

    @overload
    def __getitem__(self, key: slice | npt.NDArray[np.bool_]) -> Self: ...

    def __getitem__(self, key: Any) -> Row | Self:
        """Return one row, or the rows of a slice or of a mask of truth values."""
        if isinstance(key, slice):
            if key.step is not None and key.step < 0:
                raise IndexError("rows keep their order: a step must be positive")
            return self._part(key)
        if isinstance(key, np.ndarray) and key.dtype == np.bool_ and key.shape == (len(self),):
            return self._part(key)
        try:
            number = range(len(self))[index(key)]
        except TypeError:
            text = "only an integer, a slice, or a mask of all rows selects some"
            raise IndexError(text) from None
        return next(self._rows(slice(number, number + 1)))

    def to_arrow(self) -> pyarrow.Table:
        """Return a table of Arrow, in which names are coded by a dictionary, and CIGARs are text.

        Raises
        ------
        LibraryError
            If pyarrow is not installed.
        """
        pa = self._library("pyarrow", "arrow")
        columns = {field: self._arrow_column(field, pa) for field in self._row._fields}
        return cast("pyarrow.Table", pa.table(columns))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame of pandas, in which names are categories, and CIGARs are text.

        Raises
        ------
        LibraryError
            If pandas is not installed.
        """
        pd = self._library("pandas", "pandas")

        def column(field: str) -> Any:
            if field in self._names:
                return pd.Categorical.from_codes(*self._distinct_names(field))
            if field == _CIGAR:
                return self._values(field, slice(None))
            values = getattr(self, field)
            if field in self._can_lack:
                return pd.arrays.IntegerArray(values.copy(), values < 0)
            return values

        frame = pd.DataFrame({name: column(name) for name in self._row._fields})
        return cast("pandas.DataFrame", frame)

    def to_polars(self) -> polars.DataFrame:
        """Return a data frame of polars, in which names are categories, and CIGARs are text.

        Raises
        ------
        LibraryError
            If polars or pyarrow, which makes the data frame, is not installed.
        """
        return cast(
            "polars.DataFrame", self._library("polars", "polars").from_arrow(self.to_arrow())
        )

    @abstractmethod
    def _part(self, key: slice | npt.NDArray[np.bool_]) -> Self:
        """Return the rows of a slice, or of a mask."""

    def _masks(
        self, key: slice | npt.NDArray[np.bool_], sizes: Sequence[int]
    ) -> list[npt.NDArray[np.bool_]]:
        """Return the rows of a slice or of a mask as a mask for each block, of `sizes` rows."""
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[key] = True
        return np.split(mask, np.cumsum(sizes)[:-1]) if sizes else []

    def _arrow_column(self, field: str, pa: Any) -> Any:
        """Return a field of all rows as an array of pyarrow."""
        if field in self._names:
            numbers, names = self._distinct_names(field)
            codes = pa.array(numbers, mask=numbers < 0)
            return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()))
        values = getattr(self, field)
        return pa.array(values, mask=values < 0 if field in self._can_lack else None)

    def _rows(self, rows: slice) -> Iterator[Row]:
        columns = [self._values(field, rows) for field in self._row._fields]
        return map(self._row._make, zip(*columns, strict=True))

    def _values(self, field: str, rows: slice) -> list[Any]:
        """Return the values of a field in some rows."""
        if field == _CIGAR:
            return [getattr(self, field)(row) for row in range(len(self))[rows]]
        if field not in self._names:
            return cast("list[Any]", getattr(self, field)[rows].tolist())
        numbers, names = (getattr(self, name) for name in self._names[field])
        return [names[number] if number >= 0 else None for number in numbers[rows].tolist()]

    def _distinct_names(self, field: str) -> tuple[npt.NDArray[np.int32], list[str]]:
        """Return indices into a list of distinct names; several records may have the same name.

        Bytes that are not UTF-8 become escapes, which all libraries take.
        """
        numbers, names = (getattr(self, name) for name in self._names[field])
        readable = [readable_name(name.encode("utf-8", "surrogateescape")) for name in names]
        places: dict[str, int] = {}
        place_of_name = [places.setdefault(name, len(places)) for name in readable]
        if len(places) < len(readable):
            numbers = np.array([*place_of_name, -1], dtype=np.int32)[numbers]
        return numbers.astype(np.int32), list(places)

    def _library(self, name: str, extra: str) -> Any:
        """Import an optional library."""
        try:
            return importlib.import_module(name)
        except ImportError as error:
            purpose = f"{type(self).__name__}.to_{extra}"
            raise LibraryError(purpose, name, extra, str(error)) from error


class AlignmentRows(FoundInReference, ResultRows[Row]):
    """Rows with a CIGAR.

    `cigar` is text in a row, in a table, and as a method. The packed operations of all rows are
    `cigars`; those of a row begin at its `cigar_offsets`.
    """

    cigar_offsets: npt.NDArray[np.int64]
    cigars: npt.NDArray[np.uint32]

    def cigar(self, row: int) -> str:
        """Return the CIGAR of a row as text, such as ``3S97M``; ``*`` if there is none.

        Parameters
        ----------
        row : int
            The number of the row; a negative one counts from the end.

        Raises
        ------
        IndexError
            If there is no such row.
        """
        number = range(len(self))[row]
        packed = self.cigars[self.cigar_offsets[number] : self.cigar_offsets[number + 1]]
        text = (f"{one >> 4}{chr(OPERATION_LETTERS[one & 15])}" for one in packed.tolist())
        return "".join(text) or "*"

    def _arrow_column(self, field: str, pa: Any) -> Any:
        if field != _CIGAR:
            return super()._arrow_column(field, pa)
        text, offsets = cigar_texts(self.cigars, self.cigar_offsets)
        buffers = pa.py_buffer(offsets), pa.py_buffer(text[: offsets[-1]])
        return pa.LargeStringArray.from_buffers(len(self), *buffers)


def joined(parts: Sequence[npt.NDArray[Any]], kind: type[Scalar]) -> npt.NDArray[Scalar]:
    """Return a column of all blocks; an empty one if there is no block."""
    return np.concatenate([np.empty(0, dtype=kind), *parts])


def names_of_queries(block: QueryBlock) -> list[str]:
    """Return the names of the queries of a block."""
    text = block.names.tobytes()
    bounds = block.name_offsets.tolist()
    return [decoded_name(text[begin:end]) for begin, end in pairwise(bounds)]


def decoded_name(name: bytes) -> str:
    """Return a name as text that encodes back to the same bytes."""
    return name.decode("utf-8", "surrogateescape")
