"""The types of options, and the options of the main job, some of which other commands share.

MUMmer's options may be written with one dash or two, before or after the files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cuda.device_library import DEVICE_LIBRARIES
from mummergpu.errors import OptionClashError, OptionError
from mummergpu.index.tree.policy import DEFAULT_POLICY, LETTERS
from mummergpu.output.formats import RowKind, names_of
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

AUTO: Final = "auto"

_OTHER_NAMES: Final = {
    "deletion_extend": ("gap_extend",),
    "deletion_open": ("gap_open",),
    "end_bonus": ("clipping",),
    "equal_bases": ("eqx",),
    "extend": ("no_extend",),
    "format": ("format_name",),
    "header_lines": ("header",),
    "insertion_extend": ("gap_extend",),
    "insertion_open": ("gap_open",),
    "max_secondary": ("all_placements",),
    "mode": ("mum", "mumreference", "maxmatch"),
}
"""The options of the command by the Python parameter, if the names differ."""

_POLICY_HELP: Final = {
    "query_texture": "Read queries through a texture (GPU only).",
    "reference_texture": "Read the reference through a texture (GPU only).",
    "tree_texture": "Read the tree through textures (GPU only).",
    "merged_tree": "Store the two halves of a node side by side.",
    "two_dimensional_reference": "Lay out the reference in two dimensions.",
    "two_dimensional_tree": "Lay out the nodes in two dimensions.",
    "node_reordering": "Number the nodes breadth first, then depth first.",
}

Params = Mapping[str, Any]
"""The options of a command line by their parameter names, as click passes them."""


@dataclass
class Session:
    """The words of the command line, and whether to show more messages, such as tracebacks.

    `is_link` means that the program runs under a link with the name of another one.
    """

    arguments: list[str]
    verbose: bool = False
    is_link: bool = False


def written(option: str, context: click.Context) -> str:
    """Return the option of an error as the user of a command may have written it.

    `option` is a Python parameter, with its value after ``=`` if that matters; other texts stay as
    they are.
    """
    name, equals, value = option.partition("=")
    names = (name, *_OTHER_NAMES.get(name, ()))
    known = [parameter for parameter in context.command.params if parameter.name in names]
    if not known:
        return "--" + option.replace("_", "-") if "_" in option else option
    given = (parameter for parameter in known if is_given(context, parameter.name))
    parameter = next(given, known[0])
    if isinstance(parameter, click.Argument):
        return name.upper()
    if name == "min_length":
        # MUMmer, and all messages, write -l.
        return parameter.opts[0]
    return max(parameter.opts, key=lambda text: (text.startswith("--"), len(text))) + (
        f" {value}" if equals else ""
    )


def load(place: str) -> Any:
    """Import and return an object of the package, such as ``pipeline.match:run``."""
    from importlib import import_module
    from operator import attrgetter

    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(f"mummergpu.{module}"))


def is_given(context: click.Context, name: str | None) -> bool:
    """Return whether the user wrote an option, even with its default value."""
    return context.get_parameter_source(name or "") is ParameterSource.COMMANDLINE


def given(params: Params, *names: str, **renamed: str) -> dict[str, Any]:
    """Return the options that the user gave, for an options class with defaults for the others.

    `renamed` are fields whose options have other names.
    """
    fields = {name: name for name in names} | renamed
    return {field: params[name] for field, name in fields.items() if params[name] is not None}


class _Number(click.ParamType):  # type: ignore[type-arg]
    """A positive integer."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        return self._positive(value) or self.fail(f"'{value}' is not a positive integer", param)

    def _positive(self, text: str) -> int:
        """Return the positive number that the text spells, or 0 if it spells none."""
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


class _Size(_Number):
    """A number of bases or bytes, or one of some words; k, M and G stand for powers of 1024."""

    name = "size"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self._words or isinstance(value, int):
            return value
        shift = {"k": 10, "K": 10, "M": 20, "G": 30}.get(value[-1:], 0)
        size = self._positive(value[:-1] if shift else value) << shift
        return size or self.fail(f"'{value}' is not a size such as 500000, 64k or 8M", param)


class _Device(click.ParamType):  # type: ignore[type-arg]
    """The number of a GPU."""

    name = "device"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        if text == "all" or re.fullmatch("[0-9]+(,[0-9]+)+", text):
            message = f"'{text}' names several GPUs, and a process uses one"
            if ctx and any(option.name == "cluster" for option in ctx.command.params):
                message += "; --cluster local:N gives each of N processes a GPU of its own"
            self.fail(message, param, ctx)
        if not re.fullmatch("[0-9]{1,5}", text):
            self.fail(f"'{text}' is not the number of a GPU", param, ctx)
        return int(text)


NUMBER: Final = _Number()
SIZE: Final = _Size()


class _FieldOption(click.Option):
    """An option whose default is a field of an options class, imported only for the help."""

    def __init__(self, names: Sequence[str], source: str, **settings: Any) -> None:
        super().__init__(names, **{**settings, "show_default": True})
        self._source = source

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        """Return None for a run, and the default of the class for the help."""
        if call:
            return None
        return load(self._source)


def flag(names: str, text: str) -> click.Option:
    """Return an option without a value; `names` may include that of its parameter."""
    return click.Option(names.split(), is_flag=True, help=text)


def option(
    names: str, text: str, metavar: str | None = "N", of: str = "", **settings: Any
) -> click.Option:
    """Return an option with a value.

    `of` is the field whose default holds, such as ``pipeline.map_options:MapOptions.min_score``.
    """
    settings = {"metavar": metavar, "help": text, "show_default": "default" in settings} | settings
    return (
        _FieldOption(names.split(), of, **settings)
        if of
        else click.Option(names.split(), **settings)
    )


def integer(names: str, text: str, of: str = "", **settings: Any) -> click.Option:
    """Return an option with an integer, whose range the class of the options checks."""
    return option(names, text, of=of, type=int, **settings)


def choice(
    names: str, words: Collection[str], text: str, default: str | None = None
) -> click.Option:
    """Return an option whose value is one of some words."""
    settings = {} if default is None else {"default": default}
    return option(names, text, None, type=click.Choice(list(words)), **settings)


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


def file_option(names: str, text: str, metavar: str = "FILE", **settings: Any) -> click.Option:
    """Return an option with the name of a file."""
    return option(names, text, metavar, shell_complete=complete_files, **settings)


def folder_option(names: str, text: str, metavar: str = "DIR", **settings: Any) -> click.Option:
    """Return an option with the name of a folder."""
    return option(names, text, metavar, shell_complete=complete_folders, **settings)


def files(
    name: str, several: bool = False, required: bool = True, metavar: str | None = None
) -> click.Argument:
    """Return an argument that names a file, or several."""
    nargs = -1 if several else 1
    return click.Argument(
        [name], nargs=nargs, required=required, metavar=metavar, shell_complete=complete_files
    )


class WordedCommand(click.Command):
    """A command whose errors name options as this command spells them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except OptionClashError as clash:
            both = f"{written(clash.first, ctx)} and {written(clash.other, ctx)}"
            raise click.UsageError(f"{both} exclude each other", ctx) from clash
        except OptionError as error:
            error.option = written(error.option, ctx)
            raise


Sections = Mapping[str, Sequence[click.Option]]
"""The options of a command, by the titles of their sections."""


class SectionedCommand(WordedCommand):
    """A command with its options in sections."""

    def __init__(
        self, name: str, *, arguments: Sequence[click.Argument], sections: Sections, **settings: Any
    ) -> None:
        options = (option for options in sections.values() for option in options)
        merged = {"context_settings": HELP_OPTIONS, **settings, "params": [*arguments, *options]}
        super().__init__(name, **merged)
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


def _policy(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    if text == AUTO:
        from mummergpu.cli.removed_options import AUTO_POLICY

        raise click.UsageError(AUTO_POLICY)
    return text


def _policy_flag(name: str, letter: str) -> click.Option:
    option = name.replace("_", "-")
    text = f"({letter}) {_POLICY_HELP[name]}"
    return click.Option([f"--{option}/--no-{option}"], default=None, help=text)


def _threads(names: str) -> click.Option:
    text = "Number of threads.  [default: all cores]"
    return click.Option(names.split(), type=NUMBER, metavar="N", default=processor_count, help=text)


def _version(context: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        click.echo(f"{PROGRAM} {__version__}")
        context.exit()


def _verbose(context: click.Context, _parameter: click.Parameter, is_verbose: bool) -> bool:
    session = context.find_object(Session)
    if session is not None:
        session.verbose = is_verbose
    return is_verbose


INFORMATION: Final = "Information"
"""The title of the section with the help, which is the last one."""

MULTIQC: Final = file_option(
    "--multiqc", "Write counts for MultiQC to FILE, named SAMPLE_mqc.json."
)

MATCH_SECTIONS: Final[Sections] = {
    "Matches": [
        option(
            "-l --min-length min_length",
            "Minimum length of a match.",
            of="index.options:IndexOptions.minimum_length",
            type=NUMBER,
        ),
        flag("-maxmatch --maxmatch maxmatch", "Report all matches.  [default]"),
        flag(
            "-mumreference --mumreference -mumcand --mumcand mumreference",
            "Report only matches that are unique in the reference.",
        ),
        flag(
            "-mum --mum mum",
            "Report only matches that are unique in the reference and in the query.",
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
            "Read pairs: first and second mates from two files in turn, or interleaved in one "
            "file. Names end in /1 and /2; mates with different names are an error.",
        ),
    ],
    "Output": [
        file_option(
            "-o --output",
            "Write matches to FILE, in the format of its suffix (see --format), compressed if "
            ".gz, .bgz or .zst follows. FILE appears when it is complete. "
            "May be repeated.  [default: standard output]",
            multiple=True,
        ),
        choice(
            "--for for_program",
            PRESETS,
            "Write what this program reads. mgaps: three columns, without -c and -F. nucmer: the "
            "same, with -b unless -r is given and -mumreference unless another mode is. "
            "mummerplot: -c, with -b unless -r is given, without -s.",
        ),
        flag(
            "-c forward_coordinates",
            "Report query positions of reverse matches on the forward strand; with -b or -r.",
        ),
        flag(
            "-F four_columns",
            "Write the name of the reference record in each row, even if there is only one.",
        ),
        flag("-L show_lengths", "Write the length of each query in its header."),
        flag("-s show_sequences", "Write the bases of each match below its row."),
    ],
    "Formats": [
        choice(
            "--format format_name",
            names_of(RowKind.MATCHES),
            "Output format.  [default: from the suffix of -o, such as .paf or .bam, else mummer]",
        ),
        option(
            "--read-group",
            r"Read group of all queries, such as '@RG\tID:x\tSM:y\tPL:ILLUMINA', or none; for SAM "
            "and BAM.  [default: the name of the first query file]",
            "LINE",
        ),
        flag("--primary-only", "Write only the longest match of each query; for SAM and BAM."),
        option(
            "--max-hits",
            "Write at most the N longest matches of each query; for SAM and BAM.",
            type=NUMBER,
        ),
        flag("--secondary-seq", "Write the bases of secondary alignments, too; for SAM and BAM."),
    ],
    "Search": [
        _threads("-t -qthreads --threads"),
        choice(
            "--backend",
            (AUTO, "cpu", "cuda"),
            "Search on the CPU (cpu) or on an NVIDIA GPU (cuda); auto takes the one that is "
            "expected to be faster.",
            AUTO,
        ),
        flag("-C cpu", "The same as --backend cpu."),
        option(
            "--cluster",
            "Run on a Dask cluster, with the same output: tcp://HOST:PORT of its scheduler, "
            "local:N for N processes on this machine, each with a GPU of its own, or slurm:FILE "
            "with options of dask-jobqueue (pip install 'mummergpu[dask]').",
            "CLUSTER",
        ),
        choice(
            "--search",
            (AUTO, "tree", "kmer"),
            "Search the paper's suffix trees (tree), or a k-mer table (kmer). Both find the same "
            "matches; auto is kmer, which is faster, unless --page-size or an option of the trees "
            "is given.",
            AUTO,
        ),
        option(
            "--page-size",
            "Divide the reference into pages of at most this size, or 'auto' for pages as large as "
            "memory allows.  [default: 8M with trees, else auto]",
            "BASES",
            type=_Size(AUTO),
        ),
        choice(
            "--address-bits",
            ("24", "32"),
            "Bits of an address in a tree node: 24 as in the paper, or 32 for pages of more than "
            "8M.  [default: as the pages need]",
        ),
        option(
            "--max-memory",
            "Memory limit for the reference and its suffix trees or tables; pages that do not fit "
            "together are searched in groups.  [default: half of the free memory]",
            "BYTES",
            type=SIZE,
        ),
        flag("--verify", "Verify the checksums of an index file first."),
        option(
            "--block-size",
            "Number of query bases that are searched at a time.  [default: chosen]",
            "BASES",
            type=SIZE,
        ),
        option("--device", "GPU to use, as the driver counts them.", type=_Device(), default="0"),
        option(
            "--gpu-memory",
            "Limit of GPU memory.  [default: nearly all that is free]",
            "BYTES",
            type=SIZE,
        ),
        choice(
            "--device-library",
            (AUTO, *DEVICE_LIBRARIES),
            "Library through which the GPU is used; the output is the same. auto is PyCUDA if it "
            "is installed (mummergpu[cuda]), else cuda-bindings, which need no compiler to be "
            "installed (mummergpu[cuda-wheels]).",
            AUTO,
        ),
    ],
    "Data policies, the layout of suffix trees": [
        option(
            "--policy",
            "Letters of the policies to switch on, or 'none': Q, R and T read queries, reference "
            "and tree through textures, m stores the two halves of a node side by side, r and t "
            "lay out reference and tree in two dimensions, n numbers the nodes breadth first, then "
            "depth first. The flags below add to CODE, or to 'none' without one.  "
            f"[default: {DEFAULT_POLICY.code}]",
            "CODE",
            callback=_policy,
        ),
        *(_policy_flag(name, letter) for name, letter in LETTERS.items()),
    ],
    "Reports": [
        file_option(
            "--stats",
            "Write counts, bytes, and the time and memory of each stage to FILE, as JSON.",
        ),
        MULTIQC,
        flag("--profile", "Count the nodes that a GPU visits, for --stats."),
        click.Option(
            ["-v", "--verbose", "verbose"],
            is_flag=True,
            callback=_verbose,
            help="Write more messages to standard error, and the progress every 30 seconds if it "
            "is not a terminal.",
        ),
        flag("-q --quiet quiet", "Write only errors to standard error."),
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
        )
    ],
}

MAIN_OPTIONS: Final = {
    option.name: option for options in MATCH_SECTIONS.values() for option in options
} | {"threads": _threads("-t --threads")}
"""The options that other commands share, by name; ``-qthreads`` is a word of mummer."""

GPU_OPTIONS: Final = [MAIN_OPTIONS[name] for name in ("device", "gpu_memory", "device_library")]
"""Which GPU a command uses, and how."""

MACHINE_OPTIONS: Final = [
    *(MAIN_OPTIONS[name] for name in ("threads", "max_memory", "backend", "cpu")),
    *GPU_OPTIONS,
]
"""Where a command searches."""

INPUT_OPTIONS: Final = [MAIN_OPTIONS[name] for name in ("no_empty", "verify")]
"""Which files a command that aligns accepts."""

MESSAGE_OPTIONS: Final = [MAIN_OPTIONS[name] for name in ("verbose", "quiet", "no_progress")]
"""Which messages a command writes."""
