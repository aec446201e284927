"""The options of the command ``align``, and what they mean for the job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from mummergpu.cli.cache_folders import folder_of_kernels
from mummergpu.cli.option_rules import Given, device_options
from mummergpu.cli.option_types import MAIN_OPTIONS, MESSAGE_OPTIONS, RUN_OPTIONS, complete_files
from mummergpu.output.genomes.targets import GENOME_FORMATS, genome_target
from mummergpu.runtime.output_file import STANDARD_OUTPUT
from mummergpu.viterbi.methods import AlignmentMethod

if TYPE_CHECKING:
    from mummergpu.matching.options import SearchOptions
    from mummergpu.pipeline.align_options import AlignOptions

_OF_TILES: Final = frozenset(
    {
        *("mum", "mumreference", "maxmatch", "min_length", "least_bases", "most_gap"),
        *("diagonal_difference", "diagonal_factor", "break_length", "no_extend"),
    }
)
"""The options that are about matches and what is between them."""


def _number(names: str, default: int, least: int, text: str) -> click.Option:
    return click.Option(
        names.split(),
        type=click.IntRange(least),
        metavar="N",
        default=default,
        show_default=True,
        help=text,
    )


def _flag(names: str, text: str) -> click.Option:
    return click.Option(names.split(), is_flag=True, help=text)


def _share(names: str, text: str, default: float = 0.0) -> click.Option:
    return click.Option(
        names.split(),
        type=click.FloatRange(0),
        metavar="X",
        default=default,
        show_default=True,
        help=text,
    )


ALIGN_OPTIONS: Final[list[click.Parameter]] = [
    click.Argument(["reference"], shell_complete=complete_files),
    click.Argument(["query"], nargs=-1, required=True, shell_complete=complete_files),
    click.Option(
        ["-o", "--output"],
        metavar="FILE",
        default=STANDARD_OUTPUT,
        shell_complete=complete_files,
        help="Write the alignments to FILE: .delta, .paf, .sam, .bam or .vcf (also .paf.gz and the "
        "like) by its name.  [default: .delta on standard output]",
    ),
    click.Option(
        ["--format", "format_name"],
        type=click.Choice(GENOME_FORMATS),
        help="Write this format, whatever the name of the file.",
    ),
    click.Option(
        ["--vcf"],
        metavar="FILE",
        shell_complete=complete_files,
        help="Also write the differences of the alignments to FILE, as VCF (also .vcf.gz).",
    ),
    _flag("--cs with_changes", "Let PAF tell the bases of the differences, as cs:Z."),
    click.Option(
        ["--method"],
        type=click.Choice([method.value for method in AlignmentMethod]),
        default=AlignmentMethod.TILE.value,
        show_default=True,
        help="tile: matches cut the matrix of two sequences into tiles. wavefront, streaming: each "
        "query is aligned with each record of the reference from end to end, with the whole "
        "matrix, for short sequences with few matches; streaming keeps it in the memory of the "
        "host beside a GPU, or in a temporary file.",
    ),
    _flag("--no-bases", "Let SAM leave out the bases of the queries, and MD."),
    _flag("-mum --mum mum", "Begin with matches that are unique in the reference and the query."),
    _flag(
        "-mumreference --mumreference mumreference",
        "Begin with matches that are unique in the reference.  [default]",
    ),
    _flag("-maxmatch --maxmatch maxmatch", "Begin with all matches."),
    _number("-l --minmatch min_length", 20, 1, "Begin with matches of at least N bases."),
    _number("-c --mincluster least_bases", 65, 0, "The fewest matching bases of a cluster."),
    _number("-g --maxgap most_gap", 90, 0, "The most bases between two matches of a cluster."),
    _number(
        "-D --diagdiff diagonal_difference",
        5,
        0,
        "How far apart the diagonals of two neighbouring matches of a cluster may be.",
    ),
    _share("-d --diagfactor diagonal_factor", "The same as a share of the gap between them.", 0.12),
    _number(
        "-b --breaklen break_length",
        200,
        2,
        "Extend an alignment until it gets no better for N bases of both sequences together.",
    ),
    click.Option(
        ["--gap-open"],
        type=click.IntRange(0),
        help="The penalty of a gap, beside its bases'.  [default: nucmer's 3; 16 for VCF that is "
        "written without .delta]",
    ),
    click.Option(
        ["--gap-extend"],
        type=click.IntRange(1),
        help="The penalty of each base of a gap; an equal base scores 3, and a different one -7.  "
        "[default: nucmer's 7; 1 for VCF that is written without .delta]",
    ),
    _flag("--noextend no_extend", "Do not extend alignments beyond the clusters of matches."),
    _flag(
        "--nosimplify no_simplify",
        "Keep alignments that lie inside another one: to find the repeats of a genome in itself.",
    ),
    _flag("-f --forward forward", "Align only the forward strand of the queries."),
    _flag("-r --reverse reverse", "Align only the reverse complement of the queries."),
    _flag(
        "--one-to-one",
        "Keep only alignments that map each base to its best place, in the reference and in the "
        "query, as 'delta-filter -1' does.",
    ),
    click.Option(
        ["--min-identity"],
        type=click.FloatRange(0, 100),
        metavar="PERCENT",
        default=0.0,
        show_default=True,
        help="Keep only alignments with at least so many percent of equal columns.",
    ),
    _number("--min-length least_length", 0, 0, "Keep only alignments of at least N bases."),
    *RUN_OPTIONS,
    *MESSAGE_OPTIONS,
    click.Option(["--block-size"], callback=MAIN_OPTIONS["max_memory"].callback, hidden=True),
]
"""The arguments and options, in the order of the help."""


def align_options(given: Given, command: str) -> AlignOptions:
    """Return the options of the job.

    Parameters
    ----------
    given : mapping
        The options by their parameter names.
    command : str
        The command line.

    Raises
    ------
    click.UsageError
        If options exclude each other.
    MummergpuError
        If an option makes no sense.
    """
    from mummergpu.index.file import kind_for_reference
    from mummergpu.index.options import IndexOptions
    from mummergpu.mapping.genomes.options import ClusterOptions, GenomeOptions, costs_of_gaps
    from mummergpu.output.targets import target_of
    from mummergpu.pipeline.align_options import AlignmentFilter, AlignOptions
    from mummergpu.pipeline.options import MatchOptions

    kernel_folder = folder_of_kernels(os.environ)
    target = genome_target(given["output"], given["format_name"])
    differences = None if given["vcf"] is None else target_of(given["vcf"], "vcf", "--vcf")
    targets = (target,) if differences is None else (target, differences)
    anchors = MatchOptions(
        reference_path=given["reference"],
        query_paths=given["query"],
        any_letters=given["any_letters"],
        no_empty=given["no_empty"],
        outputs=targets,
        command=command,
        threads=given["threads"],
        index=IndexOptions(
            given["min_length"], kind_for_reference(given["reference"]), given["max_memory"]
        ),
        search=_search(given),
        device=device_options(given, None if kernel_folder is None else str(kernel_folder)),
        verify=given["verify"],
    )
    clusters = ClusterOptions(
        *(given["least_bases"], given["most_gap"]),
        *(given["diagonal_difference"], given["diagonal_factor"]),
    )
    genomes = GenomeOptions(
        *(clusters, given["break_length"], not given["no_extend"], not given["no_simplify"]),
        costs_of_gaps(given["gap_open"], given["gap_extend"], [one.format for one in targets]),
    )
    least_identity = given["min_identity"] / 100
    kept = AlignmentFilter(given["one_to_one"], least_identity, given["least_length"])
    if given["with_changes"] and target.format != "paf":
        raise click.UsageError(
            f"--cs is for paf, and the alignments are written as {target.format}"
        )
    if given["no_bases"] and target.format != "sam":
        raise click.UsageError(
            f"--no-bases is for sam, and the alignments are written as {target.format}"
        )
    method = AlignmentMethod(given["method"])
    if method is not AlignmentMethod.TILE:
        _refuse_options_of_tiles(method)
    return AlignOptions(
        *(anchors, target, genomes, kept),
        *(given["with_changes"], not given["no_bases"], differences, method),
    )


def _refuse_options_of_tiles(method: AlignmentMethod) -> None:
    """Raise a usage error if the user gave an option that has no meaning without matches."""
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name
        if name in _OF_TILES and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--method {method.value} aligns whole sequences, and {option.opts[0]} is about "
                "matches"
            )


def _search(given: Given) -> SearchOptions:
    """Return which matches alignments begin with."""
    from mummergpu.matching.options import SearchOptions, Uniqueness
    from mummergpu.sequence.codes import Strand

    modes = [name for name in ("mum", "mumreference", "maxmatch") if given[name]]
    if len(modes) > 1:
        raise click.UsageError(f"-{modes[0]} and -{modes[1]} exclude each other")
    if given["forward"] and given["reverse"]:
        raise click.UsageError("-f and -r exclude each other")
    strands: tuple[Strand, ...] = (Strand.FORWARD, Strand.REVERSE)
    if given["forward"] or given["reverse"]:
        strands = (Strand.REVERSE if given["reverse"] else Strand.FORWARD,)
    uniqueness = Uniqueness(modes[0] if modes else "mumreference")
    return SearchOptions(given["min_length"], strands, uniqueness, given["block_size"])
