"""HMMER's first filters, SSV and MSV: the best diagonals, in bytes, many nodes at a time.

The nodes are striped over the lanes of registers as Farrar's are, so that the preceding cell of a
diagonal lies in the same lane of the register before. SSV's loop is compiled once for each number
of registers, so that the row never leaves them. S. R. Eddy, Accelerated Profile HMM Searches,
PLoS Computational Biology 7, 2011; B. Knudsen's SSV is HMMER's.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.proteins import CODES, ProteinBlock
from mummergpu.hmm.tables import BYTE_BASE, BYTE_LEAVE, BYTE_SCALE, LN2, ByteTables, LengthTables
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.llvm import address_of, intrinsic, ir, types
from mummergpu.runtime.vectors import Vectors, each_case, join_turns

LANES: Final = 32

MAX_REGISTERS: Final = 16
"""A longer row is cut into parts of at most this number of registers."""

REGISTER_COUNTS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
"""The lengths of rows that SSV is compiled for; a row is padded to the next one."""

OVERFLOW: Final = 1000
"""MSV's result for a score that does not fit a byte: the sequence passes."""

_NEVER: Final = 255


class StripedBytes(NamedTuple):
    """The bytes of a profile, striped, for compiled functions."""

    scores: Any  # int8 (parts, 29, registers * LANES): the scores of SSV for each part of the row
    # (29, parts * registers * LANES): the costs that MSV subtracts after it has added `bias`.
    costs: ByteArray
    registers: int  # In a part of a row, one of `REGISTER_COUNTS`
    # As in `ByteTables`.
    bias: int
    entry: int


def striped_bytes(tables: ByteTables, max_registers: int = MAX_REGISTERS) -> StripedBytes:
    """Return the striped bytes of a profile for `find_cells` and `filter_by_msv`."""
    nodes = tables.costs.shape[1]
    needed = -(-nodes // LANES)
    parts = -(-needed // max_registers)
    registers = next(size for size in REGISTER_COUNTS if size * parts >= needed)
    width = registers * LANES
    scores = np.empty((parts, CODES, width), dtype=np.int8)
    costs = np.empty((CODES, parts * width), dtype=np.uint8)
    _stripe(tables, registers, scores, costs)
    return StripedBytes(scores, costs, registers, tables.bias, tables.entry)


@jit
def _stripe(tables: ByteTables, registers: int, scores: Any, costs: ByteArray) -> None:
    """Stripe the scores of each part of the row, and the costs of the whole row."""
    every = len(scores) * registers
    nodes = tables.costs.shape[1]
    for code in range(CODES):
        for lane in range(LANES):
            for register in range(every):
                node = lane * every + register
                cost = tables.costs[code, node] if node < nodes else _NEVER
                costs[code, register * LANES + lane] = cost
        for part in range(len(scores)):
            for lane in range(LANES):
                for register in range(registers):
                    node = (part * LANES + lane) * registers + register
                    cost = tables.costs[code, node] if node < nodes else _NEVER
                    # As HMMER's: a score below -127 is -127, which empties any cell that has not
                    # overflowed.
                    score = max(tables.bias - np.int64(cost), -127)
                    scores[part, code, register * LANES + lane] = score


def _best_diagonal(
    typing_context: Any,
    codes: Any,
    at: Any,
    length: Any,
    scores: Any,
    part: Any,
    carried: Any,
    registers: Any,
    is_cut: Any,
) -> Any:
    """Return the highest cell of SSV in a part of the row, minus 128: a signed byte.

    ``carried`` holds for each residue the last register of the part before; there the part leaves
    its own. It is only used if there are several parts.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors, number = Vectors(builder, 8, LANES), ir.IntType(64)
        scores, borders = vectors.arrays(context, signature, arguments, 3, 5)
        codes, at, length, _, part, _, registers, is_cut = arguments
        sequence = address_of(context, builder, vectors.element, signature.args[0], codes, at)
        results = []
        after = builder.append_basic_block("after")
        for count in each_case(builder, registers, REGISTER_COUNTS):
            first = builder.mul(part, ir.Constant(number, CODES * count))
            table = builder.gep(scores, [first])
            plain, cut = (builder.append_basic_block(name) for name in ("plain", "cut"))
            builder.cbranch(is_cut, cut, plain)
            for begin, used in ((plain, None), (cut, borders)):
                builder.position_at_end(begin)
                best = _residues(vectors, sequence, length, table, count, used)
                results.append((vectors.reduce("smax", best, signed=True), builder.block))
                builder.branch(after)
        builder.position_at_end(after)
        result = builder.phi(number)
        for value, origin in results:
            result.add_incoming(value, origin)
        return result

    one = types.int64
    return one(codes, one, one, scores, one, carried, one, types.boolean), generate


def _residues(
    vectors: Vectors, sequence: Any, length: Any, table: Any, count: int, borders: Any
) -> Any:
    """Write the loop over residues; return the register with the best cells of all lanes."""
    builder, number = vectors.builder, ir.IntType(64)
    lowest = vectors.constant(-128)
    begin = builder.block
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    place = builder.phi(number)
    row = [builder.phi(vectors.kind) for _ in range(count)]
    best = builder.phi(vectors.kind)
    above = builder.phi(vectors.kind)
    builder.cbranch(builder.icmp_signed("<", place, length), body, end)
    builder.position_at_end(body)
    code = builder.zext(builder.load(builder.gep(sequence, [place])), number)
    line = builder.gep(table, [builder.mul(code, ir.Constant(number, count))])
    # A lane continues where the lane before ends; the first lane, where the part before ends.
    previous = vectors.shifted_up(row[-1], above)
    cells, found = [], best
    for register in range(count):
        score = vectors.load(line, ir.Constant(number, register))
        cell = vectors.call("sadd.sat", previous, score)
        found = vectors.call("smax", found, cell)
        previous = row[register]
        cells.append(cell)
    carried: Any = lowest
    if borders is not None:
        carried = vectors.load(borders, place)
        vectors.store(cells[-1], borders, place)
    following = builder.add(place, ir.Constant(number, 1))
    join_turns(
        (
            (place, ir.Constant(number, 0), following),
            (best, lowest, found),
            (above, lowest, carried),
            *((phi, lowest, cell) for phi, cell in zip(row, cells, strict=True)),
        ),
        begin,
        body,
    )
    builder.branch(head)
    builder.position_at_end(end)
    return best


best_diagonal = cast(Any, intrinsic(_best_diagonal))
"""Called with codes, where a sequence begins, its length, `StripedBytes.scores`, the number of the
part, the borders, the registers of a part, and whether there are several parts."""


def _best_passes(
    typing_context: Any,
    codes: Any,
    at: Any,
    length: Any,
    costs: Any,
    row: Any,
    registers: Any,
    bias: Any,
    steps: Any,
) -> Any:
    """Return the best byte with which MSV leaves the profile, or `OVERFLOW`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors, number = Vectors(builder, 8, LANES), ir.IntType(64)
        table, cells = vectors.arrays(context, signature, arguments, 3, 4)
        codes, at, length, _, _, registers, bias, steps = arguments
        sequence = address_of(context, builder, vectors.element, signature.args[0], codes, at)
        zero, base = ir.Constant(number, 0), ir.Constant(number, BYTE_BASE)
        begin = builder.block
        head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        place, left = builder.phi(number), builder.phi(number)
        builder.cbranch(builder.icmp_signed("<", place, length), body, end)

        builder.position_at_end(body)
        code = builder.zext(builder.load(builder.gep(sequence, [place])), number)
        line = builder.gep(table, [builder.mul(code, registers)])
        higher = builder.select(builder.icmp_signed(">", left, base), left, base)
        begins = vectors.splat(builder.sub(higher, steps))
        top = _fill_row(vectors, cells, line, registers, begins, vectors.splat(bias))
        leaving = builder.sub(top, ir.Constant(number, BYTE_LEAVE))
        kept = builder.select(builder.icmp_signed(">", leaving, left), leaving, left)
        is_full = builder.icmp_signed(">=", builder.add(top, bias), ir.Constant(number, 255))
        # After an overflow the result is known.
        following = builder.add(place, ir.Constant(number, 1))
        following = builder.select(is_full, length, following)
        kept = builder.select(is_full, ir.Constant(number, OVERFLOW), kept)
        join_turns(((place, zero, following), (left, zero, kept)), begin, builder.block)
        builder.branch(head)
        builder.position_at_end(end)
        return left

    one = types.int64
    return one(codes, one, one, costs, row, one, one, one), generate


def _fill_row(
    vectors: Vectors, cells: Any, line: Any, registers: Any, begins: Any, biases: Any
) -> Any:
    """Write the loop that computes MSV's next row in place; return its highest byte as 64 bits."""
    builder, number = vectors.builder, ir.IntType(64)
    empty, zero, one = vectors.constant(0), ir.Constant(number, 0), ir.Constant(number, 1)
    first = vectors.shifted_up(vectors.load(cells, builder.sub(registers, one)), empty)
    begin = builder.block
    cell_block, end = builder.append_basic_block("cell"), builder.append_basic_block("filled")
    builder.branch(cell_block)
    builder.position_at_end(cell_block)
    register = builder.phi(number)
    previous, best = builder.phi(vectors.kind), builder.phi(vectors.kind)
    cell = vectors.call("umax", previous, begins)
    cell = vectors.call("uadd.sat", cell, biases)
    cell = vectors.call("usub.sat", cell, vectors.load(line, register))
    higher = vectors.call("umax", best, cell)
    diagonal = vectors.load(cells, register)
    vectors.store(cell, cells, register)
    following = builder.add(register, one)
    starts = ((register, zero, following), (previous, first, diagonal), (best, empty, higher))
    join_turns(starts, begin, cell_block)
    builder.cbranch(builder.icmp_signed("<", following, registers), cell_block, end)
    builder.position_at_end(end)
    return vectors.reduce("umax", higher, signed=False)


best_passes = cast(Any, intrinsic(_best_passes))
"""Called with codes, where a sequence begins, its length, `StripedBytes.costs`, a row of zeros,
its registers, the bias, and the cost of the steps from the background into the profile."""


@jit
def find_cells(
    block: ProteinBlock,
    striped: StripedBytes,
    least: Int64Array,
    borders: ByteArray,
    sequences: Int64Array,
    cells: Int64Array,
) -> int:
    """Find the sequences whose highest cell of SSV is at least that of `minimal_cells`.

    `borders` has `LANES` bytes for each residue of the longest sequence if the row is cut. Return
    the number of `sequences` and `cells`.
    """
    parts = striped.scores.shape[0]
    found = 0
    for number in range(block.offsets.size - 1):
        begin = block.offsets[number]
        length = block.offsets[number + 1] - begin
        if length == 0:
            continue
        # A row of several parts is computed one part after the other, each over the whole sequence:
        # the borders hand the last cells of a part to the next one.
        if parts > 1:
            for place in range(length * LANES):
                borders[place] = 128
        highest = -128
        for part in range(parts):
            cell = best_diagonal(
                block.codes,
                begin,
                length,
                striped.scores,
                part,
                borders,
                striped.registers,
                parts > 1,
            )
            highest = max(highest, cell)
        if highest + 128 >= least[length]:
            sequences[found] = number
            cells[found] = highest + 128
            found += 1
    return found


@jit
def filter_by_msv(
    block: ProteinBlock,
    striped: StripedBytes,
    lengths: LengthTables,
    numbers: Float32Array,
    row: ByteArray,
    sequences: Int64Array,
    cells: Int64Array,
) -> int:
    """Keep the sequences of `find_cells` that pass MSV; return their number.

    `numbers` are the least passing score and `BYTE_SCALE`. The cells are replaced by the
    bytes with which MSV leaves the profile, or `OVERFLOW`.
    """
    kept = 0
    for candidate in range(sequences.size):
        number = sequences[candidate]
        begin = block.offsets[number]
        length = block.offsets[number + 1] - begin
        steps = lengths.move[length] + striped.entry
        exit_score = msv_from_ssv(cells[candidate], BYTE_BASE - steps, striped.bias)
        # SSV's result is MSV's unless a second hit in the sequence may add to the first.
        if exit_score < 0:
            for place in range(row.size):
                row[place] = 0
            exit_score = best_passes(
                block.codes,
                begin,
                length,
                striped.costs,
                row,
                striped.scores.shape[0] * striped.registers,
                striped.bias,
                steps,
            )
        passes = exit_score == OVERFLOW or (
            bits_of_bytes(exit_score, lengths.move[length], lengths.null[length], numbers[1])
            >= numbers[0]
        )
        if passes:
            sequences[kept] = number
            cells[kept] = exit_score
            kept += 1
    return kept


@inline
def msv_from_ssv(cell: int, begin: int, bias: int) -> int:
    """Return MSV's result from SSV's highest cell; -1 where MSV has to decide (HMMER's rules)."""
    if BYTE_BASE - begin + BYTE_LEAVE + bias >= 127:
        return -1
    if cell >= 127 - bias:
        return OVERFLOW if begin >= 128 else -1
    if cell + begin >= 255 - bias:
        return OVERFLOW
    exit_score = cell + begin - BYTE_LEAVE
    return -1 if exit_score > BYTE_BASE else exit_score


def minimal_cells(
    tables: ByteTables | StripedBytes, lengths: LengthTables, score: np.float32
) -> Int64Array:
    """Return the least cell of SSV with which a sequence of each length may pass MSV.

    A cell is the highest sum on a diagonal, in bytes, at least 0. With a lower cell the sequence
    never passes MSV; from this cell on it passes, or MSV has to decide.
    """
    cells = np.empty(lengths.move.size, dtype=np.int64)
    numbers = np.array([score, BYTE_SCALE], dtype=np.float32)
    _fill_minimal_cells(tables.bias, tables.entry, lengths.null, lengths.move, numbers, cells)
    return cells


@inline
def bits_of_bytes(left: int, move: int, against: float, scale: float) -> float:
    """Return the score in bits of the best cell that left the profile, against another model.

    All divisions and differences are HMMER's, and in float32.
    """
    nats = np.float32(np.float32(left - move - BYTE_BASE) / scale) - np.float32(3)
    return np.float32(np.float64(np.float32(nats - against)) / LN2)  # type: ignore[return-value]


@jit
def _fill_minimal_cells(
    bias: int,
    entry: int,
    null: Float32Array,
    move: Int64Array,
    numbers: Float32Array,
    cells: Int64Array,
) -> None:
    least, scale = numbers[0], numbers[1]
    cell = 0
    for length in range(cells.size):
        costs = move[length] + entry
        # The tests below do not decide these cases: see `msv_from_ssv`.
        if costs + BYTE_LEAVE + bias >= 127:
            cells[length] = 0
            continue
        begin = BYTE_BASE - costs
        doubtful = min(127 - bias, BYTE_LEAVE + 1 + costs, 255 - bias - begin)
        cell = min(cell, doubtful)
        # Neighbours differ little: search up or down from the cell of the last length.
        while cell > 0 and (
            bits_of_bytes(cell - 1 + begin - BYTE_LEAVE, move[length], null[length], scale) >= least
        ):
            cell -= 1
        while cell < doubtful and not (
            bits_of_bytes(cell + begin - BYTE_LEAVE, move[length], null[length], scale) >= least
        ):
            cell += 1
        cells[length] = max(cell, 0)
