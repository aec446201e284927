"""Aligners of genomes beside each other: the clock, and what they align.

    python benchmarks/genome_alignment.py [--ours COMMAND] [--pairs NAME=FILE,FILE ...]
        [--preset asm5] [--threads N] [--runs 3] [--folder DIR] [--name FILE]

Each pair is a reference and a query. Without --pairs, the genomes in the folder SHARED_DATA are
taken, and the copies of two of them that `mummergpu workload GENOMES --reference` makes. Peers are
nucmer and minimap2, if they are on the PATH; nucmer 3 has one thread. Each turn runs every program
once, from FASTA to a file; medians are kept.

What is aligned is counted one to one: of nucmer's file and of ours what `delta-filter -1` leaves,
of minimap2's the primary alignments. Bases are those of the reference, each of them once; the
identity is the share of equal columns.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from measure import in_turn, run_process, save

PROGRAM = [sys.executable, "-m", "mummergpu"]

REAL = {
    "B. anthracis, slice and contigs": ("B_anthracis_Mslice.fasta", "B_anthracis_contigs.fasta"),
    "H. pylori 26695 and J99, slices": ("H_pylori26695_Eslice.fasta", "H_pyloriJ99_Eslice.fasta"),
    "mitochondria, human and orang-utan": ("MT-human.fa", "MT-orang.fa"),
    "S. pneumoniae and S. suis": (
        "streptococcus_pneumoniae.GCF_001457635.fna.gz",
        "streptococcus_suis.GCF_002285535.fna.gz",
    ),
}
COPIED = {
    "E. coli K-12 and its 1% copy": "ecoli_K12_MG1655.NC_000913.2.fa.gz",
    "yeast and its 1% copy": "yeast_S288C_R64.ensembl94.fa.gz",
}


def unpacked(path: Path, folder: Path) -> Path:
    """Return a file that every program reads: nucmer 3 reads no gzip."""
    if path.suffix != ".gz":
        return path
    plain = folder / path.stem
    if not plain.exists():
        # Not through this process: its own memory counts in that of the programs it starts.
        with plain.open("wb") as file:
            subprocess.run(["gzip", "-dc", path], check=True, stdout=file)
    return plain


def usual_pairs(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Return the pairs of real genomes and of copies, made in the folder."""
    data = Path(os.environ["SHARED_DATA"]) / "references"
    pairs = {
        name: tuple(unpacked(data / file, folder) for file in files) for name, files in REAL.items()
    }
    for name, file in COPIED.items():
        genome = unpacked(data / file, folder)
        made = folder / genome.stem
        if not (made / "copy.fa").exists():
            run_process(
                [*PROGRAM, "workload", "GENOMES", "--reference", str(genome), "-q", "-o", str(made)]
            )
        pairs[name] = (genome, made / "copy.fa")
    return {name: (files[0], files[1]) for name, files in pairs.items()}


def commands(
    ours: list[str], files: tuple[Path, Path], preset: str, threads: int, folder: Path
) -> dict[str, list[str]]:
    """Return what each program runs, from the two files to one in the folder."""
    names = [str(path) for path in files]
    made = {"ours": [*ours, *names, "-q", "-t", str(threads), "-o", str(folder / "ours.delta")]}
    if shutil.which("nucmer"):
        made["nucmer"] = ["nucmer", "-p", str(folder / "nucmer"), *names]
    if shutil.which("minimap2"):
        words = ["minimap2", "-cx", preset, "-t", str(threads), "-o", str(folder / "minimap2.paf")]
        made["minimap2"] = [*words, *names]
    return made


def delta_figures(path: Path) -> dict[str, float]:
    """Return what a .delta aligns one to one."""
    kept = path.with_suffix(".one")
    with kept.open("wb") as file:
        subprocess.run(["delta-filter", "-1", path], check=True, stdout=file)
    rows = subprocess.run(["show-coords", "-TH", kept], check=True, capture_output=True, text=True)
    lengths, weighted = 0, 0.0
    ranges = []
    for line in rows.stdout.splitlines():
        fields = line.split("\t")
        lengths += int(fields[4])
        weighted += int(fields[4]) * float(fields[6])
        ranges.append((fields[-2], int(fields[0]) - 1, int(fields[1])))
    return {
        "alignments": len(ranges),
        "bases": covered_bases(ranges),
        "identity": weighted / max(lengths, 1),
    }


def covered_bases(ranges: Iterable[tuple[str, int, int]]) -> int:
    """Return how many bases some ranges of records cover, each of them once."""
    total, before, last = 0, "", 0
    for name, begin, end in sorted(ranges):
        if name != before:
            before, last = name, 0
        total += max(0, end - max(begin, last))
        last = max(last, end)
    return total


def paf_figures(path: Path) -> dict[str, float]:
    """Return what the primary alignments of a PAF align."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    rows = [row for row in rows if "tp:A:P" in row]
    columns = sum(int(row[10]) for row in rows)
    equal = sum(int(row[9]) for row in rows)
    bases = covered_bases((row[5], int(row[7]), int(row[8])) for row in rows)
    return {"alignments": len(rows), "bases": bases, "identity": 100 * equal / max(columns, 1)}


def pair_figures(
    files: tuple[Path, Path], options: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """Time all programs in turn on a pair, and count what they align."""
    words = commands(shlex.split(options.ours), files, options.preset, options.threads, folder)
    timed = {name: partial(run_process, line) for name, line in words.items()}
    found: dict[str, Any] = {"time": in_turn(options.runs, **timed), "aligned": {}}
    for name in words:
        path = folder / (f"{name}.paf" if name == "minimap2" else f"{name}.delta")
        if name == "minimap2":
            found["aligned"][name] = paf_figures(path)
        elif shutil.which("delta-filter"):
            found["aligned"][name] = delta_figures(path)
    medians = {name: figures["seconds"]["median"] for name, figures in found["time"].items()}
    found["times_of_ours"] = {name: time / medians["ours"] for name, time in medians.items()}
    return found


def named_pair(text: str) -> tuple[str, tuple[Path, Path]]:
    name, _, files = text.partition("=")
    reference, _, query = files.partition(",")
    if not query:
        raise argparse.ArgumentTypeError(f"{text} is not NAME=REFERENCE,QUERY")
    return name, (Path(reference), Path(query))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", default=shlex.join([*PROGRAM, "align"]))
    parser.add_argument("--pairs", type=named_pair, nargs="+", help="NAME=REFERENCE,QUERY")
    parser.add_argument("--preset", default="asm5", help="minimap2's preset")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--name", default="genome-alignment.json", help="the file of the results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        pairs = dict(options.pairs) if options.pairs else usual_pairs(folder)
        results: dict[str, Any] = {
            "threads": options.threads,
            "preset": options.preset,
            "pairs": {},
        }
        for name, files in pairs.items():
            found = results["pairs"][name] = pair_figures(files, options, folder)
            for program, figures in found["aligned"].items():
                seconds = found["time"][program]["seconds"]["median"]
                print(
                    f"{name}: {program}: {seconds:.2f} s, {figures['bases']:,} bases, "
                    f"{figures['identity']:.3f}%, {figures['alignments']} alignments"
                )
            save(options.name, results)


if __name__ == "__main__":
    main()
