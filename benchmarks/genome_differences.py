"""The differences between genomes that aligners find, beside those that are known.

    python benchmarks/genome_differences.py [--ours COMMAND] [--genomes NAME[=FILE] ...]
        [--rates 0.01 0.03 0.05 0.1] [--threads N] [--seed 1] [--folder DIR] [--name FILE]
        [--peers FILE]

Each genome is copied with random edits: at each rate so many bases become another one, and a tenth
as many gaps are made, of 1 to 50 bases; short ones are more frequent (n to the power of -1.5), and
there are as many insertions as deletions. `synthetic` is a genome of 10 Mbp, a fifth of it old
repeats, as GENOMES declares them; the others are files in the folder SHARED_DATA.

The edits that each program tells of are compared with the true ones:

- ours: `mummergpu align --one-to-one -o x.vcf`, the rows that pass, with the usual penalties of
  gaps for VCF (16 + 1), and with nucmer's (`--gap-open 3 --gap-extend 7`), as beside a .delta;
- nucmer: `nucmer`, `delta-filter -1`, `show-snps -ClrT`;
- minimap2 with asm5 (up to 3%) and with asm20: `cs` of the primary alignments, by the rules of
  `paftools.js call -q 5 -l 1000 -L 1000`.

`rows` counts an edit as right if both sides have its row of VCF after `bcftools norm -a`. That is
strict: where edits lie close together, others may make the same bases, and with no more of them.
`bases` counts edits as right if they make the same bases of the same stretch, within 200 bases.
`remaining_edits` are the single bases that must still be changed, inserted or deleted if all edits
that a program tells of are made. With --peers, the figures of the other programs are those of an
earlier run, which had the same copies.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from differences.calls import calls_of_minimap2, calls_of_nucmer, calls_of_ours
from differences.edits import Edits, Rates, apply, random_edits, read_fasta, write_fasta
from differences.judge import compare_bases, compare_rows, normalised
from measure import save

PROGRAM = [sys.executable, "-m", "mummergpu"]

REAL = {"ecoli": "ecoli_K12_MG1655.NC_000913.2.fa.gz", "yeast": "yeast_S288C_R64.ensembl94.fa.gz"}
SYNTHETIC = "synthetic"
SYNTHETIC_BASES = 10_000_000
GAPS_OF_SUBSTITUTIONS = 0.1

PRESETS = {"asm5": 0.03, "asm20": 1.0}
"""Up to which rate each preset of minimap2 is run; it is slow beyond what it is made for."""

SCORES = {"ours": "", "ours, nucmer's gaps": "--gap-open 3 --gap-extend 7"}
"""What our runs are called, and their options."""


def genome_file(name: str, source: str, folder: Path, seed: int) -> Path:
    """Return the FASTA of a genome in the folder, made if it is not there."""
    path = folder / f"{name}.fa"
    if not path.exists():
        if source:
            opener = ["gzip", "-dc"] if source.endswith(".gz") else ["cat"]
            with path.open("wb") as file:
                subprocess.run([*opener, source], check=True, stdout=file)
        else:
            write_fasta(path, {name: synthetic_bases(seed)})
    return path


def synthetic_bases(seed: int) -> str:
    from mummergpu.sequence.codes import decode
    from mummergpu.workload.declaration import Genome, Repeats
    from mummergpu.workload.genome import synthesize

    repeats = Repeats(40, (200, 400), (0.1, 0.3), (170, 200))
    genome = Genome(SYNTHETIC_BASES, 0.41, (repeats,), (), ())
    return decode(synthesize(genome, seed, SYNTHETIC)).decode()


def callers(
    options: argparse.Namespace, files: tuple[Path, Path], rate: float, folder: Path
) -> dict[str, Callable[[], Edits]]:
    """Return what tells the edits of each program that is here."""
    ours = f"{options.ours} -t {options.threads}"
    made: dict[str, Callable[[], Edits]] = {
        name: partial(calls_of_ours, f"{ours} {words}", files, folder)
        for name, words in SCORES.items()
    }
    if options.peers:
        return made
    if shutil.which("nucmer"):
        made["nucmer"] = partial(calls_of_nucmer, files, folder)
    if shutil.which("minimap2"):
        for preset, most in PRESETS.items():
            if rate > most:
                continue
            made[f"minimap2 {preset}"] = partial(
                calls_of_minimap2, preset, files, folder, options.threads
            )
    return made


def copy_figures(
    genome: Path, rate: float, options: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """Copy a genome with edits, and compare what each program tells of with them."""
    records = read_fasta(genome)
    rates = Rates(rate, rate * GAPS_OF_SUBSTITUTIONS / 2)
    true = random_edits(records, rates, options.seed)
    copy = folder / f"{genome.stem}-{rate}.fa"
    copied = {
        f"{name}.copy": apply(bases, true[name], 0, len(bases)) for name, bases in records.items()
    }
    write_fasta(copy, copied)
    found: dict[str, Any] = {}
    true_rows = normalised(records, true, genome, folder)
    for program, tell in callers(options, (genome, copy), rate, folder).items():
        told = tell()
        rows = normalised(records, told, genome, folder)
        found[program] = {
            "rows": compare_rows(true_rows, rows),
            "bases": compare_bases(records, true, told),
        }
    return found


def lines_of(name: str, rate: float, found: dict[str, Any]) -> list[str]:
    """Return a line for each program."""
    lines = []
    for program, figures in found.items():
        words = [f"{name} {rate:.0%} {program:15}"]
        for way in ("rows", "bases"):
            for kind in ("snps", "indels"):
                rates = figures[way][kind]
                words.append(f"{kind} {100 * rates['precision']:.2f}/{100 * rates['recall']:.2f}")
            words.append("|")
        lines.append(" ".join([*words, f"{figures['bases']['remaining_edits']} remain"]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", default=shlex.join([*PROGRAM, "align"]))
    parser.add_argument("--peers", type=Path, help="results of an earlier run")
    parser.add_argument(
        "--genomes", nargs="+", default=[SYNTHETIC, *REAL], help="NAME or NAME=FILE"
    )
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.03, 0.05, 0.1])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--name", default="genome-differences.json", help="the file of the results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results: dict[str, Any] = {
            "gaps_of_substitutions": GAPS_OF_SUBSTITUTIONS,
            "seed": options.seed,
            "copies": {},
        }
        for item in options.genomes:
            name, _, source = item.partition("=")
            if name in REAL and not source:
                source = str(Path(os.environ["SHARED_DATA"], "references", REAL[name]))
            genome = genome_file(name, source, folder, options.seed)
            of_rates = results["copies"][name] = {}
            for rate in options.rates:
                of_rates[str(rate)] = found = copy_figures(genome, rate, options, folder)
                if options.peers:
                    earlier = json.loads(options.peers.read_text())["copies"][name][str(rate)]
                    found |= {
                        each: earlier[each] for each in earlier if not each.startswith("ours")
                    }
                print("\n".join(lines_of(name, rate, of_rates[str(rate)])), flush=True)
                save(options.name, results)


if __name__ == "__main__":
    main()
