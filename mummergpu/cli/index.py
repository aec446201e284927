"""The command ``index``: make an index file, or show what an index file holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.messages import (
    RunWords,
    announce_compilation,
    progress_shown,
    tell_cache_trouble,
)
from mummergpu.cli.option_names import WordedCommand
from mummergpu.cli.option_rules import refuse_clashing_files, refuse_exclusive
from mummergpu.cli.option_types import (
    HELP_OPTIONS,
    MAIN_OPTIONS,
    MESSAGE_OPTIONS,
    complete_files,
)
from mummergpu.index.tree.policy import LETTERS

if TYPE_CHECKING:
    from mummergpu.index.options import IndexOptions
    from mummergpu.pipeline.options import BuildOptions
    from mummergpu.runtime.progress import Messages

_MOST_USED: Final = "reads"

_SHARED: Final = (
    *("any_letters", "search", "page_size", "address_bits", "max_memory", "threads"),
    *("policy", *LETTERS),
)


@click.command(
    "index",
    cls=WordedCommand,
    context_settings=HELP_OPTIONS,
    params=[
        click.Argument(["reference"], metavar="FILE", shell_complete=complete_files),
        click.Argument(
            ["compared"], metavar="[REFERENCE]", required=False, shell_complete=complete_files
        ),
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            shell_complete=complete_files,
            help="Write the index to FILE.",
        ),
        click.Option(
            ["-l", "--min-length", "min_length"],
            callback=MAIN_OPTIONS["min_length"].callback,
            metavar="N",
            default="20",
            show_default=True,
            help="Make the index for matches of at least N bases.",
        ),
        click.Option(
            ["--for", "index_for"],
            type=click.Choice(["reads", "genomes", "memory"]),
            help="Make an index of k-mers that is fastest for many reads, or for queries about as "
            "long as the reference, or one that is small and up to three times as slow.  "
            "[default: reads]",
        ),
        click.Option(
            ["--circular"],
            metavar="NAME",
            multiple=True,
            help="This record is circular: 'mummergpu map' takes the index, and treats it so. May "
            "be given several times; 'all' for all records.",
        ),
        *(MAIN_OPTIONS[name] for name in _SHARED),
        click.Option(["--info"], is_flag=True, help="Show what the index FILE holds."),
        click.Option(
            ["--json", "as_json"],
            is_flag=True,
            help="With --info: show it as one JSON object, with the names and lengths of records.",
        ),
        click.Option(
            ["--check"],
            is_flag=True,
            help="Read all of the index FILE, and say whether it is as it was written, and "
            "whether it is of REFERENCE if that is given.",
        ),
        *MESSAGE_OPTIONS,
    ],
)
def index(**params: Any) -> None:
    """Make an index of a reference, or show what an index holds.

    FILE is a FASTA file, or with --info and --check an index; --check takes a FASTA file as
    REFERENCE, too. An index takes the place of its reference, in 'mummergpu INDEX QUERY...':
    nothing is built again, and processes that use it at the same time share its memory.

    An index of k-mers (--search kmer, the default) serves every -l from the one given here on, and
    some shorter ones, which --info shows. An index of suffix trees serves every -l, and is fastest
    up to the -l given here.
    """
    refuse_exclusive(params)
    compared = params.pop("compared")
    if compared is not None and not params["check"]:
        raise click.UsageError(f"Got unexpected extra argument ({compared})")
    if params["as_json"] and (params["check"] or not params["info"]):
        raise click.UsageError("--json goes with --info alone")
    if params["info"] or params["check"]:
        if params["output"] is not None:
            raise click.UsageError("-o makes an index; --info and --check read one")
        _tell(params, compared)
        return
    if params["output"] is None:
        raise click.UsageError("Missing option '-o' / '--output'")
    from mummergpu.cli.index_rules import index_options
    from mummergpu.pipeline.options import BuildOptions

    options = _with_use(index_options(params), params["index_for"])
    refuse_clashing_files([params["reference"]], {"--output": params["output"]})

    build = BuildOptions(
        *(params["reference"], params["output"], params["threads"], options),
        *(params["any_letters"], params["circular"]),
    )
    hidden = params["quiet"] or params["no_progress"]
    with progress_shown(hidden, params["verbose"]) as progress:
        _make(build, progress, params["verbose"], params["quiet"])


def _with_use(options: IndexOptions, index_for: str | None) -> IndexOptions:
    """Return the options of an index that is kept, with what it is for."""
    from mummergpu.index.options import KmerOptions

    if isinstance(options.kind, KmerOptions):
        return replace(options, kind=replace(options.kind, purpose=index_for or _MOST_USED))
    if index_for is not None:
        raise click.UsageError("--for goes with an index of k-mers; trees have none")
    return options


def _tell(params: dict[str, Any], compared: str | None) -> None:
    """Print what an index file holds, or that it is undamaged, or both."""
    from mummergpu.cli.index_report import checked, described, described_as_json

    path = params["reference"]
    if params["as_json"]:
        click.echo(described_as_json(path))
    elif params["info"]:
        for line in described(path):
            click.echo(line)
    if params["check"]:
        click.echo(checked(path, compared, params["threads"]))


def _make(options: BuildOptions, progress: Messages, verbose: bool, quiet: bool) -> None:
    from mummergpu.pipeline.build_index import make_index
    from mummergpu.runtime.stats import Stats

    if not quiet:
        announce_compilation()
    words, stats = RunWords(progress, verbose, quiet), Stats()
    tell_cache_trouble(words.notice)
    make_index(options, words.context(options.threads, stats))
    for line in stats.summary():
        words.notice(line)
