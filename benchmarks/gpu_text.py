"""The text of matches on a GPU: its kernels, and the whole command with and without it.

    python benchmarks/gpu_text.py [--workloads SSUIS,...] [--strands forward|both] [--runs 5]
        [--threads N] [--folder DIR] [--kernels DIR] [--without-command] [--name gpu-text.json]

Needs a CUDA device and `mummergpu[cuda]`. Makes the workloads in the folder, where they are not
there yet. First one thread searches all reads in blocks of the usual size, once for text and once
for columns, of which it makes the text as the command does; every text is compared. Kept are
medians of the device's time in each kernel, of the copies and of the thread, beside what the
kernels must move at the rate of a copy on the device, and what the copy takes at the rate of the
bus. Then the whole command runs from files to a file, in turn with text from the device and with
columns, and the files are compared. Writes `results/gpu-text.json`.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from devices import open_device
from gpu_kernels import NO_LIMIT, WORKLOADS, make_workload
from gpu_kmer import bus_rates
from measure import in_turn, machine, run_process, save

from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.index.kmer_page import build_kmer_page
from mummergpu.index.kmer_plan import DEVICE_COSTS, KmerJob, choose_sampling, max_table_bytes
from mummergpu.index.pages import Page
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.reference import read_reference
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.output.matches.mummer import MummerFormatter, TextStyle
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand
from mummergpu.workload.declaration import load_declaration

COPIED_BYTES = 1 << 30
COLUMN_BYTES = 24
PROGRAM = """
import sys
from mummergpu.matching.kmer.cuda import KmerCudaBackend
KmerCudaBackend.may_make_text = sys.argv.pop(1) == "text"
from mummergpu.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""The command, with or without text from the device."""

STRANDS = {"forward": (Strand.FORWARD,), "both": tuple(Strand)}
STAGES = ("matches_from_device", "format", "text_kernel", "kmer_kernel", "results_to_disk")


def memory_rate(runs: int) -> float:
    """Return the bytes a second that the device reads and writes together in a copy of its own."""
    from cuda.bindings import driver

    from mummergpu.cuda.driver_calls import call

    device: Any = open_device(0)
    times = []
    with device.current():
        stream = device.new_stream()
        one, other = device.allocate(COPIED_BYTES), device.allocate(COPIED_BYTES)
        for _ in range(runs + 1):
            before = stream.mark()
            copied = other.address, one.address, COPIED_BYTES
            call(driver.cuMemcpyDtoDAsync, *copied, stream.handle)
            after = stream.mark()
            stream.synchronize()
            times.append(after.milliseconds_since(before))
        del before, after
        one.free()
        other.free()
        stream.free()
    device.close()
    return 2 * COPIED_BYTES / statistics.median(times[1:]) * 1000


class Job:
    """A workload in memory, and a backend that has loaded its reference."""

    def __init__(
        self,
        folder: Path,
        name: str,
        strands: Sequence[Strand],
        cache: KernelCache,
        executor: ThreadPoolExecutor,
    ) -> None:
        make_workload(folder, name)
        length = load_declaration(name).minimum_length
        reference = read_reference(str(folder / name / "reference.fa"))
        self.strands = strands
        self.stats = Stats()
        self.formatter = MummerFormatter(reference, TextStyle())
        KmerCudaBackend.may_make_text = True
        self.backend = KmerCudaBackend(open_device(0), cache, self.stats, print, closes_device=True)
        row_format = self.formatter.row_format()
        assert row_format is not None
        self.backend.set_format(row_format)
        with query_reader(
            [str(folder / name / "reads.fq")], self.backend.sizes.block_bases
        ) as reader:
            self.blocks: list[QueryBlock] = list(reader)
        bases = reference.codes.size
        query_bases = sum(block.base_count for block in self.blocks)
        job = KmerJob(bases, length, query_bases * len(strands))
        sampling = choose_sampling(job, max_table_bytes(bases), DEVICE_COSTS)
        page = Page(0, 0, bases, bases)
        pages = [build_kmer_page(reference, page, sampling, 1 << 30, Stats(), executor.map)]
        self.backend.load_pages(pages, length)
        assert self.backend.makes_text

    def text(self, block: QueryBlock) -> tuple[list[Any], int]:
        """Return the text that the device makes, and the number of rows."""
        found = self.backend.find_text(block, self.strands, NO_LIMIT)
        assert found is not None, "the text of a block is too long"
        return list(found.pieces), found.count

    def columns(self, block: QueryBlock) -> tuple[list[Any], int]:
        """Return the text that the host makes of columns, and the number of rows."""
        found = self.backend.find_mems(block, self.strands, NO_LIMIT)
        assert found is not None
        with self.stats.stage("format"):
            pieces = list(self.formatter.format_block(block, found))
        return pieces, sum(columns.count for columns in found.values())

    def compare(self) -> dict[str, int]:
        """Compare all texts; return the bytes, the rows and the lines."""
        size = rows = lines = 0
        for block in self.blocks:
            (ours, count), (others, _) = self.text(block), self.columns(block)
            text = b"".join(piece.tobytes() for piece in ours)
            if text != b"".join(piece.tobytes() for piece in others):
                raise SystemExit(f"block {block.index}: another text")
            self._take_back([*ours, *others])
            size, rows, lines = size + len(text), rows + count, lines + text.count(b"\n")
        return {"text_bytes": size, "rows": rows, "lines": lines}

    def timed(self, work: Callable[[QueryBlock], tuple[list[Any], int]]) -> dict[str, float]:
        """Return the seconds of a thread that does all blocks, and what the device took."""
        kernels = {name: found.milliseconds for name, found in self.stats.kernels.items()}
        stages = {name: self.stats.stages[name].seconds for name in STAGES}
        seconds = 0.0
        for block in self.blocks:
            begin = time.perf_counter()
            pieces, _ = work(block)
            seconds += time.perf_counter() - begin
            self._take_back(pieces)
        figures = {"thread_seconds": seconds}
        for name in STAGES[:2]:
            figures[f"{name}_seconds"] = self.stats.stages[name].seconds - stages[name]
        for name, found in self.stats.kernels.items():
            figures[f"{name}_ms"] = found.milliseconds - kernels.get(name, 0.0)
        return figures

    def _take_back(self, pieces: Sequence[Any]) -> None:
        for piece in pieces:
            self.formatter.take_back(piece)


def kernel_figures(job: Job, rates: dict[str, float], runs: int) -> dict[str, Any]:
    """Measure the searches of one thread, beside what they cannot take less than."""
    told: dict[str, Any] = {"blocks": len(job.blocks), **job.compare()}
    read = 2 * COLUMN_BYTES * told["rows"]
    told["floor"] = {
        "kernels_bytes": read + told["text_bytes"],
        "kernels_ms": (read + told["text_bytes"]) / rates["memory"] * 1000,
        "copy_ms": told["text_bytes"] / rates["out"] * 1000,
        "copy_of_columns_ms": COLUMN_BYTES * told["rows"] / rates["out"] * 1000,
    }
    told["one_thread"] = in_turn(
        runs, text=lambda: job.timed(job.text), columns=lambda: job.timed(job.columns)
    )
    kernels = ("count_text", "write_text")
    told["resources"] = {name: job.stats.kernels[name].resources for name in kernels}
    return told


def command_figures(
    folder: Path, name: str, options: argparse.Namespace, temporary: Path
) -> dict[str, Any]:
    """Measure the whole command, from files to a file, both ways."""
    length = load_declaration(name).minimum_length
    words = [str(folder / name / "reference.fa"), str(folder / name / "reads.fq")]
    words += ["-l", str(length), "--backend", "cuda", "--search", "kmer", "-q"]
    words += ["-t", str(options.threads)] + (["-b"] if options.strands == "both" else [])
    outputs = {way: temporary / f"{way}.txt" for way in ("text", "columns")}

    def command(way: str, *more: str) -> list[str]:
        return [sys.executable, "-c", PROGRAM, way, *words, "-o", str(outputs[way]), *more]

    def run(way: str) -> dict[str, float]:
        outputs[way].unlink(missing_ok=True)
        return run_process(command(way))

    told = in_turn(options.runs, text=lambda: run("text"), columns=lambda: run("columns"))
    if not filecmp.cmp(outputs["text"], outputs["columns"], shallow=False):
        raise SystemExit(f"{name}: the command writes another text")
    for way in outputs:
        report = temporary / "stats.json"
        outputs[way].unlink()
        run_process(command(way, "--stats", str(report)))
        stages = json.loads(report.read_text())["stages"]
        told[way]["stage_seconds"] = {stage: stages[stage]["seconds"] for stage in STAGES}
        outputs[way].unlink()
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--strands", choices=sorted(STRANDS), default="forward")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=machine()["cores"])
    parser.add_argument("--folder", type=Path, help="where the workloads are or go")
    parser.add_argument("--kernels", type=Path, help="where compiled kernels are kept")
    parser.add_argument("--without-command", action="store_true", help="measure only the kernels")
    parser.add_argument("--name", default="gpu-text.json", help="of the results")
    options = parser.parse_args()
    rates = {**bus_rates(options.runs), "memory": memory_rate(options.runs)}
    results: dict[str, Any] = {"strands": options.strands, "bytes_per_second": rates}
    with tempfile.TemporaryDirectory() as name_of_temporary:
        temporary = Path(name_of_temporary)
        folder = options.folder or temporary
        cache = KernelCache(options.kernels, print)
        for name in options.workloads.split(","):
            print(name, flush=True)
            with ThreadPoolExecutor(machine()["cores"]) as executor:
                job = Job(folder, name, STRANDS[options.strands], cache, executor)
            results["device"] = job.backend.device.name
            results["device_library"] = job.backend.device.library
            try:
                results[name] = kernel_figures(job, rates, options.runs)
            finally:
                job.backend.close()
            print(json.dumps(results[name], indent=1), flush=True)
            if not options.without_command:
                results[name]["command"] = command_figures(folder, name, options, temporary)
                print(json.dumps(results[name]["command"], indent=1), flush=True)
            save(options.name, results)


if __name__ == "__main__":
    main()
