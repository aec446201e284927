"""Measures the policies of profile filters on one data set, as `layout_sweep` does for trees."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.progress import Messages
from mummergpu.studies.combinations import order_of_visits
from mummergpu.studies.profiles.bench import ProfileMachine
from mummergpu.studies.profiles.data import ProfileData
from mummergpu.studies.profiles.records import PROFILES, ProfileInput, ProfileSetup
from mummergpu.studies.sweep_folder import SweepFolder
from mummergpu.studies.sweeping import Sweeping, still_missing
from mummergpu.version import __version__


@frozen
class ProfileSweepOptions:
    """What a sweep measures, and how often: as `layout_sweep.SweepOptions`."""

    policies: tuple[str, ...]
    runs: int = 5
    control_runs: int = 10
    seed: int = 1


def sweep(
    data: ProfileData,
    options: ProfileSweepOptions,
    machine: ProfileMachine,
    folder: Path,
    progress: Messages,
) -> int:
    """Measure policies on a data set; return how many runs were made now.

    Policies that a profile does not fit are left out. `InputError` is raised if the folder holds a
    sweep of something else, and `BackendError` if scores differ from those of the processor.
    """
    with ExitStack() as stack:
        records = stack.enter_context(SweepFolder(folder, PROFILES))
        bench = machine.bench(data)
        stack.callback(bench.close)
        codes = tuple(code for code in options.policies if bench.suits(code))
        date = datetime.now(UTC).date().isoformat()
        records.begin(
            ProfileSetup(
                program=f"mummergpu {__version__}",
                date=date if records.setup is None else records.setup.date,
                policies=codes,
                runs=options.runs,
                control_runs=options.control_runs,
                seed=options.seed,
                profile=False,
                machine=machine.facts(),
                input=input_of(data),
            )
        )
        control = PROFILES.controls[machine.backend]
        visits = order_of_visits(
            codes, options.runs, 1, options.control_runs, options.seed, False, control
        )
        missing = still_missing(visits, records)
        if not missing:
            return 0
        where = "the processor" if machine.backend == "cpu" else machine.facts().device
        text = f"mummergpu: {data.name}: preparing {len(codes)} policies of {where}"
        progress.write_line(text)
        bench.compile(codes)
        total = sum(map(len, visits))
        done = total - sum(map(len, missing))
        made = Sweeping(data.name, bench, records, progress, done, total)
        made.measure(missing, (control,))
        return made.count


def input_of(data: ProfileData) -> ProfileInput:
    """Return the record of a data set."""
    return ProfileInput(
        name=data.name,
        digest=data.digest(),
        nodes=data.nodes,
        proteins=int(data.sizes.size),
        residues=int(data.block.codes.size),
        longest=data.longest,
        median_length=int(np.median(data.sizes)),
        left_out=data.left_out,
    )
