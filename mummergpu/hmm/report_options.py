"""What HMMER's report for people looks like, and its lines before the first query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mummergpu.runtime.frozen import frozen
from mummergpu.version import __version__

PROGRAMS: Final = {
    "hmmsearch": "search profile(s) against a sequence database",
    "hmmscan": "search sequence(s) against a profile database",
}
"""HMMER's programs, and what they say of themselves."""

USUAL_WIDTH: Final = 120
"""HMMER's default for the width of a line."""

_RULE: Final = "# " + "- " * 35 + "-\n"


@frozen
class ReportOptions:
    """How a text report looks, in the words of HMMER's options.

    Attributes
    ----------
    width : int
        The width of a line in bytes (``--textw``); 0 for any (``--notextw``).
    shows_alignments : bool
        Whether each domain has its alignment (not ``--noali``).
    prefers_accessions : bool
        Whether targets are named by their accessions, if they have one (``--acc``).
    head : str
        The lines before the first query (`heading`).
    alignment_file : str
        The file of ``-A``, which the report names; "" for none.
    """

    width: int = USUAL_WIDTH
    shows_alignments: bool = True
    prefers_accessions: bool = False
    head: str = ""
    alignment_file: str = ""


_SETTINGS: Final = (
    ("-o", "output directed to file:         {}"),
    ("-A", "MSA of all hits saved to file:   {}"),
    ("--tblout", "per-seq hits tabular output:     {}"),
    ("--domtblout", "per-dom hits tabular output:     {}"),
    ("--pfamtblout", "pfam-style tabular hit output:   {}"),
    ("--acc", "prefer accessions over names:    yes"),
    ("--noali", "show alignments in output:       no"),
    ("--notextw", "max ASCII text line length:      unlimited"),
    ("--textw", "max ASCII text line length:      {}"),
    ("-E", "{what} reporting threshold:    {pad}E-value <= {number}"),
    ("-T", "{what} reporting threshold:    {pad}score >= {number}"),
    ("--domE", "domain reporting threshold:      E-value <= {number}"),
    ("--domT", "domain reporting threshold:      score >= {number}"),
    ("--incE", "{what} inclusion threshold:    {pad}E-value <= {number}"),
    ("--incT", "{what} inclusion threshold:    {pad}score >= {number}"),
    ("--incdomE", "domain inclusion threshold:      E-value <= {number}"),
    ("--incdomT", "domain inclusion threshold:      score >= {number}"),
    ("--cut_ga", "model-specific thresholding:     GA cutoffs"),
    ("--cut_nc", "model-specific thresholding:     NC cutoffs"),
    ("--cut_tc", "model-specific thresholding:     TC cutoffs"),
    ("--max", "Max sensitivity mode:            on [all heuristic filters off]"),
    ("--F1", "MSV filter P threshold:       <= {number}"),
    ("--F2", "Vit filter P threshold:       <= {number}"),
    ("--F3", "Fwd filter P threshold:       <= {number}"),
    ("--nobias", "biased composition HMM filter:   off"),
    ("--nonull2", "null2 bias corrections:          off"),
    ("-Z", "sequence search space set to:    {whole}"),
    ("--domZ", "domain search space set to:      {whole}"),
    ("--seed", "random number seed set to:       {}"),
    ("--tformat", "targ <seqfile> format asserted:  {}"),
    ("--qformat", "input seqfile format asserted:   {}"),
)
"""HMMER's options, and the lines that it prints if they are used."""

_DEFAULTS: Final = {
    **{"-E": "10.0", "--domE": "10.0", "--incE": "0.01", "--incdomE": "0.01", "--F1": "0.02"},
    **{"--F2": "1e-3", "--F3": "1e-5", "--seed": "42", "--textw": "120"},
}
"""Values that HMMER does not call used."""


def banner(program: str) -> str:
    """Return the first lines of a report: whose format it has, and who computed it."""
    return (
        f"# {program} :: {PROGRAMS[program]}\n# HMMER 3.4 (Aug 2023); http://hmmer.org/\n"
        f"# Computed by mummergpu {__version__}\n{_RULE}"
    )


def heading(program: str, profiles: str, sequences: str, given: Mapping[str, str]) -> str:
    """Return the lines before the first query; `given` has the words of HMMER's options."""
    scans = program == "hmmscan"
    files = (
        (
            ("query sequence file:             ", sequences),
            ("target HMM database:             ", profiles),
        )
        if scans
        else (
            ("query HMM file:                  ", profiles),
            ("target sequence database:        ", sequences),
        )
    )
    lines = [f"{label}{path}" for label, path in files]
    what, pad = ("profile", " ") if scans else ("sequence", "")
    for name, line in _SETTINGS:
        if name not in given or given[name] == _DEFAULTS.get(name):
            continue
        text = given[name]
        if name == "--seed" and int(text) == 0:
            lines.append("random number seed:              one-time arbitrary")
            continue
        number = float(text) if "{number}" in line or "{whole}" in line else 0.0
        numbers = {"number": f"{number:g}", "whole": f"{number:.0f}"}
        lines.append(line.format(text, what=what, pad=pad, **numbers))
    if (cpu := given.get("--cpu", _USUAL_CPU[program])) != _USUAL_CPU[program]:
        workers = "off" if cpu == "0" else f"{cpu} workers"
        lines.append(
            f"multithread parallelization:     {workers}"
            if scans
            else f"number of worker threads:        {cpu}"
        )
    return banner(program) + "".join(f"# {line}\n" for line in lines) + _RULE + "\n"


_USUAL_CPU: Final = {"hmmsearch": "2", "hmmscan": "0"}
