"""Queries of users, in memory or in files, as the blocks that a search takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from mummergpu.api.log import LOG
from mummergpu.api.requests import PathLike, paths_asked, truth
from mummergpu.input.blocks.memory import NamedSequence, block_in_memory
from mummergpu.input.blocks.paired_queries import pairs_in_memory
from mummergpu.input.blocks.queries import QueryBlock, QueryRules
from mummergpu.input.blocks.query_stream import QueryStream
from mummergpu.input.bytes.files import PLACE
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.runtime.stats import Stats

Queries = str | bytes | Iterable[NamedSequence]


def query_rules(any_letters: bool, pair: bool) -> QueryRules:
    """Return the rules for queries, whose warnings go to the log of the package.

    Parameters
    ----------
    any_letters : bool
        Accept queries whose letters are mostly not DNA or RNA.
    pair : bool
        The queries are pairs of reads: first and second mates in turn, or in two files in turn.
    """
    letters = truth("any_letters", any_letters)
    return QueryRules(letters, warn=LOG.warning, paired=truth("pair", pair))


def one_block(queries: Queries, rules: QueryRules) -> QueryBlock | None:
    """Return queries in memory as one block, None if there are none.

    Parameters
    ----------
    queries : str, bytes, or iterable of tuple
        One sequence, or names and sequences.
    rules : QueryRules
        Which sequences are accepted, and whether they are pairs of reads.

    Returns
    -------
    QueryBlock or None
        The queries; the names of mates end in ``/1`` and ``/2``.

    Raises
    ------
    InputError
        If a sequence is not DNA or RNA, or a read has no mate.
    """
    if isinstance(queries, str | bytes):
        queries = [("query", queries)]
    block = block_in_memory(queries, any_letters=rules.any_letters)
    return pairs_in_memory(block, PLACE) if rules.paired and block is not None else block


def parts_of_block(block: QueryBlock, most_bases: int) -> Iterator[QueryBlock]:
    """Yield the queries in blocks of about so many bases; no query is cut."""
    if block.base_count <= most_bases or block.query_count == 1:
        yield block
        return
    for half in block.halves():
        yield from parts_of_block(half, most_bases)


@contextmanager
def blocks_of_files(
    names: tuple[str, ...], block_bases: int, rules: QueryRules, threads: int
) -> Iterator[Iterator[QueryBlock]]:
    """Read the queries in files while a ``with`` statement lasts.

    Parameters
    ----------
    names : tuple of str
        The files, in order.
    block_bases : int
        About how many bases a block has.
    rules : QueryRules
        Which files are accepted, and whether they have pairs of reads.
    threads : int
        The number of threads that read.

    Yields
    ------
    iterator of QueryBlock
        The queries, in order, which can be read once.
    """
    with ExitStack() as stack:
        reading = stack.enter_context(ReadingThreads(threads))
        stream = stack.enter_context(
            QueryStream(names, block_bases, Stats(), _ignore, rules, reading)
        )
        yield stream.blocks(block_bases)


def names_of_files(queries: Queries | PathLike | Sequence[PathLike]) -> tuple[str, ...] | None:
    """Return the names of the files of queries, None if the queries are in memory.

    Parameters
    ----------
    queries : str, bytes, iterable of tuple, pathlib.Path, or list of pathlib.Path
        The queries. A plain text is a sequence, and not a file.
    """
    several = list(queries) if isinstance(queries, list | tuple) else [queries]
    if several and all(isinstance(path, os.PathLike) for path in several):
        return paths_asked("queries", queries)
    return None


def no_queries() -> QueryBlock:
    """Return a block without queries."""
    block = block_in_memory([("none", "")])
    assert block is not None
    return block.halves()[0]


def _ignore(_reads: int, _share: float | None) -> None:
    """Report no progress."""
