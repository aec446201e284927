"""SSV of sequences that are interleaved: the cells of `byte_filters`, a node a register."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.interleaved import BYTE_LANES, InterleavedBlock
from mummergpu.hmm.proteins import CODES
from mummergpu.hmm.tables import ByteTables
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.bits import lowest_bit
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.runtime.llvm import intrinsic, ir, load_from, types
from mummergpu.runtime.vectors import Vectors, each_case, join_turns

NODE_COUNTS: Final = (4, 8, 12, 16, 20, 24)
"""The nodes of a tile, whose cells stay in registers while it passes over a group."""

_LOWEST: Final = -128
_BORDER_NODES: Final = 1.5
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
        body, end = (builder.append_basic_block(name) for name in ("row", "end"))
        builder.branch(body)
        builder.position_at_end(body)
        place = builder.phi(number)
        cells = [builder.phi(vectors.kind) for _ in range(self.size)]
        best, above = builder.phi(vectors.kind), builder.phi(vectors.kind)
        residues = vectors.load(self.codes, place)
        # A cell follows from the node before in the row before: the border's of this row is next.
        carried = vectors.load(borders, place) if has_border else lowest
        found, previous, new = best, above, []
        for node in range(self.size):
            scores = vectors.load(self.table, ir.Constant(number, node))
            cell = vectors.call("sadd.sat", previous, vectors.looked_up(scores, residues))
            found = vectors.call("smax", found, cell)
            previous = cells[node]
            new.append(cell)
        vectors.store(new[-1], borders, place)
        following = builder.add(place, ir.Constant(number, 1))
        join_turns(
            (
                (place, ir.Constant(number, 0), following),
                (best, highest, found),
                (above, lowest, carried),
                *((phi, lowest, cell) for phi, cell in zip(cells, new, strict=True)),
            ),
            begin,
            body,
        )
        builder.cbranch(builder.icmp_signed("<", following, self.length), body, end)
        builder.position_at_end(end)
        return found


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
