"""A match whose result stays on the GPU: from the queries of a user to columns there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import cast

from mummergpu.api.device_matches import DeviceMatches
from mummergpu.api.device_search import refuse_several_steps
from mummergpu.api.engine import Engine
from mummergpu.api.matches import SearchedReference
from mummergpu.api.query_blocks import (
    Queries,
    blocks_of_files,
    names_of_files,
    one_block,
    parts_of_block,
)
from mummergpu.api.requests import PathLike, device_options, refuse_single_mates
from mummergpu.input.queries import QueryBlock, QueryRules
from mummergpu.matching.options import DeviceOptions, SearchOptions


def match_on_device(
    engine: Engine,
    searched: SearchedReference,
    queries: Queries | PathLike | Sequence[PathLike],
    options: SearchOptions,
    threads: int,
    rules: QueryRules,
) -> DeviceMatches:
    """Return the matches of all queries on a GPU (`Index.match_on_device`).

    Parameters
    ----------
    engine : Engine
        Searches the index.
    searched : SearchedReference
        The reference of the index.
    queries : str, bytes, iterable of tuple, path, or list of path
        Queries in memory, or the files that have them.
    options : SearchOptions
        Which matches to find.
    threads : int
        The number of working threads.
    rules : QueryRules
        Which queries are accepted, and whether they are pairs of reads.

    Returns
    -------
    DeviceMatches
        The matches, and what their host needs to name them.
    """
    refuse_several_steps(engine.options, options)
    device = device_options("cuda", threads)
    kept: list[QueryBlock] = []
    with _blocks(engine, queries, options, device, rules, kept) as blocks:
        columns = engine.find_on_device(blocks, options, device)
    return DeviceMatches(kept, columns, searched, options.strands)


@contextmanager
def _blocks(
    engine: Engine,
    queries: Queries | PathLike | Sequence[PathLike],
    options: SearchOptions,
    device: DeviceOptions,
    rules: QueryRules,
    kept: list[QueryBlock],
) -> Iterator[Iterator[QueryBlock]]:
    """Give the queries in blocks that suit the device, and keep them on the host too."""

    def keep_each(blocks: Iterator[QueryBlock]) -> Iterator[QueryBlock]:
        for block in blocks:
            kept.append(block)
            yield block

    names = names_of_files(queries)
    if names is not None:
        refuse_single_mates(names, rules.paired)
    else:
        # Wrong queries are told of before a device is opened.
        whole = one_block(cast("Queries", queries), rules)
        kept += [] if whole is None else [whole]
    block_bases = engine.block_bases(device, options.minimum_length)
    if names is None:
        yield chain.from_iterable(parts_of_block(block, block_bases) for block in kept)
    else:
        with blocks_of_files(names, block_bases, rules, device.threads) as blocks:
            yield keep_each(blocks)
