"""The size of the package, and the way from the command line to the reads, as a table.

    python benchmarks/house.py [TREE]

TREE is a checkout, by default the one of this file (`git worktree add TREE COMMIT` makes another).
Frames and files are those of a tiny `match` and a tiny `map` on one thread, which compile first.
"""

from __future__ import annotations

import ast
import contextlib
import io
import random
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import click

DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
OPTIONS = ("shown", "hidden", "spellings")


def lines_in(folder: Path, *endings: str) -> int:
    paths = [path for ending in endings for path in folder.rglob(f"*{ending}") if path.is_file()]
    return sum(path.read_bytes().count(b"\n") for path in paths)


class Package:
    """Counts of the source files of a package."""

    def __init__(self, folder: Path) -> None:
        self.modules = self.lines = self.docstrings = self.comments = 0
        self.classes: Counter[str] = Counter()
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text()
            room, *inner = path.relative_to(folder).parts
            self.modules += 1
            self.lines += text.count("\n")
            tree = ast.parse(text)
            for node in ast.walk(tree):
                self.classes[room if inner else "."] += isinstance(node, ast.ClassDef)
                self.docstrings += docstring_lines(node)
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            self.comments += sum(
                token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
                for token in tokens
            )


def docstring_lines(node: ast.AST) -> int:
    """Return the lines of a definition's docstring."""
    if not isinstance(node, DEFINITIONS) or ast.get_docstring(node) is None:
        return 0
    text = node.body[0]
    assert text.end_lineno is not None
    return text.end_lineno - text.lineno + 1


def options_of_commands() -> Counter[str]:
    """Count the options of all commands, and the spellings of those that are shown or hidden."""
    from mummergpu.cli.main import commands

    counts: Counter[str] = Counter()
    for name in list(commands.commands):
        for option in commands.commands[name].params:
            if isinstance(option, click.Option):
                counts["hidden" if option.hidden else "shown"] += 1
                counts["spellings"] += len(option.opts) + len(option.secondary_opts)
    return counts


class Walk:
    """The own functions that a run enters: the files, and the deepest stack in one room."""

    def __init__(self, folder: Path, room: str) -> None:
        self._folder = f"{folder}/"
        self._room = f"{folder}/{room}/"
        self.files: set[str] = set()
        self.depth = 0

    def _visit(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        path = code.co_filename
        if event != "call" or not path.startswith(self._folder) or code.co_name == "<module>":
            return
        self.files.add(path)
        if path.startswith(self._room):
            main = threading.main_thread().ident
            stacks = [frame]
            if threading.get_ident() != main:
                # The main thread is in the function that handed the work to this one.
                stacks.append(sys._current_frames()[main])
            frames = [one for stack in stacks for one in self._own_frames(stack)]
            self.depth = max(self.depth, len(frames))

    def _own_frames(self, frame: FrameType | None) -> Iterator[FrameType]:
        while frame is not None:
            if frame.f_code.co_filename.startswith(self._folder):
                yield frame
            frame = frame.f_back

    def run(self, *words: str) -> Walk:
        """Follow a command that has run before, so that all code is there."""
        from mummergpu.cli.main import main

        with contextlib.redirect_stderr(io.StringIO()):
            if code := main(words):
                raise SystemExit(f"exit code {code}: mummergpu {' '.join(words)}")
            threading.setprofile(self._visit)
            sys.setprofile(self._visit)
            try:
                main(words)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
        return self


def main() -> None:
    tree = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    sys.path.insert(0, str(tree))
    package = tree / "mummergpu"
    counts = Package(package)
    options = options_of_commands()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        bases = "".join(random.Random(1).choices("ACGT", k=5000))
        Path("r.fa").write_text(f">r\n{bases}\n")
        reads = [bases[start : start + 100] for start in range(0, 4900, 490)]
        Path("q.fa").write_text("".join(f">q{n}\n{one}\n" for n, one in enumerate(reads)))
        common = ("-q", "--backend", "cpu", "-t", "1", "r.fa", "q.fa")
        match = Walk(package, "matching").run(*common, "-o", "x.txt")
        mapped = Walk(package, "mapping").run("map", *common, "-o", "x.sam")
    rows = {
        "lines of the package": counts.lines,
        "modules": counts.modules,
        "lines of kernels": lines_in(tree / "kernels", ".cu", ".cuh"),
        "lines of tests": lines_in(tree / "tests", ".py"),
        "lines of benchmarks": lines_in(tree / "benchmarks", ".py"),
        "lines of their results": lines_in(tree / "benchmarks" / "results", ".json"),
        "options: " + ", ".join(OPTIONS): ", ".join(str(options[name]) for name in OPTIONS),
        "classes": sum(counts.classes.values()),
        "classes a room": ", ".join(f"{room} {n}" for room, n in sorted(counts.classes.items())),
        "docstrings, comments": f"{counts.docstrings / counts.lines:.1%}, "
        f"{counts.comments / counts.lines:.1%}",
        "own frames above the search of a tiny match": match.depth,
        "files that a tiny match, a tiny map run through": f"{len(match.files)}, "
        f"{len(mapped.files)}",
    }
    for name, value in rows.items():
        print(f"| {name} | {value:,} |" if isinstance(value, int) else f"| {name} | {value} |")


if __name__ == "__main__":
    main()
