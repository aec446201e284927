"""What a report shows: the sweeps and the files of ``--stats`` that its arguments name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mummergpu.errors import InputError, OptionError
from mummergpu.index.tree.policy import Policy
from mummergpu.input.files import reading
from mummergpu.studies.records import SETUP_FILE, Sweep, read_runs, read_setup, runs_file
from mummergpu.studies.run_stats import RunStats, read_run_stats


@dataclass(frozen=True)
class ReportInputs:
    """The data of a report.

    Attributes
    ----------
    sweeps : tuple of Sweep
        The sweeps, in the order of the arguments.
    runs : tuple of RunStats
        The files of ordinary runs.
    """

    sweeps: tuple[Sweep, ...]
    runs: tuple[RunStats, ...]


def read_inputs(paths: Sequence[str]) -> ReportInputs:
    """Read everything that a report shows.

    Parameters
    ----------
    paths : sequence of str
        Folders of sweeps, folders whose folders are sweeps, and files of ``--stats``.

    Returns
    -------
    ReportInputs
        The data.

    Raises
    ------
    InputError
        If a path is none of these, or a file is damaged.
    """
    folders: list[Path] = []
    files: list[Path] = []
    for path in paths:
        with reading(path):
            (folders.extend if Path(path).is_dir() else files.extend)(_sources(Path(path)))
    return ReportInputs(
        tuple(read_checked_sweep(folder) for folder in folders),
        tuple(read_run_stats(file) for file in files),
    )


def read_checked_sweep(folder: Path) -> Sweep:
    """Read a sweep, and check its policies.

    Parameters
    ----------
    folder : Path
        A folder with the two files of a sweep. The file of runs may be missing if the sweep was
        interrupted before the first.

    Returns
    -------
    Sweep
        The sweep.

    Raises
    ------
    InputError
        If a file is damaged; it names the line of a run.
    """
    setup = read_setup(folder)
    fault = next(filter(None, map(_code_fault, setup.policies)), None)
    if fault:
        raise InputError(f"is not the file of a sweep ({fault})", str(folder / SETUP_FILE))
    path = runs_file(folder)
    runs = tuple(read_runs(folder)) if path.exists() else ()
    for number, run in enumerate(runs, 1):
        fault = _code_fault(run.policy)
        if fault:
            raise InputError(f"is not a run of a sweep ({fault})", str(path), number)
    return Sweep(folder, setup, runs)


def _sources(path: Path) -> list[Path]:
    """Return the folders of sweeps that a path names, or the path itself if it is a file."""
    if not path.is_dir() or (path / SETUP_FILE).exists():
        return [path]
    inner = sorted(one for one in path.iterdir() if (one / SETUP_FILE).exists())
    if not inner:
        message = f"holds no sweep: there is no {SETUP_FILE} in it or in a folder of it"
        raise InputError(message, str(path))
    return inner


def _code_fault(code: str) -> str | None:
    """Return what is wrong with the code of a policy, None if it is as a sweep writes it."""
    try:
        right = Policy.from_code(code).code == code
    except OptionError as error:
        return error.message
    return None if right else f"the letters of '{code}' are not in order"
