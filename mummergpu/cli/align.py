"""The command ``align``: align genomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.option_rules import (
    main_files,
    main_targets,
    refuse_exclusive,
    run_options,
    search_options,
    strands_of,
)
from mummergpu.cli.option_types import (
    INFORMATION,
    INPUT_OPTIONS,
    MACHINE_OPTIONS,
    MAIN_OPTIONS,
    MESSAGE_OPTIONS,
    Params,
    SectionedCommand,
    Sections,
    choice,
    file_option,
    files,
    flag,
    given,
    integer,
    is_given,
    load,
    option,
)
from mummergpu.cli.run_verb import CommandRun
from mummergpu.output.formats import RowKind, names_of
from mummergpu.viterbi.recurrence.model import AlignmentMethod

if TYPE_CHECKING:
    from mummergpu.pipeline.align_options import AlignOptions

_CALLED: Final = {
    **dict.fromkeys(("mum", "mumreference", "maxmatch"), "mode"),
    "no_extend": "extend",
}
"""The Python parameters of options with other names."""

_GENOMES: Final = "mapping.genomes.options"

_SECTIONS: Final[Sections] = {
    "Matches that alignments begin with": [
        flag("-mum --mum mum", "Use matches that are unique in the reference and in the query."),
        flag(
            "-mumreference --mumreference mumreference",
            "Use matches that are unique in the reference.  [default]",
        ),
        flag("-maxmatch --maxmatch maxmatch", "Use all matches."),
        integer(
            "-l --minmatch min_length",
            "Minimum length of a match.",
            "index.options:IndexOptions.minimum_length",
        ),
        flag("-f --forward forward", "Align only the forward strand of the queries."),
        flag("-r --reverse reverse", "Align only the reverse complement of the queries."),
    ],
    "Alignment": [
        choice(
            "--method",
            [method.value for method in AlignmentMethod],
            "tile: matches cut the matrix of two sequences into tiles. wavefront, streaming: each "
            "query is aligned with each reference record from end to end, with the whole matrix, "
            "for short sequences with few matches; streaming keeps the matrix in host memory (with "
            "a GPU) or in a temporary file. auto: wavefront for a query whose matrices take at "
            "most 1 GiB (two sequences of 27,000 bases), if all records are at most twice as long, "
            "and at least half as long; tile for others.",
            AlignmentMethod.TILE.value,
        ),
        integer(
            "-c --mincluster min_cluster",
            "Minimum number of matching bases of a cluster.",
            f"{_GENOMES}:ClusterOptions.min_bases",
        ),
        integer(
            "-g --maxgap max_gap",
            "Maximum gap between two adjacent matches of a cluster.",
            f"{_GENOMES}:ClusterOptions.max_gap",
        ),
        integer(
            "-D --diagdiff diagonal_difference",
            "Maximum difference between the diagonals of two adjacent matches of a cluster.",
            f"{_GENOMES}:ClusterOptions.diagonal_difference",
        ),
        option(
            "-d --diagfactor diagonal_factor",
            "The same as a fraction of the gap between them.",
            "X",
            f"{_GENOMES}:ClusterOptions.diagonal_factor",
            type=float,
        ),
        integer(
            "-b --breaklen break_length",
            "Stop extending an alignment after N bases of both sequences without a better score.",
            f"{_GENOMES}:GenomeOptions.break_length",
        ),
        integer(
            "--gap-open", "Gap open penalty.  [default: nucmer's 3; 16 for VCF without .delta]"
        ),
        integer(
            "--gap-extend",
            "Gap extension penalty; a match scores 3, a mismatch -7.  [default: nucmer's 7; 1 for "
            "VCF without .delta]",
        ),
        flag("--noextend no_extend", "Do not extend alignments beyond clusters."),
        flag(
            "--nosimplify no_simplify",
            "Keep alignments that lie inside another one, to find the repeats of a genome in "
            "itself.",
        ),
        option(
            "--circular",
            "This reference record is circular: alignments across its end are written in two "
            "parts. May be repeated; 'all' for all records.",
            "NAME",
            multiple=True,
        ),
    ],
    "Alignments that are written": [
        flag(
            "--one-to-one",
            "Keep only the best alignment of each base, in the reference and in the query, as "
            "'delta-filter -1' does.",
        ),
        option(
            "--min-identity",
            "Keep only alignments with at least this percentage of identical columns.",
            "PERCENT",
            type=click.FloatRange(0, 100),
            default=0.0,
        ),
        integer(
            "--min-alignment-length",
            "Keep only alignments of at least N bases.",
            "mapping.genomes.options:AlignmentFilter.min_length",
        ),
    ],
    "Input": INPUT_OPTIONS,
    "Output": [
        file_option(
            "-o --output",
            "Write alignments to FILE, as .delta, .paf, .sam, .bam, .cram or .vcf by its suffix "
            "(.paf.gz and the like, too). May be repeated.  [default: .delta on standard output]",
            multiple=True,
        ),
        choice(
            "--format format_name",
            names_of(RowKind.GENOMES),
            "Output format, whatever the suffix of the file.",
        ),
        flag("--cs with_changes", "Write the cs tag in PAF."),
        flag("--eqx equal_bases", "Write = and X instead of M in PAF, SAM and BAM."),
        flag("--no-bases", "Write SAM without the bases of the queries and without MD."),
    ],
    "Search": [*MACHINE_OPTIONS, MAIN_OPTIONS["cluster"], MAIN_OPTIONS["block_size"]],
    "Reports": [MAIN_OPTIONS["stats"], *MESSAGE_OPTIONS],
    INFORMATION: [],
}
"""The options, in the order of the help."""


def _align_options(params: Params, command: str) -> AlignOptions:
    """Return the options of the job."""
    from mummergpu.mapping.genomes.options import (
        AlignmentFilter,
        ClusterOptions,
        GenomeOptions,
        costs_of_gaps,
    )
    from mummergpu.pipeline.align_options import AlignOptions, refuse_options_of_matches

    refuse_exclusive(params)
    targets = main_targets(params, RowKind.GENOMES)
    formats = [target.format for target in targets]
    for word, name, is_set in (
        ("--cs", "paf", params["with_changes"]),
        ("--no-bases", "sam", params["no_bases"]),
    ):
        if is_set and name not in formats:
            raise click.UsageError(
                f"{word} is for {name}, and the alignments are written as {formats[0]}"
            )
    clusters = ClusterOptions(
        **given(
            params, *("max_gap", "diagonal_difference", "diagonal_factor"), min_bases="min_cluster"
        )
    )
    genomes = GenomeOptions(
        clusters,
        **given(params, "break_length"),
        extend=not params["no_extend"],
        simplify=not params["no_simplify"],
        costs=costs_of_gaps(params["gap_open"], params["gap_extend"], formats),
        circular=params["circular"],
    )
    method = AlignmentMethod(params["method"])
    refuse_options_of_matches(method, _given_parameters())
    modes = (name for name in ("mum", "mumreference", "maxmatch") if params[name])
    return AlignOptions(
        **run_options(params, command),
        query_paths=params["query"],
        outputs=targets,
        search=search_options(params, strands_of(params, "both"), next(modes, "mumreference")),
        memory=params["max_memory"],
        genomes=genomes,
        kept=AlignmentFilter(
            params["one_to_one"],
            params["min_identity"] / 100,
            **given(params, min_length="min_alignment_length"),
        ),
        with_changes=params["with_changes"],
        with_bases=not params["no_bases"],
        equal_bases=params["equal_bases"],
        method=method,
    )


def _given_parameters() -> set[str]:
    """Return the Python parameters of all options that the user gave."""
    context = click.get_current_context()
    names = [parameter.name or "" for parameter in context.command.params]
    return {_CALLED.get(name, name) for name in names if is_given(context, name)}


@click.command(
    "align",
    cls=SectionedCommand,
    arguments=[files("reference"), files("query", several=True)],
    sections=_SECTIONS,
)
def align_command(**params: Any) -> None:
    """Align genomes, and write the alignments.

    REFERENCE is a FASTA file or an index made by 'mummergpu index'; QUERY files have chromosomes,
    contigs or long reads, and may be compressed. Anchors and extension are those of nucmer, with
    its options and defaults.

    'mummergpu align a.fna b.fna -o x.delta' writes what delta-filter, show-coords, show-snps,
    dnadiff -d and mummerplot read; '-o x.paf' writes the table of minimap2.
    """
    inputs = [params["reference"], *params["query"]]
    run = CommandRun(params, inputs, main_files(params))
    options = _align_options(params, run.command)
    run.wake_device(lambda: _backend_of(options))
    job = run.job("pipeline.align_genomes:run", "cluster.match_queries:run_align")
    with run.reported("align") as (context, _):
        job(options, context)


def _backend_of(options: AlignOptions) -> str:
    if not options.method.takes_matches:
        return "auto"
    backend: str = load("pipeline.backend_choice:backend_of_search")(options.anchors)
    return backend
