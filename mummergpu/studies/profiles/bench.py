"""Measures single runs of profile filters, on a device or on the processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mummergpu.errors import BackendError
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.progress import Messages
from mummergpu.studies.combinations import PlannedRun, order_of_visits
from mummergpu.studies.machine import device_facts, processor_facts
from mummergpu.studies.profiles.data import (
    ProfileData,
    digest_of_scores,
    parts_of,
    processor_scores,
)
from mummergpu.studies.profiles.policies import (
    ProcessorPolicy,
    device_policy_of,
    filter_of,
    policy_of,
)
from mummergpu.studies.records import (
    PROFILES,
    KernelRecord,
    ProfileInput,
    ProfileRun,
    ProfileSetup,
    StudyRun,
    SweepMachine,
)
from mummergpu.studies.sweeping import SweepFolder, Sweeping, still_missing
from mummergpu.version import __version__

if TYPE_CHECKING:
    from mummergpu.cuda.device import Device
    from mummergpu.cuda.kernel_cache import KernelCache
    from mummergpu.studies.profiles.device_scores import DeviceScores


class ProfileBench:
    """Compares a profile with proteins under any policy: here, by all threads of the processor."""

    backend_name = "cpu"

    def __init__(self, data: ProfileData, executor: ThreadPoolExecutor) -> None:
        self._data = data
        self._executor = executor
        self._expected: dict[str, str] = {}
        self._parts = parts_of(data.block)

    def suits(self, policy: str) -> bool:
        """Return whether the profile fits a policy."""
        return True

    def compile(self, policies: Sequence[str]) -> None:
        """Compile all that the policies need, several at a time; for the processor, nothing."""

    def load(self, policy: str, profile: bool = False) -> None:
        """Prepare runs of a policy, and warm up."""
        chosen = policy_of(policy)
        assert isinstance(chosen, ProcessorPolicy)
        registers = chosen.registers or None
        self._work = processor_scores(self._data.filter, chosen.filter, registers)
        self._work(self._data.block, self._parts[0])

    def measured(self) -> tuple[Int64Array, dict[str, float], dict[str, KernelRecord], int]:
        """Return a run's scores, seconds and kernels, and the proteins left to another filter."""

        def timed(part: tuple[int, int]) -> tuple[Int64Array, float]:
            began = time.perf_counter()
            return self._work(self._data.block, part), time.perf_counter() - began

        found = [*self._executor.map(timed, self._parts)]
        scores = np.concatenate([scores for scores, _ in found])
        return scores, {"filter": sum(seconds for _, seconds in found)}, {}, 0

    def run(self, planned: PlannedRun, position: int) -> ProfileRun:
        """Make a run of the loaded policy; its results are hashed afterwards."""
        began = time.perf_counter()
        scores, seconds, kernels, again = self.measured()
        seconds["search"] = time.perf_counter() - began
        kind = filter_of(policy_of(planned.policy))
        return ProfileRun(
            position=position,
            policy=planned.policy,
            kind=planned.kind,
            repeat=planned.repeat,
            seconds=seconds,
            kernels=kernels,
            bytes={"residues": int(self._data.block.codes.size)},
            digest=digest_of_scores(self._data.settled(kind, scores)),
            again=again,
        )

    def fault(self, run: StudyRun, control: str | None) -> str | None:
        """Return a message if the scores of a run are wrong, or None."""
        kind = filter_of(policy_of(run.policy))
        if kind not in self._expected:
            found = self._data.expected(kind, self._executor.map)
            self._expected[kind] = digest_of_scores(found)
        if run.digest == self._expected[kind]:
            return None
        return "finds other scores than the filter of the processor; please report this"

    def close(self) -> None:
        """Release the resources."""


class DeviceBench(ProfileBench):
    """The kernels of a device, which is current while this is used."""

    backend_name = "cuda"

    def __init__(
        self, data: ProfileData, executor: ThreadPoolExecutor, device: Device, cache: KernelCache
    ) -> None:
        from mummergpu.studies.profiles.device_scores import DeviceScores

        super().__init__(data, executor)
        self._scores: DeviceScores = DeviceScores(device, cache, data)

    def suits(self, policy: str) -> bool:
        """Return whether the profile fits the device's memories under a policy."""
        return self._scores.program_of(device_policy_of(policy)) is not None

    def compile(self, policies: Sequence[str]) -> None:
        """Compile the programs of all policies, several at a time."""
        programs = {self._scores.program_of(device_policy_of(code)) for code in policies} - {None}
        list(self._executor.map(self._scores.programs.cubin, programs))

    def load(self, policy: str, profile: bool = False) -> None:
        """Upload the data of a policy, and run it once."""
        self._prepared = self._scores.prepare(device_policy_of(policy))
        self._scores.run(self._prepared)

    def measured(self) -> tuple[Int64Array, dict[str, float], dict[str, KernelRecord], int]:
        """Compare all proteins."""
        found = self._scores.run(self._prepared)
        own, shape = self._prepared.launch.kernel, self._prepared.launch.shape
        resources = self._prepared.program.resources(own, shape)
        kernels = {name: KernelRecord(time, 1) for name, time in found.milliseconds.items()}
        kernels[own] = replace(
            kernels[own],
            registers=resources.registers,
            local_bytes=resources.local_bytes,
            shared_bytes=resources.shared_bytes,
            occupancy=resources.occupancy,
        )
        times = found.milliseconds
        seconds = {"filter": times[own] / 1000}
        if len(times) > 1:
            seconds["again"] = (sum(times.values()) - times[own]) / 1000
        return found.scores, seconds, kernels, found.again

    def close(self) -> None:
        """Give back the memory of the device."""
        self._scores.close()


class ProfileMachine:
    """The backend of a study of profiles; it is a context manager.

    `backend` is ``cpu`` or ``cuda``. If a device is asked for and is not available, entering raises
    `BackendError`; `notice` receives the reason why ``auto`` does not use one.
    """

    def __init__(self, options: DeviceOptions, notice: Callable[[str], None]) -> None:
        self._options = options
        self._notice = notice
        self._stack = ExitStack()
        self._device: tuple[Device, KernelCache] | None = None
        self.executor = ThreadPoolExecutor(options.threads)

    def __enter__(self) -> ProfileMachine:
        self._stack.callback(self.executor.shutdown)
        if self._options.backend != "cpu":
            from mummergpu.matching.open_cuda import open_device

            try:
                self._device = open_device(self._options, self._stack, self._notice)
                self._stack.enter_context(self._device[0].current())
            except BackendError as error:
                if self._options.backend == "cuda":
                    self._stack.close()
                    raise
                self._notice(f"no cuda backend: {error.message}")
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def backend(self) -> str:
        """The backend that is open."""
        return "cpu" if self._device is None else "cuda"

    def facts(self) -> SweepMachine:
        """Return the facts about the machine."""
        threads = self._options.threads
        if self._device is None:
            return processor_facts(threads, {})
        return device_facts(self._options.number, self._device[0], threads, {})

    def bench(self, data: ProfileData) -> ProfileBench:
        """Return the bench of a data set; the caller closes it."""
        if self._device is None:
            return ProfileBench(data, self.executor)
        return DeviceBench(data, self.executor, *self._device)


@frozen
class ProfileSweepOptions:
    """The policies that a sweep measures, and the runs: as `layout_sweep.SweepOptions`."""

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
    """Measure policies on a data set; return the number of new runs.

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
