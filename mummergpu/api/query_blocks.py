"""Converts queries of users, in memory or in files, to the blocks that a search takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from mummergpu.api.log import LOG
from mummergpu.api.requests import PathLike
from mummergpu.input.blocks.memory import NamedSequence, block_in_memory, several
from mummergpu.input.blocks.queries import QueryBlock, QueryRules
from mummergpu.input.blocks.reader import ReadStream, query_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.pipeline.backend_choice import estimate_query_bases
from mummergpu.pipeline.options import refuse_single_mates
from mummergpu.runtime.option_values import check_bool, paths
from mummergpu.runtime.stats import Stats

Queries = str | bytes | Iterable[NamedSequence]


class QuerySource:
    """The queries of a user, in files (`paths`) or in memory (`block`, None if there are none).

    The names of mates in memory end in ``/1`` and ``/2``.
    """

    def __init__(
        self, paths: tuple[str, ...] | None, block: QueryBlock | None, rules: QueryRules
    ) -> None:
        self.paths = paths
        self.block = block
        self._rules = rules

    @classmethod
    def of(
        cls,
        queries: Queries | PathLike | Sequence[PathLike],
        any_letters: bool = False,
        pair: bool = False,
    ) -> QuerySource:
        """Return the queries of an argument; a plain text is a sequence, not a file."""
        given = list(queries) if isinstance(queries, list | tuple) else [queries]
        if given and all(isinstance(path, os.PathLike) for path in given):
            return cls.of_files(paths("queries", queries), any_letters, pair)
        rules = _rules(any_letters, pair)
        named = several(queries, "query")
        block = block_in_memory(named, any_letters=rules.any_letters, paired=rules.paired)
        return cls(None, block, rules)

    @classmethod
    def of_files(cls, paths: tuple[str, ...], any_letters: bool, pair: bool) -> QuerySource:
        """Return the queries in files."""
        rules = _rules(any_letters, pair)
        refuse_single_mates(paths, rules.paired)
        return cls(paths, None, rules)

    @property
    def base_count(self) -> int | None:
        """The approximate number of bases of the queries; None if it is unknown."""
        if self.paths is not None:
            return estimate_query_bases(self.paths)
        return 0 if self.block is None else self.block.base_count

    @contextmanager
    def blocks(self, block_bases: int, threads: int) -> Iterator[Iterator[QueryBlock]]:
        """Give the queries while a ``with`` statement lasts, in blocks of about `block_bases`."""
        if self.paths is None:
            yield iter(()) if self.block is None else parts_of_block(self.block, block_bases)
            return
        with ExitStack() as stack:
            reading = stack.enter_context(ReadingThreads(threads))
            stream = stack.enter_context(
                ReadStream(
                    query_reader(self.paths, block_bases, rules=self._rules, threads=reading),
                    Stats(),
                    lambda *_: None,
                )
            )
            yield stream.blocks(block_bases)


def _rules(any_letters: bool, pair: bool) -> QueryRules:
    """Return the rules for queries, whose warnings go to the log of the package."""
    letters = check_bool("any_letters", any_letters)
    return QueryRules(letters, warn=LOG.warning, paired=check_bool("pair", pair))


def parts_of_block(block: QueryBlock, max_bases: int) -> Iterator[QueryBlock]:
    """Yield the queries in blocks of about `max_bases`; no query is cut."""
    if block.base_count <= max_bases or block.query_count == 1:
        yield block
        return
    for half in block.halves():
        yield from parts_of_block(half, max_bases)


def no_queries() -> QueryBlock:
    """Return a block without queries."""
    block = block_in_memory([("none", "")])
    assert block is not None
    return block.halves()[0]
