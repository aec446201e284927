"""The options of the main job, in sections: their names, defaults and help.

MUMmer's options may be written with one dash or two, before or after the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.exit_on_signal import PROGRAM as PROGRAM
from mummergpu.cli.format_options import format_options
from mummergpu.cli.option_names import WordedCommand
from mummergpu.cuda.device_library import DEVICE_LIBRARIES
from mummergpu.index.tree.policy import DEFAULT_POLICY, LETTERS
from mummergpu.pipeline.downstream_presets import PRESETS
from mummergpu.runtime.processors import processor_count
from mummergpu.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

HELP_NAMES: Final = ("-h", "-help", "--help")

HELP_OPTIONS: Final[dict[str, Any]] = {
    "help_option_names": list(HELP_NAMES),
    "max_content_width": 100,
}

_POLICY_HELP: Final = {
    "query_texture": "Read queries through a texture (GPU only).",
    "reference_texture": "Read the reference through a texture (GPU only).",
    "tree_texture": "Read the tree through textures (GPU only).",
    "merged_tree": "Keep the two halves of a node side by side.",
    "two_dimensional_reference": "Lay the reference out in two dimensions.",
    "two_dimensional_tree": "Lay the nodes out in two dimensions.",
    "node_reordering": "Number the nodes breadth first, then depth first.",
}


@dataclass
class Session:
    """The words that the user wrote, and whether he asks for more messages, such as tracebacks."""

    arguments: list[str]
    verbose: bool = False


AUTO: Final = "auto"

_SHIFTS: Final = {"k": 10, "K": 10, "M": 20, "G": 30}


def _positive(text: str) -> int:
    """Return the positive number that the text spells, or 0 if it spells none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _integer(_context: click.Context, _parameter: click.Parameter, text: str) -> int:
    number = _positive(text)
    if not number:
        raise click.BadParameter(f"'{text}' is not a positive integer")
    return number


def _optional_integer(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | None:
    return None if text is None else _integer(context, parameter, text)


def _size(_context: click.Context, _parameter: click.Parameter, text: str) -> int:
    """Return a number of bases or bytes; the suffixes k, M and G stand for powers of 1024."""
    shift = _SHIFTS.get(text[-1:], 0)
    number = _positive(text[:-1] if shift else text) << shift
    if not number:
        raise click.BadParameter(f"'{text}' is not a size such as 500000, 64k or 8M")
    return number


def _optional_size(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | None:
    return None if text is None else _size(context, parameter, text)


def _page_size(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | str | None:
    """Return a number of bases, `AUTO` (as many as memory allows), or None if not given."""
    return text if text in (AUTO, None) else _size(context, parameter, text)


def _device(context: click.Context, _parameter: click.Parameter, text: str) -> int:
    if text == "all" or re.fullmatch("[0-9]+(,[0-9]+)+", text):
        message = f"'{text}' names several GPUs, and a process uses one"
        if any(option.name == "cluster" for option in context.command.params):
            message += "; --cluster local:N gives each of N processes a GPU of its own"
        raise click.BadParameter(message)
    if not re.fullmatch("[0-9]{1,5}", text):
        raise click.BadParameter(f"'{text}' is not the number of a GPU")
    return int(text)


def _policy(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    if text == AUTO:
        from mummergpu.cli.removed_options import AUTO_POLICY

        raise click.UsageError(AUTO_POLICY)
    return text


def _version(context: click.Context, _parameter: click.Parameter, params: bool) -> None:
    if params:
        click.echo(f"{PROGRAM} {__version__}")
        context.exit()


def _verbose(context: click.Context, _parameter: click.Parameter, params: bool) -> bool:
    session = context.find_object(Session)
    if session is not None:
        session.verbose = params
    return params


def complete_files(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Let the shell complete the name of a file."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_folders(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Let the shell complete the name of a folder."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def flag(names: str, text: str) -> click.Option:
    """Return an option without a value, from its names and that of its parameter."""
    return click.Option(names.split(), is_flag=True, help=text)


def _policyflag(name: str, letter: str) -> click.Option:
    option = name.replace("_", "-")
    text = f"({letter}) {_POLICY_HELP[name]}"
    return click.Option([f"--{option}/--no-{option}"], default=None, help=text)


Sections = Mapping[str, Sequence[click.Option]]
"""The options of a command, by the titles of their sections."""


class SectionedCommand(WordedCommand):
    """A command with its options in sections."""

    def __init__(
        self, name: str, *, arguments: Sequence[click.Argument], sections: Sections, **told: Any
    ) -> None:
        options = (option for options in sections.values() for option in options)
        super().__init__(name, **(told | {"params": [*arguments, *options]}))
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section of options under its own title; the help comes last."""
        help_option = self.get_help_option(ctx)
        for title, options in self.sections.items():
            records = [record for option in options if (record := option.get_help_record(ctx))]
            if title == INFORMATION and help_option:
                records.append(help_option.get_help_record(ctx) or ("", ""))
            with formatter.section(title):
                formatter.write_dl(records)


INFORMATION: Final = "Information"
"""The title of the section with the help, which is the last one."""

MATCH_SECTIONS: Final[dict[str, list[click.Option]]] = {
    "Matches": [
        click.Option(
            ["-l", "--min-length", "min_length"],
            callback=_integer,
            metavar="N",
            default="20",
            show_default=True,
            help="Report matches of at least N bases.",
        ),
        flag("-maxmatch --maxmatch maxmatch", "Report all matches.  [default]"),
        flag(
            "-mumreference --mumreference -mumcand --mumcand mumreference",
            "Report only matches whose bases occur once in the reference.",
        ),
        flag(
            "-mum --mum mum",
            "Report only matches whose bases occur once in the reference and once in the query.",
        ),
        flag("-b both", "Search both strands: each query and its reverse complement."),
        flag("-r reverse", "Search only the reverse complement of each query."),
        flag("-n acgt_only", "Match only A, C, G and T, in upper or lower case.  [always on]"),
    ],
    "Input": [
        flag("--any-letters", "Accept records that are not DNA or RNA, such as proteins."),
        flag("--no-empty", "Treat a query file without reads as an error."),
        flag(
            "--pair",
            "Read pairs: first and second mates from two files in turn, or one after the other "
            "from one file. Names end in /1 and /2; mates whose names differ are an error.",
        ),
    ],
    "Output": [
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            multiple=True,
            shell_complete=complete_files,
            help="Write matches to FILE, which appears once it is complete, in the format that its "
            "name ends with; it is compressed if that is followed by .gz, .bgz or .zst. May be "
            "given several times.  [default: standard output]",
        ),
        click.Option(
            ["--for", "for_program"],
            type=click.Choice(PRESETS),
            help="Write what this program reads. mgaps: three columns, without -c and -F. nucmer: "
            "the same, with -b unless -r is given and -mumreference unless another mode is. "
            "mummerplot: -c, with -b unless -r is given, without -s.",
        ),
        flag(
            "-c forward_coordinates",
            "Count the query positions of reverse matches on the forward strand; with -b or -r.",
        ),
        flag(
            "-F four_columns",
            "Name the reference's record in each row, even if it has only one.",
        ),
        flag("-L show_lengths", "Write the length of each query into its header."),
        flag("-s show_sequences", "Write the bases of each match below its row."),
    ],
    "Formats": format_options(_optional_integer),
    "Search": [
        click.Option(
            ["-t", "-qthreads", "--threads"],
            callback=_integer,
            metavar="N",
            default=lambda: str(processor_count()),
            help="Number of threads.  [default: all cores]",
        ),
        click.Option(
            ["--backend"],
            type=click.Choice(["auto", "cpu", "cuda"]),
            default="auto",
            show_default=True,
            help="Search on the processor (cpu) or on an NVIDIA GPU (cuda); auto takes a GPU if "
            "there is one and the work is enough for it to be the faster one.",
        ),
        flag("-C cpu", "The same as --backend cpu."),
        click.Option(
            ["--cluster"],
            metavar="CLUSTER",
            help="Work on a cluster of Dask, with the same output: tcp://HOST:PORT of its "
            "scheduler, local:N for N processes here, each with a GPU of its own, or slurm:FILE "
            "with options of dask-jobqueue (pip install 'mummergpu[dask]').",
        ),
        click.Option(
            ["--search"],
            type=click.Choice([AUTO, "tree", "kmer"]),
            default=AUTO,
            show_default=True,
            help="Search the paper's suffix trees (tree), or a table of k-mers in which only some "
            "positions of a query are looked up (kmer). Both find the same matches; auto is kmer, "
            "which is faster, unless --page-size or an option of the trees is given.",
        ),
        click.Option(
            ["--page-size"],
            callback=_page_size,
            metavar="BASES",
            help="Divide the reference into pages of at most so many bases, or 'auto' for pages as "
            "large as memory allows.  [default: 8M with trees, else auto]",
        ),
        click.Option(
            ["--address-bits"],
            type=click.Choice(["24", "32"]),
            help="Bits of an address in a tree's node: 24 as in the paper, or 32 for pages of more "
            "than 8M.  [default: as the pages need]",
        ),
        click.Option(
            ["--max-memory"],
            callback=_optional_size,
            metavar="BYTES",
            help="Most memory for the reference and its suffix trees or tables; pages that do not "
            "fit into it together are searched in groups.  [default: half of what is free]",
        ),
        flag("--verify", "Compare all of an index file with its checksums first."),
        click.Option(
            ["--block-size"],
            callback=_optional_size,
            metavar="BASES",
            help="Search about so many bases of queries at a time.  [default: chosen]",
        ),
        click.Option(
            ["--device"],
            callback=_device,
            metavar="N",
            default="0",
            show_default=True,
            help="Which GPU to use, as the driver counts them.",
        ),
        click.Option(
            ["--gpu-memory"],
            callback=_optional_size,
            metavar="BYTES",
            help="The most memory of the GPU to use.  [default: nearly all that is free]",
        ),
        click.Option(
            ["--device-library"],
            type=click.Choice([AUTO, *DEVICE_LIBRARIES]),
            default=AUTO,
            show_default=True,
            help="The library that the GPU is used through; the matches are the same. auto is "
            "PyCUDA where it is installed (mummergpu[cuda]), else cuda-bindings, which need no "
            "compiler to be installed (mummergpu[cuda-wheels]).",
        ),
    ],
    "Data policies, the layout of suffix trees": [
        click.Option(
            ["--policy"],
            callback=_policy,
            metavar="CODE",
            help="Letters of the policies to switch on, or 'none': Q, R and T read queries, "
            "reference and tree through textures, m keeps the halves of a node side by side, r "
            "and t lay reference and tree out in two dimensions, n numbers the nodes breadth "
            f"first, then depth first.  [default: {DEFAULT_POLICY.code}]",
        ),
        *(_policyflag(name, letter) for name, letter in LETTERS.items()),
    ],
    "Reports": [
        click.Option(
            ["--stats"],
            metavar="FILE",
            shell_complete=complete_files,
            help="Write what was found, counts, bytes, seconds and memory of each stage to FILE, "
            "as JSON.",
        ),
        click.Option(
            ["--multiqc"],
            metavar="FILE",
            shell_complete=complete_files,
            help="Write counts for MultiQC to FILE, named SAMPLE_mqc.json.",
        ),
        flag("--profile", "Count the nodes that are visited on a GPU, for --stats."),
        click.Option(
            ["-v", "--verbose", "verbose"],
            is_flag=True,
            callback=_verbose,
            help="Write more about the run to standard error, and how far it is every 30 seconds "
            "where that is no terminal.",
        ),
        flag("-q --quiet quiet", "Write nothing but errors to standard error."),
        flag("--no-progress", "Show no progress."),
    ],
    INFORMATION: [
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit.",
        ),
    ],
}

MAIN_OPTIONS: Final = {
    option.name: option for options in MATCH_SECTIONS.values() for option in options
}
"""The options of the main job by their names, some of which other commands have, too."""

MACHINE_OPTIONS: Final = [
    MAIN_OPTIONS[name]
    for name in (
        *("threads", "max_memory", "backend", "cpu"),
        *("device", "gpu_memory", "device_library"),
    )
]
"""What every command that searches says of where it runs."""

INPUT_OPTIONS: Final = [MAIN_OPTIONS[name] for name in ("any_letters", "no_empty", "verify")]
"""What every command that searches says of the files that it reads."""

MESSAGE_OPTIONS: Final = [MAIN_OPTIONS[name] for name in ("verbose", "quiet", "no_progress")]
"""What every command says of its messages."""
