"""The main job on the command line: find matches between queries and a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.main_group import MAIN_VERB, complete_reference
from mummergpu.cli.option_rules import (
    index_options,
    main_files,
    output_targets,
    run_options,
    sam_options,
    search_options,
    text_request,
)
from mummergpu.cli.option_types import MATCH_SECTIONS, Params, SectionedCommand, files, load
from mummergpu.cli.run_verb import COMPILATION, CommandRun

if TYPE_CHECKING:
    from mummergpu.pipeline.options import MatchOptions

_HELP: Final = """Report every maximal exact match between queries and a reference.

REFERENCE is a FASTA file, or an index made by 'mummergpu index'. QUERY files are FASTA, FASTQ, SAM,
BAM or CRAM. Files may be compressed with gzip, bgzip, bzip2, xz or zstd; they are recognised by
their content. '-' is standard input.

The output is that of MUMmer 3.23's 'mummer -n', with these differences: the default is -maxmatch
(mummer's is -mumreference), the rows of a query are ordered by query position, then by reference
position, the U of RNA is T, and -mum with -l 1 also reports a match of one base at the first base
of the reference."""

_EPILOG: Final = """Options may stand anywhere. The first word that is neither an option nor the
value of one is taken as a command if there is one of that name; write ./index for a file named
'index'. 'match' is the command that runs without a name.

\b
The steps of nucmer 3, which also joins the reference into one record:
  /usr/lib/mummer/prenuc a.fna > a.ntref
  mummergpu a.ntref b.fna --for nucmer | mgaps -l 65 -s 90 -d 5 -f .12 > gaps
  /usr/lib/mummer/postnuc -b 200 a.fna b.fna out < gaps   # makes out.delta

BASES and BYTES may end in k, M or G: 8M is 8 x 1024 x 1024.

Exit codes: 0 done, 1 failure, 2 wrong usage, 130 interrupted, 141 broken pipe."""


_WIDE: Final = 100
"""The letters of the longest summary of a command."""


class _MatchCommand(SectionedCommand):
    """The main job, whose verb may be left out."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage line without the verb."""
        formatter.write_usage(PROGRAM, " ".join(self.collect_usage_pieces(ctx)))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the other commands, with the beginning of their own help, and then the epilog."""
        group = ctx.find_root().command
        if isinstance(group, click.Group):
            others = [(name, one) for name, one in group.commands.items() if one is not self]
            with formatter.section("Other commands; each has its own --help"):
                formatter.write_dl(
                    [(f"{PROGRAM} {name}", one.get_short_help_str(_WIDE)) for name, one in others]
                )
        super().format_epilog(ctx, formatter)


def run_match(**params: Any) -> None:
    """Run the main job with the options of the command line, given by their parameter names."""
    inputs = [params["reference"], *params["query"]]
    run = CommandRun(params, inputs, main_files(params))
    options = _match_options(params, run.command)
    run.wake_device(lambda: load("pipeline.backend_choice:backend_of_search")(options))
    job = run.job("pipeline.match:run", "cluster.match_queries:run_match")
    with run.reported(options.search.uniqueness.value, COMPILATION) as (context, _):
        job(options, context)


match_command: Final = _MatchCommand(
    MAIN_VERB,
    callback=run_match,
    arguments=[
        click.Argument(["reference"], shell_complete=complete_reference),
        files("query", several=True),
    ],
    sections=MATCH_SECTIONS,
    help=_HELP,
    epilog=_EPILOG,
    options_metavar="[OPTIONS]",
)


def _match_options(params: Params, command: str) -> MatchOptions:
    # These import numpy, while a device starts.
    from mummergpu.drawing.picture import PictureStyle
    from mummergpu.pipeline.options import MatchOptions

    request = text_request(params)
    return MatchOptions(
        **run_options(params, command),
        query_paths=params["query"],
        paired=params["pair"],
        any_letters=params["any_letters"],
        outputs=output_targets(params),
        index=index_options(params),
        search=search_options(params, request.strands or "forward", request.mode or "all"),
        style=request.style,
        sam=sam_options(params),
        summary=params["multiqc"] is not None
        or (params["stats"] is not None and params["cluster"] is None),
        picture=params.get("picture") or PictureStyle(),
    )
