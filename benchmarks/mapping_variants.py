"""Tell how many variants a caller finds, and how many that are none, in the alignments of mappers.

    python benchmarks/mapping_variants.py ecoli.fa --folder DIR --ours "python -m mummergpu map"

dwgsim makes a diploid genome with variants and reads of it; `bwa mem` and ours map them; bcftools
calls variants from each, and normalises them and the true ones. A variant is right if the truth
has the same row. dwgsim, bwa, samtools and bcftools must be on the PATH.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from measure import provenance

DWGSIM: Final = "-z 13 -1 100 -2 100 -d 350 -s 40 -r 0.01 -R 0.1 -X 0.3 -y 0 -e 0.002 -E 0.002 -o 1"
"""How the genome and its reads are made, unless the user says it."""

Variant = tuple[str, str, str, str]


def run(command: str) -> None:
    """Run a line of the shell; stop if any part of it fails."""
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], check=True)


def variants_in(path: Path) -> set[Variant]:
    """Return the record, position and alleles of each row."""
    with gzip.open(path, "rt") as lines:
        rows = (line.split("\t") for line in lines if not line.startswith("#"))
        return {(row[0], row[1], row[3], row[4]) for row in rows}


def judged(found: set[Variant], truth: set[Variant]) -> dict[str, int]:
    """Return how many SNPs and indels are right, and how many are not."""
    counts = dict.fromkeys(("snps", "false_snps", "indels", "false_indels"), 0)
    for variant in found:
        kind = "snps" if len(variant[2]) == len(variant[3]) == 1 else "indels"
        counts[kind if variant in truth else f"false_{kind}"] += 1
    return counts


def measure(options: argparse.Namespace) -> dict[str, object]:
    """Simulate, map, call and judge."""
    folder, reference = options.folder, shlex.quote(str(options.reference.resolve()))
    stem = shlex.quote(str(folder / "reads"))
    run(f"dwgsim {options.dwgsim} -N {options.pairs} {reference} {stem} 2> {stem}.log")
    reads = f"{stem}.bwa.read1.fastq.gz {stem}.bwa.read2.fastq.gz"
    normalise = f"bcftools norm -m- -f {reference} -Oz"
    run(f"{normalise} -o {stem}.vcf.gz {stem}.mutations.vcf 2>> {stem}.log")
    truth = variants_in(folder / "reads.vcf.gz")
    run(f"test -e {reference}.bwt || bwa index {reference} 2>> {stem}.log")
    mappers: Iterable[tuple[str, str]] = (
        ("bwa mem", f"bwa mem -t {options.threads} {reference} {reads} 2>> {stem}.log"),
        ("mummergpu", f"{options.ours} -q -t {options.threads} {reference} {reads}"),
    )
    found = {}
    for name, command in mappers:
        calls = folder / f"{name.split()[0]}.vcf.gz"
        run(
            f"{command} | samtools sort -o {stem}.bam - 2>> {stem}.log; "
            f"bcftools mpileup -Ou -f {reference} {stem}.bam 2>> {stem}.log | "
            f"bcftools call -mv -Ou | {normalise} -o {shlex.quote(str(calls))} 2>> {stem}.log"
        )
        found[name] = judged(variants_in(calls), truth)
    return {"truth": judged(truth, truth), "found": found}


def main() -> None:
    """Measure as the command line says, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--ours", default="mummergpu map")
    parser.add_argument("--pairs", type=int, default=460_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dwgsim", default=DWGSIM, help="options of dwgsim, besides -N")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps(provenance() | measure(options), indent=1))


if __name__ == "__main__":
    main()
