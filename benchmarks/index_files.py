"""Index files: what making and using them takes, from 1 Mbp to 1 Gbp and more.

    python benchmarks/index_files.py [--folder DIR] [--workloads LMONO,HS100]
        [--bases 1000000,1000000000] [--backends cpu,cuda] [--runs 3] [--name index-files.json]

Makes the references of the workloads, and random ones of so many bases, in the folder (8 bytes
a base of room for files, a little more memory for the largest), and writes what it has measured
to `results/`. With `--repeats`, 45% of the random references are diverged copies of a few families
of repeats, as in a human genome. All backends must find the same. The package must be installed.
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
REPEAT_FAMILIES = ((300, 0.1), (300, 0.05), (300, 0.05), (6000, 0.2), (6000, 0.05), (6000, 0.05))
"""The length of each family of repeats in bases, and the share of the genome of its copies. Copies
may lie in each other, so that about 45% of the genome is repeated."""


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


def write_repetitive_reference(path: Path, bases: int) -> dict[str, Any]:
    """Write one record of which nearly a half consists of diverged copies of repeats."""
    import numba
    import numpy as np

    made = np.random.default_rng(bases)
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)
    text = letters[made.integers(0, 4, bases, dtype=np.uint8)]

    @numba.njit
    def insert(text: Any, family: Any, places: Any, lengths: Any, divergences: Any) -> None:
        state = np.uint64(places.size) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
        for copy in range(places.size):
            # Copies of long families lack their beginnings.
            skipped = family.size - lengths[copy]
            limit = np.uint64(divergences[copy] * 4294967296.0)
            for base in range(lengths[copy]):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                letter = family[skipped + base]
                if state >> np.uint64(32) < limit:
                    letter = letters[state & np.uint64(3)]
                text[places[copy] + base] = letter

    for size, share in REPEAT_FAMILIES:
        family = letters[made.integers(0, 4, size, dtype=np.uint8)]
        most = min(size, 1500)
        copies = int(share * bases / ((300 + most) / 2 if size > 300 else size))
        lengths = np.full(copies, size) if size <= 300 else made.integers(300, most + 1, copies)
        places = made.integers(0, bases - size, copies)
        insert(text, family, places, lengths, made.uniform(0.1, 0.2, copies))
    with open(path, "wb") as file:
        file.write(b">repetitive\n")
        for begin in range(0, bases, LINE):
            file.write(text[begin : begin + LINE].tobytes() + b"\n")
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
    folder: Path, workloads: list[str], sizes: list[int], with_repeats: bool
) -> Iterator[tuple[str, Path]]:
    """Make one reference after the other; each is removed when the next is asked for."""
    for name in workloads:
        made = folder / name
        command = [*PROGRAM, "workload", name, "--scale", "0.00001", "-o", str(made)]
        run_process(command)
        yield name, made / "reference.fa"
    for bases in sizes:
        path = folder / "random.fa"
        apart(write_repetitive_reference if with_repeats else write_random_reference, path, bases)
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
        "reference_step": index.header.reference_step,
        "bytes": index.byte_count,
        "bytes_per_base": index.byte_count / index.header.bases,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure index files.")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--workloads", default="LMONO,HS100")
    parser.add_argument("--bases", default="1000000,10000000,100000000,1000000000")
    parser.add_argument("--repeats", action="store_true")
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
        for reference, path in make_references(folder, workloads, sizes, given.repeats):
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
