"""The list of what is compiled: functions, the types of their arguments, and which runs need them.

`signatures.tsv` has a line for each: the marks of the runs, the function and the text of its types.
A run needs what has no mark that the run lacks. `packaging/list_signatures.py` writes the list, the
largest code first. If it is out of date, a run compiles the rest when it comes to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final, NamedTuple

PATH: Final = Path(__file__).with_name("signatures.tsv")

_VERBS: Final = frozenset(
    {"map", "align", "index", "workload", "hmmsearch", "hmmscan", "sweep", "tune", "warmup"}
)
_MATCH: Final = "match"
_COMPRESSIONS: Final = frozenset({".gz", ".bgz", ".bz2", ".xz", ".zst"})
_SUFFIXES: Final = {".fna": ".fa", ".fasta": ".fa", ".fas": ".fa", ".ffn": ".fa", ".fastq": ".fq"}
_INPUTS: Final = frozenset({".fa", ".fq", ".bam", ".mgi"})
_FORMATS: Final = {"map": ".sam", "align": ".delta", _MATCH: ".mummer"}
"""What a command writes if it is not told."""
_COMMON: Final = frozenset({"-q", "-b", "-C", "-o", "-l", "-t", "-v", "--format", "--quiet"})
"""Options that decide on no type."""


class Signature(NamedTuple):
    """What is compiled: a function and the text of its types (`native.values.flatten`).

    Attributes
    ----------
    marks : frozenset of str
        What the runs have in common that need it.
    module, name, types : str
    """

    marks: frozenset[str]
    module: str
    name: str
    types: str


def marks_of(words: Sequence[str]) -> frozenset[str]:
    """Return the marks of a run, from the words of its command line: verb, formats, options."""
    verb = words[0] if words and words[0] in _VERBS else _MATCH
    found = {verb}
    output = ""
    for before, word in zip(("", *words), words, strict=False):
        suffix = _suffix_of(word)
        if before in ("-o", "--output"):
            output = suffix
        elif before == "--format":
            output = f".{word.lower()}"
        elif word.startswith("-"):
            found.add(word.partition("=")[0])
        elif suffix in _INPUTS:
            found.add(f"<{suffix}")
    output = output if len(output) > 1 and output != ".txt" else _FORMATS.get(verb, "")
    return frozenset(found - _COMMON | {f">{output}"})


def _suffix_of(word: str) -> str:
    path = PurePath(word)
    if path.suffix in _COMPRESSIONS:
        path = path.with_suffix("")
    return _SUFFIXES.get(path.suffix, path.suffix)


def listed(path: Path = PATH) -> Iterator[Signature]:
    """Yield all that is listed, the largest first; nothing if there is no list."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 4:
            yield Signature(frozenset(fields[0].split()), *fields[1:])


def needed_by(words: Sequence[str]) -> list[Signature]:
    """Return what the run of a command line is thought to need, the largest first."""
    marks = marks_of(words)
    return [one for one in listed() if one.marks <= marks]


def common_marks(runs: Mapping[tuple[str, str, str], Iterable[frozenset[str]]]) -> list[Signature]:
    """Return the signatures that runs have used, each with the marks that all of these have."""
    return [Signature(frozenset.intersection(*marks), *key) for key, marks in runs.items()]
