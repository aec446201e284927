"""Index files: what making and using them takes, from 1 Mbp to 1 Gbp and more.

    python benchmarks/index_files.py [--folder DIR] [--workloads LMONO,HS100]
        [--bases 1000000,1000000000] [--backends cpu,cuda] [--runs 3] [--name index-files.json]

Makes the references of the workloads, and random ones of so many bases, in the folder (8 bytes
a base of room for files, a little more memory for the largest), and writes what it has measured
to `results/`. All backends must find the same. The package must be installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
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

    from mummergpu.input.reference import read_reference
    from mummergpu.sequence.codes import decode

    codes = read_reference(str(reference)).codes
    starts = np.random.default_rng(1).integers(0, codes.size - READ_BASES, READS)
    reads = [decode(codes[start : start + READ_BASES]) for start in starts]
    path.write_bytes(b"".join(b">%d\n%s\n" % pair for pair in enumerate(reads)))
    return {}


def make_references(
    folder: Path, workloads: list[str], sizes: list[int]
) -> Iterator[tuple[str, Path]]:
    """Make one reference after the other; each is removed when the next is asked for."""
    for name in workloads:
        made = folder / name
        command = [*PROGRAM, "workload", name, "--scale", "0.00001", "-o", str(made)]
        run_process(command)
        yield name, made / "reference.fa"
    for bases in sizes:
        path = folder / "random.fa"
        apart(write_random_reference, path, bases)
        yield f"random_{bases}", path
        path.unlink()


def measured(
    folder: Path, reference: Path, search: str, backends: list[str], runs: int
) -> dict[str, Any]:
    """Make an index of a reference; match a few reads with both."""
    index, reads, report = folder / "one.mgi", folder / "reads.fa", folder / "stats.json"
    options = ["--search", search]
    make = [*PROGRAM, "index", str(reference), "-o", str(index), *options]
    apart(write_reads, reference, reads)

    def match(with_what: Path, backend: str) -> dict[str, float]:
        command = [*PROGRAM, "--backend", backend, "-b", "-l", "20", "--stats", str(report)]
        command += options
        output = folder / f"{with_what.name}-{backend}.txt"
        figures = run_process([*command, str(with_what), str(reads)], output)
        stages = json.loads(report.read_text())["stages"]
        return figures | {
            "reference_open_seconds": stages["ref_from_disk"]["seconds"],
            "end_to_end_seconds": stages["end_to_end"]["seconds"],
        }

    figures = in_turn(
        runs,
        make=lambda: run_process(make),
        **{
            f"match_with_{what}_{backend}": partial(match, path, backend)
            for backend in backends
            for what, path in (("index", index), ("fasta", reference))
        },
    )
    outputs = [path.read_bytes() for path in folder.glob("*.txt")]
    if outputs[0].count(b"\n") <= 2 * READS or outputs.count(outputs[0]) != 2 * len(backends):
        raise SystemExit(f"{index} and {reference} do not give the same matches")
    check = run_process([*PROGRAM, "index", "--check", str(index)])
    facts = apart(facts_of, index)
    index.unlink()
    return facts | figures | {"check_seconds": check["seconds"]}


def facts_of(path: Path) -> dict[str, Any]:
    from mummergpu.index.file import IndexFile

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
    parser.add_argument("--workloads", default="LMONO,HS100")
    parser.add_argument("--bases", default="1000000,10000000,100000000,1000000000")
    parser.add_argument("--backends", default="cpu")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--name", default="index-files.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        results = {}
        workloads = [name for name in given.workloads.split(",") if name]
        sizes = [int(size) for size in given.bases.split(",") if size]
        backends = given.backends.split(",")
        for reference, path in make_references(folder, workloads, sizes):
            for search in ("sampled", "tree"):
                # Trees of a gigabase take more memory and room than most machines have.
                if search == "tree" and reference not in workloads:
                    continue
                name = f"{reference}_{search}"
                results[name] = measured(folder, path, search, backends, given.runs)
                print(reference, search, results[name], flush=True)
    print(save(given.name, {"reads": READS, "indexes": results}))


if __name__ == "__main__":
    main()
