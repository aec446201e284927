"""The records of a sweep: one file says what was measured, another has a line for each run.

A folder of a sweep holds two files. `SETUP_FILE` is one JSON object (`SweepSetup`): the input, the
options and the machine. `RUNS_FILE` has one JSON object on each line (`SweepRun`), written as soon
as the run has ended. A finished sweep may be kept with compressed runs (`COMPRESSED_RUNS_FILE`).
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeVar

from mummergpu.errors import InputError, OptionError
from mummergpu.index.tree.policy import Policy
from mummergpu.input.bytes.files import reading
from mummergpu.studies.record_types import type_fault

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

RecordType = TypeVar("RecordType")


@dataclass(frozen=True)
class KernelRecord:
    """The cost of one kernel in one run, and the resources that the driver reports.

    Attributes
    ----------
    milliseconds : float
        The device time, summed over launches.
    node_visits : int or None
        The number of nodes that its threads visited, if they were counted.
    registers, local_bytes, shared_bytes : int or None
        Registers and bytes of local memory of a thread, and shared bytes of a block; None if they
        were not asked for.
    occupancy : float or None
        The resident threads of a multiprocessor, as a share of the most that it supports.
    """

    milliseconds: float
    launches: int
    node_visits: int | None = None
    registers: int | None = None
    local_bytes: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None


@dataclass(frozen=True)
class SweepRun:
    """One measured run of one combination of policies.

    Attributes
    ----------
    position : int
        The number of the run in the order of the sweep, counted from 0.
    policy : str
        The code of the policies, such as ``Tn``.
    kind : str
        ``run`` for the runs that count, ``control`` for the further runs of the control between
        them, ``profile`` for a run whose kernels count the nodes that they visit; its times do
        not count.
    repeat : int
        The number of this run among those of the same policy and kind, counted from 0.
    seconds : dict of str to float
        Seconds by stage (`STAGES`).
    kernels : dict of str to KernelRecord
        The kernels of a GPU by name; empty on the processor.
    bytes : dict of str to int
        ``trees`` (the trees and references), ``to_device``, ``from_device``.
    mems, candidate_matches : int
        The numbers of matches and candidate matches.
    digest : str
        The hash of all columns of the matches.
    """

    position: int
    policy: str
    kind: str
    repeat: int
    seconds: dict[str, float]
    kernels: dict[str, KernelRecord]
    bytes: dict[str, int]
    mems: int
    candidate_matches: int
    digest: str

    @property
    def kernel_seconds(self) -> float:
        """The seconds of all kernels: the sum over `KERNEL_STAGES`."""
        return sum(self.seconds.get(stage, 0.0) for stage in KERNEL_STAGES)


@dataclass(frozen=True)
class SweepInput:
    """The reference and the queries that all runs of a sweep search.

    Attributes
    ----------
    name : str
        The name of the workload, or of the reference file without its folder.
    reference_digest, query_digest : str
        Hashes of the reference (names and bases) and of the queries (bases and their borders).
    reference_bases, reference_records : int
        The length of the reference in bases, and its number of records.
    query_bases, query_count : int
        The number of bases of all queries, and of queries.
    median_query_length : int
        The median length of a query in bases.
    minimum_length : int
        The fewest bases of a match.
    strands : tuple of str
        ``forward``, ``reverse``, or both.
    pages : int
        The number of pages of the reference.
    page_size : int
        The most bases of a page.
    address_bits : int
        24 for the paper's format of nodes, 32 for the wide format.
    """

    name: str
    reference_digest: str
    query_digest: str
    reference_bases: int
    reference_records: int
    query_bases: int
    query_count: int
    median_query_length: int
    minimum_length: int
    strands: tuple[str, ...]
    pages: int
    page_size: int
    address_bits: int


@dataclass(frozen=True)
class SweepMachine:
    """The machine of a sweep, and the versions of what ran on it.

    Attributes
    ----------
    backend : str
        ``cpu`` or ``cuda``.
    device : str
        The name of the GPU or of the processor.
    architecture : str
        The architecture of the GPU, such as ``sm_90``, or of the processor.
    memory_bytes : int
        The memory of the device, or of the machine.
    multiprocessors : int
        Those of the GPU; 0 on the processor.
    threads : int
        The threads of the host that search.
    clocks_megahertz : dict of str to float
        The highest clocks of the device by name, where the driver tells them.
    versions : dict of str to str
        The versions of the driver, CUDA, Python and the libraries.
    gathers_per_second : dict of str to float
        How many records at random addresses the device reads in a second, each named by the one
        before it: ``merged`` for whole nodes, ``split`` for their halves in two tables. The
        table has the size of the tree of a page. Empty if it was not measured.
    """

    backend: str
    device: str
    architecture: str
    memory_bytes: int
    multiprocessors: int
    threads: int
    clocks_megahertz: dict[str, float]
    versions: dict[str, str]
    gathers_per_second: dict[str, float]

    @property
    def uses_pycuda(self) -> bool:
        """Whether the GPU is used through PyCUDA."""
        return "pycuda" in self.versions


@dataclass(frozen=True)
class SweepSetup:
    """All that the runs of a sweep have in common.

    Attributes
    ----------
    date : str
        The day on which the sweep began, as in 2026-01-31.
    policies : tuple of str
        The codes of the policies that are measured; the control is among them.
    runs, control_runs : int
        The runs of each policy, and the further runs of the control.
    seed : int
        The start of the random order.
    """

    program: str
    date: str
    policies: tuple[str, ...]
    runs: int
    control_runs: int
    seed: int
    profile: bool
    input: SweepInput
    machine: SweepMachine


@dataclass(frozen=True)
class Sweep:
    """A sweep as it was read from its folder.

    Attributes
    ----------
    runs : tuple of SweepRun
        Its runs, in the order in which they were made. A sweep that was interrupted lacks some.
    """

    folder: Path
    setup: SweepSetup
    runs: tuple[SweepRun, ...]


def read_sweep(folder: Path) -> Sweep:
    """Read the folder of a sweep; a last line that was cut short is ignored.

    The file of runs is missing if the sweep was interrupted before the first. If a file is not what
    a sweep writes, `InputError` names the line of the run.
    """
    setup = read_setup(folder)
    runs = tuple(read_runs(folder)) if runs_file(folder).exists() else ()
    return Sweep(folder, setup, runs)


def read_setup(folder: Path) -> SweepSetup:
    """Read what the runs of a sweep have in common; raise `InputError` if it is not valid."""
    path = str(folder / SETUP_FILE)
    with reading(path), open(path, "rb") as file:
        text = file.read()
    try:
        value = json.loads(text)
        if value["schema_version"] != SCHEMA_VERSION:
            version = value["schema_version"]
            raise InputError(f"is of version {version}, and {SCHEMA_VERSION} is known", path)
        del value["schema_version"]
        tuples = {"policies": tuple(value["policies"])}
        given = value.pop("input")
        searched = _record(SweepInput, given | {"strands": tuple(given["strands"])}, "input.")
        machine = _record(SweepMachine, value.pop("machine"), "machine.")
        setup = _record(SweepSetup, value | tuples | {"input": searched, "machine": machine})
        for code in setup.policies:
            _check_code(code)
        return setup
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"is not the file of a sweep ({error})", path) from error


def setup_text(setup: SweepSetup) -> str:
    """Return the text of a setup's file."""
    return json.dumps({"schema_version": SCHEMA_VERSION} | asdict(setup), indent=2) + "\n"


def read_runs(folder: Path) -> Iterator[SweepRun]:
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
            kernels = {
                name: _record(KernelRecord, kernel, f"kernels.{name}.")
                for name, kernel in value["kernels"].items()
            }
            run = _record(SweepRun, value | {"kernels": kernels})
            _check_code(run.policy)
            yield run
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"is not a run of a sweep ({error})", path, number) from error


def runs_file(folder: Path) -> Path:
    """Return the file of a sweep's runs: the plain one, or the compressed one if it is alone."""
    plain, compressed = folder / RUNS_FILE, folder / COMPRESSED_RUNS_FILE
    return compressed if compressed.exists() and not plain.exists() else plain


def run_text(run: SweepRun) -> str:
    """Return the line of a run, with its end."""
    return json.dumps(asdict(run), separators=(",", ":")) + "\n"


def _check_code(code: str) -> None:
    """Raise a ValueError if the code of a policy is not as a sweep writes it."""
    try:
        right = Policy.from_code(code).code == code
    except OptionError as error:
        raise ValueError(error.message) from error
    if not right:
        raise ValueError(f"the letters of '{code}' are not in order")


def _record(kind: type[RecordType], value: Any, path: str = "") -> RecordType:
    """Return a record made of a JSON object; `path` leads to it, with a dot at its end.

    Raises TypeError if a key is missing or unknown, or a value has another type.
    """
    if not isinstance(value, dict):
        raise TypeError(f"{value} is no object")
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(value) - known)
    if unknown:
        raise TypeError(f"'{unknown[0]}' is unknown")
    record = kind(**value)
    fault = type_fault(record, path)
    if fault:
        raise TypeError(fault)
    return record
