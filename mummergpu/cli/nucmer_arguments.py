"""The command line of MUMmer's ``nucmer``, of 3.23 and of 4: what it means, what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from mummergpu.errors import MummerUsageError
from mummergpu.runtime.frozen import frozen

DEFAULT_PREFIX: Final = "out"

_MODES: Final = {
    "mum": "mum",
    "mumcand": "mumreference",
    "mumreference": "mumreference",
    "maxmatch": "maxmatch",
}
"""The mode that each spelling stands for."""

_FLAGS: Final = {
    **dict.fromkeys(_MODES, ""),
    "forward": "f",
    "reverse": "r",
    "coords": "o",
    "help": "h",
    "full-help": "",
    "usage": "U",
    "version": "V",
    "depend": "",
    "large": "",
    "genome": "G",
}
"""Options without a value, and their letters."""

_SWITCHES: Final = ("banded", "delta", "extend", "optimize", "simplify")
"""Options of 3.23 that ``no`` before them turns off."""

_VALUES: Final = {
    "breaklen": "b",
    "mincluster": "c",
    "diagdiff": "D",
    "diagfactor": "d",
    "maxgap": "g",
    "minmatch": "l",
    "minalign": "L",
    "threads": "t",
    "prefix": "p",
    "max-chunk": "M",
    "sam-short": "",
    "sam-long": "",
    "save": "",
    "load": "",
    "batch": "",
}
"""Options with a value, and their letters."""

_FRACTIONS: Final = ("diagfactor",)
_TEXTS: Final = ("prefix", "delta", "sam-short", "sam-long", "save", "load")

_NEGATION: Final = "no"
_DELTA: Final = "delta"
_SAM_FILES: Final = ("sam-short", "sam-long")

_NOT_DONE: Final = {
    "banded": "alignments are never limited to a band about a diagonal",
    "no-optimize": "alignments end where their score is best, also at the end of a sequence",
    "no-delta": "the .delta is what it is asked for",
    "save": "it has no suffix array to save; 'mummergpu index' makes an index file",
    "load": "it reads no suffix array; name an index file in place of the reference",
    "batch": "the reference is always searched as a whole",
}
"""Options that would change the result in a way that cannot be had, and why."""

_LETTERS: Final = {letter: name for name, letter in (*_FLAGS.items(), *_VALUES.items()) if letter}

_NUMBER_OPTIONS: Final = {
    "breaklen": "-b",
    "mincluster": "-c",
    "diagdiff": "-D",
    "diagfactor": "-d",
    "maxgap": "-g",
    "minmatch": "-l",
    "minalign": "--min-alignment-length",
    "threads": "-t",
}
"""The options of ``mummergpu align`` for those of nucmer that have a number."""


@frozen
class NucmerCommand:
    """A command line of ``nucmer``.

    Attributes
    ----------
    reference, query : str
        The files.
    output : str
        The .delta, or the SAM.
    coordinates : str
        The file for the text of show-coords; empty for none.
    mode : str
        ``mum``, ``mumreference`` or ``maxmatch``.
    strand : str
        ``forward``, ``reverse``, or empty for both.
    numbers : tuple of str
        The options with numbers as words of ``mummergpu align``.
    extend, simplify : bool
        Whether alignments go beyond clusters, and whether those inside others are left out.
    sam : str
        ``short`` or ``long`` for SAM without the bases of the queries or with them; empty for a
        .delta.
    """

    reference: str
    query: str
    output: str
    coordinates: str = ""
    mode: str = "mumreference"
    strand: str = ""
    numbers: tuple[str, ...] = ()
    extend: bool = True
    simplify: bool = True
    sam: str = ""


@dataclass
class _Given:
    """The words of a command line, sorted.

    Attributes
    ----------
    flags : dict of str to bool
        The options without a value; False for those that are turned off.
    values : dict of str to str
        The options with a value; the last one counts.
    files : list of str
        The other words.
    """

    flags: dict[str, bool] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def says(self, name: str) -> bool:
        return self.flags.get(name, False)


def parse_nucmer_arguments(words: Sequence[str]) -> NucmerCommand | str:
    """Return what a command line of ``nucmer`` asks for: ``help`` or the like, or alignments.

    Options may have one dash or two, may be shortened after two, and may follow the files. The
    option ``--delta`` stands alone in 3.23, and names a file in 4: so it does if there is an ``=``
    after it, or if the word after it is not one of two files.
    """
    given = _sorted_words(words, delta_has_value=False)
    if given.says(_DELTA) and len(given.files) != 2:
        given = _sorted_words(words, delta_has_value=True)
    for names in (("help", "full-help", "usage"), ("version",), ("depend",)):
        if any(given.says(name) for name in names):
            return names[0]
    _refuse_what_is_not_done(given)
    modes = {mode: name for name, mode in _MODES.items() if given.says(name)}
    if len(modes) > 1:
        raise MummerUsageError(f"--{' and --'.join(sorted(modes))} exclude each other")
    if _DELTA in given.values and "prefix" in given.values:
        raise MummerUsageError("--delta=FILE and --prefix exclude each other")
    sam_option = _sam_option(given)
    if len(given.files) != 2:
        raise MummerUsageError(
            f"needs the file of a reference and the file of a query, and {len(given.files)} "
            "are given"
        )
    prefix = given.values.get("prefix", DEFAULT_PREFIX)
    both = given.says("forward") == given.says("reverse")
    reference, query = given.files
    return NucmerCommand(
        reference,
        query,
        output=given.values.get(sam_option or _DELTA, f"{prefix}.delta"),
        coordinates=f"{prefix}.coords" if given.says("coords") else "",
        mode=next(iter(modes), "mumreference"),
        strand="" if both else "forward" if given.says("forward") else "reverse",
        numbers=_number_words(given),
        extend=given.flags.get("extend", True),
        simplify=given.flags.get("simplify", True),
        sam=sam_option.removeprefix("sam-"),
    )


def _sam_option(given: _Given) -> str:
    """Return the option that asks for SAM, or nothing."""
    asked = [name for name in _SAM_FILES if name in given.values]
    if not asked:
        return ""
    others = [*asked[1:], *([_DELTA] if _DELTA in given.values else [])]
    others += ["coords"] * given.says("coords")
    if others:
        raise MummerUsageError(f"--{asked[0]} and --{others[0]} exclude each other")
    return asked[0]


def _sorted_words(words: Sequence[str], delta_has_value: bool) -> _Given:
    given = _Given()
    waiting = list(words)

    def value_of(option: str) -> str:
        if not waiting:
            raise MummerUsageError(f"option {option} needs a value")
        return waiting.pop(0)

    while waiting:
        word = waiting.pop(0)
        if word == "--":
            given.files += waiting
            break
        if not word.startswith("-") or word == "-":
            given.files.append(word)
            continue
        option, is_set, text = word.partition("=")
        name = _long_name(option)
        if name is None:
            _take_letters(word, given, value_of)
        elif name in _VALUES or (name == _DELTA and (is_set or delta_has_value)):
            given.values[name] = text if is_set else value_of(option)
        elif is_set:
            raise MummerUsageError(f"option {option} takes no value")
        else:
            positive = name.removeprefix(f"{_NEGATION}-")
            given.flags[positive] = positive == name
    return given


def _long_name(option: str) -> str | None:
    """Return the name of a long option, ``no-`` before it if it is turned off; None for letters."""
    names = {name: name for name in (*_FLAGS, *_VALUES, *_SWITCHES)}
    names |= {f"{_NEGATION}{name}": f"{_NEGATION}-{name}" for name in _SWITCHES}
    names |= {f"{_NEGATION}-{name}": f"{_NEGATION}-{name}" for name in _SWITCHES}
    typed = option.lstrip("-")
    if typed in names:
        return names[typed]
    if not option.startswith("--") and typed[:1] in _LETTERS:
        return None
    meant = {meaning for name, meaning in names.items() if typed and name.startswith(typed)}
    if len(meant) > 1:
        raise MummerUsageError(f"option {option} could be --{' or --'.join(sorted(meant))}")
    if not meant:
        raise MummerUsageError(f"unknown option {option}")
    return meant.pop()


def _take_letters(word: str, given: _Given, value_of: Callable[[str], str]) -> None:
    """Take a word of letters: flags, and at last an option with the value that follows it."""
    for place, letter in enumerate(word[1:], start=1):
        name = _LETTERS.get(letter)
        if name is None:
            raise MummerUsageError(f"unknown option {word}")
        if name in _VALUES:
            rest = word[place + 1 :].removeprefix("=")
            given.values[name] = rest or value_of(f"-{letter}")
            return
        given.flags[name] = True


def _refuse_what_is_not_done(given: _Given) -> None:
    for name, reason in _NOT_DONE.items():
        positive = name.removeprefix(f"{_NEGATION}-")
        is_asked = given.flags.get(positive) is (positive == name) or name in given.values
        if is_asked:
            option = f"--{name}" if positive == name else f"--{_NEGATION}{positive}"
            raise MummerUsageError(f"mummergpu cannot do what {option} asks for: {reason}")


def _number_words(given: _Given) -> tuple[str, ...]:
    """Return the options with numbers as words of ``mummergpu align``."""
    words: list[str] = []
    for name, text in given.values.items():
        if name in _TEXTS:
            continue
        try:
            number = float(text) if name in _FRACTIONS else int(text)
        except ValueError:
            kind = "number" if name in _FRACTIONS else "whole number"
            raise MummerUsageError(f"--{name}: '{text}' is not a {kind}") from None
        if not number >= 0:
            raise MummerUsageError(f"--{name}: {text} is less than 0")
        if name in _NUMBER_OPTIONS:
            words += [_NUMBER_OPTIONS[name], str(number)]
    return tuple(words)
