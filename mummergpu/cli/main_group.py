"""The command line as a whole: its verbs, and the main job, which needs no verb.

click splits a word such as ``-maxmach`` into the options -m, -a and so on, and reports an error
about one of them; ``-out`` would even mean ``-o ut``. So every word with one dash that is longer
than an option of one letter is checked before click reads it.
"""

from __future__ import annotations

import os
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from click_default_group import DefaultGroup

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.option_types import HELP_NAMES, complete_files, load

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MAIN_VERB: Final = "match"

_VERB_MAY_FOLLOW: Final = f"{PROGRAM}.verb_may_follow"

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
        """Return the names of these commands and of others; these take precedence."""
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
        """Return the option that a word with one dash resembles, or an empty text."""
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


class Verbs(UserDict[str, click.Command]):
    """Commands by name, each imported when it is looked up.

    `places` are their modules in `mummergpu.cli`, and their names there.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self.data: dict[str, Any] = dict(places)

    def __getitem__(self, name: str) -> click.Command:
        if isinstance(command := self.data[name], str):
            command = self.data[name] = load(f"cli.{command}")
        assert isinstance(command, click.Command)
        return command


class VerbatimCommand(click.Command):
    """A command with the syntax of another program, whose arguments click does not parse."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep all words for the callback; show the help if ``--help`` is the only one."""
        if args == ["--help"] and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        ctx.params["words"] = tuple(args)
        return []


class MainGroup(DefaultGroup):  # type: ignore[misc]
    """The group of all commands; the main job runs if no verb is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the verb to the front, or add that of the main job if there is none.

        Options may come before the verb. The first word that is neither an option nor the value
        of an option is the verb, if there is a verb of that name.
        """
        if args:
            args[:] = self._in_order(ctx, args)
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def _in_order(self, ctx: click.Context, args: list[str]) -> list[str]:
        if isinstance(self.commands.get(args[0]), VerbatimCommand):
            return args
        main = Spellings(self.commands[MAIN_VERB].params, HELP_NAMES)
        every = self._spellings_before_verb(main, args)
        words = args
        first = next(
            (position for position, is_option in every.positions(words) if not is_option), None
        )
        ctx.meta[_VERB_MAY_FOLLOW] = first is None and END_OF_OPTIONS not in words
        verb = MAIN_VERB
        if first is not None and "--version" not in words[:first]:
            if words[first] in self.commands:
                verb = words[first]
                words = [*words[:first], *words[first + 1 :]]
            elif not ctx.resilient_parsing:
                self._refuse_misspelt_verb(words[first])
        if not ctx.resilient_parsing:
            command = self.commands[verb]
            spellings = Spellings(command.params, HELP_NAMES)
            try:
                _refuse_removed_options(verb, words, spellings)
                spellings.refuse_unknown(words)
            except click.UsageError as error:
                # The message refers to the help of this command.
                error.ctx = click.Context(command, parent=ctx, info_name=verb)
                raise
        return [verb, *words]

    def _spellings_before_verb(self, main: Spellings, words: Sequence[str]) -> Spellings:
        """Return the options that may come before the verb; those of the main job take precedence.

        The other commands are imported only if one of their options comes first.
        """
        for position, is_option in main.positions(words):
            if not is_option:
                return main
            if not main.knows(words[position]):
                others = (
                    Spellings(self.commands[name].params, HELP_NAMES) for name in self.commands
                )
                return main.with_others(others)
        return main

    def _refuse_misspelt_verb(self, word: str) -> None:
        if word.replace("-", "").isalpha() and not os.path.lexists(word):
            # Imported here: most runs name files first, and do without this module.
            from mummergpu.cli.removed_options import refuse_removed_command

            refuse_removed_command(word)
        meant = verb_meant(word, self.commands)
        if meant:
            text = f"'{word}' is neither a file nor a command; did you mean '{meant}'?"
            raise click.UsageError(text)

    def verbs(self, incomplete: str) -> list[CompletionItem[str]]:
        """Return the verbs that begin with the typed letters."""
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=command.get_short_help_str())
            for name, command in self.commands.items()
            if name.startswith(incomplete)
        ]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return completions of the first word: an option of the main job, a verb or a file."""
        command: click.Command = self.commands[MAIN_VERB]
        if incomplete.startswith("-"):
            inner = click.Context(command, parent=ctx, **command.context_settings)
            return command.shell_complete(inner, incomplete)
        # click's script for bash forgets the words before a file.
        return complete_files(ctx, command.params[0], incomplete) + self.verbs(incomplete)


def _refuse_removed_options(verb: str, words: Sequence[str], spellings: Spellings) -> None:
    for position, is_option in spellings.positions(words):
        if is_option and not spellings.knows(words[position]):
            # Imported here: a valid command line does without this module.
            from mummergpu.cli.removed_options import refuse_removed_option

            refuse_removed_option(verb, words[position])


def complete_reference(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Let the shell complete the reference of the main job, or a verb in its place."""
    files = complete_files(context, parameter, incomplete)
    group = context.find_root().command
    if isinstance(group, MainGroup) and context.meta.get(_VERB_MAY_FOLLOW):
        return files + group.verbs(incomplete)
    return files
