"""The list of what is compiled, and which runs need it.

Types of arguments are known only where a function is called. So `compiled_list.tsv` has a line for
each function and types that the commands of a warm-up call: the marks of the runs that do, for each
verb, and what `ahead.Listed` has. A run is thought to need what has no mark that the run lacks. The
list decides on time only: what it lacks is compiled when it is called.

`packaging/list_compiled.py` writes the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from mummergpu.cli.main_group import MAIN_VERB
from mummergpu.cli.messages import COMPILATION, compilation_words
from mummergpu.runtime.compiled.ahead import Listed, Progress, compiled_ahead
from mummergpu.runtime.processors import processor_count

PATH: Final = Path(__file__).with_suffix(".tsv")

VERBS: Final = frozenset(
    {MAIN_VERB, "map", "align", "index", "workload", "hmmsearch", "hmmscan", "hmm", "sweep"}
)
_COMPRESSIONS: Final = frozenset({".gz", ".bgz", ".bz2", ".xz", ".zst"})
_SUFFIXES: Final = {
    **dict.fromkeys((".fna", ".fasta", ".fas", ".ffn"), ".fa"),
    **dict.fromkeys((".fastq",), ".fq"),
}
_INPUTS: Final = frozenset({".fa", ".fq", ".bam", ".mgi"})
FORMATS: Final = {"map": ".sam", "align": ".delta", MAIN_VERB: ".mummer"}
"""What a command writes if it is not told."""
_NAMES_OUTPUT: Final = frozenset({"-o", "--output"})
_FORMAT: Final = "--format"
_COMMON: Final = frozenset(
    {"-q", "-b", "-C", "-l", "-t", "-v", "-s", "--quiet", "--threads", "--backend", "--page-size"}
    | {"--no-progress", "--verbose", "--stats", "--cpu", "--search", *_NAMES_OUTPUT, _FORMAT}
)
"""Options that decide on no type."""
_OF_TREES: Final = frozenset({"--policy", "--address-bits"})


class Entry(NamedTuple):
    """A line of the list."""

    marks: frozenset[frozenset[str]]
    """Those of the runs with one verb, for each verb; none if only a warm-up calls the function."""
    listed: Listed


def marks_of(words: Sequence[str]) -> frozenset[str]:
    """Return the marks of a run, from the words of its command line: verb, files, options."""
    verb = words[0] if words and words[0] in VERBS else MAIN_VERB
    found, output, told, files = {verb}, "", "", 0
    for before, word in zip(("", *words), words, strict=False):
        suffix = _suffix_of(word)
        if before in _NAMES_OUTPUT:
            output = suffix
        elif before == _FORMAT:
            told = f".{word.lower()}"
        elif word.startswith("-"):
            found.add(word.partition("=")[0])
        elif suffix in _INPUTS:
            found.add(f"<{suffix}")
            files += 1
    output = told or ("" if output == ".txt" else output) or FORMATS.get(verb, "")
    if verb == "map":
        found.add("mates" if files > 2 else "reads")
    elif verb == MAIN_VERB:
        found.add("trees" if "tree" in words or found & _OF_TREES else "k-mers")
    return frozenset(found - _COMMON | {f">{output}"})


def _suffix_of(word: str) -> str:
    path = PurePath(word)
    if path.suffix in _COMPRESSIONS:
        path = path.with_suffix("")
    return _SUFFIXES.get(path.suffix, path.suffix)


def entries(path: Path = PATH) -> Iterator[Entry]:
    """Yield the lines of the list; nothing if it is not there, or another file."""
    try:
        for line in path.read_text(encoding="ascii").splitlines():
            marks, module, name, types, cost = line.split("\t")
            runs = frozenset(frozenset(one.split(",")) for one in marks.split() if marks)
            yield Entry(runs, Listed(module, name, types, int(cost)))
    except (OSError, ValueError):
        return


def text_of(lines: Iterable[Entry]) -> str:
    """Return the text of a list."""
    texts = sorted(
        "\t".join((_text_of_marks(one.marks), *map(str, one.listed))) + "\n" for one in lines
    )
    return "".join(texts)


def _text_of_marks(marks: frozenset[frozenset[str]]) -> str:
    return " ".join(sorted(",".join(sorted(one)) for one in marks))


def needed_by(words: Sequence[str]) -> list[Listed]:
    """Return what the run of a command line is thought to need."""
    marks = marks_of(words)
    return [one.listed for one in entries() if any(its <= marks for its in one.marks)]


def compiling_ahead(
    words: Sequence[str], threads: int | None, quiet: bool, time: str = COMPILATION
) -> AbstractContextManager[None]:
    """Let several processes compile what the run of a command line needs, if it is not kept yet.

    `threads` is what the user asks for; None stands for the processors of this process. `time` is
    about the longest that compiling takes.
    """
    progress = Progress() if quiet else Progress(*compilation_words(time))
    return compiled_ahead(lambda: needed_by(words), threads or processor_count(), progress)
