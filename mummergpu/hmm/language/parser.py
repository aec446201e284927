"""The parser of the language of hidden Markov models (Cartey, HMMingbird, 2011; see the docs).

It uses recursive descent, and reads each body of a ``for`` once for every value: so the later
steps have only plain names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, NoReturn

from mummergpu.errors import ModelError
from mummergpu.hmm.language.program import (
    ATTRIBUTES,
    Algorithm,
    Attribute,
    Model,
    Printed,
    Program,
    RowSum,
    State,
    Transition,
)

NAME: Final = "name"
NUMBER: Final = "number"
QUOTED: Final = "quoted"
END: Final = "end"

_WORDS: Final = re.compile(
    r"""
    (?P<blank>[ \t\r\n\f\v]+ | //[^\n]* | /\*.*?\*/)
  | (?P<number>(?:[0-9]+(?:\.(?!\.)[0-9]*)? | \.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<name>[A-Za-z][A-Za-z0-9_]*)
  | (?P<quoted>'[\x20-\x7e]')
  | (?P<mark>-> | \.\. | [\x21-\x7e])
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A word: `NAME`, `NUMBER`, `QUOTED`, `END`, or else the mark itself."""

    kind: str
    text: str
    line: int
    column: int

    @property
    def shown(self) -> str:
        """The word as errors show it."""
        return "the end of the program" if self.kind == END else f"'{self.text}'"


def tokens_of(text: str, path: str) -> Iterator[Token]:
    """Yield the words of a program, and `END`; a byte that is in no word is an error."""
    at, line, begin = 0, 1, 0
    while at < len(text):
        found = _WORDS.match(text, at)
        place = (line, at - begin + 1)
        if found is None:
            raise ModelError(f"{text[at]!r} has no meaning here", path, *place)
        word = found.group()
        if text.startswith("/*", at) and found.lastgroup != "blank":
            raise ModelError("a comment without its end, '*/'", path, *place)
        if found.lastgroup != "blank":
            kind = word if found.lastgroup == "mark" else str(found.lastgroup)
            yield Token(kind, word, *place)
        at = found.end()
        if (feeds := word.count("\n")) > 0:
            line += feeds
            begin = at - len(word) + word.rindex("\n") + 1
    yield Token(END, "", line, len(text) - begin + 1)


MAX_DECLARATIONS: Final = 200_000
"""Of a model, when every ``for`` has been written out."""

_ALGORITHMS: Final = frozenset(one.value for one in Algorithm)
_MAX_NESTED: Final = 8
_MAX_DIGITS: Final = 9


def parse_program(text: str, path: str = "<text>") -> Program:
    """Parse a program; `ModelError` has the line, the column and the expected word."""
    return _Parser(text, path).program()


class _Words:
    """The words of a program, of which one is the next."""

    def __init__(self, text: str, path: str) -> None:
        self._path = path
        self._tokens = list(tokens_of(text, path))
        self.at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self.at]

    @property
    def after(self) -> Token:
        """The word after the next one."""
        return self._tokens[min(self.at + 1, len(self._tokens) - 1)]

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        place = token or self.next
        raise ModelError(message, self._path, place.line, place.column)

    def expected(self, what: str) -> NoReturn:
        self.fail(f"expected {what}, found {self.next.shown}")

    def take(self) -> Token:
        token = self.next
        if token.kind != END:
            self.at += 1
        return token

    def accept(self, mark: str) -> bool:
        """Take the next word if it is this mark or name."""
        if self.next.kind in (END, QUOTED) or self.next.text != mark:
            return False
        self.at += 1
        return True

    def expect(self, mark: str) -> Token:
        token = self.next
        if not self.accept(mark):
            self.expected(f"'{mark}'")
        return token

    def name(self, what: str) -> Token:
        if self.next.kind != NAME:
            self.expected(what)
        return self.take()

    def integer(self) -> int:
        token = self.next
        if token.kind != NUMBER or not token.text.isdigit() or len(token.text) > _MAX_DIGITS:
            self.expected(f"an integer of up to {_MAX_DIGITS} digits")
        return int(self.take().text)


class _Declarations:
    """The declarations of a model so far."""

    def __init__(self) -> None:
        self.alphabet: tuple[str, ...] = ()
        self.states: dict[str, tuple[State, Token]] = {}
        self.ends: dict[str, str] = {}
        self.emissions: dict[str, tuple[tuple[float, ...], Token]] = {}
        self.transitions: list[tuple[Transition, Token]] = []
        self.count = 0


class _Parser(_Words):
    def __init__(self, text: str, path: str) -> None:
        super().__init__(text, path)
        self._models: dict[str, Model] = {}
        self._variables: dict[str, int] = {}
        self._instances: list[Token] = []
        self._calls: list[tuple[str, Algorithm]] = []

    def program(self) -> Program:
        printed: list[Printed] = []
        while self.next.kind != END:
            if self.accept("hmm"):
                self._model()
            elif self.accept("main"):
                printed += self._main()
            else:
                self.expected("'hmm' or 'main'")
        for token in self._instances:
            if token.text not in self._models:
                self.fail(f"there is no model '{token.text}'", token)
        return Program(self._models, tuple(printed), tuple(self._calls))

    # Models.

    def _model(self) -> None:
        token = self.name("the name of a model")
        if token.text in self._models:
            self.fail(f"there is another model '{token.text}'", token)
        found = _Declarations()
        self.expect("{")
        while not self.accept("}"):
            self._declaration(found)
        self._models[token.text] = self._checked(token, found)

    def _declaration(self, found: _Declarations) -> None:
        found.count += 1
        if found.count > MAX_DECLARATIONS:
            self.fail(f"more than {MAX_DECLARATIONS:,} declarations")
        known: dict[str, Callable[[_Declarations], None]] = {
            "alphabet": self._alphabet,
            "state": self._state,
            "startstate": self._border,
            "endstate": self._border,
            "emission": self._emission,
        }
        if self.next.kind != NAME:
            self.expected("a declaration or '}'")
        if self.next.text == "for":
            self._repetition(found)
            return
        known.get(self.next.text, self._transition)(found)
        self.expect(";")

    def _alphabet(self, found: _Declarations) -> None:
        token = self.take()
        if found.alphabet:
            self.fail("there is another alphabet", token)
        self.expect("[")
        symbols = [self._symbol()]
        while self.accept(","):
            symbol = self._symbol()
            if symbol in symbols:
                self.fail(f"the symbol '{symbol}' stands twice in the alphabet")
            symbols.append(symbol)
        self.expect("]")
        found.alphabet = tuple(symbols)

    def _symbol(self) -> str:
        token = self.next
        if token.kind == QUOTED:
            return self.take().text[1]
        if len(token.text) != 1 or token.text in ",]":
            self.expected("a symbol of one character (a comma or a bracket in quotes: ',')")
        return self.take().text

    def _border(self, found: _Declarations) -> None:
        kind = self.take()
        token = self.next
        name = self._full_name("the name of a state")
        if kind.text in found.ends:
            self.fail(f"there is another {kind.text}", kind)
        found.ends[kind.text] = name
        self._add_state(found, State(name), token)

    def _state(self, found: _Declarations) -> None:
        self.take()
        token = self.next
        name = self._full_name("the name of a state")
        self._add_state(found, State(name, self._emitted()), token)

    def _add_state(self, found: _Declarations, state: State, token: Token) -> None:
        if state.name in found.states:
            self.fail(f"there is another state '{state.name}'", token)
        found.states[state.name] = (state, token)

    def _emission(self, found: _Declarations) -> None:
        self.take()
        token = self.next
        name = self._full_name("the name of an emission")
        self.expect("=")
        self.expect("[")
        values = [self._probability()]
        while self.accept(","):
            values.append(self._probability())
        self.expect("]")
        if name in found.emissions:
            self.fail(f"there is another emission '{name}'", token)
        found.emissions[name] = (tuple(values), token)

    def _transition(self, found: _Declarations) -> None:
        token = self.next
        source = self._full_name("a declaration")
        self.expect("->")
        target = self._full_name("the name of a state")
        step = Transition(source, target, self._probability(), self._emitted())
        found.transitions.append((step, token))

    def _emitted(self) -> str | None:
        return self._full_name("the name of an emission") if self.accept("emits") else None

    def _repetition(self, found: _Declarations) -> None:
        begin = self.take()
        variable = self.name("a variable")
        if variable.text in self._variables:
            self.fail(f"'{variable.text}' is counted already", variable)
        if len(self._variables) == _MAX_NESTED:
            self.fail(f"more than {_MAX_NESTED} 'for' inside each other", begin)
        self.expect("in")
        first = self._index()
        self.expect("..")
        last = self._index()
        if last < first:
            self.fail(f"{first}..{last} has no number", begin)
        if last - first >= MAX_DECLARATIONS:
            self.fail(f"more than {MAX_DECLARATIONS:,} declarations", begin)
        self.expect("{")
        body = self.at
        for number in range(first, last + 1):
            self.at = body
            self._variables[variable.text] = number
            # An empty body counts, too: it may stand in others.
            found.count += 1
            if found.count > MAX_DECLARATIONS:
                self.fail(f"more than {MAX_DECLARATIONS:,} declarations", begin)
            while not self.accept("}"):
                self._declaration(found)
        del self._variables[variable.text]

    def _full_name(self, what: str) -> str:
        name = self.name(what).text
        if not self.accept("["):
            return name
        number = self._index()
        self.expect("]")
        return f"{name}[{number}]"

    def _index(self) -> int:
        token = self.next
        if token.kind != NAME:
            return self.integer()
        if token.text not in self._variables:
            self.expected("an integer or the variable of a 'for'")
        number = self._variables[self.take().text]
        if self.accept("+"):
            return number + self.integer()
        return number - self.integer() if self.accept("-") else number

    def _probability(self) -> float:
        token = self.next
        value = self._factor()
        while self.next.text in ("*", "/") and self.next.kind != QUOTED:
            divides = self.take().text == "/"
            factor = self._factor()
            if divides and factor == 0:
                self.fail("a division by 0", token)
            value = value / factor if divides else value * factor
        if not math.isfinite(value):
            self.fail("a probability that is not finite", token)
        return value

    def _factor(self) -> float:
        if self.accept("exp"):
            self.expect("(")
            sign = -1.0 if self.accept("-") else 1.0
            power = sign * self._number()
            self.expect(")")
            return math.exp(power) if power < 709 else math.inf
        return self._number()

    def _number(self) -> float:
        if self.next.kind != NUMBER:
            self.expected("a probability")
        return float(self.take().text)

    def _checked(self, name: Token, found: _Declarations) -> Model:
        """Return a model, or raise an error about a missing or contradictory declaration."""
        if not found.alphabet:
            self.fail(f"the model '{name.text}' has no alphabet", name)
        if "startstate" not in found.ends:
            self.fail(f"the model '{name.text}' has no startstate", name)
        for emission, (values, token) in found.emissions.items():
            if len(values) != len(found.alphabet):
                numbers = f"{len(values)} probabilities for {len(found.alphabet)} symbols"
                self.fail(f"the emission '{emission}' has {numbers}", token)
        for state, token in found.states.values():
            self._check_emission(found, state.emission, token)
        for step, token in found.transitions:
            for end in (step.source, step.target):
                if end not in found.states:
                    self.fail(f"there is no state '{end}'", token)
            if step.source == found.ends.get("endstate"):
                self.fail("a transition from the endstate, where every path ends", token)
            self._check_emission(found, step.emission, token)
            if step.emission is not None and found.states[step.target][0].emission is not None:
                both = f"the transition and its target '{step.target}' both emit"
                self.fail(both, token)
        return Model(
            name.text,
            found.alphabet,
            tuple(state for state, _ in found.states.values()),
            found.ends["startstate"],
            found.ends.get("endstate"),
            {emission: values for emission, (values, _) in found.emissions.items()},
            tuple(step for step, _ in found.transitions),
            tuple(self._unusual_sums(found)),
        )

    def _unusual_sums(self, found: _Declarations) -> Iterator[tuple[RowSum, int]]:
        """Yield the rows that do not sum to 1, and their lines; refuse much larger sums."""
        rows = {
            f"probabilities of {name}": (list(values), token)
            for name, (values, token) in found.emissions.items()
        }
        for step, token in found.transitions:
            values, _ = rows.setdefault(f"transitions of {step.source}", ([], token))
            values.append(step.probability)
        for row, (values, token) in rows.items():
            total = RowSum(row, sum(values))
            if total.is_refused:
                self.fail(f"{total}, which is more than 1", token)
            if total.is_unusual:
                yield total, token.line

    def _check_emission(self, found: _Declarations, name: str | None, token: Token) -> None:
        if name is not None and name not in found.emissions:
            self.fail(f"there is no emission '{name}'", token)

    # The main part.

    def _main(self) -> list[Printed]:
        self.expect("(")
        self.expect(")")
        self.expect("{")
        models: dict[str, str] = {}
        tables: dict[str, tuple[str, Algorithm]] = {}
        printed = []
        while not self.accept("}"):
            if self.accept("print"):
                printed.append(self._print(models, tables))
            elif self.next.text in _ALGORITHMS and self.after.text == "(":
                self._calls.append(self._table(models, tables))
            else:
                token = self.name("a statement or '}'")
                if token.text in models or token.text in tables:
                    self.fail(f"'{token.text}' has a value already", token)
                self.expect("=")
                if self._begins_call(tables):
                    tables[token.text] = self._table(models, tables)
                else:
                    models[token.text] = self._instance(models)
            # The paper leaves the semicolon out once.
            self.accept(";")
        return printed

    def _begins_call(self, tables: dict[str, tuple[str, Algorithm]]) -> bool:
        word = self.next.text
        return word in tables or word in _ALGORITHMS

    def _instance(self, models: dict[str, str]) -> str:
        if self.accept("new"):
            token = self.name("the name of a model")
            self._instances.append(token)
            self.expect("(")
            self.expect(")")
            return token.text
        if self.next.text not in models:
            self.expected("'new', a model, or viterbi, forward, backward or posterior")
        return models[self.take().text]

    def _table(
        self, models: dict[str, str], tables: dict[str, tuple[str, Algorithm]]
    ) -> tuple[str, Algorithm]:
        token = self.name("a table, or viterbi, forward, backward or posterior")
        if token.text in tables:
            return tables[token.text]
        if token.text not in _ALGORITHMS:
            self.fail(f"there is no table '{token.text}' before", token)
        self.expect("(")
        model = self._instance(models)
        self.expect(")")
        return model, Algorithm(token.text)

    def _print(self, models: dict[str, str], tables: dict[str, tuple[str, Algorithm]]) -> Printed:
        begin = self.at
        model, algorithm = self._table(models, tables)
        self.expect(".")
        token = self.name("an attribute")
        name = token.text + ("&" if self.accept("&") else "")
        if name not in {one.value for one in ATTRIBUTES[algorithm]}:
            known = ", ".join(one.value for one in ATTRIBUTES[algorithm])
            self.fail(f"{algorithm.value} has {known}, and no '{name}'", token)
        words = [one.text for one in self._tokens[begin : self.at]]
        text = "".join(f"{word} " if word == "new" else word for word in words)
        return Printed(text, model, algorithm, Attribute(name))
