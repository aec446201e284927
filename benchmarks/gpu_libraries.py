"""The two libraries that a GPU is used through, beside each other: calls, start-up, the command.

    python benchmarks/gpu_libraries.py [--workload LMONO] [--runs 5] [--folder DIR]
        [--name gpu-libraries.json]

Needs a CUDA device and `mummergpu[cuda]`, which brings both. First one process for each library
opens the device and times single calls, as the host sees them: work is queued, and not waited for.
Then the whole command runs in turn with each: on a tiny reference, where nearly all of the time is
start-up, and on the workload, with tables and with trees; the outputs are compared. Writes
`results/gpu-libraries.json`.
"""

from __future__ import annotations

import argparse
import filecmp
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from gpu_kernels import make_workload
from measure import apart, in_turn, run_process, save, summary

from mummergpu.cuda.device_library import DEVICE_LIBRARIES, device_opener
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.workload.declaration import load_declaration

CALLS = 500
"""The driver lets the host wait when some more than these are queued."""

SEARCHES = ("kmer", "tree")


def microseconds(work: Callable[[], object], finish: Callable[[], object]) -> float:
    """Return the host's time of one call, of many that are made without waiting."""
    work()
    finish()
    begin = time.perf_counter()
    for _ in range(CALLS):
        work()
    seconds = time.perf_counter() - begin
    finish()
    return seconds / CALLS * 1e6


def timed_calls(device: Any, runs: int) -> dict[str, Any]:
    """Return the microseconds of calls of a device that is current."""
    import numpy as np

    from mummergpu.cuda.sources import read_sources
    from mummergpu.studies.gathers import GATHER_PROGRAM

    cubin = KernelCache(None, print).cubin(read_sources(), GATHER_PROGRAM, device.architecture)
    program, stream = device.load(cubin), device.new_stream()
    buffer, pinned = device.allocate(4096), device.pinned(512, np.int64)

    def current() -> None:
        with device.current():
            pass

    calls: dict[str, Callable[[], object]] = {
        "launch": lambda: stream.launch(program, "fill_table", 1, (buffer.address, 1)),
        "mark": stream.mark,
        "copy_in": lambda: stream.copy_in(buffer.address, pinned),
        "copy_out": lambda: stream.copy_out(pinned, buffer.address),
        "fill_zero": lambda: stream.fill_zero(buffer.address, 4096),
        "current": current,
        "synchronize": stream.synchronize,
        "allocate_and_free": lambda: device.allocate(1 << 20).free(),
    }
    figures = [
        {name: microseconds(work, stream.synchronize) for name, work in calls.items()}
        for _ in range(runs)
    ]
    buffer.free()
    stream.free()
    return summary(figures)


def call_times(library: str, runs: int) -> dict[str, Any]:
    """Return the seconds to import a library and open a device, and the times of calls."""
    begin = time.perf_counter()
    open_device = device_opener(library)
    imported = time.perf_counter()
    device: Any = open_device(0)
    opened = time.perf_counter()
    with device.current():
        times = timed_calls(device, runs)
    device.close()
    return {
        "version": metadata.version(library),
        "device": device.name,
        "import_seconds": imported - begin,
        "open_seconds": opened - imported,
        "microseconds": times,
    }


def command_times(words: list[str], folder: Path, runs: int) -> dict[str, Any]:
    """Return the times of a command with each library in turn; compare what they write."""
    outputs = {library: folder / f"{library}.txt" for library in DEVICE_LIBRARIES}

    def run(library: str) -> dict[str, float]:
        outputs[library].unlink(missing_ok=True)
        command = [sys.executable, "-m", "mummergpu", *words, "-q", "--backend", "cuda"]
        return run_process([*command, "--device-library", library, "-o", str(outputs[library])])

    jobs = {library: lambda library=library: run(library) for library in DEVICE_LIBRARIES}
    told = in_turn(runs, **jobs)
    one, other = outputs.values()
    if not filecmp.cmp(one, other, shallow=False):
        raise SystemExit(f"the libraries give other matches: {words}")
    return {**told, "output_bytes": one.stat().st_size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", default="LMONO")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the workload is or goes")
    parser.add_argument("--name", default="gpu-libraries.json", help="of the results")
    options = parser.parse_args()
    results: dict[str, Any] = {
        library: apart(call_times, library, options.runs) for library in DEVICE_LIBRARIES
    }
    for library, told in results.items():
        medians = {name: round(each["median"], 2) for name, each in told["microseconds"].items()}
        print(library, f"open {told['open_seconds']:.3f} s", medians, flush=True)
    with tempfile.TemporaryDirectory() as name_of_temporary:
        temporary = Path(name_of_temporary)
        folder = options.folder or temporary
        make_workload(folder, options.workload)
        tiny = temporary / "tiny.fa"
        tiny.write_text(">tiny\n" + "ACGTTGCATTAGC" * 40 + "\n")
        length = str(load_declaration(options.workload).minimum_length)
        reads = [str(folder / options.workload / name) for name in ("reference.fa", "reads.fq")]
        jobs = {"start": [str(tiny), str(tiny)]}
        jobs |= {name: [*reads, "-l", length, "-b", "--search", name] for name in SEARCHES}
        for name, words in jobs.items():
            results[name] = command_times(words, temporary, options.runs)
            medians = {
                library: round(results[name][library]["seconds"]["median"], 3)
                for library in DEVICE_LIBRARIES
            }
            print(name, medians, flush=True)
    save(options.name, results)


if __name__ == "__main__":
    main()
