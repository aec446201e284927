"""Writes models as programs that `parser` reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from mummergpu.errors import ModelError
from mummergpu.hmm.language.program import Model

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\[[0-9]{1,9}\])?")
_WORDS: Final = frozenset({"alphabet", "state", "startstate", "endstate", "emission", "for"})
"""A declaration cannot begin with a state of these names."""


def program_text(model: Model, statements: Iterable[str] = ()) -> str:
    """Return a program with a model, and the statements of its ``main`` if there are any.

    Numbers have all their digits, so that the program's model is the same. `ModelError` is raised
    if the language cannot have a name, a symbol or a probability of the model.
    """
    names = [model.name, *model.emissions, *(state.name for state in model.states)]
    for name in names:
        if not _NAME.fullmatch(name) or name in _WORDS:
            raise ModelError(f"'{name}' is no name in the language", model.name)
    wrong = [one for one in model.alphabet if len(one) != 1 or not " " <= one <= "~"]
    if wrong:
        raise ModelError(f"'{wrong[0]}' is no symbol in the language", model.name)
    main = [f"  {statement};" for statement in statements]
    end = ["main() {", *main, "}"] if main else []
    return "\n".join([*_lines(model), *end, ""])


def _lines(model: Model) -> Iterator[str]:
    symbols = (one if one.isalnum() else f"'{one}'" for one in model.alphabet)
    yield f"hmm {model.name} {{"
    yield f"  alphabet [{', '.join(symbols)}];"
    yield f"  startstate {model.start};"
    if model.end is not None:
        yield f"  endstate {model.end};"
    for name, row in model.emissions.items():
        yield f"  emission {name} = [{', '.join(map(repr, row))}];"
    for state in model.states:
        if state.name not in (model.start, model.end):
            yield f"  state {state.name}{_emits(state.emission)};"
    for step in model.transitions:
        emits = _emits(step.emission)
        yield f"  {step.source} -> {step.target} {step.probability!r}{emits};"
    yield "}"


def _emits(emission: str | None) -> str:
    return "" if emission is None else f" emits {emission}"
