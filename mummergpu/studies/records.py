"""The records of a sweep: one file describes the measurement, another has a line for each run.

A folder of a sweep holds two files. `SETUP_FILE` is one JSON object (`SweepSetup`): the input, the
options and the machine. `RUNS_FILE` has one JSON object on each line (`SweepRun`), written as soon
as the run has ended. A finished sweep may be kept with compressed runs (`COMPRESSED_RUNS_FILE`).
"""

from __future__ import annotations

import gzip
import json
import statistics
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Final

from mummergpu.errors import InputError, OptionError
from mummergpu.input.bytes.files import reading
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.combinations import CONTROL, checked_code, every_policy


@frozen
class KernelRecord:
    """The cost of one kernel in one run, and the resources that the driver reports."""

    milliseconds: float  # The device time, summed over launches
    launches: int
    # The number of nodes that its threads visited, if they were counted.
    node_visits: int | None = None
    # Registers and bytes of local memory of a thread, and shared bytes of a block; None if they
    # were not asked for.
    registers: int | None = None
    local_bytes: int | None = None
    shared_bytes: int | None = None
    # The resident threads of a multiprocessor, as a share of the most that it supports.
    occupancy: float | None = None


@frozen
class StudyRun:
    """One measured run of one policy."""

    KERNEL_STAGES: ClassVar[tuple[str, ...]] = ()

    position: int  # The number of the run in the order of the sweep, counted from 0
    policy: str  # The code of the policies, such as ``Tn``
    # ``run`` for the runs that count, ``control`` for the further runs of the control between them,
    # ``profile`` for a run whose kernels count the nodes that they visit; its times do not count.
    kind: str
    repeat: int  # The number of this run among those of the same policy and kind, counted from 0
    seconds: dict[str, float]
    kernels: dict[str, KernelRecord]  # The kernels of a GPU by name; empty on the processor
    bytes: dict[str, int]  # The bytes that were copied, and those that lie in memory
    digest: str  # The hash of all results

    @property
    def kernel_seconds(self) -> float:
        """The seconds of all kernels: the sum over `KERNEL_STAGES`."""
        return sum(self.seconds.get(stage, 0.0) for stage in self.KERNEL_STAGES)


@frozen
class SweepMachine:
    """The machine of a sweep, and the versions of its software."""

    backend: str  # ``cpu`` or ``cuda``
    device: str
    architecture: str  # The architecture of the GPU, such as ``sm_90``, or of the processor
    memory_bytes: int  # The memory of the device, or of the machine
    multiprocessors: int  # Those of the GPU; 0 on the processor
    threads: int  # The threads of the host that search
    # The highest clocks of the device by name, where the driver has them.
    clocks_megahertz: dict[str, float]
    versions: dict[str, str]  # The versions of the driver, CUDA, Python and the libraries
    # The records at random addresses that the device reads per second, each named by the one
    # before it: ``merged`` for whole nodes, ``split`` for their halves in two tables. The table has
    # the size of the tree of a page. Empty if it was not measured.
    gathers_per_second: dict[str, float]

    @property
    def uses_pycuda(self) -> bool:
        """Whether the GPU is used through PyCUDA."""
        return "pycuda" in self.versions


@frozen
class StudySetup:
    """The facts that all runs of a sweep have in common, except the input."""

    program: str
    date: str  # The day on which the sweep began, as in 2026-01-31
    # The codes of the policies that are measured; the control is among them.
    policies: tuple[str, ...]
    runs: int
    control_runs: int
    seed: int
    profile: bool
    machine: SweepMachine


@frozen
class Subject:
    """The subject of a study: suffix trees, or filters of profiles."""

    name: str
    every: Callable[[], Sequence[str]]  # Returns the codes of all policies, in their order
    # Returns the code of a policy as a sweep writes it; raises `OptionError` if it is none.
    checked: Callable[[str], str]
    controls: Mapping[str, str]  # The policy that all others are compared with, by backend
    # The records of the input, of the facts that all runs have in common, and of a run.
    input_type: type
    setup_type: type[StudySetup]
    run_type: type[StudyRun]


@frozen
class ProfileRun(StudyRun):
    """One measured run of one policy of profile filters.

    Its stages: ``filter`` is the kernel of the policy (on the processor, all threads summed),
    ``again`` that of the proteins that tiles leave to a warp each, ``search`` the wall-clock time
    with the scores' copy to the host.
    """

    KERNEL_STAGES: ClassVar[tuple[str, ...]] = ("filter", "again")

    again: int  # The proteins that tiles left to another filter


@frozen
class ProfileInput:
    """The profile and the proteins that all runs of a sweep compare."""

    name: str
    digest: str  # The hash of its scores and of the proteins
    nodes: int
    proteins: int
    residues: int
    longest: int
    median_length: int
    left_out: int  # The proteins that were left out: empty ones, and those with marks

    @property
    def cells(self) -> int:
        """The residues times the nodes."""
        return self.nodes * self.residues


@frozen
class ProfileSetup(StudySetup):
    """All that the runs of a sweep of profile filters have in common."""

    input: ProfileInput


@frozen
class ProfileSweep:
    """A sweep of profile filters as it was read from its folder, its runs in their order."""

    folder: Path
    setup: ProfileSetup
    runs: tuple[ProfileRun, ...]


def _every_policy() -> Sequence[str]:
    # Studies of trees need no filters.
    from mummergpu.studies.profiles.policies import every_policy

    return every_policy()


def _checked_policy(code: str) -> str:
    from mummergpu.studies.profiles.policies import policy_of

    return policy_of(code).code


PROFILES: Final = Subject(
    "profiles",
    _every_policy,
    _checked_policy,
    # The paper's basic accelerator; SSV as in searches.
    {"cuda": "g1crggg", "cpu": "S16"},
    ProfileInput,
    ProfileSetup,
    ProfileRun,
)
"""The filters of profiles."""


SCHEMA_VERSION: Final = 1
"""Increased when a key changes its name or meaning."""

SETUP_FILE: Final = "sweep.json"
RUNS_FILE: Final = "runs.jsonl"
COMPRESSED_RUNS_FILE: Final = RUNS_FILE + ".gz"

STAGES: Final = (
    "build",
    "order",
    "flatten",
    "upload",
    "match",
    "print",
    "ordering",
    "download",
    "search",
)
"""The stages of a run, in the order of the work.

``build``, ``order`` and ``flatten`` make the trees; they took place once for a layout, and all its
runs repeat the figures. ``upload`` copies the trees to the device. ``match`` and ``print`` are the
two kernels of the paper with their helpers. ``ordering`` sorts and merges the matches. ``download``
copies them to the host. ``search`` is the wall-clock time from the queries in memory to the matches
in memory. On a GPU, ``match``, ``print`` and ``ordering`` are times of the device; on the
processor, they are summed over threads. A stage that a backend does not have is missing.
"""

KERNEL_STAGES: Final = ("match", "print", "ordering")
"""The stages whose sum is the time of the kernels."""


@frozen
class SweepRun(StudyRun):
    """One measured run of one combination of policies of trees."""

    KERNEL_STAGES: ClassVar[tuple[str, ...]] = KERNEL_STAGES

    mems: int
    candidate_matches: int


@frozen
class SweepInput:
    """The reference and the queries that all runs of a sweep search."""

    name: str  # The name of the workload, or of the reference file without its folder
    # Hashes of the reference (names and bases) and of the queries (bases and their borders).
    reference_digest: str
    query_digest: str
    reference_bases: int
    reference_records: int
    query_bases: int
    query_count: int
    median_query_length: int  # The median length of a query in bases
    minimum_length: int  # The fewest bases of a match
    strands: tuple[str, ...]  # ``forward``, ``reverse``, or both
    pages: int
    page_size: int  # The most bases of a page
    address_bits: int  # 24 for the paper's format of nodes, 32 for the wide format


@frozen
class SweepSetup(StudySetup):
    """All that the runs of a sweep of trees have in common."""

    input: SweepInput


@frozen
class Sweep:
    """A sweep as it was read from its folder."""

    folder: Path
    setup: SweepSetup
    # As they were made; a sweep that was interrupted lacks some.
    runs: tuple[SweepRun, ...]


TREES: Final = Subject(
    "trees",
    every_policy,
    checked_code,
    {"cpu": CONTROL, "cuda": CONTROL},
    SweepInput,
    SweepSetup,
    SweepRun,
)
"""The layouts of suffix trees; the file of a sweep of them names no subject."""

SUBJECTS: Final = {subject.name: subject for subject in (TREES, PROFILES)}


def read_study(folder: Path) -> Sweep | ProfileSweep:
    """Read the folder of a sweep of any subject; a last line that was cut short is ignored.

    The file of runs is missing if the sweep was interrupted before the first. If a file is not
    valid, `InputError` names the line of the run.
    """
    setup, subject = setup_and_subject(folder)
    runs = tuple(read_runs(folder, subject)) if runs_file(folder).exists() else ()
    if isinstance(setup, ProfileSetup):
        return ProfileSweep(
            folder, setup, tuple(one for one in runs if isinstance(one, ProfileRun))
        )
    assert isinstance(setup, SweepSetup)
    return Sweep(folder, setup, tuple(one for one in runs if isinstance(one, SweepRun)))


def median_seconds(runs: Iterable[StudyRun]) -> dict[str, float]:
    """Return the median seconds of the kernels by policy, in the order of their first runs."""
    times: dict[str, list[float]] = {}
    for run in runs:
        # Counting nodes takes time.
        if run.kind != "profile":
            times.setdefault(run.policy, []).append(run.kernel_seconds)
    return {code: statistics.median(found) for code, found in times.items()}


def setup_and_subject(folder: Path) -> tuple[StudySetup, Subject]:
    """Read the facts that the runs of a sweep have in common, and their subject.

    `InputError` is raised for another file, and for keys that are unknown or missing; the types of
    values are those that a sweep has written.
    """
    path = str(folder / SETUP_FILE)
    with reading(path), open(path, "rb") as file:
        text = file.read()
    try:
        value = json.loads(text)
        if value["schema_version"] != SCHEMA_VERSION:
            version = value["schema_version"]
            raise InputError(f"is of version {version}, and {SCHEMA_VERSION} is known", path)
        del value["schema_version"]
        subject = SUBJECTS[value.pop("subject", TREES.name)]
        tuples = {"policies": tuple(value["policies"])}
        given = value.pop("input")
        if subject is TREES:
            given |= {"strands": tuple(given["strands"])}
        parts = {
            "input": subject.input_type(**given),
            "machine": SweepMachine(**value.pop("machine")),
        }
        setup = subject.setup_type(**value | tuples | parts)
        for code in setup.policies:
            _check_code(code, subject)
        return setup, subject
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"is not the file of a sweep ({error})", path) from error


def setup_text(setup: StudySetup, subject: Subject = TREES) -> str:
    """Return the text of a setup's file."""
    named = {} if subject is TREES else {"subject": subject.name}
    value = _with_last(asdict(setup), "machine")
    return json.dumps({"schema_version": SCHEMA_VERSION} | named | value, indent=2) + "\n"


def read_runs(folder: Path, subject: Subject = TREES) -> Iterator[StudyRun]:
    """Yield the runs of a sweep; raise `InputError` if a line other than the last is not valid.

    A process that was killed may have written the last line in part.
    """
    path = str(runs_file(folder))
    with reading(path), open(path, "rb") as file:
        content = file.read()
    if path.endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"cannot be decompressed ({error})", path) from error
    lines = content.split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            value = json.loads(line)
            seconds = {stage: float(one) for stage, one in value["seconds"].items()}
            kernels = {name: KernelRecord(**one) for name, one in value["kernels"].items()}
            run = subject.run_type(**value | {"seconds": seconds, "kernels": kernels})
            _check_code(run.policy, subject)
            yield run
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"is not a run of a sweep ({error})", path, number) from error


def runs_file(folder: Path) -> Path:
    """Return the file of a sweep's runs: the plain one, or the compressed one if it is alone."""
    plain, compressed = folder / RUNS_FILE, folder / COMPRESSED_RUNS_FILE
    return compressed if compressed.exists() and not plain.exists() else plain


def run_text(run: StudyRun) -> str:
    """Return the line of a run, with its end."""
    return json.dumps(_with_last(asdict(run), "digest"), separators=(",", ":")) + "\n"


def _with_last(value: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object with one of its keys after the others."""
    return {name: one for name, one in value.items() if name != key} | {key: value[key]}


def _check_code(code: str, subject: Subject) -> None:
    """Raise a ValueError if the code of a policy is not as a sweep writes it."""
    try:
        right = subject.checked(code) == code
    except OptionError as error:
        raise ValueError(error.message) from error
    if not right:
        raise ValueError(f"the letters of '{code}' are not in order")
