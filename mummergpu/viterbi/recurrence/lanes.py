"""The recurrence in vector registers: the matrix is computed anti-diagonal by anti-diagonal.

The cells of an anti-diagonal depend on the two before it only, never on each other. A register
has `LANES` of its cells, in 16 bits each; `registers` of them cover a band. On even
anti-diagonals, lane k is the cell on diagonal ``2 k - 16 registers`` (the position in the
reference minus that in the read), on odd ones that on the next diagonal. So a gap comes from the
same lane or from a neighbour, and a match from the same lane two anti-diagonals before.

Scores saturate: those of unreachable cells stay far below those of reachable ones, and so do those
outside of the tile, because the copies of `band` never match there. A cell there never has the best
score, and none inside depends on it.

A narrow band is one register, and everything stays in the registers of the processor. A wide band
is kept in memory, and registers without a cell of the tile are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from mummergpu.runtime.llvm import ir, types
from mummergpu.runtime.vectors import Vectors
from mummergpu.sequence.codes import BREAK
from mummergpu.viterbi.recurrence.model import (
    PAIRWISE,
    Costs,
    Departure,
    State,
    bit_count,
    departures,
)

LANES: Final = 16
"""The cells of a register, in 16 bits each."""

NEVER: Final = -(1 << 15)
"""The score of a cell that no path reaches; sums and differences saturate there."""


def costs_by_name(builder: Any, costs: Any) -> dict[str, Any]:
    """Return the fields of a `Costs` of the compiled function, of 64 bits each."""
    return {name: builder.extract_value(costs, number) for number, name in enumerate(Costs._fields)}


class LaneArithmetic(Vectors):
    """Writes instructions for registers of `LANES` scores, whose `costs` are a `Costs`."""

    def __init__(self, builder: Any, costs: Any) -> None:
        super().__init__(builder, 16, LANES)
        self.costs = costs_by_name(builder, costs)
        self._codes = Vectors(builder, 8, LANES)
        self._subtracted: dict[tuple[str, ...], Any] = {}
        self._match, mismatch, unknown = (
            self._codes.splat(self.costs[name]) for name in ("match", "mismatch", "unknown")
        )
        zeros = self._codes.constant(0)
        self._mismatch, self._unknown = builder.sub(zeros, mismatch), builder.sub(zeros, unknown)

    def prepare(self, costs: tuple[str, ...]) -> None:
        """Add up some costs where the builder is now, before the loop that subtracts them."""
        if costs and costs not in self._subtracted:
            total = self.costs[costs[0]]
            for name in costs[1:]:
                total = self.builder.add(total, self.costs[name])
            self._subtracted[costs] = self.splat(total)

    def vector(self, numbers: Iterable[int]) -> Any:
        """Return a register of constants, one for each lane."""
        return ir.Constant(self.kind, list(numbers))

    def add(self, score: Any, other: Any) -> Any:
        """Return the sum, which saturates."""
        return self.call("sadd.sat", score, other)

    def subtract(self, score: Any, costs: tuple[str, ...]) -> Any:
        """Return a score minus the costs, saturated: see `model.Arithmetic`."""
        return self.call("ssub.sat", score, self._subtracted[costs]) if costs else score

    def exceeds(self, score: Any, other: Any) -> Any:
        """Return a truth for each lane: see `model.Arithmetic`."""
        return self.builder.icmp_signed(">", score, other)

    def choose(self, truth: Any, score: Any, other: Any) -> Any:
        """Return one of two scores for each lane: see `model.Arithmetic`."""
        return self.builder.select(truth, score, other)

    def larger(self, score: Any, other: Any) -> Any:
        """Return the larger score in each lane."""
        return self.choose(self.exceeds(score, other), score, other)

    def smaller(self, score: Any, other: Any) -> Any:
        """Return the smaller score in each lane."""
        return self.choose(self.exceeds(score, other), other, score)

    def highest(self, scores: Any) -> Any:
        """Return the highest of all lanes, as 64 bits."""
        return self.reduce("smax", scores, signed=True)

    def place(self, numbers: Any, register: Any) -> Any:
        """Return where a register is, from a pointer to 16-bit numbers and the register's own."""
        at = self.builder.mul(register, ir.Constant(ir.IntType(64), LANES))
        return self.builder.bitcast(self.builder.gep(numbers, [at]), self.kind.as_pointer())

    def load_at(self, place: Any) -> Any:
        """Load a register from its place."""
        return self.builder.load(place, align=2, typ=self.kind)

    def store_at(self, value: Any, place: Any) -> None:
        """Store a register in its place."""
        self.builder.store(value, place, align=2)

    def load_codes(self, codes: Any, at: Any) -> Any:
        """Load a code for each lane from a pointer to bytes and an index."""
        address = self.builder.gep(codes, [at])
        address = self.builder.bitcast(address, self._codes.kind.as_pointer())
        return self.builder.load(address, align=1, typ=self._codes.kind)

    def emission(self, bases: Any, others: Any) -> Any:
        """Return the scores of pairs of codes of `band.py`."""
        builder = self.builder
        equal = builder.icmp_unsigned("==", bases, others)
        unknown = builder.icmp_unsigned("==", bases, self._codes.constant(BREAK))
        scores = builder.select(unknown, self._unknown, self._mismatch)
        return builder.sext(builder.select(equal, self._match, scores), self.kind)


MOST_REGISTERS: Final = 7
"""The registers of the widest band: its outermost diagonals are beyond `LARGEST_COST`."""

MOST_LANES: Final = LANES * MOST_REGISTERS

RESULTS: Final = ("best", "step", "end")
"""The results of each lane: the best score of a match, its anti-diagonal, and the score at the end
of the read. `MOST_LANES` numbers each, of the even diagonals first, then of the odd ones."""

STATE_WORDS: Final = 2 * len(PAIRWISE.states) * (MOST_LANES + 2 * LANES)
"""The 16-bit words of memory that a wide band needs, besides its results."""

DIRECTION_WORDS: Final = bit_count(PAIRWISE)
"""The words of directions for each register: one for each bit of `model.departures`."""

_CHECK_MASK: Final = 7
"""After every 8 pairs of anti-diagonals, check whether going on can change the result."""

_EVEN, _ODD = 0, 1


class TileProgram:
    """Writes the code of one loop over the anti-diagonals of a tile.

    A narrow band is one register. The directions are stored if it is traced.
    """

    def __init__(
        self,
        context: Any,
        builder: Any,
        signature: Any,
        arguments: Sequence[Any],
        narrow: bool,
        traced: bool,
    ) -> None:
        self.builder, self.narrow, self.traced = builder, narrow, traced
        plain = [
            context.make_array(kind)(context, builder, argument).data
            if isinstance(kind, types.Array)
            else argument
            for kind, argument in zip(signature.args, arguments, strict=True)
        ]
        self.codes, tile, costs, registers, self.state, self.results, self.directions = plain
        numbers = [builder.extract_value(tile, number) for number in range(6)]
        self.read_at, self.reference_at, self.length, self.reference_length, *numbers = numbers
        self.pairs, self.least = numbers
        self.registers = self._number(1) if narrow else registers
        self.band = builder.mul(self.registers, self._number(LANES))
        self.lanes = LaneArithmetic(builder, costs)
        for step in PAIRWISE.transitions:
            self.lanes.prepare(step.costs)
        self.places: dict[tuple[str, int], Any] = {}

    def write(self) -> None:
        """Write the loop, from the corner to the last pair of anti-diagonals."""
        self._begin()
        self._loop(self._number(0), self.pairs, self._pair)
        if self.narrow:
            for name in RESULTS:
                for parity in (_EVEN, _ODD):
                    value = self._load(name, parity, self._number(0))
                    self.lanes.store_at(value, self._result(name, parity, self._number(0)))

    def _pair(self, pair: Any) -> Any:
        """Compute two anti-diagonals; return whether the rest cannot change the result."""
        first, end = self._registers_of(pair)
        for parity in (_ODD, _EVEN):
            self._each_register(first, end, partial(self._step, pair, parity))
        masked = self.builder.and_(pair, self._number(_CHECK_MASK))
        is_due = self.builder.icmp_signed("==", masked, self._number(_CHECK_MASK))
        before = self.builder.block
        with self.builder.if_then(is_due):
            is_hopeless = self._is_hopeless(pair)
            check = self.builder.block
        done = self.builder.phi(ir.IntType(1))
        done.add_incoming(ir.Constant(ir.IntType(1), 0), before)
        done.add_incoming(is_hopeless, check)
        return done

    def _registers_of(self, pair: Any) -> tuple[Any, Any]:
        """Return the first register that has a cell of the tile, and the one after the last."""
        if self.narrow:
            return self._number(0), self._number(1)
        builder = self.builder
        # The last step is 2 pair + 2. A path to it is at most that far from its diagonal, and has
        # neither left the read at its end nor the reference at its own.
        far = builder.add(builder.shl(pair, self._number(1)), self._number(2))
        past_read = builder.sub(far, builder.shl(self.length, self._number(1)))
        past_read = builder.sub(past_read, self._number(1))
        lowest = self._larger(builder.neg(far), past_read)
        rest = builder.sub(builder.shl(self.reference_length, self._number(1)), far)
        highest = self._smaller(far, builder.add(rest, self._number(1)))
        shift = self._number((2 * LANES).bit_length() - 1)
        first = builder.ashr(builder.add(lowest, self.band), shift)
        last = builder.ashr(builder.add(highest, self.band), shift)
        first = self._larger(first, self._number(0))
        return first, self._smaller(builder.add(last, self._number(1)), self.registers)

    def _begin(self) -> None:
        """Put the corner in its lane: a match precedes it, with no score yet."""
        never = self.lanes.constant(NEVER)
        names = [state.name for state in PAIRWISE.states]
        if self.narrow:
            for parity in (_EVEN, _ODD):
                for name in (*names, *RESULTS):
                    self.places[name, parity] = self._variable(never)
        else:
            last = self.builder.add(self.registers, self._number(1))
            self._each_register(self._number(-1), last, lambda at: self._fill(names, at, never))
            self._each_register(
                self._number(0), self.registers, lambda at: self._fill(RESULTS, at, never)
            )
        self._each_register(self._number(0), self.registers, self._place_corner)

    def _fill(self, names: Sequence[str], register: Any, value: Any) -> None:
        for name in names:
            for parity in (_EVEN, _ODD):
                self.lanes.store_at(value, self._place(name, parity, register))

    def _place_corner(self, register: Any) -> None:
        never = self.lanes.constant(NEVER)
        is_corner = self.builder.icmp_signed(
            "==", self._diagonals(register, _EVEN), self.lanes.constant(0)
        )
        score = self.builder.select(is_corner, self.lanes.constant(0), never)
        # Else an alignment without any base would hide all others that score nothing.
        is_left_out = self.builder.icmp_signed("<", self.least, self._number(0))
        best = self.builder.select(is_left_out, never, score)
        self.lanes.store_at(best, self._place("best", _EVEN, register))
        self.lanes.store_at(self.lanes.constant(0), self._place("step", _EVEN, register))
        cell = {state: never for state in PAIRWISE.states}
        cell[PAIRWISE.states[0]] = score
        self._leave(cell, register, _EVEN, self._number(0))

    def _step(self, pair: Any, parity: int, register: Any) -> None:
        """Compute a register of an anti-diagonal: 2 pair + 1, or the even one after it."""
        builder = self.builder
        step = builder.add(builder.shl(pair, self._number(1)), self._number(2 - parity))
        diagonals = self._diagonals(register, parity)
        cell = {}
        for state in PAIRWISE.states:
            score = self._arriving(state, parity, register)
            if state.emits:
                score = self.lanes.add(score, self._emission(pair, parity, register))
                score = self.lanes.smaller(score, self._highest_allowed(diagonals))
            cell[state] = score
        self._note_best(cell[PAIRWISE.states[0]], register, parity, step, diagonals)
        self._leave(cell, register, parity, step)

    def _highest_allowed(self, diagonals: Any) -> Any:
        """Return the highest score of each lane: none beyond the outermost diagonals."""
        most = self.lanes.costs["max_gap"]
        above = self.builder.icmp_signed(">", diagonals, self.lanes.splat(most))
        least = self.lanes.splat(self.builder.neg(most))
        outside = self.builder.or_(above, self.builder.icmp_signed("<", diagonals, least))
        highest = self.lanes.constant(NEVER), self.lanes.constant(-NEVER - 1)
        return self.builder.select(outside, *highest)

    def _leave(self, cell: dict[State, Any], register: Any, parity: int, step: Any) -> None:
        """Keep the scores that leave the cells of a register for later cells."""
        for departure in departures(PAIRWISE, cell, self.lanes):
            place = self._place(departure.target.name, parity, register)
            self.lanes.store_at(departure.score, place)
            if self.traced:
                self._store_bits(departure, register, step)

    def _store_bits(self, departure: Departure[Any, Any], register: Any, step: Any) -> None:
        first = 0
        for state in PAIRWISE.states[: PAIRWISE.states.index(departure.target)]:
            first += len(PAIRWISE.into(state)) - 1
        row = self.builder.add(self.builder.mul(step, self.registers), register)
        row = self.builder.mul(row, self._number(DIRECTION_WORDS))
        for number, bits in enumerate(departure.bits, first):
            at = self.builder.add(row, self._number(number))
            address = self.builder.gep(self.directions, [at])
            self.builder.store(self.builder.bitcast(bits, ir.IntType(LANES)), address, align=2)

    def _arriving(self, state: State, parity: int, register: Any) -> Any:
        """Return the scores that arrive in a state of an anti-diagonal."""
        if state.read_bases == state.reference_bases:
            return self._load(state.name, parity, register)
        value = self._load(state.name, 1 - parity, register)
        # An insertion comes from the next diagonal, a deletion from the one before. Odd
        # anti-diagonals begin one diagonal later.
        if state.read_bases and parity == _ODD:
            return self.lanes.shifted_down(value, self._neighbour(state, 1 - parity, register, 1))
        if state.reference_bases and parity == _EVEN:
            return self.lanes.shifted_up(value, self._neighbour(state, 1 - parity, register, -1))
        return value

    def _neighbour(self, state: State, parity: int, register: Any, distance: int) -> Any:
        if self.narrow:
            return self.lanes.constant(NEVER)
        neighbour = self.builder.add(register, self._number(distance))
        return self._load(state.name, parity, neighbour)

    def _emission(self, pair: Any, parity: int, register: Any) -> Any:
        """Return the scores of the pairs of bases of a register."""
        builder = self.builder
        lane = builder.mul(register, self._number(LANES))
        first = builder.sub(builder.add(self.read_at, self.length), pair)
        first = builder.sub(first, self._number(int(parity == _EVEN)))
        bases = self.lanes.load_codes(self.codes, builder.add(first, lane))
        first = builder.add(self.reference_at, pair)
        others = self.lanes.load_codes(self.codes, builder.add(first, lane))
        return self.lanes.emission(bases, others)

    def _note_best(self, score: Any, register: Any, parity: int, step: Any, diagonals: Any) -> None:
        """Keep the best score of each lane and where it is, and the score at the read's end."""
        builder = self.builder
        best, at, end = (self._place(name, parity, register) for name in RESULTS)
        old = self.lanes.load_at(best)
        better = builder.icmp_signed(">", score, old)
        self.lanes.store_at(builder.select(better, score, old), best)
        steps = self.lanes.splat(step)
        self.lanes.store_at(builder.select(better, steps, self.lanes.load_at(at)), at)
        # On anti-diagonal `step` the read ends on diagonal `step` - 2 `length`.
        diagonal = builder.sub(step, builder.shl(self.length, self._number(1)))
        is_end = builder.icmp_signed("==", diagonals, self.lanes.splat(diagonal))
        self.lanes.store_at(builder.select(is_end, score, self.lanes.load_at(end)), end)

    def _is_hopeless(self, pair: Any) -> Any:
        """Return whether no later cell can have a score that changes the result.

        From each cell the rest of the read may match to its end. The score of that must be less
        than the least score, or than the best one so far.
        """
        builder = self.builder
        never = self.lanes.constant(NEVER)
        match = self.lanes.splat(self.lanes.costs["match"])
        highest, best = self._variable(never), self._variable(never)
        name = PAIRWISE.states[0].name

        def look_at(register: Any) -> None:
            # Lane k is k bases further from the end than the first.
            lane = self.lanes.splat(builder.mul(register, self._number(LANES)))
            rest = builder.mul(builder.add(lane, self.lanes.vector(range(LANES))), match)
            for parity in (_EVEN, _ODD):
                reachable = self.lanes.add(self._load(name, parity, register), rest)
                self.lanes.store_at(
                    self.lanes.larger(self.lanes.load_at(highest), reachable), highest
                )
                found = self._load("best", parity, register)
                self.lanes.store_at(self.lanes.larger(self.lanes.load_at(best), found), best)

        self._each_register(self._number(0), self.registers, look_at)
        bases = builder.sub(self.length, pair)
        bases = builder.sub(bases, builder.ashr(self.band, self._number(1)))
        rest = builder.mul(bases, self.lanes.costs["match"])
        reachable = builder.add(self.lanes.highest(self.lanes.load_at(highest)), rest)
        reachable = builder.add(reachable, self.lanes.costs["end_bonus"])
        needed = self._larger(self.lanes.highest(self.lanes.load_at(best)), self.least)
        return builder.icmp_signed("<", reachable, needed)

    def _diagonals(self, register: Any, parity: int) -> Any:
        """Return the diagonals of the lanes of a register."""
        first = self.builder.mul(register, self._number(2 * LANES))
        first = self.lanes.splat(self.builder.sub(first, self.band))
        return self.builder.add(first, self.lanes.vector(range(parity, 2 * LANES + parity, 2)))

    def _load(self, name: str, parity: int, register: Any) -> Any:
        return self.lanes.load_at(self._place(name, parity, register))

    def _place(self, name: str, parity: int, register: Any) -> Any:
        """Return the address of a register of a variable."""
        if self.narrow:
            return self.places[name, parity]
        if name in RESULTS:
            return self._result(name, parity, register)
        # A register before the first and one after the last are never reached.
        number = [state.name for state in PAIRWISE.states].index(name)
        first = (2 * number + parity) * (MOST_REGISTERS + 2) + 1
        return self.lanes.place(self.state, self.builder.add(register, self._number(first)))

    def _result(self, name: str, parity: int, register: Any) -> Any:
        first = (2 * RESULTS.index(name) + parity) * MOST_REGISTERS
        return self.lanes.place(self.results, self.builder.add(register, self._number(first)))

    def _each_register(self, first: Any, end: Any, write: Callable[[Any], None]) -> None:
        if self.narrow:
            write(self._number(0))
        else:
            self._loop(first, end, write)

    def _loop(self, first: Any, end: Any, write: Callable[[Any], Any]) -> None:
        """Write a loop over numbers; it ends early where the value that `write` returns is true."""
        builder = self.builder
        number = self._variable(first)
        head, body, after = (builder.append_basic_block(f"tile.{at}") for at in "123")
        builder.branch(head)
        builder.position_at_end(head)
        value = builder.load(number)
        builder.cbranch(builder.icmp_signed("<", value, end), body, after)
        builder.position_at_end(body)
        is_done = write(value)
        builder.store(builder.add(value, self._number(1)), number)
        if is_done is None:
            builder.branch(head)
        else:
            builder.cbranch(is_done, after, head)
        builder.position_at_end(after)

    def _variable(self, value: Any) -> Any:
        """Make a variable with a value; its place is made once, where the function begins."""
        with self.builder.goto_entry_block():
            place = self.builder.alloca(value.type)
        self.builder.store(value, place)
        return place

    def _number(self, value: int) -> Any:
        return ir.Constant(ir.IntType(64), value)

    def _larger(self, one: Any, other: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed(">", one, other), one, other)

    def _smaller(self, one: Any, other: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("<", one, other), one, other)
