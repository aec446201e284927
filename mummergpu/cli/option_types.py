"""The options of the main job: their spellings, defaults and help, and what goes together.

MUMmer's words may be written with one dash or two, before or after the files.
"""

from __future__ import annotations

import os
from typing import Final

import click
from click_default_group import DefaultGroup

from mummergpu import __version__
from mummergpu.cli.endings import PROGRAM as PROGRAM
from mummergpu.index.tree.policy import DEFAULT_POLICY, LETTERS
from mummergpu.runtime.output_file import STANDARD_OUTPUT

HELP_OPTIONS: Final = {"help_option_names": ["-h", "-help", "--help"], "max_content_width": 100}

MATCH_HELP: Final = """Report every maximal exact match between queries and a reference.

REFERENCE is a FASTA file, or what 'mummergpu index' has made of one; each QUERY is FASTA,
FASTQ, SAM, BAM or CRAM, compressed or not, whatever its name; '-' is standard input.

The output is that of MUMmer 3.23's 'mummer -n', with these differences: all matches are
reported unless another mode is chosen (mummer's default is -mumreference), the rows of a
query are ordered by query position, then by reference position, and -mum with -l 1 does
not forget a match of one base at the first base of the reference."""

MATCH_EPILOG: Final = """Other commands: 'mummergpu index' makes a file that stands in for a
reference, so that nothing is built again; 'mummergpu workload' makes a reference and reads to
try this on; 'mummergpu doctor' says what this machine has and lacks; each has its own --help.
'mummergpu match' is the same as 'mummergpu'.

Exit codes: 0 done, 1 failure, 2 wrong usage, 130 interrupted."""


_POLICY_HELP: Final = {
    "query_texture": "Read queries through a texture.",
    "reference_texture": "Read the reference through a texture.",
    "tree_texture": "Read the tree through textures.",
    "merged_tree": "Keep the two halves of a node side by side.",
    "two_dimensional_reference": "Lay the reference out in two dimensions.",
    "two_dimensional_tree": "Lay the nodes out in two dimensions.",
    "node_reordering": "Number nodes breadth first, then depth first.",
}


AUTO: Final = "auto"

_SHIFTS: Final = {"k": 10, "K": 10, "M": 20, "G": 30}


def _positive(text: str) -> int:
    """Return the number that digits spell, or 0 if they do not spell a positive one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _integer(_context: click.Context, _parameter: click.Parameter, text: str) -> int:
    number = _positive(text)
    if not number:
        raise click.BadParameter(f"'{text}' is not a positive integer")
    return number


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
    """Return a number of bases, `AUTO` for as many as memory allows, or None if not given."""
    return text if text in (AUTO, None) else _size(context, parameter, text)


def _search(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """Return the name of a search; ``sampled`` is a former one."""
    return "kmer" if text == "sampled" else text


def _version(context: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given:
        click.echo(f"{PROGRAM} {__version__}")
        context.exit()


def _flag(names: str, text: str) -> click.Option:
    return click.Option(names.split(), is_flag=True, help=text)


def _policy_flag(name: str, letter: str) -> click.Option:
    option = name.replace("_", "-")
    text = f"({letter}) {_POLICY_HELP[name]}"
    return click.Option([f"--{option}/--no-{option}"], default=None, help=text)


SECTIONS: Final[dict[str, list[click.Option]]] = {
    "Matches": [
        click.Option(
            ["-l", "--min-length", "min_length"],
            callback=_integer,
            metavar="N",
            default="20",
            show_default=True,
            help="Least length of a match.",
        ),
        _flag("-maxmatch --maxmatch maxmatch", "Report all matches.  [default]"),
        _flag(
            "-mumreference --mumreference -mumcand --mumcand mumreference",
            "Report matches whose bases occur once in the reference.",
        ),
        _flag("-mum --mum mum", "Report matches whose bases occur once in both sequences."),
        _flag("-b both", "Search both strands of the queries."),
        _flag("-r reverse", "Search only the reverse strand."),
        _flag("-n acgt_only", "Match only A, C, G and T, of either case.  [always on]"),
    ],
    "Output": [
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            default=STANDARD_OUTPUT,
            help="Write matches to FILE, which appears when complete.  [default: standard output]",
        ),
        _flag("-c forward_coordinates", "Give reverse matches forward query positions."),
        _flag("-F four_columns", "Name the record in each row, even if there is just one."),
        _flag("-L show_lengths", "Show the lengths of queries in their headers."),
        _flag("-s show_sequences", "Show the bases of each match."),
    ],
    "Work": [
        click.Option(
            ["-t", "--threads"],
            callback=_integer,
            metavar="N",
            default=lambda: str(len(os.sched_getaffinity(0))),
            show_default="all cores",
            help="Number of working threads.",
        ),
        click.Option(
            ["--backend"],
            type=click.Choice(["auto", "cpu", "cuda"]),
            default="auto",
            show_default=True,
            help="What finds the matches.",
        ),
        _flag("-C cpu", "The same as --backend cpu."),
        click.Option(
            ["--search"],
            type=click.Choice([AUTO, "tree", "kmer", "sampled"]),
            callback=_search,
            metavar="[auto|tree|kmer]",
            default=AUTO,
            show_default=True,
            help="What is searched: the paper's suffix trees, or tables of k-mers, in which just "
            "some bases of a query are looked up. The matches are the same; 'auto' is 'kmer', "
            "the faster, unless an option below or --page-size speaks of trees.",
        ),
        click.Option(
            ["--page-size"],
            callback=_page_size,
            metavar="BASES",
            help="Most bases of a page of the reference, or 'auto' for pages as large as memory "
            "allows.  [default: 8M with trees, auto without]",
        ),
        click.Option(
            ["--address-bits"],
            type=click.Choice(["24", "32"]),
            help="Bits of a number in a node: 24 is the paper's format, 32 the wide one for pages "
            "above 8M.  [default: as the pages need]",
        ),
        click.Option(
            ["--builder"],
            type=click.Choice(["ukkonen", "sa"]),
            help="How trees are built: as in the paper, or the same ones from a suffix array, "
            "sooner; needs mummergpu[sa].  [default: ukkonen]",
        ),
        click.Option(
            ["--max-memory"],
            callback=_optional_size,
            metavar="BYTES",
            help="Most memory for the reference and its suffix trees or tables; pages that do not "
            "fit are searched one group after the other.  [default: half of what is free]",
        ),
        click.Option(["--block-size"], callback=_optional_size, hidden=True),
        click.Option(
            ["--device"],
            type=click.IntRange(min=0),
            metavar="N",
            default=0,
            show_default=True,
            help="Which GPU, as the driver counts them.",
        ),
        click.Option(
            ["--gpu-memory"],
            callback=_optional_size,
            metavar="BYTES",
            help="The most memory of the GPU to take.  [default: nearly all that is free]",
        ),
    ],
    "Data policies": [
        click.Option(
            ["--policy"],
            metavar="CODE",
            help="Letters of the policies that are on, or 'none'; the options below overrule it.  "
            f"[default: {DEFAULT_POLICY.code}]",
        ),
        *(_policy_flag(name, letter) for name, letter in LETTERS.items()),
    ],
    "Reports": [
        click.Option(
            ["--stats"],
            metavar="FILE",
            help="Write counts, bytes, seconds and memory of each stage as JSON.",
        ),
        _flag("--profile", "Let the GPU's kernels count visited nodes, for --stats."),
        click.Option(["--dot"], metavar="FILE", help="Write the suffix tree for Graphviz."),
        click.Option(["--dump-tree"], metavar="FILE", help="Write the nodes as a table."),
        _flag("-v --verbose verbose", "Say more on standard error."),
        _flag("-q --quiet quiet", "Say nothing but errors on standard error."),
        _flag("--no-progress", "Show no progress on a terminal."),
    ],
    "Information": [
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


class MatchCommand(click.Command):
    """The main job, with its options in sections."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage line without the word that may be left out."""
        formatter.write_usage(PROGRAM, " ".join(self.collect_usage_pieces(ctx)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section of options under its own title."""
        help_option = self.get_help_option(ctx)
        for title, options in SECTIONS.items():
            records = [record for option in options if (record := option.get_help_record(ctx))]
            if title == "Information" and help_option:
                records.append(help_option.get_help_record(ctx) or ("", ""))
            with formatter.section(title):
                formatter.write_dl(records)


class MainGroup(DefaultGroup):  # type: ignore[misc]
    """Commands, of which the main job needs no name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the main job where no command is named, before click looks at the rest.

        Else the group would swallow a ``--`` that is meant for the main job.
        """
        if args and args[0] not in self.commands:
            args.insert(0, self.default_cmd_name)
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed
