"""What the benchmarks share: timing whole processes, describing the machine, saving."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def run_process(
    command: Sequence[str], output: Path | None = None, **environment: str
) -> dict[str, float]:
    """Run a command to its end; return wall and processor seconds and peak memory.

    Python may keep byte code, as it does for users, even if this environment forbids it.
    """
    environment = {**os.environ, **environment}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with open(output or os.devnull, "wb") as file:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {shlex.join(command)}")
    return {
        "seconds": seconds,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "peak_memory_bytes": usage.ru_maxrss * 1024,
    }


def in_turn(runs: int, **jobs: Callable[[], dict[str, float]]) -> dict[str, Any]:
    """Run jobs in turn, after one uncounted turn; return the figures and medians of each."""
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in jobs}
    for turn in range(runs + 1):
        for name, job in jobs.items():
            figure = job()
            if turn:
                figures[name].append(figure)
    return {name: summary(each) for name, each in figures.items()}


def apart(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call a function in a process of its own, and return what it returns.

    The memory of a new process counts from that of the one that starts it: a benchmark that
    measures memory must stay small itself.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        return executor.submit(work, *arguments).result()


def summary(figures: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return minimum, median and maximum of each figure."""
    return {
        name: {
            "min": min(figure[name] for figure in figures),
            "median": statistics.median(figure[name] for figure in figures),
            "max": max(figure[name] for figure in figures),
            "runs": len(figures),
        }
        for name in figures[0]
    }


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the program."""
    import numba
    import numpy as np

    from mummergpu.studies.machine import processor_name

    return {
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def commit() -> str:
    """Return the commit of this clone, and whether files have changed since; empty without git."""
    words = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def provenance() -> dict[str, Any]:
    """Return the date, the commit, the command and the machine of this process."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "command": shlex.join(["python", *sys.argv]),
        "machine": machine(),
    }


def save(name: str, results: dict[str, Any]) -> Path:
    """Write results, and how they were made."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / name
    path.write_text(json.dumps(provenance() | results, indent=2) + "\n")
    return path
