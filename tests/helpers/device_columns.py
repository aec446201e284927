"""Columns that a device leaves in its memory, of any matches, and those of the host."""

from dataclasses import fields

import numpy as np

from helpers.text_cases import BOTH, searched
from mummergpu.input.reference import record_lookup
from mummergpu.matching.device_columns import ColumnParts
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.kmer.cuda_consumers import ResidentColumns
from mummergpu.output.matches.match_table import match_table
from mummergpu.runtime.stats import Stats


def columns_of_host(case):
    """The columns of the host's own table, by their names in the Python interface."""
    lookup = record_lookup(case.reference.record_starts, case.reference.codes.size)
    table = match_table(case.block, case.columns, lookup)
    counts = sum(np.diff(columns.offsets) for columns in case.columns.values())
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return {
        "query": table.queries,
        "reference": table.records,
        "query_start": table.query_starts,
        "reference_start": table.reference_starts,
        "length": table.lengths,
        "reverse": table.is_reverse,
        "offsets": offsets.astype(np.int64),
    }


def on_host(columns):
    return {field.name: getattr(columns, field.name).to_host() for field in fields(columns)}


class _HostView:
    """What numpy takes for an array in the memory of the host's device."""

    def __init__(self, array):
        self._array = array
        self.__array_interface__ = array.__cuda_array_interface__


def taken(array):
    """An array of the host's device as another library has it, without a copy."""
    return np.asarray(_HostView(array)) if array.size else array.to_host()


def difference(found, expected):
    """Say where columns differ first, or None."""
    for name, values in expected.items():
        if found[name].dtype != values.dtype or found[name].shape != values.shape:
            return f"{name}: {found[name].dtype}{found[name].shape}"
        if not np.array_equal(found[name], values):
            place = int(np.flatnonzero(found[name] != values)[0])
            return f"{name}[{place}]: {found[name][place]}, not {values[place]}"
    return None


def columns_of_device(device, cache, case, first_query=0, first_row=0):
    """The columns that a device leaves of any matches, after so many queries and rows."""
    backend = KmerCudaBackend(device, cache, Stats(), lambda line: None)
    lookup = record_lookup(case.reference.record_starts, case.reference.codes.size)
    try:
        with device.current():
            searcher, found = searched(backend, case.block, case.columns)
            records = (*backend._place(lookup.starts, lookup.buckets), lookup.bucket_shift)
            parts = ColumnParts(device)
            parts.queries, parts.rows = first_query, first_row
            columns = ResidentColumns(records, BOTH, parts).write(searcher, case.block, found)
            searcher.stream.synchronize()
            searcher.launcher.forget()
            return columns
    finally:
        backend.close()
