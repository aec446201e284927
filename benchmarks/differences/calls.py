"""The edits that each program tells of: of its own file, by the pipeline that is usual for it."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from differences.edits import Edit, Edits, rows_of_vcf, trimmed

LEAST_QUALITY: Final = 5
LEAST_ALIGNMENT: Final = 1000
"""As ``paftools.js call -q 5 -l 1000 -L 1000``."""

_CS_PARTS: Final = re.compile(r":(\d+)|\*([a-z])([a-z])|\+([a-z]+)|-([a-z]+)")
_SHOW_SNPS: Final = ["show-snps", "-ClrTH"]


def run(words: Sequence[str], output: Path | None = None) -> str:
    """Run a command to its end; return what it writes, or let it write to a file."""
    if output is None:
        return subprocess.run(
            words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ).stdout
    with output.open("wb") as file:
        subprocess.run(words, check=True, stdout=file, stderr=subprocess.DEVNULL)
    return ""


def calls_of_ours(command: str, files: tuple[Path, Path], folder: Path) -> Edits:
    """Return the differences that pass, of alignments that are one to one."""
    made = folder / "ours.vcf"
    run([*shlex.split(command), "--one-to-one", *map(str, files), "-q", "-o", str(made)])
    return _sorted((name, trimmed(*fields)) for name, *fields in rows_of_vcf(made, passing=True))


def calls_of_nucmer(files: tuple[Path, Path], folder: Path) -> Edits:
    """Return what ``nucmer``, ``delta-filter -1`` and ``show-snps -C`` tell."""
    prefix = folder / "nucmer"
    run(["nucmer", "-p", str(prefix), *map(str, files)])
    run(["delta-filter", "-1", f"{prefix}.delta"], prefix.with_suffix(".one"))
    rows = run([*_SHOW_SNPS, str(prefix.with_suffix(".one"))])
    edits: list[tuple[str, Edit]] = []
    gap: tuple[str, str, int, int, str] | None = None
    for line in rows.splitlines():
        fields = line.split("\t")
        at, other_at = int(fields[0]), int(fields[3])
        base, other = fields[1], fields[2]
        name, query = fields[-2], fields[-1]
        step = int(fields[-3])
        if base != "." and other != ".":
            edits.append((name, Edit(at - 1, at, other)))
            gap = None
            continue
        # One row for each base of a gap: it goes on with the next base of the side that has it.
        is_insertion = base == "."
        next_of_gap = (name, query, at, other_at, "+" if is_insertion else "-")
        if gap == next_of_gap:
            begin, end, bases = edits[-1][1]
            longer = Edit(begin, end, bases + other) if is_insertion else Edit(begin, end + 1, "")
            edits[-1] = name, longer
        elif is_insertion:
            edits.append((name, Edit(at, at, other)))
        else:
            edits.append((name, Edit(at - 1, at, "")))
        if is_insertion:
            gap = name, query, at, other_at + step, "+"
        else:
            gap = name, query, at + 1, other_at, "-"
    return _sorted(edits)


def calls_of_minimap2(preset: str, files: tuple[Path, Path], folder: Path, threads: int) -> Edits:
    """Return what the alignments of minimap2 tell, by the rules of ``paftools.js call``.

    The primary alignments count of a mapping quality and a length that suffice, and of the
    reference what one of them alone covers.
    """
    made = folder / f"{preset}.paf"
    words = ["minimap2", "-cx", preset, "--cs", "-t", str(threads), *map(str, files)]
    run(words, made)
    rows = [line.split("\t") for line in made.read_text().splitlines()]
    rows = [
        row
        for row in rows
        if "tp:A:P" in row
        and int(row[11]) >= LEAST_QUALITY
        and int(row[8]) - int(row[7]) >= LEAST_ALIGNMENT
    ]
    covered = _covered_once([(row[5], int(row[7]), int(row[8])) for row in rows])
    edits: list[tuple[str, Edit]] = []
    for row in rows:
        text = next(field[5:] for field in row if field.startswith("cs:Z:"))
        for edit in _edits_of_cs(text, int(row[7])):
            if any(begin <= edit.begin and edit.end <= end for begin, end in covered[row[5]]):
                edits.append((row[5], edit))
    return _sorted(edits)


def _edits_of_cs(text: str, at: int) -> list[Edit]:
    """Return the edits of a short ``cs`` that begins at a base of the reference."""
    edits = []
    for equal, _, other, inserted, deleted in _CS_PARTS.findall(text):
        if equal:
            at += int(equal)
        elif other:
            edits.append(Edit(at, at + 1, other.upper()))
            at += 1
        elif inserted:
            edits.append(Edit(at, at, inserted.upper()))
        else:
            edits.append(Edit(at, at + len(deleted), ""))
            at += len(deleted)
    return edits


def _covered_once(
    ranges: Sequence[tuple[str, int, int]],
) -> defaultdict[str, list[tuple[int, int]]]:
    """Return the ranges of each record that one of some ranges alone covers."""
    borders: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, begin, end in ranges:
        borders[name] += [(begin, 1), (end, -1)]
    covered: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, found in borders.items():
        depth, since = 0, 0
        for at, change in sorted(found):
            if depth == 1 and at > since:
                covered[name].append((since, at))
            depth, since = depth + change, at
    return covered


def _sorted(edits: object) -> Edits:
    """Return edits by record, ascending, each of them once."""
    found: defaultdict[str, set[Edit]] = defaultdict(set)
    for name, edit in edits:  # type: ignore[attr-defined]
        found[name].add(edit)
    return {name: sorted(each) for name, each in found.items()}
