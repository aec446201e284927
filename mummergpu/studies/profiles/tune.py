"""Finds for a device from how many proteins on threads in tiles are better than warps."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import closing
from typing import Final, NamedTuple

from mummergpu.errors import BackendError, OptionError
from mummergpu.hmm.filter_schemes import FilterScheme
from mummergpu.runtime.progress import Messages
from mummergpu.studies.combinations import PlannedRun
from mummergpu.studies.profiles.bench import ProfileMachine
from mummergpu.studies.profiles.data import ProfileData

WARP_POLICY: Final = "Vrcs32"
"""What a search does without tiles."""

TILES: Final = tuple(f"t{unroll}{schedule}rrrs" for unroll in "1248" for schedule in "ch")
"""The policies of tiles that a search may take."""

RUNS: Final = 5

MIN_PROTEINS: Final = 1000


class TunedFilter(NamedTuple):
    """What was found for a profile.

    `scheme` is None if warps are better for all numbers of proteins; `gain` is what the best tiles
    save with all of them, as a share, or lose if it is negative.
    """

    scheme: FilterScheme | None
    policy: str
    gain: float
    runs: int


def tune(
    data: ProfileData,
    machine: ProfileMachine,
    progress: Messages,
    notice: Callable[[str], None],
) -> TunedFilter:
    """Compare tiles with warps, on fewer and fewer proteins while tiles are better.

    `OptionError` says that there is nothing to choose, `BackendError` that scores differ.
    """
    if machine.backend == "cpu":
        raise OptionError("backend", "filters of profiles have nothing to tune on the processor")
    runs, best, gain, fewest = 0, TILES[0], 0.0, 0
    candidates = TILES
    part = data
    while True:
        times = _times(part, (WARP_POLICY, *candidates), machine)
        runs += RUNS * len(times)
        fastest = min(candidates, key=lambda code: times[code])
        saved = 1 - times[fastest] / times[WARP_POLICY]
        count = int(part.sizes.size)
        notice(f"{data.name}: {count:,} proteins: {fastest} saves {saved:.1%}")
        if part is data:
            best, gain, candidates = fastest, saved, (fastest,)
        if saved <= 0:
            break
        fewest = count
        if count < 2 * MIN_PROTEINS:
            break
        part = part.halved()
    if not fewest:
        return TunedFilter(None, best, gain, runs)
    facts = machine.facts()
    scheme = FilterScheme(facts.device, facts.architecture, data.nodes, fewest, best)
    return TunedFilter(scheme, best, gain, runs)


def _times(data: ProfileData, codes: tuple[str, ...], machine: ProfileMachine) -> dict[str, float]:
    """Return the median seconds of the kernels under each policy."""
    times = {}
    with closing(machine.bench(data, as_searched=True)) as bench:
        bench.compile(codes)
        for code in codes:
            bench.load(code)
            found = []
            for repeat in range(RUNS):
                run = bench.run(PlannedRun(code, "run", repeat), repeat)
                fault = bench.fault(run, None)
                if fault is not None:
                    raise BackendError(machine.backend, f"policy '{code}' {fault}")
                found.append(run.kernel_seconds)
            times[code] = statistics.median(found)
    return times
