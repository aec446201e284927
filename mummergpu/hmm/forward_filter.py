"""HMMER's last filter: the sum over all paths (Forward), in float32, many nodes at a time.

Scores differ from HMMER's by `margins` at most, so HMMER drops every sequence dropped here.
Nodes are striped as in `byte_filters`. A lane computes its deletions as if none came from the lane
before it. Those that do come decay by a factor that is precomputed for each node, and a sum over
the lanes by doubling adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.logarithms import fill_exponentials
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import CODES, ProteinBlock
from mummergpu.hmm.tables import Constants, constants, fill_scores, fill_steps
from mummergpu.runtime.arrays import Float32Array, Float64Array, Int64Array
from mummergpu.runtime.jit import flattened, jit
from mummergpu.runtime.llvm import intrinsic, ir, types
from mummergpu.runtime.vectors import FloatVectors, join_turns

LANES: Final = 16

_STATES: Final = 3
"""The states of each register of a row: matches, insertions, and the lane's own deletions."""

_STEPS: Final = 9
_DOUBLINGS: Final = (1, 2, 4, 8)
_MARGIN: Final = 0.01
_MARGIN_OF_RESIDUE: Final = 2e-6
"""The largest difference to HMMER's score, in nats, and its growth for each residue: both round
some ten times a residue, by 6e-8 of the sum at most."""

_RESCALED: Final = 1e4
_FACTOR: Final = 2.0**-13
"""The factor that scales large sums; as a power of two it rounds nothing."""

_LEAST_FACTOR: Final = 1e-30


class ProfileChances(NamedTuple):
    """The chances of some profiles, for compiled functions."""

    # Of all profiles, one after another: the odds of each code at each node.
    emissions: Float32Array
    # Of all profiles, one after another. For each register: into its matches from the begin state
    # and from the last node's match, insertion and deletion; from its match to the next deletion
    # and its insertion; its insertion's own loop; from its deletion to the next; and the factor
    # there of a deletion that enters the lane. Then, for each of `_DOUBLINGS`, the factor after
    # that many lanes; and the sums of these factors over all registers.
    transitions: Float32Array
    # The registers where each profile's begin.
    first_emissions: Int64Array
    first_transitions: Int64Array
    registers: Int64Array


def chances_of(profiles: Sequence[Profile]) -> ProfileChances:
    """Return the chances of one profile or more for `score_forward`."""
    registers = [-(-one.nodes // LANES) for one in profiles]
    # The first registers of each profile, and the end of the last one's.
    emissions = [*accumulate((CODES * one for one in registers), initial=0)]
    after = len(_DOUBLINGS) + 1
    transitions = [*accumulate((_STEPS * one + after for one in registers), initial=0)]
    chances = ProfileChances(
        np.empty(emissions[-1] * LANES, dtype=np.float32),
        np.empty(transitions[-1] * LANES, dtype=np.float32),
        *(np.array(one, dtype=np.int64) for one in (emissions[:-1], transitions[:-1], registers)),
    )
    scores = np.empty((CODES, max(one.nodes for one in profiles)), dtype=np.float32)
    filled, left = flattened(chances), np.empty((after, LANES))
    for number, one in enumerate(profiles):
        _fill_chances(one.matches, one.transitions, constants(), scores, number, left, filled)
    return chances


@jit
def _fill_chances(
    matches: Float32Array,
    transitions: Float32Array,
    constants: Constants,
    scores: Float32Array,
    number: int,
    left: Float64Array,
    chances: ProfileChances,
) -> None:
    """Fill the chances of a profile, by its number."""
    nodes, registers = len(matches), chances.registers[number]
    fill_scores(matches, constants, scores)
    fill_exponentials(scores, nodes)
    first = chances.first_emissions[number]
    for code in range(CODES):
        for lane in range(LANES):
            for register in range(registers):
                node, place = lane * registers + register, first + code * registers + register
                chance = scores[code, node] if node < nodes else np.float32(0)
                chances.emissions[place * LANES + lane] = chance
    # The scores have been used: their memory receives the probabilities of the steps.
    fill_steps(transitions, scores)
    first = chances.first_transitions[number]
    left[:] = 0
    for lane in range(LANES):
        product = 1.0
        for register in range(registers):
            node, place = lane * registers + register, first + register * _STEPS
            for row in range(_STEPS - 1):
                chance = scores[row, node] if node < nodes else np.float32(0)
                chances.transitions[(place + row) * LANES + lane] = chance
            # Smaller numbers do not change a sum, and would soon be denormal.
            factor = 0.0 if product < _LEAST_FACTOR else product
            chances.transitions[(place + _STEPS - 1) * LANES + lane] = factor
            left[-1, lane] += factor
            product *= scores[7, node] if node < nodes else 0.0
        left[0, lane] = 0.0 if product < _LEAST_FACTOR else product
    for row, lanes in enumerate(_DOUBLINGS[:-1]):
        for lane in range(lanes, LANES):
            product = left[row, lane] * left[row, lane - lanes]
            left[row + 1, lane] = 0.0 if product < _LEAST_FACTOR else product
    place = first + registers * _STEPS
    for row in range(len(left)):
        for lane in range(LANES):
            chances.transitions[(place + row) * LANES + lane] = left[row, lane]


def margins(lengths: Int64Array) -> Float64Array:
    """Return the largest differences to HMMER's scores, for sequences of some lengths."""
    return lengths.astype(np.float64) * _MARGIN_OF_RESIDUE + _MARGIN


def _fill_row(
    typing_context: Any,
    cells: Any,
    emissions: Any,
    line: Any,
    transitions: Any,
    first: Any,
    registers: Any,
    begin: Any,
) -> Any:
    """Compute the next row in place; return the sum of the chances that leave the profile.

    Of node n, with the cells of the row before as old, and chances of transitions in lower case:

        match[n] = emission[n] * (begin * bm[n] + old_match[n-1] * mm[n]
                                  + old_insert[n-1] * im[n] + old_delete[n-1] * dm[n])
        insert[n] = old_match[n] * mi[n] + old_insert[n] * ii[n]
        delete[n] = match[n-1] * md[n-1] + delete[n-1] * dd[n-1]

    A lane's own deletions are summed up in the loop. After it, `entering` is the sum that enters
    each lane from all lanes before it, by doubling: from 1, 2, 4 and 8 of them. At node n it is
    multiplied by the last of the steps, the product of all dd before n, when the cell is read.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = FloatVectors(builder, LANES)
        cells, emissions, transitions = vectors.arrays(context, signature, arguments, 0, 1, 3)
        _, _, line, _, first, registers, begin = arguments
        transitions = builder.gep(transitions, [first])
        number = ir.IntType(64)
        one, zero = ir.Constant(number, 1), vectors.constant(0)

        def places(register: Any, each: int) -> list[Any]:
            start = builder.mul(register, ir.Constant(number, each))
            return [builder.add(start, ir.Constant(number, n)) for n in range(each)]

        begins = vectors.splat(begin)
        at_entering = builder.mul(registers, ir.Constant(number, _STATES))
        entering = vectors.load(cells, at_entering)
        last = builder.sub(registers, one)
        ends = [vectors.load(cells, place) for place in places(last, _STATES)]
        left = vectors.load(transitions, places(last, _STEPS)[-1])
        ends[2] = vectors.times_plus(left, entering, ends[2])
        firsts = [vectors.shifted_up(end, zero) for end in ends]
        origin = builder.block
        body, end = builder.append_basic_block("chances"), builder.append_basic_block("summed")
        builder.branch(body)
        builder.position_at_end(body)
        register = builder.phi(number)
        states = [builder.phi(vectors.kind) for _ in range(_STATES)]
        deletes, total = builder.phi(vectors.kind), builder.phi(vectors.kind)
        steps = [vectors.load(transitions, place) for place in places(register, _STEPS)]
        own = places(register, _STATES)
        old = [vectors.load(cells, place) for place in own]
        # All are taken before any is stored: the next register follows from this one's old cells.
        match = builder.fmul(begins, steps[0])
        for state, step in zip(states, steps[1:4], strict=True):
            match = vectors.times_plus(state, step, match)
        match = builder.fmul(match, vectors.load(emissions, builder.add(line, register)))
        inserts = vectors.times_plus(old[1], steps[6], builder.fmul(old[0], steps[5]))
        for value, place in zip((match, inserts, deletes), own, strict=True):
            vectors.store(value, cells, place)
        old[2] = vectors.times_plus(steps[8], entering, old[2])
        deleting = vectors.times_plus(deletes, steps[7], builder.fmul(match, steps[4]))
        sums = builder.fadd(total, builder.fadd(match, deletes))
        following = builder.add(register, one)
        join_turns(
            (
                (register, ir.Constant(number, 0), following),
                *zip(states, firsts, old, strict=True),
                (deletes, zero, deleting),
                (total, zero, sums),
            ),
            origin,
            body,
        )
        builder.cbranch(builder.icmp_signed("<", following, registers), body, end)
        builder.position_at_end(end)
        at_factors = builder.mul(registers, ir.Constant(number, _STEPS))
        factors = [
            vectors.load(transitions, builder.add(at_factors, ir.Constant(number, n)))
            for n in range(len(_DOUBLINGS) + 1)
        ]
        for lanes, factor in zip(_DOUBLINGS, factors[:-1], strict=True):
            deleting = vectors.times_plus(factor, vectors.shifted_by(deleting, lanes), deleting)
        entering = vectors.shifted_by(deleting, 1)
        vectors.store(entering, cells, at_entering)
        return vectors.sum(vectors.times_plus(entering, factors[-1], sums))

    one = types.int64
    chance = types.float32
    return chance(cells, emissions, one, transitions, one, one, chance), generate


fill_row = cast(Any, intrinsic(_fill_row))
"""Called with the cells, the emissions, the register where the code's line begins in them, the
transitions and where the profile's begin, the registers of a row, and the begin state's chance."""


def row_cells(chances: ProfileChances) -> Float32Array:
    """Return memory for a row: the states of all registers, and deletions entering each lane."""
    return np.empty((_STATES * int(chances.registers.max()) + 1) * LANES, dtype=np.float32)


@jit
def score_forward(
    block: ProteinBlock,
    chances: ProfileChances,
    cells: Float32Array,
    profiles: Int64Array,
    sequences: Int64Array,
    sums: Float64Array,
) -> None:
    """Compute for pairs the sums over all paths, and how often each was scaled (`nats_of_sums`).

    `cells` are `row_cells`. A sum is not finite where float32 cannot hold it.
    """
    for pair in range(sequences.size):
        begin = block.offsets[sequences[pair]]
        length = block.offsets[sequences[pair] + 1] - begin
        registers = chances.registers[profiles[pair]]
        first_line = chances.first_emissions[profiles[pair]]
        first = chances.first_transitions[profiles[pair]]
        used = (_STATES * registers + 1) * LANES
        stay = np.float64(np.float32(length) / np.float32(length + 3))
        move = np.float64(np.float32(3) / np.float32(length + 3))
        for cell in range(used):
            cells[cell] = 0
        before, after, scaled = 1.0, 0.0, 0
        for place in range(begin, begin + length):
            line = first_line + np.int64(block.codes[place]) * registers
            entry = np.float32((before + after) * move)
            left = np.float64(
                fill_row(
                    cells, chances.emissions, line, chances.transitions, first, registers, entry
                )
            )
            # Residues before the first hit, and after one: another may follow, at equal chances.
            before *= stay
            after = after * stay + 0.5 * left
            # A sum of long sequences grows beyond float32.
            if left > _RESCALED:
                before, after = before * _FACTOR, after * _FACTOR
                for cell in range(used):
                    cells[cell] *= np.float32(_FACTOR)
                scaled += 1
        # numpy takes the logarithms: compiled code that calls a library needs numba at the start.
        sums[0, pair] = after * move
        sums[1, pair] = scaled


def nats_of_sums(sums: Float64Array) -> Float64Array:
    """Return the scores in nats of the sums of `score_forward`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        nats: Float64Array = np.log(sums[0]) - sums[1] * np.log(_FACTOR)
    return nats
