"""The figures of the main job on the cpu backend, searching trees.

    python benchmarks/cpu_main_job.py [--mummer PROGRAM] [--runs 5] [--folder DIR]

Needs the package installed, and for the comparison a MUMmer 4 `mummer` (an option or on the
PATH). Makes the LMONO workload in the folder and writes `results/cpu-main-job.json`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from measure import apart, in_turn, run_process, save

PAGE_BASES = 1 << 23
PROGRAM = [sys.executable, "-m", "mummergpu"]


def timed(work: Callable[[], object]) -> dict[str, float]:
    begin = time.perf_counter()
    work()
    return {"seconds": time.perf_counter() - begin}


def random_page(seed: int) -> Any:
    import numpy as np

    from mummergpu.input.reference import Reference

    codes = np.random.default_rng(seed).integers(0, 4, PAGE_BASES, dtype=np.uint8)
    return Reference("random", codes, np.array([0]), np.array([codes.size]), (b"random",))


def build_random_pages(count: int, threads: int) -> dict[str, float]:
    """Build trees of random pages; return the seconds of all, and of the stages of each."""
    from mummergpu.index.pages import plan_pages
    from mummergpu.index.tree.build import build_page
    from mummergpu.index.tree.layout import Layout
    from mummergpu.index.tree.policy import DEFAULT_POLICY
    from mummergpu.runtime.stats import Stats

    layout = Layout.of(DEFAULT_POLICY)
    references = [random_page(seed) for seed in range(count)]
    pages = plan_pages(PAGE_BASES, PAGE_BASES, 19)

    def build(reference: Any) -> None:
        build_page(reference, pages[0], layout, stats)

    stats = Stats()
    with ThreadPoolExecutor(threads) as executor:
        figures = timed(lambda: list(executor.map(build, references)))
    for name in ("tree_construction", "tree_reorder", "tree_flatten"):
        figures[f"{name}_seconds"] = stats.stages[name].seconds / count
    return figures


def page_figures(runs: int) -> dict[str, Any]:
    """One page on one core and two on two, in turn."""
    return in_turn(
        runs,
        one_page_one_core=lambda: build_random_pages(1, 1),
        two_pages_two_cores=lambda: build_random_pages(2, 2),
    )


def page_memory() -> dict[str, Any]:
    """Measure the peak memory of a process that builds one page."""
    from mummergpu.runtime.stats import peak_memory

    build_random_pages(1, 1)
    return {"one_page_process_peak_memory_bytes": peak_memory()}


def start_up_figures(runs: int, folder: Path) -> dict[str, Any]:
    """Start-up: the version, a tiny run with warm caches, the first run ever."""
    reference = folder / "tiny.fa"
    reference.write_text(">tiny\n" + "ACGGTCATTGCA" * 10 + "\n")
    tiny = [*PROGRAM, str(reference), str(reference), "-b"]
    warm = in_turn(
        2 * runs,
        version=lambda: run_process([*PROGRAM, "--version"]),
        tiny_run=lambda: run_process(tiny),
    )
    with tempfile.TemporaryDirectory() as cache:
        cold = run_process(tiny, MUMMERGPU_CACHE_DIR=cache)
    return {**warm, "first_run_ever": cold}


def workload_figures(runs: int, folder: Path, mummer: str | None) -> dict[str, Any]:
    """LMONO on both strands with two threads, beside MUMmer 4 where there is one."""
    run_process([*PROGRAM, "workload", "LMONO", "-o", str(folder / "LMONO")])
    paths = [str(folder / "LMONO" / name) for name in ("reference.fa", "reads.fq")]
    ours = [*PROGRAM, *paths, "-l", "20", "-b", "-t", "2", "--search", "tree"]
    jobs = {"mummergpu": lambda: run_process(ours, folder / "ours.txt")}
    results: dict[str, Any] = {
        "commands": {"mummergpu": " ".join(["mummergpu", *ours[3:]]).replace(f"{folder}/", "")}
    }
    if mummer is not None:
        peer = [mummer, *"-maxmatch -n -b -l 20 -qthreads 2".split(), *paths]
        jobs["mummer4"] = lambda: run_process(peer, folder / "peer.txt")
        version = subprocess.run([mummer, "-version"], capture_output=True, text=True).stdout
        results["commands"]["mummer4"] = " ".join(["mummer", *peer[1:]]).replace(f"{folder}/", "")
        results["mummer4_version"] = version.strip()
    results |= in_turn(runs, **jobs)
    results["matches"] = count_rows(folder / "ours.txt")
    if mummer is not None:
        results["mummer4_matches"] = count_rows(folder / "peer.txt")
        medians = [results[name]["seconds"]["median"] for name in ("mummer4", "mummergpu")]
        results["times_as_fast_as_mummer4"] = medians[0] / medians[1]
    return results


def count_rows(path: Path) -> int:
    with open(path, "rb") as file:
        return sum(not line.startswith(b">") for line in file)


def stream_figures(runs: int, folder: Path) -> dict[str, Any]:
    """Plain FASTQ parsed, and rows formatted, on one core, in bytes of text a second."""
    from mummergpu.input.blocks.reader import query_reader
    from mummergpu.output.matches.mummer import MummerFormatter, TextStyle
    from mummergpu.sequence.codes import Strand

    reads = folder / "LMONO" / "reads.fq"

    def parse() -> dict[str, float]:
        figures = timed(
            lambda: sum(block.base_count for block in query_reader([str(reads)], 1 << 20))
        )
        return {"bytes_per_second": reads.stat().st_size / figures["seconds"]}

    block, matches, reference = many_matches(reads)
    formatter = MummerFormatter(reference, TextStyle())

    def write() -> dict[str, float]:
        size = 0

        def pieces() -> Iterator[int]:
            for piece in formatter.format_block(block, {Strand.FORWARD: matches}):
                yield piece.size

        def work() -> None:
            nonlocal size
            size = sum(pieces())

        figures = timed(work)
        return {"bytes_per_second": size / figures["seconds"]}

    return in_turn(runs, fastq_parsed=parse, rows_formatted=write)


def many_matches(reads: Path) -> tuple[Any, Any, Any]:
    """Return a block of reads with ten made-up matches each, and a reference for them."""
    import numpy as np

    from mummergpu.input.blocks.reader import query_reader
    from mummergpu.sequence.mems import MemColumns

    with query_reader([str(reads)], 1 << 24) as reader:
        block = next(reader)
    offsets = np.arange(block.query_count + 1, dtype=np.int64) * 10
    made = np.random.default_rng(1)
    columns = [made.integers(0, most, offsets[-1]) for most in (100, PAGE_BASES, 120)]
    return block, MemColumns(offsets, *columns), random_page(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mummer", default=shutil.which("mummer"), help="a MUMmer 4 mummer")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the workload goes")
    arguments = parser.parse_args()
    mummer = arguments.mummer
    if mummer is not None:
        asked = subprocess.run([mummer, "-version"], capture_output=True, text=True)
        if not re.match(r"4\.", asked.stdout.strip()):
            print(f"{mummer} is not MUMmer 4: no comparison", file=sys.stderr)
            mummer = None
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = {
            "page_of_8388608_random_bases": {
                **apart(page_figures, arguments.runs),
                **apart(page_memory),
            },
            "start_up": start_up_figures(arguments.runs, folder),
            "LMONO_both_strands": workload_figures(arguments.runs, folder, mummer),
            "streams_one_core": apart(stream_figures, arguments.runs, folder),
        }
    print(save("cpu-main-job.json", results))


if __name__ == "__main__":
    main()
