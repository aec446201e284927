"""Check the words of a command line before click reads them.

click splits a word such as ``-maxmach`` into the options -m, -a and so on, and reports an error
about one of them; ``-out`` would even mean ``-o ut``. So this module first checks every word with
one dash that is longer than an option of one letter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import click

END_OF_OPTIONS: Final = "--"

_LEAST_LIKENESS: Final = 0.75


class Spellings:
    """The names of the options of one command, or of several."""

    def __init__(self, parameters: Iterable[click.Parameter], help_names: Iterable[str]) -> None:
        options = [one for one in parameters if isinstance(one, click.Option)]
        self.with_value = {name for one in options if not _is_flag(one) for name in one.opts}
        self.flags = {*help_names}
        for one in filter(_is_flag, options):
            self.flags.update(one.opts, one.secondary_opts)

    def with_others(self, others: Iterable[Spellings]) -> Spellings:
        """Return the names of these commands and of others; these keep their meaning."""
        found = Spellings((), self.flags)
        found.with_value = set(self.with_value)
        for one in others:
            found.with_value |= one.with_value - found.flags
            found.flags |= one.flags - found.with_value
        return found

    def __contains__(self, name: str) -> bool:
        return name in self.with_value or name in self.flags

    def knows(self, word: str) -> bool:
        """Return whether a word is one of these options, or several of one letter."""
        return word.partition("=")[0] in self or self._taken_apart(word) is not None

    def wants_next(self, word: str) -> bool:
        """Return whether the next word is the value of this option.

        True for ``-l``, ``--min-length`` and ``-bl``; False for ``-b``, ``-l20``,
        ``--min-length=20`` and for a word that is not an option.
        """
        if word in self:
            return word in self.with_value
        _, letter, attached = self._taken_apart(word) or ("", "", "")
        return bool(letter) and not attached

    def positions(self, words: Sequence[str]) -> Iterator[tuple[int, bool]]:
        """Yield the index of each option and file, and whether it is an option, up to ``--``."""
        is_value = False
        for position, word in enumerate(words):
            if is_value:
                is_value = False
            elif word == END_OF_OPTIONS:
                return
            elif word.startswith("-") and word != "-":
                is_value = self.wants_next(word)
                yield position, True
            else:
                yield position, False

    def refuse_unknown(self, words: Sequence[str]) -> None:
        """Refuse words with one dash that are neither an option nor several short ones.

        click itself checks options of one letter and words with two dashes.
        """
        for position, is_option in self.positions(words):
            word = words[position]
            name, equals, _ = word.partition("=")
            if not is_option or word.startswith("--"):
                continue
            if len(name) == 2 and equals and name in self.with_value:
                raise click.UsageError(f"{name} takes its value without '=': {name} VALUE")
            if len(name) == 2 or name in self:
                continue
            alike = self._alike(name)
            if not _are_meant(self._taken_apart(word), alike):
                hint = f"; did you mean {alike}?" if alike else ""
                raise click.UsageError(f"No such option '{word}'{hint}")

    def _taken_apart(self, word: str) -> tuple[str, str, str] | None:
        """Split a word into options of one letter; return None if it is not made of them.

        The three parts are the flags, then the letter of an option that takes a value, then its
        value, if that is in the same word. A part that is missing is empty.
        """
        if word.startswith("--"):
            return None
        for position, letter in enumerate(word[1:], start=1):
            if f"-{letter}" in self.with_value:
                return word[1:position], letter, word[position + 1 :]
            if f"-{letter}" not in self.flags:
                return None
        return word[1:], "", ""

    def _alike(self, name: str) -> str:
        """Return the option that a word with one dash probably means, or an empty text."""
        from difflib import get_close_matches

        bare = name[1:]
        if not bare.replace("-", "").isalpha():
            return ""
        # An option with one dash wins over the same name with two: the user wrote one dash.
        names = sorted({*self.with_value, *self.flags})
        known = {one.lstrip("-"): one for one in names if len(one) > 2}
        known.update({one[1:]: one for one in names if len(one) > 2 and one[1] != "-"})
        close = get_close_matches(bare, known, n=1, cutoff=_LEAST_LIKENESS)
        begun = [one for one in known if len(bare) > 2 and one.startswith(bare)]
        return next((known[one] for one in [*close, *begun]), "")


def _are_meant(short_options: tuple[str, str, str] | None, alike: str) -> bool:
    """Return whether a word means several short options, and not the long one that it resembles.

    '-bl20' and '-oresult.txt' mean short options; '-out' and '-no-progress' do not.
    """
    if short_options is None:
        return False
    flags, _, attached = short_options
    return not attached or attached[0].isdigit() or not (flags or alike)


def verb_meant(word: str, verbs: Iterable[str]) -> str | None:
    """Return the verb that a word probably means, unless the word names a file."""
    from difflib import get_close_matches

    if not word.isalpha() or os.path.lexists(word):
        return None
    instead = {name: name for name in verbs} | {"help": "--help", "version": "--version"}
    lowered = word.lower()
    close = get_close_matches(lowered, instead, n=1, cutoff=_LEAST_LIKENESS)
    begun = [name for name in instead if len(word) > 2 and name.startswith(lowered)]
    return next((instead[name] for name in [*close, *begun]), None)


def _is_flag(option: click.Option) -> bool:
    return bool(option.is_flag or option.count)
