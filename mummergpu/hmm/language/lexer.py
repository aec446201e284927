"""The words of a program in the language of hidden Markov models, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mummergpu.errors import ModelError

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


def tokens_of(text: str, path: str) -> list[Token]:
    """Return the words of a program, and `END`; a byte that is in no word is an error."""
    return list(_tokens(text, path))


def _tokens(text: str, path: str) -> Iterator[Token]:
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
