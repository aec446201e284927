"""The command ``map``: map reads to a reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.foreign_options import FOREIGN_OPTIONS, in_own_words, is_paf_meant
from mummergpu.cli.format_options import NO_GROUP, main_files, main_targets
from mummergpu.cli.option_rules import Params, run_options
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
    complete_folders,
    flag,
)
from mummergpu.cli.run_verb import CommandRun, on_cluster
from mummergpu.errors import OptionError
from mummergpu.output.formats import RowKind, names_of
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.input.blocks.read_files import ReadSource
    from mummergpu.mapping.placing.insert_size import InsertSizes
    from mummergpu.output.options import ReadGroup, RecordStyle, SortOptions
    from mummergpu.output.targets import OutputTarget
    from mummergpu.pipeline.map_options import MapOptions
    from mummergpu.viterbi.recurrence.model import Costs

_SIZE: Final = MAIN_OPTIONS["max_memory"].callback


ALL_PLACEMENTS: Final = 1 << 52
"""More placements than a read can have."""

ALL: Final = "all"


class _NumberOrAll(click.IntRange):
    """A number of placements, or a word for all of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = ALL_PLACEMENTS if value == ALL else super().convert(value, param, ctx)
        return number


def _number(names: str, default: int, text: str) -> click.Option:
    return click.Option(
        names.split(),
        type=int,
        metavar="N",
        default=default,
        show_default=True,
        help=text,
    )


MAP_ARGUMENTS: Final = [
    click.Argument(["reference"], shell_complete=complete_files),
    click.Argument(["reads"], nargs=-1, required=True, shell_complete=complete_files),
]

MAP_SECTIONS: Final[Sections] = {
    "Input": [
        click.Option(
            ["-p", "--interleaved"],
            is_flag=True,
            help="Pairs are interleaved: two reads of one name in a row are mates, others are "
            "single.",
        ),
        click.Option(
            ["--single"],
            is_flag=True,
            help="Treat all reads as single, whatever the files and flags tell of pairs.",
        ),
        click.Option(
            ["--long-reads"],
            type=click.Choice(["unmapped", "error"]),
            default="unmapped",
            show_default=True,
            help="Leave reads of more than 1,500 bases unmapped, with a warning, or treat them as "
            "an error.",
        ),
        *INPUT_OPTIONS,
    ],
    "Output": [
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            multiple=True,
            shell_complete=complete_files,
            help="Write the alignments to FILE: SAM, BAM, CRAM or PAF by its name; may be given "
            "several times.  [default: SAM on standard output]",
        ),
        click.Option(
            ["--format", "format_name"],
            type=click.Choice(names_of(RowKind.READS)),
            help="Write this format, whatever the name of the file.",
        ),
        click.Option(
            ["--unmapped"],
            metavar="FILE[,FILE]",
            shell_complete=complete_files,
            help="Write unmapped reads whose mates are unmapped too as FASTQ, interleaved or into "
            "two files.",
        ),
        click.Option(
            ["--sort"],
            is_flag=True,
            help="Sort BAM or CRAM by coordinate; a file gets an index beside it.",
        ),
        click.Option(
            ["--mark-duplicates"],
            is_flag=True,
            help="Flag the duplicates in BAM or CRAM, also without --sort.",
        ),
        click.Option(
            ["--gpu-compression"],
            is_flag=True,
            help="Compress BAM on the GPU that searches, with NVIDIA's nvCOMP (pip install "
            "'mummergpu[nvcomp]'): the same records, in other bytes.",
        ),
        click.Option(
            ["--sort-memory"],
            metavar="BYTES",
            callback=_SIZE,
            help="Sort in about this much memory, then in temporary files.  [default: 4G]",
        ),
        click.Option(
            ["--temporary-folder"],
            metavar="FOLDER",
            shell_complete=complete_folders,
            help="Folder for the temporary files of --sort and --mark-duplicates.",
        ),
    ],
    "Records": [
        click.Option(
            ["-R", "--read-group"],
            metavar="LINE",
            help=r"Read group of all reads, such as '@RG\tID:x\tSM:y\tPL:ILLUMINA', or none.  "
            "[default: those of SAM, BAM and CRAM; for other reads, the name of the first file]",
        ),
        click.Option(
            ["-y", "-C", "--comments"],
            is_flag=True,
            help="Write the comments of FASTQ and FASTA as tags; they must be tags of SAM, such as "
            "BC:Z:ACGT.",
        ),
        click.Option(
            ["-N", "--max-secondary", "max_secondary"],
            type=_NumberOrAll(0),
            metavar="N",
            help="Report at most N secondary alignments of a read, the best ones, or all.  "
            "[default: none]",
        ),
        click.Option(
            ["--secondary-seq"],
            is_flag=True,
            help="Write the bases and qualities of a read in its secondary records, too.",
        ),
        click.Option(
            ["--max-xa", "max_xa"],
            type=int,
            metavar="N",
            default=0,
            help="Report up to N alternative hits (score >= 80% of the best) in the XA tag; bwa "
            "mem's -h N is the same.  [default: no XA]",
        ),
        click.Option(
            ["--tags"],
            metavar="TAG[,TAG]",
            help="Also write these tags of minimap2: cs, de, tp.",
        ),
        flag(
            "-M m",
            "Flag the further parts of split reads as secondary instead of supplementary.",
        ),
        flag(
            "-Y soft_clipping",
            "Use soft clipping in supplementary records, too.",
        ),
        flag("--eqx eqx", "Write = and X in CIGARs, in place of M."),
        flag(
            "--no-unal mapped_only",
            "Leave out unmapped reads whose mates are unmapped too.",
        ),
        click.Option(
            ["-H", "--header", "header"],
            metavar="LINE",
            multiple=True,
            help=r"Add a line to the header, such as '@CO\tmade for tests', or a file of lines. "
            "May be given several times.",
        ),
    ],
    "Alignment": [
        click.Option(
            ["-k", "--seed-length", "seed_length"],
            type=click.IntRange(8),
            metavar="N",
            help="Begin with matches of at least N bases.  [default: 16 to 64, from the length of "
            "the reads]",
        ),
        click.Option(
            ["-I", "--insert-size", "insert_size"],
            metavar="MEAN[,SD[,MAX[,MIN]]]",
            help="The size of templates in bases.  [default: estimated for each read group or pair "
            "of files from its first pairs]",
        ),
        click.Option(
            ["--orientation"],
            type=click.Choice(["fr", "rf", "ff"]),
            help="Orientation of mates.  [default: that of most of the first pairs; fr with -I]",
        ),
        click.Option(
            ["--max-occurrences", "max_occurrences"],
            type=click.IntRange(1),
            metavar="N",
            default=300,
            show_default=True,
            help="Use only the rarest seeds of a read with more than N matches on a strand; -N and "
            "--max-xa use all.",
        ),
        click.Option(
            ["--circular"],
            metavar="NAME",
            multiple=True,
            help="This record of the reference is circular: reads across its end are written in "
            "two parts. May be given several times; 'all' for all records.",
        ),
        flag(
            "-j ignore_alt",
            "Ignore REFERENCE.alt: treat alternative contigs like all others.",
        ),
        _number("-A --match match", 1, "Match score."),
        _number("-B --mismatch mismatch", 4, "Mismatch penalty."),
        click.Option(
            ["-O", "--gap-open", "gap_open"],
            metavar="N[,N]",
            default="6",
            show_default=True,
            help="Gap open penalty, or those of deletions and insertions.",
        ),
        click.Option(
            ["-E", "--gap-extend", "gap_extend"],
            metavar="N[,N]",
            default="1",
            show_default=True,
            help="Gap extension penalty, or those of deletions and insertions.",
        ),
        click.Option(
            ["-L", "--clipping"],
            metavar="N",
            default="5",
            show_default=True,
            help="Clipping penalty.",
        ),
        _number("-U --unpaired unpaired", 17, "Penalty of an unpaired read pair."),
        click.Option(
            ["-T", "--min-score", "min_score"],
            type=int,
            metavar="N",
            default=30,
            show_default=True,
            help="Minimum score of an alignment to report.",
        ),
    ],
    "Search": [
        *(option for option in MACHINE_OPTIONS if option.name != "cpu"),
        MAIN_OPTIONS["cluster"],
        MAIN_OPTIONS["block_size"],
    ],
    "Words of bwa mem and minimap2": FOREIGN_OPTIONS,
    "Reports": [
        MAIN_OPTIONS["stats"],
        click.Option(
            ["--multiqc"],
            metavar="FILE",
            shell_complete=complete_files,
            help="Write counts for MultiQC to FILE, named SAMPLE_mqc.json.",
        ),
        *MESSAGE_OPTIONS,
    ],
    INFORMATION: [],
}
"""The options, in the order of the help."""


def map_options(params: Params, command: str) -> MapOptions:
    """Return the options of the job."""
    from mummergpu.output.formats import fastq_targets
    from mummergpu.pipeline.map_options import LONG_READS, MapOptions

    return MapOptions(
        **run_options(params, command),
        sources=_sources(params),
        outputs=_targets(params),
        seed_length=params["seed_length"],
        insert_sizes=_insert_sizes(params["insert_size"]),
        orientation=params["orientation"],
        costs=_costs(params),
        min_score=params["min_score"],
        unpaired=params["unpaired"],
        max_occurrences=params["max_occurrences"],
        max_secondary=_max_secondary(params),
        max_alternatives=params["max_xa"],
        memory=params["max_memory"],
        read_group=_read_group(params),
        keeps_groups=not params["read_group"],
        comments=params["comments"],
        sort=_sort_options(params),
        gpu_compression=params["gpu_compression"],
        refuses_long=LONG_READS[params["long_reads"]],
        style=_record_style(params),
        ignore_alt=params["ignore_alt"],
        circular=params["circular"],
        unmapped=fastq_targets(_unmapped_files(params)),
        block_size=params["block_size"],
    )


def _targets(params: Params) -> tuple[OutputTarget, ...]:
    if is_paf_meant(params):
        params = {**params, "format_name": "paf"}
    return main_targets(params, RowKind.READS)


def _unmapped_files(params: Params) -> list[str]:
    return params["unmapped"].split(",") if params["unmapped"] else []


def _read_group(params: Params) -> ReadGroup | None:
    from mummergpu.output.options import read_group_of, usual_read_group

    text = params["read_group"]
    if text == NO_GROUP:
        return None
    return usual_read_group(params["reads"]) if text is None else read_group_of(text)


def _sources(params: Params) -> tuple[ReadSource, ...]:
    """Return the files of reads: two and two are mates, unless they are single or interleaved."""
    from mummergpu.input.blocks.read_files import MateFiles, ReadFile

    paths, interleaved, single = params["reads"], params["interleaved"], params["single"]
    if interleaved and single:
        raise click.UsageError("--interleaved and --single exclude each other")
    if interleaved or single or len(paths) == 1:
        return tuple(ReadFile(path, interleaved, ignores_flags=single) for path in paths)
    if len(paths) % 2:
        raise click.UsageError(
            f"{len(paths)} files are no pairs: name both files of every pair, or say --single or "
            "--interleaved"
        )
    return tuple(MateFiles(*paths[at : at + 2]) for at in range(0, len(paths), 2))


def _insert_sizes(text: str | None) -> InsertSizes | None:
    if text is None:
        return None
    from mummergpu.mapping.placing.insert_size import InsertSizes

    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 4 or not all(map(isfinite, numbers)):
        raise OptionError("insert_size", f"'{text}' is not MEAN[,SD[,MAX[,MIN]]]")
    mean = numbers[0]
    deviation = numbers[1] if len(numbers) > 1 else mean / 10
    bounds = [int(number) for number in numbers[2:]]
    return InsertSizes.of_user(mean, deviation, *bounds)


def _max_secondary(params: Params) -> int:
    """Return the most secondary alignments of a read that are reported."""
    asked: int | None = params["max_secondary"]
    if asked is not None:
        return asked
    if params["preset"] or params["secondary"]:
        # There -a asks for SAM.
        return 0
    return ALL_PLACEMENTS if params["all_placements"] else 0


def _record_style(params: Params) -> RecordStyle:
    from mummergpu.output.options import RecordStyle

    tags = params["tags"].split(",") if params["tags"] else []
    return RecordStyle(
        splits_as_secondary=params["m"],
        secondary_bases=params["secondary_seq"],
        soft_clips=params["soft_clipping"],
        equal_bases=params["eqx"],
        mapped_only=params["mapped_only"],
        tags=[*tags, "cs"] if params["cs"] else tags,
        header_lines=list(_header_lines(params["header"])),
    )


def _header_lines(asked: Sequence[str]) -> Iterator[str]:
    """Yield the lines that are given, and those of the files that are named."""
    for text in asked:
        if text.startswith("@"):
            yield text.replace("\\t", "\t")
            continue
        try:
            with open(text, encoding="utf-8") as file:
                yield from file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError("header", f"'{text}' is neither a line nor a file of them") from error


def _two_numbers(text: str, option: str) -> tuple[int, int]:
    words = text.split(",")
    if not 1 <= len(words) <= 2 or not all(word.isascii() and word.isdigit() for word in words):
        raise OptionError(option, f"'{text}' is not a number, nor two such as 6,6")
    return int(words[0]), int(words[-1])


def _clipping(text: str) -> int:
    first, second = _two_numbers(text, "clipping")
    if first != second:
        raise OptionError("clipping", f"'{text}': both ends of a read have one penalty")
    return first


def _costs(params: Params) -> Costs:
    from mummergpu.viterbi.recurrence.model import Costs

    deletion_open, insertion_open = _two_numbers(params["gap_open"], "gap_open")
    deletion_extend, insertion_extend = _two_numbers(params["gap_extend"], "gap_extend")
    return Costs(
        match=params["match"],
        mismatch=params["mismatch"],
        insertion_open=insertion_open,
        insertion_extend=insertion_extend,
        deletion_open=deletion_open,
        deletion_extend=deletion_extend,
        end_bonus=_clipping(params["clipping"]),
    )


def _sort_options(params: Params) -> SortOptions | None:
    from mummergpu.output.options import SortOptions

    memory = {} if params["sort_memory"] is None else {"memory_bytes": params["sort_memory"]}
    return SortOptions(
        by_coordinate=params["sort"],
        mark_duplicates=params["mark_duplicates"],
        folder=params["temporary_folder"],
        threads=params["threads"],
        **memory,
    ).if_any


_INDEXES: Final = (".bai", ".csi", ".crai")
"""How the names of the indexes of sorted BAM and CRAM end."""


class MapCommand(SectionedCommand):
    """A command that takes two words of bwa mem whose letters mean something else here."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words, in those of ``map``."""
        return super().parse_args(ctx, in_own_words(args))


@click.command(
    "map",
    context_settings=HELP_OPTIONS,
    cls=MapCommand,
    arguments=MAP_ARGUMENTS,
    sections=MAP_SECTIONS,
)
def map_command(**params: Any) -> None:
    """Map reads to a reference, and write their alignments.

    REFERENCE is a FASTA file or an index that 'mummergpu index' has made; READS are FASTQ, FASTA,
    or unaligned SAM, BAM or CRAM files, also compressed; '-' is standard input. Two files are the
    two mates of pairs, four are two pairs of files, and so on; mates may also alternate in a file
    (--interleaved). Reads of 36 to 500 bases are mapped best.

    SAM goes to standard output unless -o names a file: 'mummergpu map genome.fa r1.fq.gz r2.fq.gz
    --sort -o sample.bam' writes a sorted BAM with its index.
    """
    inputs = [params["reference"], *params["reads"]]
    run = CommandRun(params, inputs, _outputs(params))
    options = map_options(params, run.command)
    run.wake_device(lambda: _backend_of(options))
    job = _load_job(params)
    with run.reported("map") as (context, _):
        job(options, context)


def _backend_of(options: MapOptions) -> str:
    from mummergpu.pipeline.backend_choice import backend_of_mapping

    return backend_of_mapping(options)


def _load_job(params: Params) -> Any:
    if params["cluster"] is not None:
        from mummergpu.cluster import map_reads as on_machines

        return on_cluster(on_machines.run, params)
    from mummergpu.pipeline import map_reads

    return map_reads.run


def _outputs(params: dict[str, Any]) -> dict[str, str | None]:
    """Return the files of alignments and their indexes, by the options that make them."""
    files = main_files(params)
    for number, name in enumerate(_unmapped_files(params), 1):
        files["--unmapped" if number == 1 else f"--unmapped, number {number}"] = name
    if params["sort"]:
        for option, path in main_files(params).items():
            if path is not None and path != STANDARD_OUTPUT:
                mark = option.replace("--output", "--sort")
                files |= {f"{mark} ({end})": path + end for end in _INDEXES}
    return files
