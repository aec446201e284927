"""SSV and MSV of sequences that are interleaved: the cells of `byte_filters`, a node a register."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.byte_filters import OVERFLOW
from mummergpu.hmm.interleaved import BYTE_LANES, ROWS_AT_ONCE, InterleavedBlock
from mummergpu.hmm.proteins import CODES
from mummergpu.hmm.tables import BYTE_BASE, BYTE_LEAVE, ByteTables
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.bits import lowest_bit
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.runtime.llvm import intrinsic, ir, load_from, types
from mummergpu.runtime.vectors import Vectors, each_case, join_turns

NODE_COUNTS: Final = (4, 8, 10, 12, 14, 16, 18, 20)
"""The nodes of a tile, whose cells stay in registers while it passes over a group."""

_BESTS: Final = 4
"""The registers with the best cells: one alone would wait for itself at each node, two cycles."""

_LOWEST: Final = -128
_BORDER_NODES: Final = 1.2
"""What loading and storing a border takes, in nodes."""


class NodeScores(NamedTuple):
    """What SSV adds at each node, for compiled functions.

    Attributes
    ----------
    scores : ndarray of int8, shape (nodes, BYTE_LANES)
        By node and code, and for codes beyond what empties a cell. There are as many nodes as the
        tiles have.
    tile : int
        The nodes of a tile, one of `NODE_COUNTS`.
    """

    scores: Any
    tile: int


def node_scores(tables: ByteTables) -> NodeScores:
    """Return the scores of a profile as `find_interleaved_cells` takes them."""
    nodes = tables.costs.shape[1]
    tile = min(NODE_COUNTS, key=lambda size: -(-nodes // size) * (size + _BORDER_NODES))
    scores = np.full((-(-nodes // tile) * tile, BYTE_LANES), _LOWEST, dtype=np.int8)
    # As HMMER's: a score below -127 is -127, which empties any cell that has not overflowed.
    scores[:nodes, :CODES] = np.maximum(tables.bias - tables.costs.T.astype(np.int16), -127)
    return NodeScores(scores, tile)


def node_costs(tables: ByteTables) -> ByteArray:
    """Return the costs of a profile as `pass_interleaved` takes them, by node and code."""
    costs = np.full((tables.costs.shape[1], BYTE_LANES), 255, dtype=np.uint8)
    costs[:, :CODES] = tables.costs.T
    return costs


def _best_of_tile(
    typing_context: Any,
    codes: Any,
    row: Any,
    length: Any,
    scores: Any,
    node: Any,
    borders: Any,
    best: Any,
    nodes: Any,
    is_first: Any,
) -> Any:
    """Raise ``best`` to the highest cells of some nodes, less 128: signed bytes, one a lane.

    ``borders`` holds for each row the cells of the node before the tile; there it leaves those of
    its last node.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, 8, BYTE_LANES)
        codes, scores, borders, best = vectors.arrays(context, signature, arguments, 0, 3, 5, 6)
        _, row, length, _, node, _, _, nodes, is_first = arguments
        zero = ir.Constant(ir.IntType(64), 0)
        codes, table = builder.gep(codes, [row]), builder.gep(scores, [node])
        highest = vectors.load(best, zero)
        after = builder.append_basic_block("after")
        for count in each_case(builder, nodes, NODE_COUNTS):
            first, later = (builder.append_basic_block(name) for name in ("first", "later"))
            builder.cbranch(is_first, first, later)
            for begin, has_border in ((first, False), (later, True)):
                builder.position_at_end(begin)
                tile = _Tile(vectors, codes, length, table, count)
                vectors.store(tile.pass_over(borders, has_border, highest), best, zero)
                builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    one = types.int64
    result = types.void(codes, one, one, scores, one, borders, best, one, types.boolean)
    return result, generate


class _Tile(NamedTuple):
    """Some nodes, in code that is written."""

    vectors: Vectors
    codes: Any
    length: Any
    table: Any
    size: int

    def pass_over(self, borders: Any, has_border: bool, highest: Any) -> Any:
        """Write the loop over the rows of a group; return the register with the best cells."""
        vectors, builder, number = self.vectors, self.vectors.builder, ir.IntType(64)
        lowest = vectors.constant(_LOWEST)
        begin = builder.block
        body, end = (builder.append_basic_block(name) for name in ("rows", "end"))
        builder.branch(body)
        builder.position_at_end(body)
        place = builder.phi(number)
        cells = [builder.phi(vectors.kind) for _ in range(self.size)]
        best = [builder.phi(vectors.kind) for _ in range(_BESTS)]
        above = builder.phi(vectors.kind)
        places = [builder.add(place, ir.Constant(number, n)) for n in range(ROWS_AT_ONCE)]
        residues = [vectors.load(self.codes, one) for one in places]
        # A cell follows from the node before in the row before: the border's of a row is next.
        carried = [vectors.load(borders, one) if has_border else lowest for one in places]
        found, previous, new = list(best), [above, *carried[:-1]], []
        for node in range(self.size):
            scores = vectors.load(self.table, ir.Constant(number, node))
            column = [
                vectors.call("sadd.sat", before, vectors.looked_up(scores, codes))
                for before, codes in zip(previous, residues, strict=True)
            ]
            for row, cell in enumerate(column):
                turn = (node * ROWS_AT_ONCE + row) % _BESTS
                found[turn] = vectors.call("smax", found[turn], cell)
            previous = [cells[node], *column[:-1]]
            new.append(column[-1])
        for one, cell in zip(places, column, strict=True):
            vectors.store(cell, borders, one)
        following = builder.add(place, ir.Constant(number, ROWS_AT_ONCE))
        join_turns(
            (
                (place, ir.Constant(number, 0), following),
                (above, lowest, carried[-1]),
                *((phi, highest, cell) for phi, cell in zip(best, found, strict=True)),
                *((phi, lowest, cell) for phi, cell in zip(cells, new, strict=True)),
            ),
            begin,
            body,
        )
        builder.cbranch(builder.icmp_signed("<", following, self.length), body, end)
        builder.position_at_end(end)
        for other in found[1:]:
            found[0] = vectors.call("smax", found[0], other)
        return found[0]


best_of_tile = cast(Any, intrinsic(_best_of_tile))
"""Called with `InterleavedBlock.codes`, the row where a group begins, its rows, the scores, the
first node of the tile, the borders, the best cells, the nodes of the tile, and whether it is the
first."""


def _lanes_from(typing_context: Any, best: Any, floor: Any) -> Any:
    """Return a bit for each lane: whether its byte is at least a number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, 8, BYTE_LANES)
        zero = ir.Constant(ir.IntType(64), 0)
        cells = load_from(context, builder, vectors.kind, signature.args[0], arguments[0], zero)
        truths = builder.icmp_signed(">=", cells, vectors.splat(arguments[1]))
        return builder.bitcast(truths, ir.IntType(64))

    return types.uint64(best, types.int64), generate


lanes_from = cast(Any, intrinsic(_lanes_from))
"""Called with the best cells of `best_of_tile`, and with a number from -128 to 127."""


@jit_without_refcounts
def find_interleaved_cells(
    block: InterleavedBlock,
    scores: NodeScores,
    least: Int64Array,
    borders: ByteArray,
    best: Any,
    sequences: Int64Array,
    cells: Int64Array,
) -> int:
    """Find the sequences of all groups whose highest cell is at least that of `minimal_cells`.

    `borders` has `BYTE_LANES` for each row of the longest group; `best` are `BYTE_LANES` of int8.
    Returned is how many `sequences` and `cells` there are, in the order of the lanes.
    """
    found = 0
    for group in range(block.first_rows.size - 1):
        row = block.first_rows[group]
        rows = block.first_rows[group + 1] - row
        for lane in range(BYTE_LANES):
            best[lane] = _LOWEST
        for node in range(0, scores.scores.shape[0], scores.tile):
            best_of_tile(
                block.codes,
                row,
                rows,
                scores.scores,
                node,
                borders,
                best,
                scores.tile,
                node == 0,
            )
        # Few lanes are worth a look: those that reach the least cell of the group's lengths.
        floor = least[rows]
        for length in range(block.lengths[group, 0], rows):
            floor = min(floor, least[length])
        lanes = np.uint64(0) if floor > 255 else lanes_from(best, floor - 128)
        while lanes:
            lane = lowest_bit(lanes)
            lanes &= lanes - np.uint64(1)
            cell = np.int64(best[lane]) + 128
            is_there = block.sequences[group, lane] >= 0
            if is_there and cell >= least[block.lengths[group, lane]]:
                sequences[found] = block.sequences[group, lane]
                cells[found] = cell
                found += 1
    return found


def _pass_rows(
    typing_context: Any,
    codes: Any,
    row: Any,
    length: Any,
    costs: Any,
    nodes: Any,
    cells: Any,
    lanes: Any,
    bias: Any,
) -> Any:
    """Leave in ``lanes`` the best bytes with which MSV leaves the profile, and its highest cells.

    ``lanes`` begins with the costs of the steps from the background into the profile; ``cells`` has
    a register of zeros for each node.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors, number = Vectors(builder, 8, BYTE_LANES), ir.IntType(64)
        pointers = vectors.arrays(context, signature, arguments, 0, 3, 5, 6)
        codes, costs, cells, lanes = pointers
        _, row, length, _, nodes, _, _, bias = arguments
        zero, one = ir.Constant(number, 0), ir.Constant(number, 1)
        empty, biases = vectors.constant(0), vectors.splat(bias)
        base, leave = vectors.constant(BYTE_BASE), vectors.constant(BYTE_LEAVE)
        codes, steps = builder.gep(codes, [row]), vectors.load(lanes, zero)
        begin = builder.block
        body, node_body, after, end = (
            builder.append_basic_block(name) for name in ("row", "node", "after", "end")
        )
        builder.branch(body)

        builder.position_at_end(body)
        place = builder.phi(number)
        left, highest = builder.phi(vectors.kind), builder.phi(vectors.kind)
        residues = vectors.load(codes, place)
        entered = vectors.call("usub.sat", vectors.call("umax", left, base), steps)
        builder.branch(node_body)

        builder.position_at_end(node_body)
        node = builder.phi(number)
        diagonal, top = builder.phi(vectors.kind), builder.phi(vectors.kind)
        cell = vectors.call("uadd.sat", vectors.call("umax", diagonal, entered), biases)
        cost = vectors.looked_up(vectors.load(costs, node), residues)
        cell = vectors.call("usub.sat", cell, cost)
        before = vectors.load(cells, node)
        vectors.store(cell, cells, node)
        higher, following = vectors.call("umax", top, cell), builder.add(node, one)
        turns = ((node, zero, following), (diagonal, empty, before), (top, empty, higher))
        join_turns(turns, body, node_body)
        builder.cbranch(builder.icmp_signed("<", following, nodes), node_body, after)

        builder.position_at_end(after)
        kept = vectors.call("umax", left, vectors.call("usub.sat", higher, leave))
        best, following = vectors.call("umax", highest, higher), builder.add(place, one)
        turns = ((place, zero, following), (left, empty, kept), (highest, empty, best))
        join_turns(turns, begin, after)
        builder.cbranch(builder.icmp_signed("<", following, length), body, end)

        builder.position_at_end(end)
        vectors.store(kept, lanes, one)
        vectors.store(best, lanes, ir.Constant(number, 2))
        return context.get_dummy_value()

    one = types.int64
    return types.void(codes, one, one, costs, one, cells, lanes, one), generate


pass_rows = cast(Any, intrinsic(_pass_rows))
"""Called with `InterleavedBlock.codes`, the row where a group begins, its rows, `node_costs`, the
number of nodes, memory for a register a node and for three registers, and the bias."""


@jit_without_refcounts
def pass_interleaved(
    block: InterleavedBlock,
    costs: ByteArray,
    bias: int,
    steps: Int64Array,
    cells: ByteArray,
    lanes: ByteArray,
    lefts: Int64Array,
) -> None:
    """Compute for the sequences in lanes what `byte_filters.best_passes` does, in their own order.

    `steps` has for each length what the steps from the background into the profile cost. Those of
    `lefts` that belong to other sequences are left as they are.
    """
    for group in range(block.first_rows.size - 1):
        row = block.first_rows[group]
        rows = block.first_rows[group + 1] - row
        for place in range(cells.size):
            cells[place] = 0
        for lane in range(BYTE_LANES):
            lanes[lane] = steps[block.lengths[group, lane]]
        pass_rows(block.codes, row, rows, costs, costs.shape[0], cells, lanes, bias)
        for lane in range(BYTE_LANES):
            place = block.places[group, lane]
            if place >= 0:
                is_full = np.int64(lanes[2 * BYTE_LANES + lane]) + bias >= 255
                lefts[place] = OVERFLOW if is_full else np.int64(lanes[BYTE_LANES + lane])
