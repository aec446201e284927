"""The whole command beside MUMmer 4, from files to a file.

    python benchmarks/end_to_end.py --backend cpu|cuda [--mummer PROGRAM] [--workloads ...]
        [--strands both|forward] [--runs 5] [--folder DIR] [--without-index] [--copmem PROGRAM]

Needs the package installed (with a CUDA device and `mummergpu[cuda]` for cuda), and for the
comparison a MUMmer 4 `mummer`, an option or on the PATH. Makes the workloads in the folder,
where they are not there yet. The index of our program is ready, MUMmer's is built in each of
its runs unless --peer-index is given; with --without-index ours is timed without one as well.
With --copmem, copMEM2 takes part where it can (a minimum length of 50 and more).
Each turn runs every program once (MUMmer not in turns but once with --peer-once); medians are
kept. Beside each time stands its floor: what reading the input, writing the output and starting
a run cannot take less than on the machine as it is.
Writes `results/cpu-end-to-end.json` or `results/gpu-end-to-end.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import in_turn, run_process, save, summary

DEFAULT_NAMES = {"cpu": "cpu-end-to-end.json", "cuda": "gpu-end-to-end.json"}
PROGRAM = [sys.executable, "-m", "mummergpu"]
QUERIES = ("reads.fq", "reads.fa", "copy.fa")
"""What a workload calls its queries."""

LEAST_COPMEM_LENGTH = 50
GENOME_COPY = "copy.fa"
"""copMEM2 refuses shorter matches, and crashes on hundreds of thousands of reads."""

STAGES = (
    *("ref_from_disk", "table_construction", "trees_to_device", "queries_from_disk"),
    *("kmer_kernel", "text_kernel", "matches_from_device", "coords_to_buffers", "format"),
    *("results_to_disk", "end_to_end"),
)


def files_of(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the reference and the queries of a workload, made if they are not there."""
    reference = folder / name / "reference.fa"
    if not reference.exists():
        run_process([*PROGRAM, "workload", name, "-o", str(folder / name)])
    return reference, next(path for query in QUERIES if (path := folder / name / query).exists())


def seconds_of(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def machine_rates(folder: Path, backend: str) -> dict[str, float]:
    """Bytes a second that this machine reads and writes, and the seconds of a tiny run."""
    block = os.urandom(1 << 24)
    count = 32
    path = folder / "rates.bin"

    def write() -> None:
        with open(path, "wb", buffering=0) as file:
            for _ in range(count):
                file.write(block)

    def read() -> None:
        room = bytearray(len(block))
        with open(path, "rb", buffering=0) as file:
            while file.readinto(room):
                pass

    writing = []
    for _ in range(3):
        path.unlink(missing_ok=True)
        writing.append(seconds_of(write))
    reading = [seconds_of(read) for _ in range(3)]
    path.unlink()
    tiny = folder / "tiny.fa"
    tiny.write_text(">tiny\n" + "ACGGTCATTGCA" * 10 + "\n")
    command = [*PROGRAM, str(tiny), str(tiny), "-b", "--backend", backend]
    run_process(command)
    starts = sorted(run_process(command)["seconds"] for _ in range(5))
    return {
        "written_bytes_per_second": count * len(block) / min(writing),
        "read_bytes_per_second": count * len(block) / min(reading),
        "start_seconds": starts[2],
    }


def our_command(
    reference: Path, queries: Path, length: int, strands: str, options: argparse.Namespace
) -> list[str]:
    words = ["-l", str(length), "--backend", options.backend, "-t", str(options.threads)]
    return [*PROGRAM, str(reference), str(queries), *words, *(["-b"] if strands == "both" else [])]


def timed_into(command: list[str], output: Path, *, named: bool) -> dict[str, float]:
    """Run a command that writes a file, by its own option or by standard output."""
    output.unlink(missing_ok=True)
    if named:
        return run_process([*command, "-o", str(output)])
    return run_process(command, output)


def stages_of(command: list[str], folder: Path) -> dict[str, Any]:
    """Run once more with statistics; return the seconds of each stage, and the kernels'."""
    report, output = folder / "stats.json", folder / "ours.txt"
    output.unlink(missing_ok=True)
    run_process([*command, "-o", str(output), "--stats", str(report)])
    told = json.loads(report.read_text())
    stages = {name: told["stages"].get(name, {"seconds": 0.0})["seconds"] for name in STAGES}
    kernels = {name: found["milliseconds"] for name, found in told.get("kernels", {}).items()}
    return {
        "stage_seconds": stages,
        "kernel_milliseconds": {"together": sum(kernels.values()), **kernels} if kernels else {},
        "matches": told["counts"].get("matches", 0),
    }


def peer_index(
    reference: Path, length: int, options: argparse.Namespace
) -> tuple[dict[str, float], list[str]]:
    """Have MUMmer keep its index; return what that cost, and the words that load it."""
    prefix = str(options.folder / "peer-index")
    none = options.folder / "none.fa"
    none.write_text(">none\nA\n")
    save_words = ["-maxmatch", "-l", str(length), "-save", prefix, str(reference), str(none)]
    return run_process([options.mummer, *save_words]), ["-load", prefix]


def workload_figures(
    name: str, length: int, strands: str, rates: dict[str, float], options: argparse.Namespace
) -> dict[str, Any]:
    """All programs on one workload, in turn."""
    folder: Path = options.folder
    reference, queries = files_of(folder, name)
    index = reference.with_suffix(".mgi")
    build = [*PROGRAM, "index", str(reference), "-o", str(index), "-t", str(options.threads)]
    build += ["-l", str(length)]
    output, peer_output = folder / "ours.txt", folder / "peer.txt"
    ours = our_command(index, queries, length, strands, options)
    index_build = run_process(build)
    jobs: dict[str, Callable[[], dict[str, float]]] = {
        "mummergpu": lambda: timed_into(ours, output, named=True)
    }
    if options.without_index:
        bare = our_command(reference, queries, length, strands, options)
        jobs["mummergpu_without_index"] = lambda: timed_into(bare, output, named=True)
    results: dict[str, Any] = {"minimum_length": length, "strands": strands}
    results["index_build"] = index_build
    if options.mummer:
        words = f"-maxmatch -n -l {length} -qthreads {options.threads}".split()
        words += ["-b"] if strands == "both" else []
        if options.peer_index:
            results["mummer4_index_build"], loaded = peer_index(reference, length, options)
            words += loaded
        peer = [options.mummer, *words, str(reference), str(queries)]
        jobs["mummer4"] = lambda: timed_into(peer, peer_output, named=False)
    copmem_output = folder / "copmem.txt"
    if options.copmem and length >= LEAST_COPMEM_LENGTH and queries.name == GENOME_COPY:
        words = ["-l", str(length), "-t", str(options.threads), "-o", str(copmem_output)]
        words += ["-b"] if strands == "both" else []
        copmem = [options.copmem, *words, str(reference), str(queries)]
        jobs["copmem2"] = lambda: run_process(copmem)
    if options.peer_once and options.mummer:
        results["mummer4"] = summary([jobs.pop("mummer4")()])
    results |= in_turn(options.runs, **jobs)
    results |= stages_of(ours, folder)
    written, read = output.stat().st_size, queries.stat().st_size
    floor = {
        "start": rates["start_seconds"],
        "read": read / rates["read_bytes_per_second"],
        "write": written / rates["written_bytes_per_second"],
    }
    # Reading and writing go on beside each other; starting does not.
    least = floor["start"] + max(floor["read"], floor["write"])
    results["floor_seconds"] = {**floor, "together": least}
    results["output_bytes"] = written
    ours_median = results["mummergpu"]["seconds"]["median"]
    results["times_the_floor"] = ours_median / least
    if options.mummer:
        results["same_size_as_mummer4"] = written == peer_output.stat().st_size
        peers = results["mummer4"]["seconds"]["median"]
        results["times_as_fast_as_mummer4"] = {
            job: peers / results[job]["seconds"]["median"]
            for job in ("mummergpu", "mummergpu_without_index")
            if job in results
        }
    if "copmem2" in results:
        results["same_as_copmem2"] = columns_of(copmem_output) == columns_of(output)
    for path in (output, peer_output, copmem_output):
        path.unlink(missing_ok=True)
    return results


def columns_of(path: Path) -> list[list[str]]:
    """Return the sorted lines of an output as columns, without the names of the reference."""
    lines = (line.split() for line in path.read_text().splitlines())
    return sorted(words if words[0] == ">" else words[-3:] for words in lines)


def show(name: str, results: dict[str, Any]) -> None:
    """Print a line for a workload, and where its time goes."""
    times = {
        job: f"{results[job]['seconds']['median']:.2f} s"
        for job in ("mummergpu", "mummergpu_without_index", "mummer4", "copmem2")
        if job in results
    }
    print(name, times, results.get("times_as_fast_as_mummer4", ""), flush=True)
    stages = {stage: round(seconds, 3) for stage, seconds in results["stage_seconds"].items()}
    print("   ", stages, results["kernel_milliseconds"], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=["cpu", "cuda"], required=True)
    parser.add_argument("--mummer", default=shutil.which("mummer"), help="a MUMmer 4 mummer")
    parser.add_argument("--copmem", help="a copMEM2 program")
    parser.add_argument("--workloads", default="LMONO:20,SSUIS:10,HSYNTH:14,CBRIGG:100")
    parser.add_argument("--strands", choices=["both", "forward"], default="both")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where workloads and output go")
    parser.add_argument("--without-index", action="store_true")
    parser.add_argument("--peer-index", action="store_true", help="have MUMmer load its index")
    parser.add_argument("--peer-once", action="store_true", help="run MUMmer just once")
    parser.add_argument("--name", help="the file of the results")
    options = parser.parse_args()
    if options.mummer:
        asked = subprocess.run([options.mummer, "-version"], capture_output=True, text=True)
        if not asked.stdout.strip().startswith("4."):
            print(f"{options.mummer} is not MUMmer 4: no comparison", file=sys.stderr)
            options.mummer = None
    with tempfile.TemporaryDirectory() as temporary:
        options.folder = options.folder or Path(temporary)
        rates = machine_rates(options.folder, options.backend)
        results: dict[str, Any] = {"backend": options.backend, "rates": rates, "workloads": {}}
        for item in options.workloads.split(","):
            name, length = item.split(":")
            figures = workload_figures(name, int(length), options.strands, rates, options)
            results["workloads"][f"{name} l={length}"] = figures
            show(item, figures)
            # What is measured stays, whatever becomes of the next.
            save(options.name or DEFAULT_NAMES[options.backend], results)


if __name__ == "__main__":
    main()
