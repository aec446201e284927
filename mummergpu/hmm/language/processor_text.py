"""Prints the recurrence of a shape for the processor: LLVM's text, a sequence a lane of registers.

A program runs segments: some columns of a group of `LANES` sequences, from the start of paths
or from the values after another segment. Sums are doubles that are scaled now and then, their
exponents counted; one that has become too small compared with the others is NaN from then on, and
so is every sum with it. The best paths are integers, logarithms in units of 2**-`LOG_BITS`, so
that sums in any order are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

from mummergpu.hmm.language.recurrence import Shape, TraceBits, after, column

LANES: Final = 8
LOG_BITS: Final = 34
IMPOSSIBLE: Final = -(1 << 60)
"""The logarithm of 0; numbers below half of it are impossible, too."""
OFFSET_BITS: Final = 16
"""The offsets of best paths are multiples of 2 to this power."""
LEAST_POSSIBLE: Final = IMPOSSIBLE + (1 << 58)
"""Between two scalings no impossible path comes so far, and no other falls so far."""
LOST: Final = 1 << 61
"""The offset of best paths where one has become too bad compared with others, or nearly so."""

SMALLEST_POWER: Final = -584
"""The power of two of the smallest sum that is kept, where the largest is about 1."""
SMALLEST_TOTAL_POWER: Final = -900
"""That of the smallest total of products from both ends, whose parts have all their digits."""

SEGMENT_NUMBERS: Final = 3
"""Of a segment: its first row of symbols, the rows, and the slot it continues (-1: none)."""


class Kept(IntFlag):
    """The data that a program keeps of each column besides the last one."""

    NOTHING = 0
    COLUMN = 1
    """All values of states."""
    BEFORE = 2
    """All values, but those of states that emit before they do."""
    TRACE = 4
    """The bits of `recurrence.TraceBits`."""


class ProgramKind(NamedTuple):
    """The task of a program, which also depends on the shape."""

    sums: bool
    kept: Kept = Kept.NOTHING


ARGUMENTS: Final = (
    "symbols",
    "segments",
    "segment_count",
    "numbers",
    "emissions",
    "slots",
    "columns",
    "bits",
    "chunk",
)
"""The arguments of a program, addresses but for two: rows of `LANES` symbols, segments,
probabilities of transitions and then of the start, emissions by symbol and one of a padding symbol
after them, the values after each segment, those of each row, the bits of each row, and after how
many columns values are scaled."""


class _Text:
    """Lines of a function, and names for its values."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0
        self.declared: set[str] = set()

    def add(self, line: str) -> None:
        self.lines.append(line)

    def value(self, operation: str) -> str:
        self._count += 1
        self.lines.append(f"  %v{self._count} = {operation}")
        return f"%v{self._count}"

    def call(self, kind: str, name: str, types: Sequence[str], values: Sequence[str]) -> str:
        self.declared.add(f"declare {kind} @{name}({', '.join(types)})")
        pairs = ", ".join(" ".join(pair) for pair in zip(types, values, strict=True))
        return self.value(f"call {kind} @{name}({pairs})")


def _all(value: str, kind: str) -> str:
    return f"<{', '.join([f'{kind} {value}'] * LANES)}>"


_INTEGERS: Final = f"<{LANES} x i64>"
_TRUTHS: Final = f"<{LANES} x i1>"


class _Sums:
    """Sums of probabilities, scaled: `recurrence.Arithmetic`."""

    scalar, vector = "double", f"<{LANES} x double>"
    name = f"v{LANES}f64"

    def __init__(self, text: _Text) -> None:
        self.text = text
        self.weights: list[str] = []
        self.emitted: list[str] = []
        self.before: list[str] = []

    def along(self, value: str, step: int) -> tuple[str, str]:
        return value, self.weights[step]

    def join(self, values: Sequence[tuple[str, str]], target: int) -> str:
        total = ""
        for value, weight in values:
            product = self.text.value(f"fmul contract {self.vector} {value}, {weight}")
            if total:
                product = self.text.value(f"fadd contract {self.vector} {total}, {product}")
            total = product
        return total or "zeroinitializer"

    def emit(self, value: str, node: int) -> str:
        self.before.append(value)
        return self.text.value(f"fmul {self.vector} {value}, {self.emitted[node]}")

    def largest(self, one: str, other: str) -> str:
        truth = self.text.value(f"fcmp ogt {self.vector} {one}, {other}")
        return self.text.value(
            f"select {_TRUTHS} {truth}, {self.vector} {one}, {self.vector} {other}"
        )

    def scaled(self, values: Sequence[str], offset: str) -> tuple[list[str], str]:
        """Return values whose largest is about 1, and the exponent that has been taken off."""
        text, most = self.text, values[0]
        for value in values[1:]:
            most = self.largest(most, value)
        bits = text.value(f"bitcast {self.vector} {most} to {_INTEGERS}")
        power = text.value(f"lshr {_INTEGERS} {bits}, {_all('52', 'i64')}")
        # Nothing is scaled by an exponent of 0, which sums of nothing have.
        none = text.value(f"icmp eq {_INTEGERS} {power}, zeroinitializer")
        power = text.value(
            f"select {_TRUTHS} {none}, {_INTEGERS} {_all('1023', 'i64')}, {_INTEGERS} {power}"
        )
        inverse = text.value(f"sub {_INTEGERS} {_all('2046', 'i64')}, {power}")
        inverse = text.value(f"shl {_INTEGERS} {inverse}, {_all('52', 'i64')}")
        factor = text.value(f"bitcast {_INTEGERS} {inverse} to {self.vector}")
        factor = self._known(factor, values, bits)
        found = [text.value(f"fmul {self.vector} {value}, {factor}") for value in values]
        taken = text.value(f"sub {_INTEGERS} {power}, {_all('1023', 'i64')}")
        return found, text.value(f"add {_INTEGERS} {offset}, {taken}")

    def _known(self, factor: str, values: Sequence[str], most: str) -> str:
        """Return a factor, or NaN if a value is not 0 but too small compared with the largest."""
        text, name, least = self.text, f"llvm.smin.v{LANES}i64", ""
        for value in values:
            bits = text.value(f"bitcast {self.vector} {value} to {_INTEGERS}")
            # So 0 is the largest integer.
            bits = text.value(f"add {_INTEGERS} {bits}, {_all(str((1 << 63) - 1), 'i64')}")
            both = (least, bits)
            least = text.call(_INTEGERS, name, (_INTEGERS, _INTEGERS), both) if least else bits
        limit = _all(str(_signed(((SMALLEST_POWER << 52) + (1 << 63) - 1) % (1 << 64), 64)), "i64")
        limit = text.value(f"add {_INTEGERS} {most}, {limit}")
        is_lost = text.value(f"icmp slt {_INTEGERS} {least}, {limit}")
        no_number = _all("0x7FF8000000000000", "double")
        chosen = f"{self.vector} {no_number}, {self.vector} {factor}"
        return text.value(f"select {_TRUTHS} {is_lost}, {chosen}")


class _Best:
    """The best paths, as integers: `recurrence.Arithmetic`."""

    scalar, vector = "i64", _INTEGERS
    name = f"v{LANES}i64"

    def __init__(self, text: _Text) -> None:
        self.text = text
        self.weights: list[str] = []
        self.emitted: list[str] = []
        self.before: list[str] = []
        self.keeps_bits = False
        self.emitting = 0
        self.ranks: list[list[tuple[int, str]]] = []
        """For each state, the bits of its best way: which bit, and where it is set."""

    def along(self, value: str, step: int) -> str:
        return self.text.value(f"add {self.vector} {value}, {self.weights[step]}")

    def join(self, values: Sequence[str], target: int) -> str:
        text = self.text
        # A tournament of neighbours: of two equal ways the first is taken, and its rank is short.
        rank: list[tuple[str, list[str]]] = [(value, []) for value in values]
        while len(rank) > 1:
            above: list[tuple[str, list[str]]] = []
            for one, other in zip(rank[::2], rank[1::2], strict=False):
                if not self.keeps_bits:
                    above.append((self.largest(one[0], other[0]), []))
                    continue
                truth = text.value(f"icmp sgt {self.vector} {other[0]}, {one[0]}")
                value = self._chosen(truth, other[0], one[0], self.vector)
                lower = [
                    self._chosen(truth, theirs, ours, _TRUTHS)
                    for ours, theirs in _filled(one[1], other[1])
                ]
                above.append((value, [*lower, truth]))
            rank = above + rank[len(rank) & ~1 :]
        best = rank[0][0] if rank else _all(str(IMPOSSIBLE), "i64")
        self.ranks.append(list(enumerate(rank[0][1])) if rank else [])
        # Twice impossible does not overflow yet when a state emits.
        return best if target < self.emitting else self.possible(best)

    def possible(self, value: str) -> str:
        return self.largest(value, _all(str(IMPOSSIBLE), "i64"))

    def _chosen(self, truth: str, one: str, other: str, kind: str) -> str:
        return self.text.value(f"select {_TRUTHS} {truth}, {kind} {one}, {kind} {other}")

    def emit(self, value: str, node: int) -> str:
        self.before.append(value)
        found = self.text.value(f"add {self.vector} {value}, {self.emitted[node]}")
        return self.possible(found)

    def largest(self, one: str, other: str) -> str:
        kinds = (self.vector, self.vector)
        return self.text.call(self.vector, f"llvm.smax.{self.name}", kinds, (one, other))

    def scaled(self, values: Sequence[str], offset: str) -> tuple[list[str], str]:
        """Return values whose largest is about 0, and the units that have been taken off."""
        text, most = self.text, values[0]
        for value in values[1:]:
            most = self.largest(most, value)
        alive = self._alive(most)
        whole = text.value(f"ashr {_INTEGERS} {most}, {_all(str(OFFSET_BITS), 'i64')}")
        taken = self._chosen(alive, whole, "zeroinitializer", _INTEGERS)
        less = text.value(f"shl {_INTEGERS} {taken}, {_all(str(OFFSET_BITS), 'i64')}")
        found, lost = [], ""
        for value in values:
            lower = text.value(f"sub {_INTEGERS} {value}, {less}")
            impossible = _all(str(IMPOSSIBLE), "i64")
            found.append(self._chosen(self._alive(value), lower, impossible, _INTEGERS))
            # Possible, but no longer alive: between two bounds, as one unsigned number.
            above = text.value(f"sub {_INTEGERS} {value}, {_all(str(LEAST_POSSIBLE), 'i64')}")
            limit = _all(str(IMPOSSIBLE // 2 - LEAST_POSSIBLE + 1), "i64")
            is_lost = text.value(f"icmp ult {_INTEGERS} {above}, {limit}")
            lost = text.value(f"or {_TRUTHS} {lost}, {is_lost}") if lost else is_lost
        total = text.value(f"add {_INTEGERS} {offset}, {taken}")
        return found, self._chosen(lost, _all(str(LOST), "i64"), total, _INTEGERS)

    def _alive(self, value: str) -> str:
        return self.text.value(f"icmp sgt {_INTEGERS} {value}, {_all(str(IMPOSSIBLE // 2), 'i64')}")


def _filled(one: list[str], other: list[str]) -> list[tuple[str, str]]:
    """Return the bits of two ranks in pairs; the shorter one has zeros above."""
    longest = max(len(one), len(other))
    none = ["zeroinitializer"] * longest
    return list(zip((one + none)[:longest], (other + none)[:longest], strict=True))


@lru_cache(maxsize=64)
def program_text(shape: Shape, kind: ProgramKind) -> str:
    """Return the text of a program with `ARGUMENTS`."""
    return _Printer(shape, kind).text()


class _Printer:
    def __init__(self, shape: Shape, kind: ProgramKind) -> None:
        self._shape, self._kind = shape, kind
        self._text = _Text()
        self._numbers: _Sums | _Best = (_Sums if kind.sums else _Best)(self._text)
        self._bits = TraceBits.of(shape)
        if isinstance(self._numbers, _Best):
            self._numbers.keeps_bits = Kept.TRACE in kind.kept
            self._numbers.emitting = shape.emitting

    def text(self) -> str:  # noqa: C901, PLR0915
        # The blocks of the function, from its first to its last.
        text, numbers, shape = self._text, self._numbers, self._shape
        vector, nodes = numbers.vector, shape.nodes
        for place, name in enumerate(ARGUMENTS):
            address = text.value(f"getelementptr i64, ptr %arguments, i64 {place}")
            kind = "i64" if name in ("segment_count", "chunk") else "ptr"
            text.add(f"  %{name} = load {kind}, ptr {address}")
        numbers.weights = [self._splat(self._number(one)) for one in range(len(shape.steps))]
        first_start = len(shape.steps)
        starts = [self._splat(self._number(first_start + one)) for one in range(shape.emitting)]
        text.add("  br label %segments_head")
        text.add("segments_head:")
        text.add("  %segment = phi i64 [ 0, %entry_block ], [ %next_segment, %segment_end ]")
        going = text.value("icmp slt i64 %segment, %segment_count")
        text.add(f"  br i1 {going}, label %segment_begin, label %end")
        text.add("segment_begin:")
        at = text.value(f"mul i64 %segment, {SEGMENT_NUMBERS}")
        facts = []
        for number in range(SEGMENT_NUMBERS):
            address = text.value(f"getelementptr i64, ptr %segments, i64 {at}")
            address = text.value(f"getelementptr i64, ptr {address}, i64 {number}")
            facts.append(text.value(f"load i64, ptr {address}"))
        first_row, count, source = facts
        text.add(f"  %row_end = add i64 {first_row}, {count}")
        is_first = text.value(f"icmp slt i64 {source}, 0")
        text.add(f"  br i1 {is_first}, label %at_start, label %going_on")

        text.add("at_start:")
        self._load_emissions(first_row)
        numbers.before = []
        if isinstance(numbers, _Best):
            numbers.ranks = [[] for _ in range(shape.emitting)]
        found: list[str] = after(shape, cast(Any, numbers), starts)
        keeps = self._kind.kept & (Kept.COLUMN | Kept.BEFORE)
        begun, begun_offset = found, "zeroinitializer"
        if self._kind.sums:
            # Sums may be too small at once; paths fall by few columns' chances only.
            begun, begun_offset = self._scaled(found, begun_offset)
        self._keep(first_row, begun, begun_offset)
        text.add(f"  %second_row = add i64 {first_row}, 1")
        text.add("  br label %rows_head")

        text.add("going_on:")
        loaded = [self._load_slot(source, node) for node in range(nodes + 1)]
        text.add("  br label %rows_head")

        # Values are scaled after each chunk of rows.
        text.add("rows_head:")
        values = []
        text.add(
            f"  %row = phi i64 [ %second_row, %at_start ], [ {first_row}, %going_on ], "
            "[ %row_behind, %scaling ]"
        )
        for node in range(nodes):
            text.add(
                f"  %head{node} = phi {vector} [ {begun[node]}, %at_start ], "
                f"[ {loaded[node]}, %going_on ], [ %scaled{node}, %scaling ]"
            )
            values.append(f"%head{node}")
        text.add(
            f"  %offset = phi {_INTEGERS} [ {begun_offset}, %at_start ], "
            f"[ {loaded[nodes]}, %going_on ], [ %scaled_offset, %scaling ]"
        )
        text.add("  %chunk_limit = add i64 %row, %chunk")
        lower = text.value("icmp slt i64 %chunk_limit, %row_end")
        text.add(f"  %chunk_end = select i1 {lower}, i64 %chunk_limit, i64 %row_end")
        some = text.value("icmp slt i64 %row, %chunk_end")
        text.add(f"  br i1 {some}, label %columns_head, label %segment_end")

        text.add("columns_head:")
        text.add("  %at = phi i64 [ %row, %rows_head ], [ %row_behind, %columns_head ]")
        lines = len(text.lines)
        befores = [f"%before{node}" for node in range(nodes)]
        self._load_emissions("%at")
        numbers.before = []
        if isinstance(numbers, _Best):
            numbers.ranks = []
        found = column(shape, cast(Any, numbers), befores)
        phis = [
            f"  {before} = phi {vector} [ {value}, %rows_head ], [ {after}, %columns_head ]"
            for before, value, after in zip(befores, values, found, strict=True)
        ]
        text.lines[lines:lines] = phis
        text.add("  %row_behind = add i64 %at, 1")
        if not keeps:
            self._keep("%at", found, "")
        more = text.value("icmp slt i64 %row_behind, %chunk_end")
        if keeps:
            # Columns are scaled one by one, and kept as they are scaled.
            text.add("  br label %scaling")
        else:
            text.add(f"  br i1 {more}, label %columns_head, label %scaling")
        text.add("scaling:")
        if keeps:
            # The loop over columns is never entered a second time.
            for number, line in enumerate(text.lines):
                text.lines[number] = _without_second_entry(line)
        scaled, offset = self._scaled(found, "%offset")
        for node, value in enumerate(scaled):
            text.add(f"  %scaled{node} = {self._copy(value)}")
        text.add(f"  %scaled_offset = add {_INTEGERS} {offset}, zeroinitializer")
        if keeps:
            self._keep("%at", scaled, offset)
        text.add("  br label %rows_head")

        text.add("segment_end:")
        for node, value in enumerate(values):
            self._store(vector, value, "slots", "%segment", node, nodes + 1)
        self._store(_INTEGERS, "%offset", "slots", "%segment", nodes, nodes + 1)
        text.add("  %next_segment = add i64 %segment, 1")
        text.add("  br label %segments_head")
        text.add("end:")
        text.add("  ret i32 0")
        head = "define i32 @entry(ptr %arguments, ptr %result, ptr %exception) #0 {"
        return "\n".join([*sorted(text.declared), head, "entry_block:", *text.lines, "}"])

    def _scaled(self, values: list[str], offset: str) -> tuple[list[str], str]:
        """Scale the values of a column, and those before states emit if they are kept."""
        numbers = self._numbers
        before = numbers.before if Kept.BEFORE in self._kind.kept else []
        both, offset = numbers.scaled([*values, *before], offset)
        numbers.before = both[len(values) :]
        return both[: len(values)], offset

    def _copy(self, value: str) -> str:
        kind = self._numbers.vector
        if self._kind.sums:
            return f"fadd {kind} {value}, {_all('-0.0', 'double')}"
        return f"add {kind} {value}, zeroinitializer"

    def _number(self, place: int) -> str:
        scalar = self._numbers.scalar
        address = self._text.value(f"getelementptr {scalar}, ptr %numbers, i64 {place}")
        return self._text.value(f"load {scalar}, ptr {address}")

    def _splat(self, value: str) -> str:
        vector, scalar = self._numbers.vector, self._numbers.scalar
        one = self._text.value(f"insertelement {vector} poison, {scalar} {value}, i64 0")
        return self._text.value(
            f"shufflevector {vector} {one}, {vector} poison, <{LANES} x i32> zeroinitializer"
        )

    def _load_emissions(self, row: str) -> None:
        """Load the emissions of each state for the symbols of a row."""
        text, numbers = self._text, self._numbers
        address = text.value(f"getelementptr <{LANES} x i8>, ptr %symbols, i64 {row}")
        small = text.value(f"load <{LANES} x i8>, ptr {address}, align 1")
        codes = text.value(f"zext <{LANES} x i8> {small} to {_INTEGERS}")
        rows = []
        for emission in range(self._shape.emission_count):
            size = 8 * 256
            base = text.value(f"getelementptr i8, ptr %emissions, i64 {emission * size}")
            rows.append(self._gathered(base, codes))
        numbers.emitted = [rows[one] for one in self._shape.emissions]

    def _gathered(self, base: str, codes: str) -> str:
        """Return the numbers of codes, each loaded by itself."""
        text, numbers = self._text, self._numbers
        pointers, mask = f"<{LANES} x ptr>", f"<{', '.join(['i1 true'] * LANES)}>"
        places = text.value(f"getelementptr {numbers.scalar}, ptr {base}, {_INTEGERS} {codes}")
        name = f"llvm.masked.gather.{numbers.name}.v{LANES}p0"
        kinds = (pointers, "i32", _TRUTHS, numbers.vector)
        return text.call(numbers.vector, name, kinds, (places, "8", mask, "poison"))

    def _load_slot(self, slot: str, node: int) -> str:
        kind = self._numbers.vector if node < self._shape.nodes else _INTEGERS
        at = self._text.value(f"mul i64 {slot}, {self._shape.nodes + 1}")
        at = self._text.value(f"add i64 {at}, {node}")
        address = self._text.value(f"getelementptr {kind}, ptr %slots, i64 {at}")
        return self._text.value(f"load {kind}, ptr {address}, align 8")

    def _store(self, kind: str, value: str, array: str, row: str, place: int, width: int) -> None:
        at = self._text.value(f"mul i64 {row}, {width}")
        at = self._text.value(f"add i64 {at}, {place}")
        address = self._text.value(f"getelementptr {kind}, ptr %{array}, i64 {at}")
        self._text.add(f"  store {kind} {value}, ptr {address}, align 1")

    def _keep(self, row: str, values: Sequence[str], offset: str) -> None:
        """Store the data to keep of a column."""
        kept, shape = self._kind.kept, self._shape
        if kept & (Kept.COLUMN | Kept.BEFORE):
            shown = list(values)
            if Kept.BEFORE in kept:
                shown[: shape.emitting] = self._numbers.before[: shape.emitting]
            for node, value in enumerate(shown):
                self._store(self._numbers.vector, value, "columns", row, node, shape.nodes + 1)
            self._store(_INTEGERS, offset, "columns", row, shape.nodes, shape.nodes + 1)
        if Kept.TRACE in kept:
            self._keep_bits(row)

    def _keep_bits(self, row: str) -> None:
        text, bits = self._text, self._bits
        assert isinstance(self._numbers, _Best)
        kind = f"<{LANES} x i{bits.word_bits}>"
        words: list[str] = ["zeroinitializer"] * bits.words
        for (word, first, _), ranks in zip(bits.places, self._numbers.ranks, strict=True):
            for bit, truth in ranks:
                mask = _all(str(_signed(1 << (first + bit), bits.word_bits)), f"i{bits.word_bits}")
                one = f"{_TRUTHS} {truth}, {kind} {mask}, {kind} zeroinitializer"
                one = text.value(f"select {one}")
                words[word] = text.value(f"or {kind} {words[word]}, {one}")
        for number, value in enumerate(words):
            self._store(kind, value, "bits", row, number, bits.words)


def _without_second_entry(line: str) -> str:
    if " = phi " in line and "%columns_head ]" in line and "%rows_head ]" in line:
        return line.rpartition(", [")[0]
    return line


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value
