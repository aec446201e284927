"""Write the list of what is compiled, mummergpu/cli/compiled_list.tsv.

    python packaging/list_compiled.py          # write it anew
    python packaging/list_compiled.py --check  # say only what it lacks, or has in vain

It runs the commands of a warm-up, and notes which functions each of them calls, with which types,
and what those that are new in the list take to compile. Run it where a compiled function, the types
of its arguments or those commands have changed.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from time import process_time
from typing import Any

import click

from mummergpu.cli import warmup_commands
from mummergpu.cli.compiled_list import FORMATS, PATH, VERBS, Entry, entries, marks_of, text_of
from mummergpu.cli.main import commands
from mummergpu.runtime.compiled.ahead import Listed, function_of
from mummergpu.runtime.compiled.native import function
from mummergpu.runtime.compiled.native.build import compile_code
from mummergpu.runtime.compiled.native.values import UnsuitedValueError, flatten, types_of_text
from mummergpu.runtime.compiled.pending import resolve

Key = tuple[str, str, str]

LARGE_BASES = 1_000_000
"""A genome of so many bases is aligned by minimizers."""

ALIKE = (
    *(
        "map --backend cpu genome.mgi reads.fa -o 1.bam",
        "map --backend cpu parts.mgi mates.1.fq mates.2.fq -o 1.bam",
    ),
    "map --backend cpu genome.fa reads.fa -o 4.bam",
    "map --backend cpu genome.mgi reads.fa --max-xa 5 -o 1.sam",
    "map --backend cpu genome.mgi reads.fa -a -o 2.bam",
    "map --backend cpu genome.mgi mates.1.fq mates.2.fq --format paf -o 1.paf",
    "map --backend cpu genome.mgi reads.fa --eqx -o 1.sam",
    "map --backend cpu genome.mgi mates.1.fq mates.2.fq --tags cs -o 1.sam",
    "map --backend cpu genome.fa reads.fa --sort -o 3.bam",
    "map --backend cpu genome.fa mates.1.fq mates.2.fq --sort --mark-duplicates -o 5.bam",
    "align -C large.fa large.fa -o 2.delta",
    "align -C large.fa large.fa -o 2.paf",
    *(f"align -C genome.mgi copy.fa -o 1.{name}" for name in ("delta", "paf", "vcf", "sam", "bam")),
    *(
        f"match -C genome.mgi reads.fa -o 2.{name}"
        for name in ("txt", "sam", "bam", "paf", "bed", "tsv")
    ),
)
"""Commands that call nothing that those of a warm-up do not call, but with other files: what the
runs that call a function have in common tells what it is compiled for."""


def recorded() -> dict[Key, frozenset[frozenset[str]]]:
    """Run the warm-up; return what it has called that can be kept, with the marks of those runs."""
    runs: dict[Key, set[frozenset[str]]] = defaultdict(set)
    marks: frozenset[str] = frozenset()
    call, run = function.NativeFunction.__call__, warmup_commands._run

    def noting(self: Any, *arguments: Any, **named: Any) -> Any:
        result = call(self, *arguments, **named)
        try:
            types = flatten(arguments, [])
        except UnsuitedValueError:
            return result
        if types in self._callers:
            runs[self.function.__module__, self.function.__qualname__, types].add(marks)
        return result

    def marked(group: click.Group, line: list[str]) -> None:
        nonlocal marks
        marks = marks_of(line)
        run(group, line)
        marks = frozenset()

    function.NativeFunction.__call__ = noting  # type: ignore[method-assign]
    warmup_commands._run = marked
    with tempfile.TemporaryDirectory() as folder:
        warmup_commands.run_parts(commands, Path(folder))
        os.chdir(folder)
        bases = "".join(random.Random(1).choices("ACGT", k=LARGE_BASES))
        Path("large.fa").write_text(f">large\n{bases}\n", encoding="ascii")
        for words in ALIKE:
            marked(commands, [*words.split(), "-q"])
        os.chdir("/")
    return {key: common_marks(its - {frozenset()}) for key, its in runs.items()}


def common_marks(runs: set[frozenset[str]]) -> frozenset[frozenset[str]]:
    """Return the marks that all runs with the same verb have, for each verb.

    What the verb's usual format does not need is for each of the other formats. What builds an
    index is for all verbs that do: on a small genome some of them do without.
    """
    if any("index" in marks for marks in runs):
        return frozenset(frozenset({verb, "<.fa"}) for verb in ("index", *FORMATS))
    groups: dict[tuple[str, str], list[frozenset[str]]] = defaultdict(list)
    for marks in runs:
        verb = next(iter(marks & VERBS))
        usual = f">{FORMATS.get(verb, '')}"
        needed_usually = any({verb, usual} <= other for other in runs)
        output = next(mark for mark in marks if mark.startswith(">"))
        groups[verb, "" if needed_usually else output].append(marks)
    return frozenset(frozenset.intersection(*its) for its in groups.values())


def cost_of(key: Key) -> int:
    """Return about the tenths of a second that compiling takes in a process of its own."""
    child = os.fork()
    if child == 0:
        its = function_of(Listed(*key, 0))
        assert its is not None
        begin = process_time()
        compile_code(its.callee(), types_of_text(key[2]))
        os._exit(min(255, max(1, round(10 * (process_time() - begin)))))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> int:
    """Do what the words of the command line say."""
    found = recorded()
    if sys.argv[1:] == ["--check"]:
        listed = {one.listed[:3]: one.marks for one in entries()}
        lacks = [key for key, marks in found.items() if listed.get(key) != marks]
        in_vain = [key for key in listed if function_of(Listed(*key, 0)) is None]
        for what, keys in (("is not listed so", lacks), ("is no function", in_vain)):
            for key in sorted(keys):
                print(*key, what)
        return int(bool(lacks or in_vain))
    # Numba loads with the first function what all need; the processes share that.
    resolve()
    first = Listed("mummergpu.sequence.offsets", "longest_of", "[<i8,1]", 0)
    its = function_of(first)
    assert its is not None
    compile_code(its.callee(), types_of_text(first.types))
    costs = {one.listed[:3]: one.listed.cost for one in entries()}
    lines = [
        Entry(marks, Listed(*key, costs.get(key) or cost_of(key))) for key, marks in found.items()
    ]
    PATH.write_text(text_of(lines), encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
