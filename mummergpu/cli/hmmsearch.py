"""The commands ``hmmsearch`` and ``hmmscan``: search profile HMMs, with HMMER's options."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.option_rules import device_options
from mummergpu.cli.option_types import (
    AUTO,
    GPU_OPTIONS,
    INFORMATION,
    MAIN_OPTIONS,
    MESSAGE_OPTIONS,
    MULTIQC,
    Params,
    SectionedCommand,
    Sections,
    Session,
    choice,
    file_option,
    files,
    flag,
    given,
    integer,
    is_given,
    option,
)
from mummergpu.cli.run_verb import CommandRun
from mummergpu.input.bytes.files import STANDARD_INPUT
from mummergpu.input.bytes.formats import PROTEIN_FORMATS
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.hmm.report_options import ReportOptions
    from mummergpu.pipeline.profile_options import ProfileSearchOptions

_TABLES: Final = {
    "tblout": file_option(
        "--tblout tblout",
        "Write a table of targets to FILE.  [default: standard output if there is no other file]",
    ),
    "domtblout": file_option("--domtblout domtblout", "Write a table of domains to FILE."),
    "pfamtblout": file_option("--pfamtblout pfamtblout", "Write a table in Pfam format to FILE."),
    "tsv": file_option("--tsv tsv", "Write the table of domains to FILE, with tabs and headings."),
    "parquet": file_option("--parquet parquet", "Write the domains to FILE, as Parquet."),
    "alignment": file_option(
        "-A alignment",
        "Write an alignment of the included domains of each profile to FILE, in Stockholm format.",
    ),
}

_RULES: Final = "input.blocks.protein_rules:ProteinRules"

_SHORTEST_ROW: Final = 120
"""HMMER's minimum for --textw."""

_WORDS: Final = f"{__name__}.words"
"""Where the context of a command keeps the words of its options, as they are written."""


def _number(name: str, text: str) -> click.Option:
    dashes = "-" if len(name) == 1 else "--"
    return option(f"{dashes}{name} {name}", text, "X", type=float)


class HmmerCommand(SectionedCommand):
    """A command with HMMER's option syntax: long options may be abbreviated, and are given once."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help, under a link after HMMER's first lines: scripts read a version there."""
        session = ctx.find_object(Session)
        if session is not None and session.is_link and self.name is not None:
            from mummergpu.hmm.report_options import banner

            formatter.write(banner(self.name))
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line, with abbreviated options completed."""
        names = [name for one in self.get_params(ctx) for name in one.opts if name[:2] == "--"]
        end = args.index("--") if "--" in args else len(args)
        args = [*(_written_out(word, names, ctx) for word in args[:end]), *args[end:]]
        if not ctx.resilient_parsing:
            words, _, order = self.make_parser(ctx).parse_args(args=list(args))
            ctx.meta[_WORDS] = {one.opts[0]: str(words[one.name]) for one in order if one.name}
            for one in order:
                if isinstance(one, click.Option) and order.count(one) > 1:
                    raise click.UsageError(f"{one.opts[0]} is given twice", ctx)
        return super().parse_args(ctx, args)


def _written_out(word: str, names: Sequence[str], context: click.Context) -> str:
    """Return a word, with the full name if it is an option."""
    name, equals, value = word.partition("=")
    found = [one for one in names if one.startswith(name)]
    if not name.startswith("--") or name in names or not found:
        return word
    if len(found) > 1:
        raise click.UsageError(f"{name} is ambiguous: {', '.join(found)}", context)
    return found[0] + equals + value


def _sections(scans: bool) -> Sections:
    """Return the options of a command, in the order of the help."""
    tables = [table for kind, table in _TABLES.items() if not scans or kind != "alignment"]
    targets = "profiles" if scans else "sequences"
    return {
        "Input": [
            flag("--translate", "Search the six-frame open reading frames of nucleotides."),
            flag(
                "--any-letters",
                "Accept proteins that look like nucleotides; with --translate, read other letters "
                "as N.",
            ),
            option(
                f"{'--qformat' if scans else '--tformat'} sequence_format",
                "Format of SEQUENCES, in HMMER's words: fasta, uniprot, embl, genbank, stockholm, "
                "clustal, afa, ncbi (a database of BLAST) and others.  [default: FASTA, UniProt, "
                "EMBL, GenBank, Stockholm and Clustal are recognised by their content]",
                "FORMAT",
                type=click.Choice(PROTEIN_FORMATS, case_sensitive=False),
            ),
            flag("--no-empty", "Treat a file without sequences as an error."),
            choice(
                "--long-proteins",
                ("skip", "error"),
                "Skip proteins and ORFs of more than 100,000 residues, which HMMER does not "
                "search, with a warning, or treat them as an error.",
                "skip",
            ),
            integer("--code", "With --translate, the NCBI genetic code.", f"{_RULES}.code"),
            integer(
                "--min-orf", "With --translate, minimum residues of an ORF.", f"{_RULES}.min_orf"
            ),
            choice(
                "--strand",
                ("both", "plus", "minus"),
                "With --translate, the strands to translate.",
                "both",
            ),
        ],
        "Output": [
            file_option(
                "-o text",
                "Write HMMER's report to FILE, for people: targets, domains, alignments, counts.",
            ),
            *tables,
            flag("--acc acc", "In the report, prefer accessions to names."),
            flag("--noali noali", "Leave the alignments out of the report, which is faster."),
            flag(
                "--notextw notextw",
                f"Do not wrap the lines of the report{'' if scans else ' and of the alignment'}.",
            ),
            integer("--textw", "Width of the lines of the report, 120 or more.  [default: 120]"),
        ],
        "Reporting thresholds": [
            _number("E", f"Report {targets} with an E-value <= X.  [default: 10]"),
            _number("T", f"Report {targets} with a score >= X."),
            _number("domE", "Report domains with an E-value <= X.  [default: 10]"),
            _number("domT", "Report domains with a score >= X."),
        ],
        "Inclusion (significance) thresholds": [
            _number("incE", f"Include {targets} with an E-value <= X.  [default: 0.01]"),
            _number("incT", f"Include {targets} with a score >= X."),
            _number("incdomE", "Include domains with an E-value <= X.  [default: 0.01]"),
            _number("incdomT", "Include domains with a score >= X."),
        ],
        "Model-specific thresholds": [
            flag("--cut_ga cut_ga", "Use the GA gathering cutoffs of each profile."),
            flag("--cut_nc cut_nc", "Use the NC noise cutoffs of each profile."),
            flag("--cut_tc cut_tc", "Use the TC trusted cutoffs of each profile."),
        ],
        "Filters": [
            flag("--max max", "Turn all filters off; much slower."),
            _number("F1", "MSV filter threshold: pass P-values <= X.  [default: 0.02]"),
            _number("F2", "Viterbi filter threshold: pass P-values <= X.  [default: 0.001]"),
            _number("F3", "Forward filter threshold: pass P-values <= X.  [default: 1e-5]"),
            flag("--nobias nobias", "Turn off the composition bias filter."),
        ],
        "Statistics": [
            flag("--nonull2 nonull2", "Turn off biased composition score corrections."),
            _number("Z", f"Number of {targets} for E-values.  [default: those that there are]"),
            _number(
                "domZ",
                "Number of reported targets for conditional E-values of domains.  [default: those "
                "that there are]",
            ),
            integer(
                "--seed",
                "Seed of random numbers; 0 for another one each time.",
                "hmm.options:HmmerOptions.seed",
            ),
        ],
        "Search": [
            MAIN_OPTIONS["threads"],
            MAIN_OPTIONS["cluster"],
            option(
                "--cpu workers",
                "The same as -t N; 0 is one thread, too.",
                type=click.IntRange(min=0),
            ),
            choice(
                "--backend",
                (AUTO, "cpu", "cuda"),
                "Filter proteins on CPU or GPU; auto takes a GPU if there is one and enough work.",
                AUTO,
            ),
            MAIN_OPTIONS["cpu"],
            *GPU_OPTIONS,
            option(
                "--filter-policy",
                "How a GPU computes the Viterbi filter: warp, a warp for each sequence; a policy "
                "of threads in tiles, such as t8hrrrs; or auto, tiles for many sequences.",
                "CODE",
                default=AUTO,
            ),
        ],
        "Reports": [MAIN_OPTIONS["stats"], MULTIQC, *MESSAGE_OPTIONS],
        INFORMATION: [],
    }


_ARGUMENTS: Final = [files("profiles", several=True), files("sequences")]


@click.command("hmmsearch", cls=HmmerCommand, arguments=_ARGUMENTS, sections=_sections(scans=False))
def hmmsearch_command(**params: Any) -> None:
    """Search profile HMMs against proteins, with the tables of HMMER's hmmsearch.

    PROFILES are files of HMMER, which may be pressed or compressed; SEQUENCES is a file of proteins
    (FASTA, UniProt, Stockholm and others), or with --translate of reads or contigs in any format;
    '-' is standard input. Needs pyhmmer: pip install 'mummergpu[hmm]'.

    The table of targets goes to standard output unless an output is given: 'mummergpu
    hmmsearch Pfam-A.hmm proteins.faa --domtblout domains.txt --cut_ga'. Under a link named
    hmmsearch, the report of -o goes there, as HMMER's does.
    """
    _run(params, scans=False)


@click.command("hmmscan", cls=HmmerCommand, arguments=_ARGUMENTS, sections=_sections(scans=True))
def hmmscan_command(**params: Any) -> None:
    """Search proteins against profile HMMs, with the tables of HMMER's hmmscan.

    PROFILES are files of HMMER, which may be pressed or compressed; SEQUENCES is a file of proteins
    (FASTA, UniProt, Stockholm and others), or with --translate of reads or contigs in any format;
    '-' is standard input. Needs pyhmmer: pip install 'mummergpu[hmm]'.

    The comparisons are those of 'mummergpu hmmsearch'; but E-values count profiles, not sequences.
    """
    _run(params, scans=True)


def _run(params: dict[str, Any], scans: bool) -> None:
    if (workers := params["workers"]) is not None:
        if is_given(click.get_current_context(), "threads"):
            raise click.UsageError("--threads and --cpu exclude each other")
        params["threads"] = max(1, workers)
    if (width := params["textw"]) is not None:
        # HMMER refuses both, too.
        if params["notextw"]:
            raise click.UsageError("--textw and --notextw exclude each other")
        if width < _SHORTEST_ROW:
            raise click.UsageError(f"--textw: {width} is less than {_SHORTEST_ROW}")
    outputs = [(kind, params[kind]) for kind in _TABLES if params.get(kind) is not None]
    named = {("-A" if kind == "alignment" else f"--{kind}"): path for kind, path in outputs}
    text, session = params["text"], click.get_current_context().find_object(Session)
    if session is not None and session.is_link:
        _refuse_as_hmmer(params["profiles"], params["sequences"], scans)
        text = text or STANDARD_OUTPUT
    if text is not None:
        named["-o"] = text
        # Many scripts ask for the report only to throw it away.
        outputs += [("text", text)] if os.path.realpath(text) != os.devnull else []
    elif not outputs:
        outputs, named = [("tblout", STANDARD_OUTPUT)], {"--tblout": STANDARD_OUTPUT}

    inputs = [*params["profiles"], params["sequences"]]
    # The driver starts now only if a device is used for certain.
    backend = "cuda" if params["backend"] == "cuda" else "cpu"
    run = CommandRun({**params, "backend": backend}, inputs, named)
    options = _search_options(params, scans, outputs, run.command)
    job = run.job("pipeline.search_profiles:run", "cluster.search_profiles:run")
    with run.reported("hmmscan" if scans else "hmmsearch") as (context, _):
        job(options, context)


def _refuse_as_hmmer(profiles: Sequence[str], sequences: str, scans: bool) -> None:
    """End a program of HMMER's name where HMMER does not read standard input, in its words.

    `mummergpu hmmsearch` and `hmmscan` themselves read it; scripts may rely on these errors.
    """
    text = ""
    if STANDARD_INPUT in profiles:
        if scans:
            text = (
                "hmmscan cannot read <hmm database> from stdin stream, because it must have "
                "hmmpress'ed auxfiles"
            )
        elif sequences == STANDARD_INPUT:
            text = "Either <hmmfile> or <seqdb> may be '-' (to read from stdin), but not both."
    elif sequences == STANDARD_INPUT and not scans:
        from itertools import chain, islice

        from mummergpu.hmm.profiles import read_profiles

        if len([*islice(chain.from_iterable(map(read_profiles, profiles)), 2)]) > 1:
            text = "Target sequence file - isn't rewindable; can't search it with multiple queries"
    if text:
        click.echo(text)
        click.get_current_context().exit(1)


def _report_options(params: Params, scans: bool) -> ReportOptions:
    from mummergpu.hmm.report_options import USUAL_WIDTH, ReportOptions, heading

    words = click.get_current_context().meta[_WORDS]
    files = " ".join(params["profiles"]), params["sequences"]
    return ReportOptions(
        width=0 if params["notextw"] else params["textw"] or USUAL_WIDTH,
        shows_alignments=not params["noali"],
        prefers_accessions=params["acc"],
        head=heading("hmmscan" if scans else "hmmsearch", *files, words),
        alignment_file=params.get("alignment") or "",
    )


def _search_options(
    params: Params, scans: bool, outputs: list[tuple[str, str]], command: str
) -> ProfileSearchOptions:
    from mummergpu.hmm.options import HmmerOptions
    from mummergpu.hmm.translation import TranslatedFiles
    from mummergpu.input.blocks.protein_rules import ProteinRules
    from mummergpu.input.blocks.proteins import ProteinFiles
    from mummergpu.pipeline.profile_options import ProfileSearchOptions

    hmmer = HmmerOptions(**given(params, *(one.name for one in fields(HmmerOptions))))
    rules = ProteinRules(**given(params, *(one.name for one in fields(ProteinRules))))
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
        device_options(params),
        report=_report_options(params, scans),
    )
