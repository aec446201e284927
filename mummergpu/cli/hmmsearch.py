"""The commands ``hmmsearch`` and ``hmmscan``: search profile HMMs in proteins, in HMMER's words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from mummergpu.cli.option_rules import FIRST_GPU, Params, device_options
from mummergpu.cli.option_types import (
    HELP_OPTIONS,
    INFORMATION,
    MAIN_OPTIONS,
    MESSAGE_OPTIONS,
    SectionedCommand,
    Sections,
    complete_files,
    flag,
)
from mummergpu.cli.run_verb import CommandRun, on_cluster
from mummergpu.input.bytes.formats import PROTEIN_FORMATS
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.pipeline.profile_options import ProfileSearchOptions


def _number(name: str, text: str) -> click.Option:
    dashes = "-" if len(name) == 1 else "--"
    return click.Option([dashes + name, name], type=click.FLOAT, metavar="X", help=text)


def _file(words: str, text: str) -> click.Option:
    return click.Option(words.split(), metavar="FILE", shell_complete=complete_files, help=text)


_TABLES: Final = {
    "tblout": _file(
        "--tblout tblout",
        "Write a table of targets to FILE.  [default: standard "
        "output, if no other file is asked for]",
    ),
    "domtblout": _file("--domtblout domtblout", "Write a table of domains to FILE."),
    "pfamtblout": _file("--pfamtblout pfamtblout", "Write a table in Pfam's format to FILE."),
    "parquet": _file("--parquet parquet", "Write the domains to FILE, as Parquet."),
    "alignment": _file(
        "-A alignment",
        "Write an alignment of the included domains of each profile to FILE, in Stockholm format.",
    ),
}


_SHORTEST_ROW: Final = 120
"""What HMMER demands of --textw."""

_NO_TEXT: Final = "Accepted, and of no effect: there is no text with alignments."


class HmmerCommand(SectionedCommand):
    """A command that takes words as HMMER does: long options may be cut, and are given once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words, with abbreviated options written out."""
        names = [name for one in self.get_params(ctx) for name in one.opts if name[:2] == "--"]
        end = args.index("--") if "--" in args else len(args)
        args = [*(_written_out(word, names, ctx) for word in args[:end]), *args[end:]]
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for one in order:
                if isinstance(one, click.Option) and order.count(one) > 1:
                    raise click.UsageError(f"{one.opts[0]} is given twice", ctx)
        return super().parse_args(ctx, args)


def _written_out(word: str, names: Sequence[str], context: click.Context) -> str:
    """Return a word; of an option, with its whole name."""
    name, equals, value = word.partition("=")
    found = [one for one in names if one.startswith(name)]
    if not name.startswith("--") or name in names or not found:
        return word
    if len(found) > 1:
        raise click.UsageError(f"{name} is ambiguous: {', '.join(found)}", context)
    return found[0] + equals + value


def _sections(scans: bool) -> Sections:
    """Return the options of a command, in the order of the help."""
    tables = [option for kind, option in _TABLES.items() if not scans or kind != "alignment"]
    targets = "profiles" if scans else "sequences"
    return {
        "Input": [
            flag("--translate", "Search in the open reading frames of nucleotides, in six frames."),
            flag(
                "--any-letters",
                "Take letters that look like nucleotides for amino acids; with --translate, "
                "letters that do not for N.",
            ),
            click.Option(
                ["--qformat" if scans else "--tformat", "sequence_format"],
                type=click.Choice(PROTEIN_FORMATS, case_sensitive=False),
                default="auto",
                metavar="FORMAT",
                help="The format of SEQUENCES, in HMMER's words: fasta, uniprot, embl, genbank, "
                "stockholm, clustal, afa and others.  [default: the content tells FASTA, UniProt, "
                "EMBL, GenBank, Stockholm and Clustal]",
            ),
            flag("--no-empty", "Treat a file without sequences as an error."),
            click.Option(
                ["--long-proteins"],
                type=click.Choice(["skip", "error"]),
                default="skip",
                show_default=True,
                help="Leave out proteins and ORFs of more than 100,000 residues, which HMMER does "
                "not search, with a warning, or treat them as an error.",
            ),
            click.Option(
                ["--code"],
                type=click.INT,
                metavar="N",
                default=1,
                show_default=True,
                help="With --translate, the genetic code: 1, 2, 4, 5, 6, 11, 25 and others, as "
                "NCBI numbers them.",
            ),
            click.Option(
                ["--min-orf"],
                type=click.INT,
                metavar="N",
                default=20,
                show_default=True,
                help="With --translate, search ORFs of at least N residues.",
            ),
            click.Option(
                ["--strand"],
                type=click.Choice(["both", "plus", "minus"]),
                default="both",
                show_default=True,
                help="With --translate, the strands of the records to translate.",
            ),
        ],
        "Output": [
            _file(
                "-o text",
                "Accepted: FILE gets the table of targets, as there is no text with alignments.",
            ),
            *tables,
            flag("--acc acc", "Accepted: tables have names and accessions."),
            flag("--noali noali", _NO_TEXT),
            flag(
                "--notextw notextw",
                _NO_TEXT if scans else "Do not wrap the rows of the alignment.",
            ),
            click.Option(["--textw"], type=click.INT, metavar="N", help=_NO_TEXT),
        ],
        "What is reported": [
            _number("E", f"Report {targets} with an E-value of at most X.  [default: 10]"),
            _number("T", f"Report {targets} with a score of at least X."),
            _number("domE", "Report domains with an E-value of at most X.  [default: 10]"),
            _number("domT", "Report domains with a score of at least X."),
        ],
        "What is included, that is, significant": [
            _number("incE", f"Include {targets} with an E-value of at most X.  [default: 0.01]"),
            _number("incT", f"Include {targets} with a score of at least X."),
            _number("incdomE", "Include domains with an E-value of at most X.  [default: 0.01]"),
            _number("incdomT", "Include domains with a score of at least X."),
        ],
        "Thresholds of the profiles": [
            flag("--cut_ga cut_ga", "Use the gathering cutoffs of each profile (GA)."),
            flag("--cut_nc cut_nc", "Use the noise cutoffs of each profile (NC)."),
            flag("--cut_tc cut_tc", "Use the trusted cutoffs of each profile (TC)."),
        ],
        "Filters": [
            flag("--max max", "Compare everything to the end: no filters, much slower."),
            _number("F1", "Let P-values up to X pass the first filter, MSV.  [default: 0.02]"),
            _number("F2", "Let P-values up to X pass the second, Viterbi.  [default: 0.001]"),
            _number("F3", "Let P-values up to X pass the third, Forward.  [default: 1e-5]"),
            flag("--nobias nobias", "Do not correct the first filter for composition."),
        ],
        "Statistics": [
            flag("--nonull2 nonull2", "Do not correct scores for biased composition."),
            _number(
                "Z", f"Compute E-values as if there were X {targets}.  [default: their number]"
            ),
            _number(
                "domZ",
                "Compute conditional E-values of domains as if X targets were reported.  "
                "[default: their number]",
            ),
            click.Option(
                ["--seed"],
                type=click.INT,
                metavar="N",
                default=42,
                show_default=True,
                help="Begin random numbers with N; 0: with another each time.",
            ),
        ],
        "Search": [
            MAIN_OPTIONS["threads"],
            MAIN_OPTIONS["cluster"],
            click.Option(
                ["--cpu", "workers"],
                type=click.IntRange(min=0),
                metavar="N",
                help="The same as -t N, in HMMER's words; 0 is one thread as well.",
            ),
            click.Option(
                ["--backend"],
                type=click.Choice(["auto", "cpu", "cuda"]),
                default="auto",
                show_default=True,
                help="Filter proteins on the processor or on a GPU; auto: on a GPU if it is there "
                "and there is much to do.",
            ),
            MAIN_OPTIONS["cpu"],
            click.Option(
                ["--filter-policy"],
                metavar="CODE",
                default="auto",
                show_default=True,
                help="How a GPU computes the Viterbi filter: warp, a warp for each sequence; a "
                "policy of threads in tiles, such as t8hrrrs; or auto, tiles for many sequences.",
            ),
        ],
        "Reports": [
            MAIN_OPTIONS["stats"],
            _file("--multiqc", "Write counts for MultiQC to FILE, named SAMPLE_mqc.json."),
            *MESSAGE_OPTIONS,
        ],
        INFORMATION: [],
    }


_ARGUMENTS: Final = [
    click.Argument(["profiles"], nargs=-1, required=True, shell_complete=complete_files),
    click.Argument(["sequences"], shell_complete=complete_files),
]


@click.command(
    "hmmsearch",
    context_settings=HELP_OPTIONS,
    cls=HmmerCommand,
    arguments=_ARGUMENTS,
    sections=_sections(scans=False),
)
def hmmsearch_command(**params: Any) -> None:
    """Search profile HMMs in proteins; the tables are those of HMMER's hmmsearch.

    PROFILES are files of HMMER, also pressed or compressed; SEQUENCES is a file of proteins (FASTA,
    UniProt's text, Stockholm and others), or with --translate reads or contigs in any format; '-'
    is standard input. Needs pyhmmer: pip install 'mummergpu[hmm]'.

    The table of targets goes to standard output unless an option names a file: 'mummergpu
    hmmsearch Pfam-A.hmm proteins.faa --domtblout domains.txt --cut_ga'.
    """
    _run(params, scans=False)


@click.command(
    "hmmscan",
    context_settings=HELP_OPTIONS,
    cls=HmmerCommand,
    arguments=_ARGUMENTS,
    sections=_sections(scans=True),
)
def hmmscan_command(**params: Any) -> None:
    """Search proteins among profile HMMs; the tables are those of HMMER's hmmscan.

    PROFILES are files of HMMER, also pressed or compressed; SEQUENCES is a file of proteins (FASTA,
    UniProt's text, Stockholm and others), or with --translate reads or contigs in any format; '-'
    is standard input. Needs pyhmmer: pip install 'mummergpu[hmm]'.

    The comparisons are those of 'mummergpu hmmsearch', which counts sequences for E-values, and
    this command profiles.
    """
    _run(params, scans=True)


def _run(params: dict[str, Any], scans: bool) -> None:
    if params["backend"] == "cuda" and params["cpu"]:
        raise click.UsageError("-C and --backend cuda exclude each other")
    if (workers := params["workers"]) is not None:
        source = click.get_current_context().get_parameter_source("threads")
        if source is ParameterSource.COMMANDLINE:
            raise click.UsageError("--threads and --cpu exclude each other")
        params["threads"] = max(1, workers)
    if (width := params["textw"]) is not None:
        # HMMER refuses both, too.
        if params["notextw"]:
            raise click.UsageError("--textw and --notextw exclude each other")
        if width < _SHORTEST_ROW:
            raise click.UsageError(f"--textw: {width} is less than {_SHORTEST_ROW}")
    outputs = [(kind, params[kind]) for kind in _TABLES if params.get(kind) is not None]
    files = {("-A" if kind == "alignment" else f"--{kind}"): path for kind, path in outputs}
    if (text := params["text"]) is not None:
        outputs, files = [*outputs, ("tblout", text)], {**files, "-o": text}
    elif not outputs:
        outputs, files = [("tblout", STANDARD_OUTPUT)], {"--tblout": STANDARD_OUTPUT}

    inputs = [*params["profiles"], params["sequences"]]
    # The driver only starts now if a device is used for certain.
    backend = "cuda" if params["backend"] == "cuda" else "cpu"
    run = CommandRun({**params, **FIRST_GPU, "backend": backend}, inputs, files)
    options = _search_options(params, scans, outputs, run.command)
    job = _load_job(params)
    with run.reported("hmmscan" if scans else "hmmsearch") as (context, words):
        if text is not None and text != os.devnull:
            words.warn(f"there is no text with alignments: {text} gets the table of targets")
        job(options, context)


def _search_options(
    params: Params, scans: bool, outputs: list[tuple[str, str]], command: str
) -> ProfileSearchOptions:
    from mummergpu.hmm.translation import TranslatedFiles
    from mummergpu.input.blocks.proteins import ProteinFiles, ProteinRules
    from mummergpu.pipeline.profile_options import HmmerOptions, ProfileSearchOptions

    hmmer = HmmerOptions(**{one.name: params[one.name] for one in fields(HmmerOptions)})
    rules = ProteinRules(**{one.name: params[one.name] for one in fields(ProteinRules)})
    rules.check_if_translated(params["translate"])
    source = TranslatedFiles if params["translate"] else ProteinFiles
    return ProfileSearchOptions(
        params["profiles"],
        source([params["sequences"]], rules),
        hmmer.finishing,
        hmmer.Z,
        scans,
        tuple(outputs),
        params["threads"],
        command,
        device_options({**params, **FIRST_GPU}),
        wraps_alignments=not params["notextw"],
    )


def _load_job(params: Params) -> Any:
    if params["cluster"] is not None:
        from mummergpu.cluster import search_profiles as on_machines

        return on_cluster(on_machines.run, params)
    from mummergpu.pipeline import search_profiles

    return search_profiles.run
