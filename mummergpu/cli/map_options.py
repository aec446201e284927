"""The options of the command ``map``, and what they mean for the job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from mummergpu.cli.cache_folders import folder_of_kernels
from mummergpu.cli.option_rules import Given, device_options
from mummergpu.cli.option_types import (
    MAIN_OPTIONS,
    MESSAGE_OPTIONS,
    RUN_OPTIONS,
    complete_files,
    complete_folders,
)
from mummergpu.errors import OptionError
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.input.blocks.read_files import ReadSource
    from mummergpu.mapping.placing.insert_sizes import InsertSizes
    from mummergpu.output.records.sam_options import ReadGroup
    from mummergpu.output.sorting.options import SortOptions
    from mummergpu.output.targets import OutputTarget
    from mummergpu.pipeline.map_options import MapOptions
    from mummergpu.viterbi.recurrence.model import Costs

_SIZE: Final = MAIN_OPTIONS["max_memory"].callback


ALL_PLACEMENTS: Final = 1 << 62
"""More placements than a read can have."""


def _number(names: str, default: int, text: str) -> click.Option:
    return click.Option(
        names.split(),
        type=click.IntRange(0, 100),
        metavar="N",
        default=default,
        show_default=True,
        help=text,
    )


MAP_OPTIONS: Final[list[click.Parameter]] = [
    click.Argument(["reference"], shell_complete=complete_files),
    click.Argument(["reads"], nargs=-1, required=True, shell_complete=complete_files),
    click.Option(
        ["-o", "--output"],
        metavar="FILE",
        default=STANDARD_OUTPUT,
        shell_complete=complete_files,
        help="Write the alignments to FILE: SAM, BAM or CRAM by its name.  "
        "[default: SAM on standard output]",
    ),
    click.Option(
        ["--format", "format_name"],
        type=click.Choice(["sam", "bam", "cram"]),
        help="Write this format, whatever the name of the file.",
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
        ["-R", "--read-group"],
        metavar="LINE",
        help=r"The read group of all reads, such as '@RG\tID:x\tSM:y\tPL:ILLUMINA'.  [default: "
        "those of SAM, BAM and CRAM, and one with the name of the first file for other reads]",
    ),
    click.Option(["--no-read-group"], is_flag=True, help="Write no read group."),
    click.Option(
        ["-y", "--comments"],
        is_flag=True,
        help="Write the comments of FASTQ and FASTA as tags; they must be tags of SAM, such as "
        "BC:Z:ACGT.",
    ),
    click.Option(["-p", "--interleaved"], is_flag=True, help="Mates alternate in each file."),
    click.Option(
        ["--single"],
        is_flag=True,
        help="No read has a mate: neither is the second of two files, nor do the flags of SAM, "
        "BAM and CRAM count.",
    ),
    click.Option(
        ["--long-reads"],
        type=click.Choice(["unmapped", "error"]),
        default="unmapped",
        show_default=True,
        help="What becomes of reads of more than 1,500 bases: they stay unmapped, with a warning, "
        "or the run ends.",
    ),
    click.Option(
        ["-I", "--insert-size", "insert_size"],
        metavar="MEAN[,SD[,MAX[,MIN]]]",
        help="The size of templates in bases.  [default: estimated from the first pairs]",
    ),
    click.Option(
        ["-k", "--seed-length", "seed_length"],
        type=click.IntRange(8, 200),
        metavar="N",
        help="Begin with matches of at least N bases.  [default: 16 to 64, from the length of "
        "the reads]",
    ),
    _number("-A --match match", 1, "The score of two equal bases."),
    _number("-B --mismatch mismatch", 4, "The penalty of two different bases."),
    click.Option(
        ["-O", "--gap-open", "gap_open"],
        metavar="N[,N]",
        default="6",
        show_default=True,
        help="The penalty of opening a deletion, an insertion.",
    ),
    click.Option(
        ["-E", "--gap-extend", "gap_extend"],
        metavar="N[,N]",
        default="1",
        show_default=True,
        help="The penalty of each base of a gap.",
    ),
    _number("-L --clipping clipping", 5, "The penalty of clipping an end of a read."),
    _number("-U --unpaired unpaired", 17, "The penalty of mates that are not a proper pair."),
    click.Option(
        ["-T", "--min-score", "min_score"],
        type=click.IntRange(0),
        metavar="N",
        default=30,
        show_default=True,
        help="The least score of an alignment that is reported.",
    ),
    click.Option(
        ["-a", "--all", "all_placements"],
        is_flag=True,
        help="Report the other placements of a read too, as secondary alignments.",
    ),
    click.Option(
        ["-N", "--max-secondary", "max_secondary"],
        type=click.IntRange(0),
        metavar="N",
        help="Report at most N secondary alignments of a read, the best ones.  [default: none, or "
        "all with --all]",
    ),
    click.Option(
        ["--max-xa", "max_xa"],
        type=click.IntRange(0),
        metavar="N",
        help="Tell of other placements in the tag XA if there are at most N whose score is 80% of "
        "the best or more, as bwa mem does with N = 5.  [default: no XA]",
    ),
    click.Option(
        ["--sort-memory"],
        metavar="BYTES",
        hidden=True,
        callback=_SIZE,
    ),
    click.Option(
        ["--temporary-folder"],
        metavar="FOLDER",
        shell_complete=complete_folders,
        help="Where alignments wait to be sorted if there are too many for memory.",
    ),
    *RUN_OPTIONS,
    click.Option(
        ["--multiqc"],
        metavar="FILE",
        shell_complete=complete_files,
        help="Write counts for MultiQC to FILE, named SAMPLE_mqc.json, and plots of insert sizes "
        "and mapping qualities to files beside it.",
    ),
    *MESSAGE_OPTIONS,
    click.Option(["--block-size"], callback=_SIZE, hidden=True),
]
"""The arguments and options, in the order of the help."""


def map_options(given: Given, command: str) -> MapOptions:
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
        If options exclude each other, or a file of mates has no other.
    MummergpuError
        If an option makes no sense.
    """
    from mummergpu.pipeline.map_options import MapOptions

    kernel_folder = folder_of_kernels(os.environ)
    return MapOptions(
        reference_path=given["reference"],
        sources=_sources(given),
        output=_target(given),
        threads=given["threads"],
        seed_length=given["seed_length"],
        insert_sizes=_insert_sizes(given["insert_size"]),
        costs=_costs(given),
        least_score=given["min_score"],
        unpaired=given["unpaired"],
        most_secondary=_most_secondary(given),
        most_alternatives=_most_alternatives(given),
        memory=given["max_memory"],
        device=device_options(given, None if kernel_folder is None else str(kernel_folder)),
        read_group=_read_group(given),
        keeps_groups=given["read_group"] is None and not given["no_read_group"],
        comments=given["comments"],
        sort=_sort_options(given),
        gpu_compression=_compresses_on_gpu(given),
        verify=given["verify"],
        any_letters=given["any_letters"],
        no_empty=given["no_empty"],
        refuses_long=given["long_reads"] == "error",
        command=command,
        block_size=given["block_size"],
    )


def _target(given: Given) -> OutputTarget:
    """Return where the alignments go: SAM, unless the option or the name says otherwise."""
    from mummergpu.output.targets import DEFAULT_FORMAT, target_of

    target = target_of(given["output"], given["format_name"])
    return target_of(given["output"], "sam") if target.format == DEFAULT_FORMAT else target


def _compresses_on_gpu(given: Given) -> bool:
    asked: bool = given["gpu_compression"]
    if asked and (given["cpu"] or given["backend"] == "cpu"):
        raise click.UsageError("--gpu-compression and --backend cpu exclude each other")
    return asked


def _read_group(given: Given) -> ReadGroup | None:
    from mummergpu.output.records.sam_options import read_group_of, usual_read_group

    text = given["read_group"]
    if given["no_read_group"]:
        if text is not None:
            raise click.UsageError("--read-group and --no-read-group exclude each other")
        return None
    return usual_read_group(given["reads"]) if text is None else read_group_of(text)


def _sources(given: Given) -> tuple[ReadSource, ...]:
    """Return the files of reads: two and two are mates, unless they are single or interleaved."""
    from mummergpu.input.blocks.read_files import MateFiles, ReadFile

    paths, interleaved, single = given["reads"], given["interleaved"], given["single"]
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
    from mummergpu.mapping.placing.insert_sizes import InsertSizes

    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 4 or not all(0 < number < 1e6 for number in numbers):
        raise OptionError("--insert-size", f"'{text}' is not MEAN[,SD[,MAX[,MIN]]]")
    mean = numbers[0]
    deviation = numbers[1] if len(numbers) > 1 else mean / 10
    bounds = [int(number) for number in numbers[2:]]
    if len(bounds) == 2 and bounds[0] < bounds[1]:
        raise OptionError("--insert-size", f"the largest size, {bounds[0]}, is below the smallest")
    return InsertSizes.of_user(mean, deviation, *bounds)


def _most_secondary(given: Given) -> int:
    """Return the most secondary alignments of a read that are reported."""
    asked: int | None = given["max_secondary"]
    if asked is not None:
        return asked
    return ALL_PLACEMENTS if given["all_placements"] else 0


def _most_alternatives(given: Given) -> int:
    """Return the most placements in the tag XA of an alignment; 0 for no such tag."""
    most: int = given["max_xa"] or 0
    if most and _most_secondary(given):
        option = "--all" if given["max_secondary"] is None else "--max-secondary"
        raise click.UsageError(f"--max-xa and {option} exclude each other")
    return most


def _two_numbers(text: str, option: str) -> tuple[int, int]:
    words = text.split(",")
    if not 1 <= len(words) <= 2 or not all(word.isascii() and word.isdigit() for word in words):
        raise OptionError(option, f"'{text}' is not a number, nor two such as 6,6")
    return int(words[0]), int(words[-1])


def _costs(given: Given) -> Costs:
    from mummergpu.viterbi.recurrence.model import Costs

    deletion_open, insertion_open = _two_numbers(given["gap_open"], "--gap-open")
    deletion_extend, insertion_extend = _two_numbers(given["gap_extend"], "--gap-extend")
    return Costs(
        match=given["match"],
        mismatch=given["mismatch"],
        insertion_open=insertion_open,
        insertion_extend=insertion_extend,
        deletion_open=deletion_open,
        deletion_extend=deletion_extend,
        end_bonus=given["clipping"],
    )


def _sort_options(given: Given) -> SortOptions | None:
    if not given["sort"] and not given["mark_duplicates"]:
        return None
    from mummergpu.output.sorting.options import SortOptions

    memory = {} if given["sort_memory"] is None else {"memory_bytes": given["sort_memory"]}
    return SortOptions(
        by_coordinate=given["sort"],
        mark_duplicates=given["mark_duplicates"],
        folder=given["temporary_folder"],
        threads=given["threads"],
        **memory,
    )
