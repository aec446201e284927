"""The command line as a whole: its verbs, and the main job, which needs no verb."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click
from click_default_group import DefaultGroup

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.option_types import HELP_NAMES, SectionedCommand, complete_files
from mummergpu.cli.spellings import END_OF_OPTIONS, Spellings, verb_meant

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MAIN_VERB: Final = "match"

_VERB_MAY_FOLLOW: Final = f"{PROGRAM}.verb_may_follow"

MATCH_HELP: Final = """Report every maximal exact match between queries and a reference.

REFERENCE is a FASTA file, or an index of one, made by 'mummergpu index'. Each QUERY is a FASTA,
FASTQ, SAM, BAM or CRAM file. Files may be compressed with gzip, bgzip, bzip2, xz or zstd; they are
recognised by their content, not by their names. '-' is standard input.

The output is that of MUMmer 3.23's 'mummer -n', with these differences: all matches are
reported unless another mode is chosen (mummer's default is -mumreference), the rows of a
query are ordered by query position, then by reference position, the U of RNA is T, and -mum
with -l 1 also reports a match of one base at the first base of the reference."""

MATCH_EPILOG: Final = """\b
Other commands; each has its own --help:
  mummergpu map          map reads to a reference, to SAM, BAM, CRAM or PAF
  mummergpu align        align genomes, to .delta, PAF, BAM or VCF
  mummergpu hmmsearch    search profile HMMs among proteins or translated DNA
  mummergpu hmmscan      search proteins among profile HMMs
  mummergpu hmm          compute hidden Markov models that a program describes
  mummergpu index        make an index file to use in place of a reference
  mummergpu workload     make a reference and reads to try mummergpu on
  mummergpu plot         draw the matches of two genomes
  mummergpu sweep        measure every combination of the data policies
  mummergpu report       show what sweeps found, on one page
  mummergpu doctor       show what this machine has for mummergpu
  mummergpu warmup       compile now what later runs need
  mummergpu nucmer-shim  take the place of MUMmer's 'nucmer'
  mummergpu completion   print a completion script for bash, zsh or fish
  mummergpu match        the same as mummergpu without a command

Options may stand anywhere. The first word that is neither an option nor an option's value is
the command, if there is one of that name; for a file named 'index', write ./index instead.

\b
The steps of nucmer 3, which also joins the reference into one record:
  /usr/lib/mummer/prenuc a.fna > a.ntref
  mummergpu a.ntref b.fna --for nucmer | mgaps -l 65 -s 90 -d 5 -f .12 > gaps
  /usr/lib/mummer/postnuc -b 200 a.fna b.fna out < gaps   # makes out.delta

BASES and BYTES may end in k, M or G: 8M is 8 x 1024 x 1024.

Exit codes: 0 done, 1 failure, 2 wrong usage, 130 interrupted, 141 nobody reads the output."""


class Verbs(MutableMapping[str, click.Command]):
    """Commands by their names; one is imported when it is asked for.

    Parameters
    ----------
    places : mapping of str to str
        The module of `mummergpu.cli` that has a command, a colon, and its name there.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._places[name].partition(":")
            command = getattr(import_module(f"mummergpu.cli.{module}"), attribute)
            assert isinstance(command, click.Command)
            self._loaded[name] = command
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._places[name] = ""
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class MatchCommand(SectionedCommand):
    """The main job, whose verb may be left out."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage line without the verb, which may be left out."""
        formatter.write_usage(PROGRAM, " ".join(self.collect_usage_pieces(ctx)))


class VerbatimCommand(click.Command):
    """A command whose words are another program's, so that click leaves them as they are."""

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
        """Return what options mean before the verb is known: first what they mean in the main job.

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
            # Most runs name files first, and start without this module.
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
            # A run that is spelt well starts without this module.
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
