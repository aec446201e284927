"""Mapping by processes of a cluster beside threads of one process, on the same processors.

    python benchmarks/cluster_speed.py --reference INDEX --files FILE [FILE] [--processes 2]
        [--runs 3] [--outputs bam,sorted] [--folder DIR] [--name FILE]

Both have one thread for each processor of the run: `-t N` in one process, and `--cluster local:N
-t N` in N processes. The times of both include their start; `..._start` tells it, by the time of
mapping the first reads only. The records are compared one by one. Writes
`results/cluster-speed.json`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import pysam
from measure import in_turn, run_process, save

PROGRAM = [sys.executable, "-m", "mummergpu"]
FIRST_LINES = 400


def first_reads(path: Path, folder: Path) -> Path:
    """Return a file with the first reads of another one."""
    made = folder / f"first-{path.name}"
    with open(path, "rb") as file:
        made.write_bytes(b"".join(islice(file, FIRST_LINES)))
    return made


def digest_of_records(path: Path) -> str:
    """Return a digest of the records of a BAM, in their order."""
    library: Any = pysam
    digest = blake2b(digest_size=16)
    with library.AlignmentFile(str(path), "rb", check_sq=False) as file:
        for record in file.fetch(until_eof=True):
            digest.update(record.to_string().encode())
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--files", type=Path, nargs="+", required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--outputs", default="bam,sorted")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--name", default="cluster-speed.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        save(options.name, figures(options, Path(made)))


def figures(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the times of both, for each output."""
    count = str(options.processes)
    map_words = [*PROGRAM, "map", "-q", "--backend", "cpu", "-t", count, str(options.reference)]
    cluster = ["--cluster", f"local:{count}"]
    few = [str(first_reads(path, folder)) for path in options.files]
    files = [str(path) for path in options.files]
    found: dict[str, Any] = {"reads": files, "reference": str(options.reference)}
    for output in options.outputs.split(","):
        sort = ["--sort"] if output == "sorted" else []
        places = folder / "threads.bam", folder / "processes.bam"

        def command(reads: list[str], more: list[str], place: Path) -> list[str]:
            return [*map_words, *reads, *more, "-o", str(place)]

        found[output] = in_turn(
            options.runs,
            threads=partial(run_process, command(files, sort, places[0])),
            processes=partial(run_process, command(files, [*sort, *cluster], places[1])),
            threads_start=partial(run_process, command(few, sort, folder / "few.bam")),
            processes_start=partial(
                run_process, command(few, [*sort, *cluster], folder / "few.bam")
            ),
        )
        if options.runs:
            digests = [digest_of_records(place) for place in places]
            found[output]["same_records"] = digests[0] == digests[1]
            print(output, found[output])
    return found


if __name__ == "__main__":
    main()
