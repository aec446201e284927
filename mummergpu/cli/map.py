"""The command ``map``: map reads to a reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.option_rules import NO_GROUP, main_files, main_targets, run_options
from mummergpu.cli.option_types import (
    INFORMATION,
    INPUT_OPTIONS,
    MACHINE_OPTIONS,
    MAIN_OPTIONS,
    MESSAGE_OPTIONS,
    MULTIQC,
    SIZE,
    Params,
    SectionedCommand,
    Sections,
    choice,
    file_option,
    files,
    flag,
    folder_option,
    given,
    integer,
    load,
    option,
)
from mummergpu.cli.run_verb import CommandRun
from mummergpu.errors import OptionError
from mummergpu.output.formats import RowKind, names_of
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.input.blocks.read_files import ReadSource
    from mummergpu.mapping.options import InsertSizes
    from mummergpu.output.options import ReadGroup, RecordStyle, SortOptions
    from mummergpu.output.targets import OutputTarget
    from mummergpu.pipeline.map_options import MapOptions
    from mummergpu.viterbi.recurrence.model import Costs

ALL: Final = "all"

ALL_PLACEMENTS: Final = 1 << 52
"""More placements than a read can have."""

_OPTIONS: Final = "pipeline.map_options:MapOptions"
_SCORES: Final = "mapping.options:Scores"

_ALTERNATIVES: Final = re.compile(r"([0-9]+)(?:,[0-9]+)?")
_LEVEL: Final = re.compile("[0-9]")
_INDEXES: Final = (".bai", ".csi", ".crai")
"""The name endings of the indexes of sorted BAM and CRAM."""


class _NumberOrAll(click.IntRange):
    """A number of placements, or a word for all of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = ALL_PLACEMENTS if value == ALL else super().convert(value, param, ctx)
        return number


_SECTIONS: Final[Sections] = {
    "Input": [
        flag(
            "-p --interleaved",
            "Mates are interleaved: two adjacent reads of one name are a pair, others are single.",
        ),
        flag("--single", "Treat all reads as single, whatever the files and flags say."),
        choice(
            "--long-reads",
            ("unmapped", "error"),
            "Leave reads of more than 1,500 bases unmapped, with a warning, or treat them as an "
            "error.",
            "unmapped",
        ),
        *INPUT_OPTIONS,
    ],
    "Output": [
        file_option(
            "-o --output",
            "Write alignments to FILE, as SAM, BAM, CRAM or PAF by its suffix. May be repeated.  "
            "[default: SAM on standard output]",
            multiple=True,
        ),
        choice(
            "--format format_name",
            names_of(RowKind.READS),
            "Output format, whatever the suffix of the file.",
        ),
        file_option(
            "--unmapped",
            "Write unmapped reads whose mates are unmapped, too, as FASTQ: interleaved, or into "
            "two files.",
            "FILE[,FILE]",
        ),
        flag("--sort", "Sort BAM or CRAM by coordinate, and write an index beside a file."),
        flag("--mark-duplicates", "Flag duplicates in BAM or CRAM, also without --sort."),
        flag(
            "--gpu-compression",
            "Compress BAM on the GPU that searches, with NVIDIA's nvCOMP (pip install "
            "'mummergpu[nvcomp]'): the same records, in other bytes.",
        ),
        option(
            "--sort-memory",
            "Memory for sorting, beyond which temporary files are used.  [default: 4G]",
            "BYTES",
            type=SIZE,
        ),
        folder_option(
            "--temporary-folder",
            "Folder for the temporary files of --sort and --mark-duplicates.",
            "FOLDER",
        ),
    ],
    "Records": [
        option(
            "-R --read-group",
            r"Read group of all reads, such as '@RG\tID:x\tSM:y\tPL:ILLUMINA', or none.  "
            "[default: those of SAM, BAM and CRAM; for other reads, the name of the first file]",
            "LINE",
        ),
        flag(
            "-y -C --comments",
            "Write the comments of FASTQ and FASTA as tags; they must be SAM tags, such as "
            "BC:Z:ACGT.",
        ),
        option(
            "-N --max-secondary max_secondary",
            "Report at most N secondary alignments of a read, the best ones, or all.  "
            "[default: none]",
            type=_NumberOrAll(0),
        ),
        flag(
            "--secondary-seq", "Write the bases and qualities of a read in secondary records, too."
        ),
        option(
            "--max-xa max_xa",
            "Report up to N alternative hits (score >= 80% of the best) in the XA tag, as bwa mem "
            "-h does.  [default: no XA]",
            type=int,
        ),
        option("--tags", "Also write these tags of minimap2: cs, de, tp.", "TAG[,TAG]"),
        flag("-M m", "Flag the further parts of split reads as secondary, not as supplementary."),
        flag("-Y soft_clipping", "Use soft clipping in supplementary records, too."),
        flag("--eqx eqx", "Write = and X instead of M in CIGARs."),
        flag("--no-unal mapped_only", "Omit unmapped reads whose mates are unmapped, too."),
        option(
            "-H --header header",
            r"Add a line to the header, such as '@CO\tmade for tests', or a file of lines. May be "
            "repeated.",
            "LINE",
            multiple=True,
        ),
    ],
    "Alignment": [
        option(
            "-k --seed-length seed_length",
            "Minimum length of a seed.  [default: 16 to 64, from the length of the reads]",
            type=click.IntRange(8),
        ),
        option(
            "-I --insert-size insert_size",
            "Insert size.  [default: estimated for each read group or pair of files from its first "
            "pairs]",
            "MEAN[,SD[,MAX[,MIN]]]",
        ),
        choice(
            "--orientation",
            ("fr", "rf", "ff"),
            "Orientation of mates.  [default: that of most of the first pairs; fr with -I]",
        ),
        integer(
            "--max-occurrences max_occurrences",
            "Use only the rarest seeds of a read with more than N matches on a strand; -N and "
            "--max-xa use all.",
            f"{_OPTIONS}.max_occurrences",
        ),
        option(
            "--circular",
            "This reference record is circular: reads across its end are written in two parts. May "
            "be repeated; 'all' for all records.",
            "NAME",
            multiple=True,
        ),
        flag("-j ignore_alt", "Ignore REFERENCE.alt: treat alternative contigs like all others."),
        integer("-A --match match", "Match score.", f"{_SCORES}.match"),
        integer("-B --mismatch mismatch", "Mismatch penalty.", f"{_SCORES}.mismatch"),
        option(
            "-O --gap-open gap_open",
            "Gap open penalty, or those of deletions and insertions.",
            "N[,N]",
            f"{_SCORES}.gap_open",
        ),
        option(
            "-E --gap-extend gap_extend",
            "Gap extension penalty, or those of deletions and insertions.",
            "N[,N]",
            f"{_SCORES}.gap_extend",
        ),
        option("-L --clipping", "Clipping penalty.", of=f"{_SCORES}.clipping"),
        integer("-U --unpaired unpaired", "Unpaired read pair penalty.", f"{_OPTIONS}.unpaired"),
        integer("-T --min-score min_score", "Minimum score to report.", f"{_OPTIONS}.min_score"),
    ],
    "Search": [
        *(option for option in MACHINE_OPTIONS if option.name != "cpu"),
        MAIN_OPTIONS["cluster"],
        MAIN_OPTIONS["block_size"],
    ],
    "Options of bwa mem and minimap2": [
        flag("-a all_placements", "-N all; with -x, SAM instead of PAF."),
        flag("--cs", "--tags cs."),
        choice(
            "-x preset",
            ["sr"],
            "Short reads; standard output is PAF then, unless -a or --format is given.",
        ),
        choice("--secondary", ["no"], "-N 0 with -a, else no effect."),
        flag("--MD", "No effect: all records have MD."),
        option("-K batch_bases", "No effect: the output does not depend on batches.", "BASES"),
    ],
    "Reports": [MAIN_OPTIONS["stats"], MULTIQC, *MESSAGE_OPTIONS],
    INFORMATION: [],
}
"""The options, in the order of the help."""


class _MapCommand(SectionedCommand):
    """A command that also takes two options of bwa mem whose letters have another meaning here."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line, with options of bwa mem replaced by those of ``map``."""
        return super().parse_args(ctx, _in_own_words(args))


def _in_own_words(words: Sequence[str]) -> list[str]:
    """Return a command line with ``-h 5`` and ``-v 3`` of bwa mem as options of ``map``.

    Without a number, -h asks for help and -v for more messages.
    """
    result: list[str] = []
    for word in words:
        before = result[-1] if result else ""
        if before == "-h" and (limit := _ALTERNATIVES.fullmatch(word)):
            result[-1:] = ["--max-xa", limit[1]]
        elif before == "-v" and _LEVEL.fullmatch(word):
            result[-1:] = ["-q"] if word < "2" else ["-v"] if word > "3" else []
        else:
            result.append(word)
    return result


@click.command(
    "map",
    cls=_MapCommand,
    arguments=[files("reference"), files("reads", several=True)],
    sections=_SECTIONS,
)
def map_command(**params: Any) -> None:
    """Map reads to a reference, and write their alignments.

    REFERENCE is a FASTA file or an index made by 'mummergpu index'; READS are FASTQ, FASTA, or
    unaligned SAM, BAM or CRAM files, which may be compressed; '-' is standard input. Two files are
    the two mates of pairs, four are two pairs of files, and so on; mates may also be interleaved in
    one file (--interleaved). Reads of 36 to 500 bases are mapped best.

    SAM goes to standard output unless -o names a file: 'mummergpu map genome.fa r1.fq.gz r2.fq.gz
    --sort -o sample.bam' writes a sorted BAM with its index.
    """
    inputs = [params["reference"], *params["reads"]]
    run = CommandRun(params, inputs, _outputs(params))
    options = map_options(params, run.command)
    run.wake_device(lambda: load("pipeline.backend_choice:backend_of_mapping")(options))
    job = run.job("pipeline.map_reads:run", "cluster.map_reads:run")
    with run.reported("map") as (context, _):
        job(options, context)


def map_options(params: Params, command: str) -> MapOptions:
    """Return the options of the job."""
    from mummergpu.output.formats import fastq_targets
    from mummergpu.pipeline.map_options import LONG_READS, MapOptions

    return MapOptions(
        **run_options(params, command),
        sources=_sources(params),
        outputs=_targets(params),
        insert_sizes=_insert_sizes(params["insert_size"]),
        costs=_costs(params),
        **given(
            params,
            *("seed_length", "orientation", "min_score", "unpaired", "max_occurrences"),
            *("comments", "gpu_compression", "ignore_alt", "circular", "block_size"),
            max_alternatives="max_xa",
            memory="max_memory",
        ),
        max_secondary=_max_secondary(params),
        read_group=_read_group(params),
        keeps_groups=not params["read_group"],
        sort=_sort_options(params),
        refuses_long=LONG_READS[params["long_reads"]],
        style=_record_style(params),
        unmapped=fastq_targets(_unmapped_files(params)),
    )


def _targets(params: Params) -> tuple[OutputTarget, ...]:
    # The format of standard output is that of minimap2 without -a.
    if params["preset"] and not params["all_placements"] and not params["output"]:
        params = {**params, "format_name": params["format_name"] or "paf"}
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
    """Return the files of reads: pairs of mate files, unless reads are single or interleaved."""
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
    from mummergpu.mapping.options import InsertSizes

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
    """Return the maximum number of reported secondary alignments of a read."""
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
    """Yield the given header lines, and those in the named files."""
    for text in asked:
        if text.startswith("@"):
            yield text.replace("\\t", "\t")
            continue
        try:
            with open(text, encoding="utf-8") as file:
                yield from file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError("header", f"'{text}' is neither a line nor a file of them") from error


def _penalties(option: str, text: str | None, *fields: str) -> dict[str, int]:
    """Return the fields of an option that has one number for both fields, or two numbers."""
    if text is None:
        return {}
    words = text.split(",")
    if not 1 <= len(words) <= 2 or not all(word.isascii() and word.isdigit() for word in words):
        raise OptionError(option, f"'{text}' is not a number, nor two such as 6,6")
    return {fields[0]: int(words[0]), fields[1]: int(words[-1])}


def _costs(params: Params) -> Costs:
    from mummergpu.viterbi.recurrence.model import Costs

    ends = _penalties("clipping", params["clipping"], "end_bonus", "other_end")
    if len(set(ends.values())) > 1:
        text = f"'{params['clipping']}': both ends of a read have one penalty"
        raise OptionError("clipping", text)
    ends.pop("other_end", None)
    return Costs(
        **given(params, "match", "mismatch"),
        **_penalties("gap_open", params["gap_open"], "deletion_open", "insertion_open"),
        **_penalties("gap_extend", params["gap_extend"], "deletion_extend", "insertion_extend"),
        **ends,
    )


def _sort_options(params: Params) -> SortOptions | None:
    from mummergpu.output.options import SortOptions

    return SortOptions(
        by_coordinate=params["sort"],
        folder=params["temporary_folder"],
        **given(params, "mark_duplicates", "threads", memory_bytes="sort_memory"),
    ).if_any


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
