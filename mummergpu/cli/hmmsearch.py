"""The commands ``hmmsearch`` and ``hmmscan``: search profile HMMs in proteins, in HMMER's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.option_rules import Params
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
from mummergpu.cli.run_verb import Verb, run_verb
from mummergpu.errors import BackendError
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.hmm.finishing import FinishingOptions
    from mummergpu.pipeline.profile_options import ProfileSearchOptions

_CUTOFFS: Final = {"cut_ga": "gathering", "cut_nc": "noise", "cut_tc": "trusted"}

_EXCLUSIVE: Final = (
    ("E", "T", *_CUTOFFS),
    ("domE", "domT", *_CUTOFFS),
    ("incE", "incT", *_CUTOFFS),
    ("incdomE", "incdomT", *_CUTOFFS),
    ("max", "F1"),
    ("max", "F2"),
    ("max", "F3"),
    ("max", "nobias"),
)
"""Options of which HMMER takes one only."""


class _Number(click.FloatRange):
    """A number that is shown as X."""

    name = "number"


def _number(name: str, text: str, positive: bool = True) -> click.Option:
    dashes = "-" if len(name) == 1 else "--"
    kind = _Number(min=0, min_open=True) if positive else click.FLOAT
    return click.Option([dashes + name, name], type=kind, metavar="X", help=text)


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


def _sections(scans: bool) -> Sections:
    """Return the options of a command, in the order of the help."""
    tables = [option for kind, option in _TABLES.items() if not scans or kind != "alignment"]
    targets = "profiles" if scans else "sequences"
    return {
        "Input": [
            flag("--any-letters", "Take letters that look like nucleotides for amino acids."),
            MAIN_OPTIONS["no_empty"],
        ],
        "Output": [*tables, flag("--acc acc", "Accepted: tables have names and accessions.")],
        "What is reported": [
            _number("E", f"Report {targets} with an E-value of at most X.  [default: 10]"),
            _number("T", f"Report {targets} with a score of at least X.", positive=False),
            _number("domE", "Report domains with an E-value of at most X.  [default: 10]"),
            _number("domT", "Report domains with a score of at least X.", positive=False),
        ],
        "What is included, that is, significant": [
            _number("incE", f"Include {targets} with an E-value of at most X.  [default: 0.01]"),
            _number("incT", f"Include {targets} with a score of at least X.", positive=False),
            _number("incdomE", "Include domains with an E-value of at most X.  [default: 0.01]"),
            _number("incdomT", "Include domains with a score of at least X.", positive=False),
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
                type=click.IntRange(0, (1 << 32) - 1),
                metavar="N",
                default=42,
                show_default=True,
                help="Begin random numbers with N; 0: with another each time.",
            ),
        ],
        "Search": [
            MAIN_OPTIONS["threads"],
            click.Option(
                ["--backend"],
                type=click.Choice(["auto", "cpu", "cuda"]),
                default="auto",
                show_default=True,
                help="Search on the processor, which is all that there is so far.",
            ),
            MAIN_OPTIONS["cpu"],
        ],
        "Reports": [MAIN_OPTIONS["stats"], *MESSAGE_OPTIONS],
        INFORMATION: [],
    }


_ARGUMENTS: Final = [
    click.Argument(["profiles"], nargs=-1, required=True, shell_complete=complete_files),
    click.Argument(["sequences"], shell_complete=complete_files),
]


@click.command(
    "hmmsearch",
    context_settings=HELP_OPTIONS,
    cls=SectionedCommand,
    arguments=_ARGUMENTS,
    sections=_sections(scans=False),
)
def hmmsearch_command(**params: Any) -> None:
    """Search profile HMMs in proteins; the tables are those of HMMER's hmmsearch.

    PROFILES are files of HMMER, also pressed or compressed; SEQUENCES is a FASTA file of proteins,
    also compressed; '-' is standard input. Needs pyhmmer: pip install 'mummergpu[hmm]'.

    The table of targets goes to standard output unless an option names a file: 'mummergpu
    hmmsearch Pfam-A.hmm proteins.faa --domtblout domains.txt --cut_ga'.
    """
    _run(params, scans=False)


@click.command(
    "hmmscan",
    context_settings=HELP_OPTIONS,
    cls=SectionedCommand,
    arguments=_ARGUMENTS,
    sections=_sections(scans=True),
)
def hmmscan_command(**params: Any) -> None:
    """Search proteins among profile HMMs; the tables are those of HMMER's hmmscan.

    PROFILES are files of HMMER, also pressed or compressed; SEQUENCES is a FASTA file of proteins,
    also compressed; '-' is standard input. Needs pyhmmer: pip install 'mummergpu[hmm]'.

    The comparisons are those of 'mummergpu hmmsearch', which counts sequences for E-values, and
    this command profiles.
    """
    _run(params, scans=True)


def _run(params: dict[str, Any], scans: bool) -> None:
    for group in _EXCLUSIVE:
        chosen = [_spelled(name) for name in group if _is_given(params, name)]
        if len(chosen) > 1:
            raise click.UsageError(f"{chosen[0]} and {chosen[1]} exclude each other")
    if params["backend"] == "cuda":
        if params["cpu"]:
            raise click.UsageError("-C and --backend cuda exclude each other")
        message = "searches with profiles run on the processor so far (--backend auto or cpu)"
        raise BackendError("cuda", message)
    outputs = {kind: params[kind] for kind in _TABLES if params.get(kind) is not None}
    if not outputs:
        outputs = {"tblout": STANDARD_OUTPUT}

    def options(params: Params, command: str) -> ProfileSearchOptions:
        from mummergpu.input.blocks.proteins import ProteinFiles, ProteinRules
        from mummergpu.pipeline.profile_options import ProfileSearchOptions

        rules = ProteinRules(params["any_letters"], params["no_empty"])
        return ProfileSearchOptions(
            params["profiles"],
            ProteinFiles([params["sequences"]], rules),
            _finishing(params),
            params["Z"],
            scans,
            tuple(outputs.items()),
            params["threads"],
            command,
        )

    files = {("-A" if kind == "alignment" else f"--{kind}"): path for kind, path in outputs.items()}
    inputs = [*params["profiles"], params["sequences"]]
    name = "hmmscan" if scans else "hmmsearch"
    verb = Verb(inputs, files, options, _load_job, lambda options: name)
    run_verb({**params, "backend": "cpu", "device": None}, verb)


def _is_given(params: Params, name: str) -> bool:
    return params[name] is not None and params[name] is not False


def _spelled(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name}"


def _load_job() -> Any:
    from mummergpu.pipeline import search_profiles

    return search_profiles.run


def _finishing(params: Params) -> FinishingOptions:
    """Return what is reported, from the options that are given."""
    from mummergpu.hmm.filters import FilterThresholds
    from mummergpu.hmm.finishing import FinishingOptions

    if params["max"]:
        thresholds = FilterThresholds.without_filters()
    else:
        given = {name: params[name] for name in ("F1", "F2", "F3") if params[name] is not None}
        thresholds = FilterThresholds(**given, bias_filter=not params["nobias"])
    names = ("E", "T", "domE", "domT", "incE", "incT", "incdomE", "incdomT", "domZ")
    return FinishingOptions(
        thresholds=thresholds,
        **{name: params[name] for name in names if params[name] is not None},
        bit_cutoffs=next((word for name, word in _CUTOFFS.items() if params[name]), None),
        null2=not params["nonull2"],
        seed=params["seed"],
    )
