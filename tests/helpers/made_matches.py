"""Matches as the plots take them, made of rows."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class MadeMatches:
    """What `mummergpu.plot.Matches` asks for."""

    query: np.ndarray
    reference: np.ndarray
    query_start: np.ndarray
    reference_start: np.ndarray
    length: np.ndarray
    reverse: np.ndarray
    query_names: list[str]
    reference_names: list[str]
    query_lengths: np.ndarray
    reference_lengths: np.ndarray


def made_matches(rows, query_lengths, reference_lengths):
    """Make matches between records that are called q0, q1, ... and r0, r1, ...

    A row is the query, the record, the start in each, the length, and whether it is reverse.
    """
    columns = list(zip(*rows, strict=True)) or [[] for _ in range(6)]
    kinds = (np.uint32, np.uint32, np.int64, np.int64, np.int64, np.bool_)
    return MadeMatches(
        *(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)),
        [f"q{number}" for number in range(len(query_lengths))],
        [f"r{number}" for number in range(len(reference_lengths))],
        np.array(query_lengths, dtype=np.int64),
        np.array(reference_lengths, dtype=np.int64),
    )
