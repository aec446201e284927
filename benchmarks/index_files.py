"""Index files: what making and using them takes, from 3 Mbp to 1 Gbp.

    python benchmarks/index_files.py [--folder DIR] [--bases 1000000000] [--runs 3]

Makes the references of LMONO and HS100 and a random one in the folder (10 GB of room for files,
half as much memory again for the largest), and writes `results/index-files.json`. The package
must be installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import apart, in_turn, run_process, save

PROGRAM = [sys.executable, "-m", "mummergpu"]
READS = 1000
READ_BASES = 100
LINE = 1 << 20


def write_random_reference(path: Path, bases: int) -> dict[str, Any]:
    """Write one record of random bases, and reads of it beside it."""
    import numpy as np

    made = np.random.default_rng(bases)
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)
    with open(path, "wb") as file:
        file.write(b">random\n")
        for begin in range(0, bases, LINE):
            line = letters[made.integers(0, 4, min(LINE, bases - begin), dtype=np.uint8)]
            file.write(line.tobytes() + b"\n")
    return {}


def write_reads(reference: Path, path: Path) -> dict[str, Any]:
    """Write error-free reads of a reference."""
    import numpy as np

    from mummergpu.reference import read_reference
    from mummergpu.sequence import decode

    codes = read_reference(str(reference)).codes
    starts = np.random.default_rng(1).integers(0, codes.size - READ_BASES, READS)
    reads = [decode(codes[start : start + READ_BASES]) for start in starts]
    path.write_bytes(b"".join(b">%d\n%s\n" % pair for pair in enumerate(reads)))
    return {}


def make_references(folder: Path, bases: int) -> dict[str, Path]:
    references = {}
    for name in ("LMONO", "HS100"):
        made = folder / name
        command = [*PROGRAM, "workload", name, "--scale", "0.00001", "-o", str(made)]
        run_process(command)
        references[name] = made / "reference.fa"
    references["random"] = folder / "random.fa"
    apart(write_random_reference, references["random"], bases)
    return references


def measured(folder: Path, reference: Path, search: str, runs: int) -> dict[str, Any]:
    """Make an index of a reference; match a few reads with both."""
    index, reads, report = folder / "one.mgi", folder / "reads.fa", folder / "stats.json"
    options = ["--search", search]
    make = [*PROGRAM, "index", str(reference), "-o", str(index), *options]
    apart(write_reads, reference, reads)

    def match(with_what: Path) -> dict[str, float]:
        command = [*PROGRAM, "-C", "-b", "-l", "20", "--stats", str(report), *options]
        output = folder / f"{with_what.name}.txt"
        figures = run_process([*command, str(with_what), str(reads)], output)
        stages = json.loads(report.read_text())["stages"]
        return figures | {
            "reference_open_seconds": stages["ref_from_disk"]["seconds"],
            "end_to_end_seconds": stages["end_to_end"]["seconds"],
        }

    figures = in_turn(
        runs,
        make=lambda: run_process(make),
        match_with_index=lambda: match(index),
        match_with_fasta=lambda: match(reference),
    )
    with_index, with_fasta = (folder / f"{path.name}.txt" for path in (index, reference))
    if with_index.read_bytes() != with_fasta.read_bytes():
        raise SystemExit(f"{index} and {reference} do not give the same matches")
    check = run_process([*PROGRAM, "index", "--check", str(index)])
    facts = apart(facts_of, index)
    index.unlink()
    return facts | figures | {"check_seconds": check["seconds"]}


def facts_of(path: Path) -> dict[str, Any]:
    from mummergpu.index_file import IndexFile

    index = IndexFile(str(path))
    return {
        "bases": index.header.bases,
        "pages": len(index.pages),
        "kmer_length": index.header.kmer_length,
        "bytes": index.byte_count,
        "bytes_per_base": index.byte_count / index.header.bases,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure index files.")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--bases", type=int, default=1_000_000_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        results = {}
        for reference, path in make_references(folder, given.bases).items():
            for search in ("sampled", "tree"):
                # Trees of a gigabase take more memory and room than most machines have.
                if search == "tree" and reference == "random":
                    continue
                results[f"{reference}_{search}"] = measured(folder, path, search, given.runs)
                print(reference, search, results[f"{reference}_{search}"], flush=True)
    print(save("index-files.json", {"reads": READS, "indexes": results}))


if __name__ == "__main__":
    main()
