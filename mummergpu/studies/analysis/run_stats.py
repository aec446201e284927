"""The ``--stats`` file of an ordinary run, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import reading
from mummergpu.matching.match_counts import FileCounts, LengthCount, StrandCounts
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.stats import SCHEMA_VERSION
from mummergpu.studies.record_types import type_fault

WHOLE_RUN: Final = "end_to_end"


@frozen
class StageCost:
    """What a stage of a run cost.

    Attributes
    ----------
    seconds : float
        Its seconds, summed over threads.
    peak_memory_bytes : int
        The peak memory of the process when it last ended.
    """

    name: str
    seconds: float
    count: int
    peak_memory_bytes: int


@frozen
class KernelCost:
    """What a kernel of a run cost.

    Attributes
    ----------
    milliseconds : float
        Its device time, summed over launches.
    node_visits : int or None
        The nodes that its threads visited, if they were counted.
    registers, local_bytes, occupancy : float or None
        Registers and bytes of local memory of a thread, and the share of the threads of a
        multiprocessor that are resident; None if unknown.
    """

    name: str
    milliseconds: float
    launches: int
    node_visits: int | None
    registers: float | None
    local_bytes: float | None
    occupancy: float | None


@frozen
class NamedNumber:
    """A count or a number of bytes, and its name."""

    name: str
    number: int


@frozen
class Setting:
    """A setting of a run, as text."""

    name: str
    text: str


@frozen
class InsertSizeCounts:
    """The insert sizes of the proper pairs of a run.

    Attributes
    ----------
    pairs, longer : int
        The pairs, and those of them that are longer than `counts` tells.
    mean, standard_deviation : float or None
        In bases, without those that are longer; None without a pair.
    quartiles : tuple of int or None
        In bases.
    counts : tuple of int
        The pairs of each size, from 0 bases on.
    """

    pairs: int
    longer: int
    mean: float | None
    standard_deviation: float | None
    quartiles: tuple[int | None, ...]
    counts: tuple[int, ...]


@frozen
class MappingCounts:
    """What became of the reads of a run that mapped them (`mapping.summary.MappingSummary`).

    Attributes
    ----------
    reads, mapped, paired, properly_paired, mapped_with_mate, singletons, mate_on_other_record : int
        Numbers of reads.
    secondary, supplementary : int
        Numbers of alignments.
    mapping_qualities : tuple of int
        The mapped reads of each mapping quality, from 0 on.
    insert_size : InsertSizeCounts
        The insert sizes of proper pairs.
    """

    reads: int
    mapped: int
    paired: int
    properly_paired: int
    mapped_with_mate: int
    singletons: int
    mate_on_other_record: int
    secondary: int
    supplementary: int
    mapping_qualities: tuple[int, ...]
    insert_size: InsertSizeCounts


@frozen
class RunStats:
    """What one run did, and what it cost.

    Attributes
    ----------
    mapping : MappingCounts or None
        What became of its reads, if it mapped them.
    stages : tuple of StageCost
        The stages that ran, in the order of the work.
    peak_memory_bytes : int
        The peak memory of the process.
    """

    path: str
    settings: tuple[Setting, ...]
    counts: tuple[NamedNumber, ...]
    bytes: tuple[NamedNumber, ...]
    files: tuple[FileCounts, ...]
    strands: tuple[StrandCounts, ...]
    match_lengths: tuple[LengthCount, ...]
    mapping: MappingCounts | None
    stages: tuple[StageCost, ...]
    kernels: tuple[KernelCost, ...]
    peak_memory_bytes: int

    def setting(self, name: str) -> str | None:
        """Return the text of a setting, None if the run has none of that name."""
        return next((one.text for one in self.settings if one.name == name), None)

    def count(self, name: str) -> int:
        """Return a count, 0 if the run has none of that name."""
        return next((one.number for one in self.counts if one.name == name), 0)


def read_run_stats(path: Path) -> RunStats:
    """Read the ``--stats`` file of a run; raise `InputError` if it is none."""
    name = str(path)
    with reading(name), open(path, "rb") as file:
        content = file.read()
    try:
        value = json.loads(content)
        version = value["schema_version"]
        if version != SCHEMA_VERSION:
            raise InputError(f"is of version {version}, and {SCHEMA_VERSION} is known", name)
        stats = _run_stats(name, value)
        fault = type_fault(stats)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON ({error.msg})", name, error.lineno) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"is not a file of --stats ({error})", name) from error
    if fault:
        raise InputError(f"is not a file of --stats ({fault})", name)
    return stats


def _run_stats(path: str, value: Mapping[str, Any]) -> RunStats:
    stages = (
        StageCost(name, cost["seconds"], cost["count"], cost["peak_memory_bytes"])
        for name, cost in value["stages"].items()
    )
    return RunStats(
        path,
        tuple(Setting(name, _text(setting)) for name, setting in value["settings"].items()),
        tuple(NamedNumber(*item) for item in value["counts"].items()),
        tuple(NamedNumber(*item) for item in value["bytes"].items()),
        tuple(FileCounts(**file) for file in value["files"]),
        tuple(StrandCounts(**strand) for strand in value["strands"]),
        tuple(LengthCount(**lengths) for lengths in value["match_lengths"]),
        _mapping(value.get("mapping")),
        tuple(stage for stage in stages if stage.count),
        tuple(_kernel(name, kernel) for name, kernel in value["kernels"].items()),
        value["peak_memory_bytes"],
    )


def _mapping(value: Mapping[str, Any] | None) -> MappingCounts | None:
    """Return what became of the reads; older files of runs of other kinds do not tell it."""
    if value is None:
        return None
    sizes = value["insert_size"]
    lists = {"quartiles": tuple(sizes["quartiles"]), "counts": tuple(sizes["counts"])}
    qualities = tuple(value["mapping_qualities"])
    inner = {"mapping_qualities": qualities, "insert_size": InsertSizeCounts(**{**sizes, **lists})}
    return MappingCounts(**{**value, **inner})


def _kernel(name: str, value: Mapping[str, Any]) -> KernelCost:
    resources = value["resources"]
    return KernelCost(
        name,
        value["milliseconds"],
        value["launches"],
        value["node_visits"],
        resources.get("registers"),
        resources.get("local_bytes"),
        resources.get("occupancy"),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
