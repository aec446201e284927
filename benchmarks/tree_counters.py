"""Counters of the tree search's kernels under several policies, by NVIDIA's profiler ncu.

    python benchmarks/tree_counters.py [--workloads HSILL=hg38.fa.gz,LMONO] [--policies m,none]

Needs a CUDA device whose counters may be read, `ncu` on the PATH, and `mummergpu[cuda]`. Each
workload's reads are searched twice under each policy, and the second search counts. Writes
`results/policy-study/counters.json`: for each workload, policy and kernel the milliseconds, hit
rates, bytes from device memory, active lanes of an instruction, and occupancy; of several pages the
sums, or the means weighted by time.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from devices import open_device
from gpu_kernels import NO_LIMIT, ONE_BLOCK, WORKLOADS, Workload, by_layout
from measure import save

from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.index.tree.flatten import TreePage
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand

POLICIES = ("none", "Tn", "m", "Tm", "mn", "mt")
KERNELS = ("match_kernel", "find_mems")
TIME = "gpu__time_duration.sum"
DRAM = "dram__bytes_read.sum"
METRICS = {
    "l1_hit_percent": "l1tex__t_sector_hit_rate.pct",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "active_threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "issue_active_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "stalled_long_scoreboard": (
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
    ),
}
"""The metrics that are averaged, by their names in the results."""


def search(workload: Workload, pages: Sequence[TreePage], code: str, profile: bool) -> Stats:
    """Search the reads under a policy: once to count nodes, or else twice."""
    stats = Stats()
    backend = TreeCudaBackend(
        *(open_device(0), KernelCache(None, print), Policy.from_code(code), stats, lambda _: None),
        profile=profile,
        max_block_bases=ONE_BLOCK,
        closes_device=True,
    )
    try:
        backend.load_pages(pages, workload.minimum_length)
        for _ in range(1 if profile else 2):
            backend.find_mems(workload.block, (Strand.FORWARD,), NO_LIMIT)
    finally:
        backend.close()
    return stats


def run_searches(folder: Path, word: str, codes: Sequence[str], log: Path) -> None:
    """Search under all policies, and write how often each kernel was launched, in their order."""
    done: list[dict[str, Any]] = []
    with ThreadPoolExecutor() as executor:
        workload = Workload(folder, word, executor)
        for layout, group in by_layout(codes):
            pages = workload.build(layout)
            for code in group:
                kernels = search(workload, pages, code, profile=False).kernels
                launches = {name: kernels[name].launches for name in KERNELS}
                done.append({"policy": code, "pages": len(pages), "launches": launches})
        kernels = search(workload, pages, code, profile=True).kernels
        visits = {name: kernels[name].node_visits for name in KERNELS}
    log.write_text(json.dumps({"searches": done, "node_visits": visits}))


def launches_of(report: str) -> dict[str, list[dict[str, float]]]:
    """Return the metrics of each launch of each kernel, in order, from ncu's CSV."""
    lines = [line for line in report.splitlines() if line.startswith('"')]
    launches: dict[str, dict[str, dict[str, float]]] = {name: {} for name in KERNELS}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        launch = launches[row["Kernel Name"].partition("(")[0]].setdefault(row["ID"], {})
        launch[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return {name: list(each.values()) for name, each in launches.items()}


def combined(launches: Sequence[dict[str, float]], visits: int) -> dict[str, float]:
    """Return the counters of a kernel over all pages."""
    nanoseconds = sum(launch[TIME] for launch in launches)
    bytes_read = sum(launch[DRAM] for launch in launches)
    figures = {
        "milliseconds": nanoseconds / 1e6,
        "dram_bytes_read": bytes_read,
        "dram_read_bytes_per_visit": bytes_read / visits,
    }
    for name, metric in METRICS.items():
        figures[name] = sum(launch[TIME] * launch[metric] for launch in launches) / nanoseconds
    return figures


def counters(folder: Path, word: str, codes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the counters of a workload under each policy."""
    log = folder / "searches.json"
    command = ["ncu", "--clock-control", "none", "--csv", "--print-units", "base"]
    command += ["--kernel-name-base", "function", "--kernel-name", f"regex:{'|'.join(KERNELS)}"]
    command += ["--metrics", ",".join([TIME, DRAM, *METRICS.values()])]
    command += [sys.executable, __file__, "--workloads", word, "--policies", ",".join(codes)]
    command += ["--folder", str(folder), "--inside", str(log)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"ncu failed for {word}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    launches = launches_of(done.stdout)
    made = json.loads(log.read_text())
    for one in made["searches"]:
        for name in KERNELS:
            count = one["launches"][name]
            own, launches[name] = launches[name][:count], launches[name][count:]
            # The last launches are those of the second search: one for each page.
            figures = combined(own[-one["pages"] :], made["node_visits"][name])
            workload = word.partition("=")[0]
            yield {"workload": workload, "policy": one["policy"], "kernel": name, **figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--folder", type=Path, help="where the workloads are or go")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    codes = options.policies.split(",")
    if options.inside:
        run_searches(options.folder, options.workloads, codes, options.inside)
        return
    rows: list[dict[str, Any]] = []
    device = open_device(0)
    name = device.name
    device.close()
    with tempfile.TemporaryDirectory() as temporary:
        for word in options.workloads.split(","):
            rows += counters(options.folder or Path(temporary), word, codes)
            # What is counted so far is kept.
            save("policy-study/counters.json", {"device": name, "counters": rows})


if __name__ == "__main__":
    main()
