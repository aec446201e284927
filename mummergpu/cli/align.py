"""The command ``align``: align genomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from mummergpu.cli.format_options import main_files, main_targets
from mummergpu.cli.option_names import written
from mummergpu.cli.option_rules import Params, refuse_exclusive, run_options, strands_of
from mummergpu.cli.option_types import (
    HELP_OPTIONS,
    INFORMATION,
    INPUT_OPTIONS,
    MACHINE_OPTIONS,
    MAIN_OPTIONS,
    MESSAGE_OPTIONS,
    SectionedCommand,
    Sections,
    complete_files,
    flag,
)
from mummergpu.cli.run_verb import CommandRun, on_cluster
from mummergpu.errors import OptionError
from mummergpu.output.formats import RowKind, names_of
from mummergpu.viterbi.recurrence.model import AlignmentMethod

if TYPE_CHECKING:
    from mummergpu.pipeline.align_options import AlignOptions

_CALLED: Final = {
    **dict.fromkeys(("mum", "mumreference", "maxmatch"), "mode"),
    "no_extend": "extend",
}
"""The parameters in Python that some options stand for."""


def _number(names: str, default: int, text: str) -> click.Option:
    return click.Option(
        names.split(),
        type=int,
        metavar="N",
        default=default,
        show_default=True,
        help=text,
    )


def _share(names: str, text: str, default: float = 0.0) -> click.Option:
    return click.Option(
        names.split(),
        type=float,
        metavar="X",
        default=default,
        show_default=True,
        help=text,
    )


ALIGN_ARGUMENTS: Final = [
    click.Argument(["reference"], shell_complete=complete_files),
    click.Argument(["query"], nargs=-1, required=True, shell_complete=complete_files),
]

ALIGN_SECTIONS: Final[Sections] = {
    "Matches that alignments begin with": [
        flag(
            "-mum --mum mum", "Begin with matches that are unique in the reference and the query."
        ),
        flag(
            "-mumreference --mumreference mumreference",
            "Begin with matches that are unique in the reference.  [default]",
        ),
        flag("-maxmatch --maxmatch maxmatch", "Begin with all matches."),
        _number("-l --minmatch min_length", 20, "Begin with matches of at least N bases."),
        flag("-f --forward forward", "Align only the forward strand of the queries."),
        flag("-r --reverse reverse", "Align only the reverse complement of the queries."),
    ],
    "Alignment": [
        click.Option(
            ["--method"],
            type=click.Choice([method.value for method in AlignmentMethod]),
            default=AlignmentMethod.TILE.value,
            show_default=True,
            help="tile: matches cut the matrix of two sequences into tiles. wavefront, streaming: "
            "each query is aligned with each record of the reference from end to end, with the "
            "whole matrix, for short sequences with few matches; streaming keeps it in the memory "
            "of the host beside a GPU, or in a temporary file.",
        ),
        _number("-c --mincluster min_cluster", 65, "The fewest matching bases of a cluster."),
        _number("-g --maxgap max_gap", 90, "The most bases between two matches of a cluster."),
        _number(
            "-D --diagdiff diagonal_difference",
            5,
            "How far apart the diagonals of two neighbouring matches of a cluster may be.",
        ),
        _share(
            "-d --diagfactor diagonal_factor", "The same as a share of the gap between them.", 0.12
        ),
        _number(
            "-b --breaklen break_length",
            200,
            "Extend an alignment until it gets no better for N bases of both sequences together.",
        ),
        click.Option(
            ["--gap-open"],
            type=int,
            metavar="N",
            help="Gap open penalty.  [default: nucmer's 3; 16 for VCF without .delta]",
        ),
        click.Option(
            ["--gap-extend"],
            type=int,
            metavar="N",
            help="Gap extension penalty; a match scores 3, a mismatch -7.  [default: nucmer's 7; 1 "
            "for VCF without .delta]",
        ),
        flag("--noextend no_extend", "Do not extend alignments beyond the clusters of matches."),
        flag(
            "--nosimplify no_simplify",
            "Keep alignments that lie inside another one: to find the repeats of a genome in "
            "itself.",
        ),
        click.Option(
            ["--circular"],
            metavar="NAME",
            multiple=True,
            help="This record of the reference is circular: alignments across its end are written "
            "in two pieces. May be given several times; 'all' for all records.",
        ),
    ],
    "Alignments that are written": [
        flag(
            "--one-to-one",
            "Keep only alignments that map each base to its best place, in the reference and in "
            "the query, as 'delta-filter -1' does.",
        ),
        click.Option(
            ["--min-identity"],
            type=click.FloatRange(0, 100),
            metavar="PERCENT",
            default=0.0,
            show_default=True,
            help="Keep only alignments with at least so many percent of equal columns.",
        ),
        click.Option(
            ["--min-alignment-length"],
            type=int,
            metavar="N",
            default=0,
            show_default=True,
            help="Keep only alignments of at least N bases.",
        ),
    ],
    "Input": INPUT_OPTIONS,
    "Output": [
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            multiple=True,
            shell_complete=complete_files,
            help="Write the alignments to FILE: .delta, .paf, .sam, .bam, .cram or .vcf (also "
            ".paf.gz and the like) by its name; may be given several times.  [default: .delta on "
            "standard output]",
        ),
        click.Option(
            ["--format", "format_name"],
            type=click.Choice(names_of(RowKind.GENOMES)),
            help="Write this format, whatever the name of the file.",
        ),
        flag("--cs with_changes", "Write the tag cs into PAF."),
        flag("--eqx equal_bases", "Write = and X in place of M in PAF, SAM and BAM."),
        flag("--no-bases", "Write SAM without the bases of the queries and without MD."),
    ],
    "Search": [
        *MACHINE_OPTIONS,
        MAIN_OPTIONS["cluster"],
        MAIN_OPTIONS["block_size"],
    ],
    "Reports": [MAIN_OPTIONS["stats"], *MESSAGE_OPTIONS],
    INFORMATION: [],
}
"""The options, in the order of the help."""


def align_options(params: Params, command: str) -> AlignOptions:
    """Return the options of the job."""
    from mummergpu.mapping.genomes.options import ClusterOptions, GenomeOptions, costs_of_gaps
    from mummergpu.matching.options import SearchOptions
    from mummergpu.output.genomes.sink import AlignmentFilter
    from mummergpu.pipeline.align_options import AlignOptions, refuse_options_of_matches

    refuse_exclusive(params)
    targets = main_targets(params, RowKind.GENOMES)
    formats = [target.format for target in targets]
    for option, name, is_given in (
        ("--cs", "paf", params["with_changes"]),
        ("--no-bases", "sam", params["no_bases"]),
    ):
        if is_given and name not in formats:
            raise click.UsageError(
                f"{option} is for {name}, and the alignments are written as {formats[0]}"
            )
    clusters = ClusterOptions(
        *(params["min_cluster"], params["max_gap"]),
        *(params["diagonal_difference"], params["diagonal_factor"]),
    )
    genomes = GenomeOptions(
        *(clusters, params["break_length"], not params["no_extend"], not params["no_simplify"]),
        costs_of_gaps(params["gap_open"], params["gap_extend"], formats),
        params["circular"],
    )
    identity, length = params["min_identity"] / 100, params["min_alignment_length"]
    method = AlignmentMethod(params["method"])
    try:
        refuse_options_of_matches(method, _told_options())
    except OptionError as error:
        option = written(error.option, click.get_current_context())
        raise click.UsageError(
            f"--method {method.value} aligns whole sequences, and {option} is about matches"
        ) from error
    modes = (name for name in ("mum", "mumreference", "maxmatch") if params[name])
    words = strands_of(params, "both"), next(modes, "mumreference")
    return AlignOptions(
        **run_options(params, command),
        query_paths=params["query"],
        outputs=targets,
        search=SearchOptions.of_words(params["min_length"], *words, params["block_size"]),
        memory=params["max_memory"],
        genomes=genomes,
        kept=AlignmentFilter(params["one_to_one"], identity, length),
        with_changes=params["with_changes"],
        with_bases=not params["no_bases"],
        equal_bases=params["equal_bases"],
        method=method,
    )


def _told_options() -> set[str]:
    """Return the parameters in Python of all options that the user gave."""
    context = click.get_current_context()
    told = ParameterSource.COMMANDLINE
    names = [option.name or "" for option in context.command.params]
    given = (name for name in names if context.get_parameter_source(name) is told)
    return {_CALLED.get(name, name) for name in given}


@click.command(
    "align",
    context_settings=HELP_OPTIONS,
    cls=SectionedCommand,
    arguments=ALIGN_ARGUMENTS,
    sections=ALIGN_SECTIONS,
)
def align_command(**params: Any) -> None:
    """Align genomes, and write the alignments.

    REFERENCE is a FASTA file or an index that 'mummergpu index' has made; QUERY is a file of
    chromosomes, contigs or long reads, also compressed. What alignments begin with, and how they
    are extended, is as in nucmer, with its options and defaults.

    'mummergpu align a.fna b.fna -o x.delta' writes what delta-filter, show-coords, show-snps,
    dnadiff -d and mummerplot read; '-o x.paf' the table of minimap2.
    """
    inputs = [params["reference"], *params["query"]]
    run = CommandRun(params, inputs, main_files(params))
    options = align_options(params, run.command)
    run.wake_device(lambda: _backend_of(options))
    job = _load_job(params)
    with run.reported("align") as (context, _):
        job(options, context)


def _backend_of(options: AlignOptions) -> str:
    from mummergpu.pipeline.backend_choice import backend_of_search
    from mummergpu.viterbi.recurrence.model import AlignmentMethod

    if options.method is not AlignmentMethod.TILE:
        return "auto"
    return backend_of_search(options.anchors)


def _load_job(params: Params) -> Any:
    if params["cluster"] is not None:
        from mummergpu.cluster import match_queries as on_machines

        return on_cluster(on_machines.run_align, params)
    from mummergpu.pipeline import align_genomes

    return align_genomes.run
