"""Anchors of alignments of genomes: matches as compiled functions take them, and where they lie."""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.runtime.arrays import Int64Array
from mummergpu.sequence.codes import CodeArray

NONE: Final = -1
"""In place of the number of a match: there is none."""


class Anchors(NamedTuple):
    """Where matches begin in the query and in the reference, and their lengths."""

    query_starts: Int64Array
    reference_starts: Int64Array
    lengths: Int64Array


class Sequences(NamedTuple):
    """The codes of the queries and of the reference, with margins."""

    query: CodeArray
    reference: CodeArray


class Bounds(NamedTuple):
    """How far alignments may go: the first base in each sequence, and the one after the last."""

    query_begins: Int64Array
    query_ends: Int64Array
    reference_begins: Int64Array
    reference_ends: Int64Array
