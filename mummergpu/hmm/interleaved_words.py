"""Viterbi of sequences that are interleaved: the words of `word_filter`, a node a register.

A tile of nodes passes over a group alone, and hands on the states of its last one. So it cannot
know whether a first pass through the profile makes a second one better: where that may be,
`word_filter` decides.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.interleaved import WORD_LANES, InterleavedBlock
from mummergpu.hmm.proteins import CODES
from mummergpu.hmm.tables import WORD_BASE, WORD_LEAVE, WORD_NEVER, WordTables
from mummergpu.runtime.arrays import Int16Array, Int64Array
from mummergpu.runtime.jit import as_int64, jit_without_refcounts
from mummergpu.runtime.llvm import intrinsic, ir, load_from, types
from mummergpu.runtime.vectors import Vectors, join_turns

NODES: Final = 2
"""The nodes of a tile."""

UNDECIDED: Final = 50_000
"""In place of a word where a second pass through the profile may count."""

_STATES: Final = 3
_STEPS: Final = 8


class NodeWords(NamedTuple):
    """What Viterbi adds at each node, for compiled functions; there are as many as tiles have.

    Attributes
    ----------
    emissions : ndarray of int16, shape (nodes, WORD_LANES)
        By node and code, and for codes beyond what cannot be.
    transitions : ndarray of int16, shape (nodes, 8)
        The rows of `WordTables.transitions`; deletions are those into the node.
    """

    emissions: Int16Array
    transitions: Int16Array


def node_words(tables: WordTables) -> NodeWords:
    """Return the words of a profile as `score_interleaved` takes them."""
    nodes = tables.emissions.shape[1]
    size = -(-nodes // NODES) * NODES
    emissions = np.full((size, WORD_LANES), WORD_NEVER, dtype=np.int16)
    transitions = np.full((size, _STEPS), WORD_NEVER, dtype=np.int16)
    emissions[:nodes, :CODES] = tables.emissions.T
    transitions[:nodes] = tables.transitions.T
    transitions[1:nodes, [4, 7]] = tables.transitions[[4, 7], : nodes - 1].T
    transitions[0, [4, 7]] = WORD_NEVER
    return NodeWords(emissions, transitions)


def _pass_tile(
    typing_context: Any,
    codes: Any,
    row: Any,
    length: Any,
    emissions: Any,
    transitions: Any,
    node: Any,
    borders: Any,
    entries: Any,
    best: Any,
) -> Any:
    """Raise ``best`` to the best matches of some nodes, one word a lane.

    ``borders`` holds for each row the three states of the node before the tile, and of one row more
    before the first; there it leaves those of its last node.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors, small = Vectors(builder, 16, WORD_LANES), Vectors(builder, 8, WORD_LANES)
        (codes,) = small.arrays(context, signature, arguments, 0)
        words = vectors.arrays(context, signature, arguments, 3, 6, 7, 8)
        emissions, borders, entries, best = words
        _, row, length, _, transitions, node, _, _, _ = arguments
        number = ir.IntType(64)
        zero, one = ir.Constant(number, 0), ir.Constant(number, 1)
        codes, table = builder.gep(codes, [row]), builder.gep(emissions, [node])
        steps = builder.mul(node, ir.Constant(number, _STEPS))
        entry, never = vectors.load(entries, zero), vectors.constant(WORD_NEVER)

        def step(of: int, which: int) -> Any:
            place = builder.add(steps, ir.Constant(number, _STEPS * of + which))
            kind = signature.args[4]
            word = load_from(context, builder, vectors.element, kind, transitions, place)
            return vectors.splat(builder.sext(word, number))

        tile = [[step(of, which) for which in range(_STEPS)] for of in range(NODES)]
        begins = [vectors.call("sadd.sat", entry, own[0]) for own in tile]
        scores = [vectors.load(table, ir.Constant(number, of)) for of in range(NODES)]
        highest = vectors.load(best, zero)
        origin = builder.block
        body, end = (builder.append_basic_block(name) for name in ("row", "end"))
        builder.branch(body)
        builder.position_at_end(body)
        place, found = builder.phi(number), builder.phi(vectors.kind)
        cells = [[builder.phi(vectors.kind) for _ in range(_STATES)] for _ in range(NODES)]
        above = [builder.phi(vectors.kind) for _ in range(_STATES)]
        residues = builder.zext(small.load(codes, place), vectors.kind)
        first = builder.mul(place, ir.Constant(number, _STATES))
        places = [builder.add(first, ir.Constant(number, state)) for state in range(_STATES)]
        carried = [vectors.load(borders, one_place) for one_place in places]
        add, larger = (partial(vectors.call, name) for name in ("sadd.sat", "smax"))
        before, left, higher, new = above, carried, found, []
        for of, old in enumerate(cells):
            own, match = tile[of], begins[of]
            for state, transition in zip(before, own[1:4], strict=True):
                match = larger(match, add(state, transition))
            match = add(match, vectors.looked_up(scores[of], residues))
            inserts = larger(add(old[0], own[5]), add(old[1], own[6]))
            deletes = larger(add(left[0], own[4]), add(left[2], own[7]))
            higher = larger(higher, match)
            before, left = old, [match, inserts, deletes]
            new.append(left)
        for value, one_place in zip(left, places, strict=True):
            vectors.store(value, borders, one_place)
        following = builder.add(place, one)
        join_turns(
            (
                (place, zero, following),
                (found, highest, higher),
                *((phi, never, value) for phi, value in zip(above, carried, strict=True)),
                *(
                    (phi, never, value)
                    for phis, values in zip(cells, new, strict=True)
                    for phi, value in zip(phis, values, strict=True)
                ),
            ),
            origin,
            body,
        )
        builder.cbranch(builder.icmp_signed("<", following, length), body, end)
        builder.position_at_end(end)
        vectors.store(higher, best, zero)
        return context.get_dummy_value()

    one = types.int64
    result = types.void(codes, one, one, emissions, transitions, one, borders, entries, best)
    return result, generate


pass_tile = cast(Any, intrinsic(_pass_tile))
"""Called with `InterleavedBlock.codes`, the row where a group begins, its rows, the profile's
`NodeWords`, the first node of the tile, the borders, the begin state's words, and the best ones."""


@jit_without_refcounts
def score_interleaved(
    block: InterleavedBlock,
    words: NodeWords,
    moves: Int64Array,
    borders: Int16Array,
    entries: Int16Array,
    best: Int16Array,
    scores: Int64Array,
) -> None:
    """Compute for the sequences in lanes what `word_filter.score_viterbi` does, or `UNDECIDED`.

    The scores are in the order in which the sequences were given; others are left as they are.
    `borders` has three words a lane for each row of the longest group, `entries` and `best` have
    one word a lane.
    """
    for group in range(block.first_rows.size - 1):
        row = block.first_rows[group]
        rows = block.first_rows[group + 1] - row
        for lane in range(WORD_LANES):
            best[lane] = WORD_NEVER
            entries[lane] = WORD_BASE + moves[block.lengths[group, lane]]
        # No state precedes the first node.
        for place in range(3 * WORD_LANES * rows):
            borders[place] = WORD_NEVER
        for node in range(0, words.emissions.shape[0], NODES):
            pass_tile(
                block.codes,
                row,
                rows,
                words.emissions,
                words.transitions,
                node,
                borders,
                entries,
                best,
            )
        for lane in range(WORD_LANES):
            left = max(WORD_NEVER, as_int64(best[lane]) - WORD_LEAVE)
            place = block.places[group, lane]
            if place >= 0:
                scores[place] = UNDECIDED if left > WORD_BASE else left
