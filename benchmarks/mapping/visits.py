"""How many occurrences of seeds our mapper compares with a read, as its ``--stats`` tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measure import run_process

from mapping.mappers import Mapper, MappingJob

PREFIX = "reads_visiting_"
WIDTH = 50
"""The characters of the longest bar."""


def visits_of(counts: dict[str, int]) -> dict[str, Any]:
    """Return the histogram by powers of two, and the mean, of the counts of a run."""
    reads = {
        int(key.removeprefix(PREFIX)): count
        for key, count in counts.items()
        if key.startswith(PREFIX)
    }
    searched = sum(reads.values())
    return {
        "searched": searched,
        "seeds_looked_up": counts["seeds_looked_up"],
        "reads_with_chosen_seeds": counts["reads_with_chosen_seeds"],
        "reads_at_spread_places": counts["reads_at_spread_places"],
        "mean": counts["occurrences_visited"] / max(1, searched),
        "reads": {str(least): reads[least] for least in sorted(reads)},
    }


def visits_plot(visits: dict[str, Any]) -> list[str]:
    """Return a line with a bar for each number of occurrences, up to the next one."""
    longest = max(visits["reads"].values(), default=1)
    return [
        f"{least:>9} {count:>9} {'#' * -(-WIDTH * count // longest)}"
        for least, count in visits["reads"].items()
    ]


def measure_visits(mapper: Mapper, job: MappingJob, folder: Path) -> dict[str, Any]:
    """Map once more, on the processor, and return what is visited."""
    stats = folder / "visits.json"
    words = mapper.command(job)
    run_process([*words, "--backend", "cpu", "--stats", str(stats), "-o", str(folder / "v.bam")])
    (folder / "v.bam").unlink()
    return visits_of(json.loads(stats.read_text())["counts"])
