"""Columns as the tables of other libraries, which are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt

from mummergpu.errors import LibraryError
from mummergpu.output.matches.arrow import readable_name

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

ROWS_SHOWN: Final = 5
"""The rows of a result that an interpreter shows."""

NamedColumns = Mapping[str, tuple[npt.NDArray[Any], list[str]]]
"""Columns of names: for each, numbers into a list of different names."""

NumberColumns = Mapping[str, npt.NDArray[Any]]
"""The other columns."""


def arrow_table(owner: str, named: NamedColumns, numbers: NumberColumns) -> pyarrow.Table:
    """Return a table of Arrow, in which names are coded by a dictionary.

    Parameters
    ----------
    owner : str
        The class whose columns they are, for errors.
    named : mapping
        The columns of names.
    numbers : mapping
        The other columns.

    Returns
    -------
    pyarrow.Table
        The columns in this order.

    Raises
    ------
    LibraryError
        If pyarrow is not installed.
    """
    pa = _library(owner, "pyarrow", "arrow")
    columns = {
        **{
            name: pa.DictionaryArray.from_arrays(
                pa.array(values.astype(np.int32)), pa.array(names, pa.string())
            )
            for name, (values, names) in named.items()
        },
        **{name: pa.array(values) for name, values in numbers.items()},
    }
    return cast("pyarrow.Table", pa.table(columns))


def pandas_table(owner: str, named: NamedColumns, numbers: NumberColumns) -> pandas.DataFrame:
    """Return a data frame of pandas, in which names are categories.

    Parameters
    ----------
    owner, named, numbers
        As for `arrow_table`.

    Returns
    -------
    pandas.DataFrame
        The columns in this order.

    Raises
    ------
    LibraryError
        If pandas is not installed.
    """
    pd = _library(owner, "pandas", "pandas")
    columns = {
        **{
            name: pd.Categorical.from_codes(values.astype(np.int32), names)
            for name, (values, names) in named.items()
        },
        **numbers,
    }
    return cast("pandas.DataFrame", pd.DataFrame(columns))


def polars_table(owner: str, make_arrow: Callable[[], pyarrow.Table]) -> polars.DataFrame:
    """Return a data frame of polars, in which names are categories.

    Parameters
    ----------
    owner : str
        The class whose columns they are, for errors.
    make_arrow : callable
        Returns the table of Arrow that the data frame is made of.

    Returns
    -------
    polars.DataFrame
        The same columns.

    Raises
    ------
    LibraryError
        If polars or pyarrow is not installed.
    """
    pl = _library(owner, "polars", "polars")
    return cast("polars.DataFrame", pl.from_arrow(make_arrow()))


def distinct_names(
    numbers: npt.NDArray[Any], names: Sequence[str]
) -> tuple[npt.NDArray[Any], list[str]]:
    """Return numbers into a list of different names; several records may have the same name.

    Parameters
    ----------
    numbers : ndarray
        Numbers into `names`.
    names : sequence of str
        Names, in which bytes that are not UTF-8 become escapes, which all libraries take.

    Returns
    -------
    numbers : ndarray
        Numbers into the list below.
    names : list of str
        Different names.
    """
    readable = [readable_name(name.encode("utf-8", "surrogateescape")) for name in names]
    places: dict[str, int] = {}
    place_of_name = [places.setdefault(name, len(places)) for name in readable]
    if len(places) == len(readable):
        return numbers, readable
    return np.array(place_of_name, dtype=np.uint32)[numbers], list(places)


def _library(owner: str, name: str, extra: str) -> Any:
    """Import a library that only some methods need."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise LibraryError(f"{owner}.to_{extra}", name, extra, str(error)) from error
