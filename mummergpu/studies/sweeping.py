"""Makes the runs of a sweep of any subject, one after the other, and keeps their records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from mummergpu.errors import BackendError
from mummergpu.runtime.progress import Messages, Phase, Work
from mummergpu.studies.combinations import PlannedRun
from mummergpu.studies.subject import StudyRun
from mummergpu.studies.sweep_folder import SweepFolder


class Bench(Protocol):
    """What a subject measures with."""

    @property
    def backend_name(self) -> str:
        """The name of the backend, as in ``--backend``."""
        ...

    def load(self, policy: str, profile: bool) -> None:
        """Make ready for runs of a policy, and warm up."""
        ...

    def run(self, planned: PlannedRun, position: int) -> StudyRun:
        """Make a run of the policy that is loaded."""
        ...

    def fault(self, run: StudyRun, control: str | None) -> str | None:
        """Return what is wrong with what a run found, in words, or None.

        `control` is the hash of what the control has found, if it has run.
        """
        ...


def still_missing(
    visits: Sequence[Sequence[PlannedRun]], records: SweepFolder
) -> list[list[PlannedRun]]:
    """Return the runs of visits that are not recorded yet, without empty visits."""
    left = [[run for run in visit if not records.has(run)] for visit in visits]
    return [visit for visit in left if visit]


class Sweeping:
    """Makes the runs of a sweep; `count` is how many it has made."""

    def __init__(
        self,
        name: str,
        bench: Bench,
        records: SweepFolder,
        progress: Messages,
        done: int,
        total: int,
    ) -> None:
        self.count = 0
        self._done_before = done
        self._name = name
        self._bench = bench
        self._records = records
        self._progress = progress
        self._total = total

    def measure(self, visits: list[list[PlannedRun]], controls: Collection[str]) -> None:
        """Make the runs of some visits; one of a control comes first if none was recorded."""
        if self._records.control_digest is None:
            first = next((run for visit in visits for run in visit if run.policy in controls), None)
            if first is not None:
                self._visit([first])
                visits = [[run for run in visit if run is not first] for visit in visits]
        for visit in visits:
            if visit:
                self._visit(visit)

    def _visit(self, visit: list[PlannedRun]) -> None:
        """Make the runs of a policy, which is loaded once."""
        code = visit[0].policy
        loaded: bool | None = None
        for planned in visit:
            profile = planned.kind == "profile"
            if loaded is not profile:
                self._bench.load(code, profile)
                loaded = profile
            run = self._bench.run(planned, self._records.count)
            fault = self._bench.fault(run, self._records.control_digest)
            if fault is not None:
                raise BackendError(self._bench.backend_name, f"policy '{code}' {fault}")
            self._records.add(run)
            self.count += 1
            done = self._done_before + self.count
            numbers = (self._name, done, self._total)
            self._progress.tell(Work(Phase.RUNS, numbers, 0, done / self._total))
