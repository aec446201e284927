"""What a report shows: the sweeps and the files of ``--stats`` that its arguments name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import reading
from mummergpu.studies.analysis.run_stats import RunStats, read_run_stats
from mummergpu.studies.records import SETUP_FILE, Sweep, read_sweep


@dataclass(frozen=True)
class ReportInputs:
    """The data of a report: sweeps in the order of the arguments, and files of ordinary runs."""

    sweeps: tuple[Sweep, ...]
    runs: tuple[RunStats, ...]


def read_inputs(paths: Sequence[str]) -> ReportInputs:
    """Read everything that a report shows.

    Paths are folders of sweeps, folders whose folders are sweeps, and files of ``--stats``. One
    that is none of these, or damaged, raises `InputError`.
    """
    folders: list[Path] = []
    files: list[Path] = []
    for path in paths:
        with reading(path):
            (folders.extend if Path(path).is_dir() else files.extend)(_sources(Path(path)))
    return ReportInputs(
        tuple(read_sweep(folder) for folder in folders),
        tuple(read_run_stats(file) for file in files),
    )


def _sources(path: Path) -> list[Path]:
    """Return the folders of sweeps that a path names, or the path itself if it is a file."""
    if not path.is_dir() or (path / SETUP_FILE).exists():
        return [path]
    inner = sorted(one for one in path.iterdir() if (one / SETUP_FILE).exists())
    if not inner:
        message = f"holds no sweep: there is no {SETUP_FILE} in it or in a folder of it"
        raise InputError(message, str(path))
    return inner
