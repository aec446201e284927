"""Makes the runs of a sweep of any subject, one after the other, and keeps their records."""

from __future__ import annotations

import fcntl
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol, Self

from mummergpu.errors import BackendError, InputError, OutputError
from mummergpu.input.bytes.files import reading
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import Messages, Phase, Work
from mummergpu.studies.combinations import PlannedRun
from mummergpu.studies.records import (
    RUNS_FILE,
    SETUP_FILE,
    TREES,
    StudyRun,
    StudySetup,
    Subject,
    read_runs,
    run_text,
    runs_file,
    setup_and_subject,
    setup_text,
)


class SweepFolder:
    """The records of a sweep on disk; only one process at a time may add to them.

    It is a context manager, which makes the folder. `setup` is that of a sweep that was begun
    earlier, `control_digest` the hash of the control's matches, if it has been measured, and
    `count` the number of recorded runs. `OutputError` is raised if the folder cannot be written, or
    another process writes to it; `InputError` if it holds a damaged sweep.
    """

    def __init__(self, folder: Path, subject: Subject = TREES) -> None:
        self._folder = folder
        self._subject = subject
        self._path = folder / RUNS_FILE
        self._done: set[PlannedRun] = set()
        self._file: BinaryIO | None = None
        self.setup: StudySetup | None = None
        self.control_digest: str | None = None
        self.count = 0

    def __enter__(self) -> Self:
        if runs_file(self._folder).suffix == ".gz":
            message = "holds the compressed runs of a finished sweep; use another folder"
            raise InputError(message, str(self._folder))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "ab")
        except OSError as error:
            raise OutputError(f"cannot be written: {error.strerror}", str(self._path)) from error
        try:
            self._lock(self._file)
            self._read()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def begin(self, setup: StudySetup) -> None:
        """Write the setup, or compare it with that of the sweep that was begun earlier.

        `InputError` is raised if the folder holds a sweep of another input, on another device or by
        another version of the program. Numbers of runs and policies may differ: the folder then has
        those of both sweeps.
        """
        known = self.setup
        path = self._folder / SETUP_FILE
        if known is not None:
            pairs = {
                "input": (input_of(known), input_of(setup)),
                "device": (known.machine.device, setup.machine.device),
                "backend": (known.machine.backend, setup.machine.backend),
                "device library": (known.machine.uses_pycuda, setup.machine.uses_pycuda),
                "number of threads": (known.machine.threads, setup.machine.threads),
                "program": (known.program, setup.program),
            }
            for what, (old, new) in pairs.items():
                if old != new:
                    raise InputError(
                        f"holds a sweep with another {what}; use another folder", str(path)
                    )
            setup = _both(known, setup, self._subject)
        if known != setup:
            with OutputFile(str(path)) as file:
                file.write(setup_text(setup, self._subject).encode())
        self.setup = setup

    def has(self, planned: PlannedRun) -> bool:
        """Return whether a run is already recorded."""
        return planned in self._done

    def add(self, run: StudyRun) -> None:
        """Write the record of a run that has ended."""
        assert self._file is not None
        try:
            self._file.write(run_text(run).encode())
            self._file.flush()
        except OSError as error:
            raise OutputError(f"cannot be written: {error.strerror}", str(self._path)) from error
        self._note(run)

    def _lock(self, file: BinaryIO) -> None:
        """Keep other processes out, where the file system has locks."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError("another sweep is writing to it", str(self._path)) from error
        except OSError:
            # Some network file systems have no locks; then no process is kept out.
            pass

    def _read(self) -> None:
        """Read the runs that are recorded; cut off a last line that was not written to its end."""
        assert self._file is not None
        if not (self._folder / SETUP_FILE).exists():
            if self._path.stat().st_size:
                raise InputError("has runs, but their setup is missing", str(self._path))
            return
        self.setup, subject = setup_and_subject(self._folder)
        if subject is not self._subject:
            message = f"holds a sweep of {subject.name}; use another folder"
            raise InputError(message, str(self._folder / SETUP_FILE))
        for run in read_runs(self._folder, subject):
            self._note(run)
        with reading(str(self._path)):
            text = self._path.read_bytes()
            self._file.truncate(text.rfind(b"\n") + 1)

    def _note(self, run: StudyRun) -> None:
        self._done.add(PlannedRun(run.policy, run.kind, run.repeat))
        self.count += 1
        if run.policy in self._subject.controls.values() and self.control_digest is None:
            self.control_digest = run.digest

    def _close(self) -> None:
        if self._file is not None:
            # Failed writes have been reported.
            with suppress(OSError):
                self._file.close()
            self._file = None


def input_of(setup: StudySetup) -> object:
    """Return the record of the input, of each subject's own type."""
    return getattr(setup, "input")  # noqa: B009


def _both(known: StudySetup, setup: StudySetup, subject: Subject) -> StudySetup:
    """Return the setup of a folder with the runs of an earlier sweep and of a resumed one."""
    policies = {*known.policies, *setup.policies}
    return replace(
        setup,
        policies=tuple(code for code in subject.every() if code in policies),
        runs=max(known.runs, setup.runs),
        control_runs=max(known.control_runs, setup.control_runs),
        profile=known.profile or setup.profile,
    )


class Bench(Protocol):
    """The measuring interface of a subject."""

    @property
    def backend_name(self) -> str:
        """The name of the backend, as in ``--backend``."""
        ...

    def load(self, policy: str, profile: bool) -> None:
        """Prepare runs of a policy, and warm up."""
        ...

    def run(self, planned: PlannedRun, position: int) -> StudyRun:
        """Make a run of the policy that is loaded."""
        ...

    def fault(self, run: StudyRun, control: str | None) -> str | None:
        """Return a message if the results of a run are wrong, or None.

        `control` is the hash of the control's results, if it has run.
        """
        ...


def still_missing(
    visits: Sequence[Sequence[PlannedRun]], records: SweepFolder
) -> list[list[PlannedRun]]:
    """Return the runs of visits that are not recorded yet, without empty visits."""
    left = [[run for run in visit if not records.has(run)] for visit in visits]
    return [visit for visit in left if visit]


class Sweeping:
    """Makes the runs of a sweep; `count` is the number made so far."""

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
