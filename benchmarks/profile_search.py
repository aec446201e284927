"""Searches with profiles beside HMMER and pyhmmer on the clock: whole processes, rows compared.

    python benchmarks/profile_search.py PROFILES PROTEINS [--verb hmmsearch|hmmscan] [--threads N]
        [--runs 5] [--options="--cut_ga"] [--ours-only-options="--backend cuda"]
        [--peers hmmer,pyhmmer] [--translate] [--name FILE]

HMMER's programs are taken from the PATH, and run with `--cpu N`; pyhmmer runs in a process of its
own that reads the same files and writes the same tables. With --translate, PROTEINS are
nucleotides, and `esl-translate` (--esl-translate FILE) makes ORFs of them before HMMER or pyhmmer
searches. Each turn runs every program once, after one turn that does not count; then the rows of
the tables of targets and of domains are compared, and a difference ends the benchmark. Writes
`results/profile-search.json`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from measure import in_turn, run_process, save

from mummergpu.version import __version__

PROGRAM = [sys.executable, "-m", "mummergpu"]
TABLES = ("tblout", "domtblout")
ORF = re.compile(rb"source=(\S+) coords=(\d+)\.\.(\d+) length=\d+ frame=(\d)")


def search_with_pyhmmer(profiles: str, proteins: str, threads: str, verb: str, *files: str) -> None:
    """Search as pyhmmer's own manual does, and write the two tables."""
    import pyhmmer

    alphabet = pyhmmer.easel.Alphabet.amino()
    with (
        pyhmmer.plan7.HMMFile(profiles) as models,
        pyhmmer.easel.SequenceFile(proteins, digital=True, alphabet=alphabet) as sequences,
    ):
        search: Any = getattr(pyhmmer, verb)
        one, other = (models, sequences) if verb == "hmmsearch" else (sequences, models)
        if verb == "hmmsearch" and Path(proteins).stat().st_size < 1 << 31:
            other = sequences.read_block()
        if verb == "hmmscan":
            other = [*models]
        outputs = [open(path, "wb") for path in files]
        first = True
        for hits in search(one, other, cpus=int(threads)):
            for file, kind in zip(outputs, ("targets", "domains"), strict=True):
                hits.write(file, format=kind, header=first)
            first = False
        for file in outputs:
            file.close()


def rows_of(path: Path, is_translated: bool) -> list[list[bytes]]:
    """Return the words of the rows of a table; ORFs are named after their places."""
    found = []
    for line in path.read_bytes().splitlines():
        if line.startswith(b"#"):
            continue
        words = line.split()
        if is_translated and (match := ORF.search(line)):
            source, begin, end, frame = match.groups()
            words[0] = b"%s:%s:%s-%s" % (source, frame, begin, end)
        found.append(words)
    # ORFs that tie come in the order of their names, which differ.
    return sorted(found) if is_translated else found


class Comparison:
    """The programs that do one search, and the tables they write."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._first: str | None = None
        self.rows: dict[str, int] = {}

    def tables(self, name: str) -> dict[str, Path]:
        """Return the files that a program writes."""
        return {kind: self._folder / f"{name}.{kind}" for kind in TABLES}

    def command(self, name: str) -> list[str]:
        """Return the command of a program."""
        options, files = self._options, self.tables(name)
        outputs = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
        inputs = [options.profiles, options.proteins]
        threads = str(options.threads)
        if name == "mummergpu":
            own = [*options.options, *options.ours_only_options, *outputs]
            own += ["--translate"] * options.translate
            ours = shlex.split(options.ours) if options.ours else PROGRAM
            return [*ours, options.verb, "-q", "-t", threads, *own, *inputs]
        orfs = str(self._folder / f"{name}.faa")
        inputs = [options.profiles, orfs] if options.translate else inputs
        if name == "hmmer":
            theirs = [options.verb, "--cpu", threads, "-o", os.devnull]
            words = [*theirs, *options.options, *outputs, *inputs]
        else:
            paths = map(str, files.values())
            words = [
                sys.executable,
                str(Path(__file__).resolve()),
                "--as-pyhmmer",
                *inputs,
                threads,
                options.verb,
                *paths,
            ]
        if not options.translate:
            return words
        make = [options.esl_translate, options.proteins]
        return ["bash", "-c", f"{shlex.join(make)} > {shlex.quote(orfs)} && {shlex.join(words)}"]

    def run(self, name: str) -> dict[str, float]:
        """Run a program once; compare its rows with those of the first one."""
        figure = run_process(self.command(name))
        translate = self._options.translate
        if self._first is None:
            self._first = name
        for kind, path in self.tables(name).items():
            expected = rows_of(self.tables(self._first)[kind], translate)
            found = rows_of(path, translate)
            if found != expected:
                raise SystemExit(f"{kind}: rows of {name} differ from those of {self._first}")
            self.rows[kind] = len(found)
        return figure


def versions() -> dict[str, str]:
    """Return the versions of the programs that are there."""
    found = {"mummergpu": __version__, "pyhmmer": importlib.metadata.version("pyhmmer")}
    if program := shutil.which("hmmsearch"):
        text = subprocess.run([program, "-h"], capture_output=True, text=True, check=True).stdout
        found["hmmer"] = text.splitlines()[1].removeprefix("# ").split(";")[0]
    return found


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles")
    parser.add_argument("proteins")
    parser.add_argument("--verb", choices=["hmmsearch", "hmmscan"], default="hmmsearch")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--options", type=shlex.split, default=[], help="of all, in HMMER's words")
    parser.add_argument("--ours-only-options", type=shlex.split, default=[])
    parser.add_argument("--ours", help="the command, such as 'python -m mummergpu'")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["hmmer", "pyhmmer"])
    parser.add_argument("--translate", action="store_true")
    parser.add_argument("--esl-translate", default="esl-translate")
    parser.add_argument("--name", default="profile-search.json")
    return parser


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Run every program in turn; return the figures of each, and the numbers of rows."""
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(options, Path(folder))
        jobs: dict[str, Callable[[], dict[str, float]]] = {
            name: partial(comparison.run, name) for name in ("mummergpu", *options.peers) if name
        }
        found = in_turn(options.runs, **jobs)
    medians = {name: one["seconds"]["median"] for name, one in found.items()}
    times = {name: medians[name] / medians["mummergpu"] for name in medians}
    return {"rows": comparison.rows, "programs": found, "times_of_ours": times}


def main(options: argparse.Namespace) -> None:
    found = compare(options)
    medians = {name: one["seconds"]["median"] for name, one in found["programs"].items()}
    shown = {name: f"{seconds:.2f} s" for name, seconds in medians.items()}
    print(shown, found["rows"], found["times_of_ours"])
    save(options.name, {"versions": versions(), "threads": options.threads} | found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-pyhmmer"]:
        search_with_pyhmmer(*sys.argv[2:])
    else:
        main(option_parser().parse_args())
