"""The figures of the whole command as tables: how far from the floor, and where the time goes.

    python benchmarks/tables.py

Reads the results of `end_to_end.py` in `results/`, and writes `results/TABLES.md`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
FILES = (
    *("cpu-end-to-end.json", "cpu-beside-copmem2.json"),
    *("gpu-end-to-end.json", "gpu-four-workloads-cuda.json", "gpu-four-workloads-cpu.json"),
    *("gpu-hs100.json", "gpu-genomes.json"),
)
STAGES = {
    "ref_from_disk": "reference",
    "table_construction": "table",
    "trees_to_device": "to device",
    "queries_from_disk": "reading",
    "kmer_kernel": "kernels",
    "coords_to_buffers": "merging",
    "format": "text",
    "results_to_disk": "writing",
}


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def head(cells: list[str]) -> str:
    return row(cells) + row(["---"] * len(cells))


def seconds(figures: dict[str, Any], job: str) -> str:
    return f"{figures[job]['seconds']['median']:.2f}" if job in figures else ""


def against_floor(workloads: dict[str, Any]) -> str:
    """Return the table of wall times and floors."""
    text = head(
        [
            *(
                "workload",
                "strands",
                "index ready, s",
                "without, s",
                "MUMmer 4, s",
                "times as fast",
            ),
            *("start, s", "read, s", "write, s", "floor, s", "times the floor"),
        ]
    )
    for name, figures in workloads.items():
        floor = figures["floor_seconds"]
        fast = figures.get("times_as_fast_as_mummer4", {})
        text += row(
            [
                name,
                figures["strands"],
                seconds(figures, "mummergpu"),
                seconds(figures, "mummergpu_without_index"),
                seconds(figures, "mummer4"),
                ", ".join(f"{times:.1f}" for times in fast.values()),
                *(f"{floor[part]:.2f}" for part in ("start", "read", "write", "together")),
                f"{figures['times_the_floor']:.2f}",
            ]
        )
    return text


def stages(workloads: dict[str, Any]) -> str:
    """Return the table of stages, of the thread that was busy with each."""
    text = head(["workload", *STAGES.values(), "of wall seconds after the start"])
    for name, figures in workloads.items():
        stage_seconds = figures["stage_seconds"]
        text += row(
            [
                name,
                *(f"{stage_seconds.get(stage, 0):.3f}" for stage in STAGES),
                f"{stage_seconds['end_to_end']:.3f}",
            ]
        )
    return text


def main() -> None:
    text = "# The whole command\n\nMade by `benchmarks/tables.py` from the files named here.\n"
    for file in FILES:
        results = json.loads((RESULTS / file).read_text())
        machine = results["machine"]
        text += (
            f"\n## {file}\n\n`{results['command']}`, {results['date']}, {machine['cores']} cores "
            f"of {machine['processor']}. {results.get('note', '')}\n\n"
            "Medians. The floor is the start of the program with next to nothing to do, and the "
            "longer of reading and writing at the file system's measured speed.\n\n"
            f"{against_floor(results['workloads'])}\n"
            "Where the time goes, with the index ready: seconds of all threads together, which "
            "work beside each other; kernels of a GPU by its own clock.\n\n"
            f"{stages(results['workloads'])}"
        )
    (RESULTS / "TABLES.md").write_text(text)


if __name__ == "__main__":
    main()
