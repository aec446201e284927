"""The records of a sweep: one file says what was measured, another has a line for each run.

A folder of a sweep holds two files. `SETUP_FILE` is one JSON object (`SweepSetup`): the input, the
options and the machine. `RUNS_FILE` has one JSON object on each line (`SweepRun`), written as soon
as the run has ended. A finished sweep may be kept with compressed runs (`COMPRESSED_RUNS_FILE`).
"""

from __future__ import annotations

import gzip
import json
import statistics
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Final

from mummergpu.errors import InputError, OptionError
from mummergpu.input.bytes.files import reading
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.combinations import CONTROL, checked_code, every_policy
from mummergpu.studies.profiles.records import PROFILES, ProfileRun, ProfileSetup, ProfileSweep
from mummergpu.studies.subject import (
    KernelRecord,
    StudyRun,
    StudySetup,
    Subject,
    SweepMachine,
)

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
    """One measured run of one combination of policies of trees.

    Attributes
    ----------
    mems, candidate_matches : int
        The numbers of matches and candidate matches.
    """

    KERNEL_STAGES: ClassVar[tuple[str, ...]] = KERNEL_STAGES

    mems: int
    candidate_matches: int


@frozen
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


@frozen
class SweepSetup(StudySetup):
    """All that the runs of a sweep of trees have in common."""

    input: SweepInput


@frozen
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

    The file of runs is missing if the sweep was interrupted before the first. If a file is not what
    a sweep writes, `InputError` names the line of the run.
    """
    setup, subject = setup_and_subject(folder)
    runs = tuple(read_runs(folder, subject)) if runs_file(folder).exists() else ()
    if isinstance(setup, ProfileSetup):
        return ProfileSweep(
            folder, setup, tuple(one for one in runs if isinstance(one, ProfileRun))
        )
    assert isinstance(setup, SweepSetup)
    return Sweep(folder, setup, tuple(one for one in runs if isinstance(one, SweepRun)))


def read_sweep(folder: Path) -> Sweep:
    """Read the folder of a sweep of trees, as `read_study` does."""
    study = read_study(folder)
    if not isinstance(study, Sweep):
        raise InputError("is a sweep of profiles, not of trees", str(folder / SETUP_FILE))
    return study


def median_seconds(folder: Path) -> dict[str, float]:
    """Return the median seconds of the kernels by policy, from the folder of a sweep."""
    times: dict[str, list[float]] = {}
    for run in read_study(folder).runs:
        # Counting nodes takes time.
        if run.kind != "profile":
            times.setdefault(run.policy, []).append(run.kernel_seconds)
    return {code: statistics.median(found) for code, found in times.items()}


def read_setup(folder: Path) -> StudySetup:
    """Read what the runs of a sweep have in common; raise `InputError` if it is not valid."""
    return setup_and_subject(folder)[0]


def setup_and_subject(folder: Path) -> tuple[StudySetup, Subject]:
    """Read what the runs of a sweep have in common, and what they are about.

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
    """Return an object with one of its keys behind the others."""
    return {name: one for name, one in value.items() if name != key} | {key: value[key]}


def _check_code(code: str, subject: Subject) -> None:
    """Raise a ValueError if the code of a policy is not as a sweep writes it."""
    try:
        right = subject.checked(code) == code
    except OptionError as error:
        raise ValueError(error.message) from error
    if not right:
        raise ValueError(f"the letters of '{code}' are not in order")
