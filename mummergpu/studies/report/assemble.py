"""What a report shows and needs, and its sections in their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mummergpu.errors import InputError, LibraryError
from mummergpu.input.bytes.files import reading
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.libraries import look_for
from mummergpu.studies.analysis.run_stats import RunStats, read_run_stats
from mummergpu.studies.profiles.records import ProfileSweep
from mummergpu.studies.records import SETUP_FILE, Sweep, read_study
from mummergpu.studies.report.blocks import Report
from mummergpu.studies.report.machine_sections import (
    gathers_section,
    kernels_section,
    machines_section,
)
from mummergpu.studies.report.paper_section import paper_section
from mummergpu.studies.report.run_section import run_section
from mummergpu.studies.report.study import make_studies
from mummergpu.studies.report.study_sections import (
    effects_section,
    interactions_section,
    layouts_section,
    model_section,
    stages_section,
)
from mummergpu.studies.report.summary import summary_section
from mummergpu.version import __version__


def make_report(inputs: ReportInputs) -> Report:
    """Compute and draw a report; it is the same for the same inputs."""
    runs = [run_section(stats, number) for number, stats in enumerate(inputs.runs, 1)]
    if inputs.profile_sweeps:
        # Reports of trees need no filters.
        from mummergpu.studies.report.profile_sections import profile_sections

        sections = [*profile_sections(inputs.profile_sweeps), *runs]
        title = "Study of profile filters"
        return Report(title, tuple(sections), f"mummergpu {__version__}")
    studies = make_studies(inputs.sweeps)
    if not studies:
        return Report("Where the time of a run went", tuple(runs), f"mummergpu {__version__}")
    measured = any(study.ranking.policies for study in studies)
    sections = [summary_section(studies)]
    if measured:
        sections += [
            paper_section(studies),
            layouts_section(studies),
            effects_section(studies),
            *filter(None, (interactions_section(studies), model_section(studies))),
            *filter(None, (kernels_section(studies), gathers_section(studies))),
            stages_section(studies),
        ]
    sections += [machines_section(studies), *runs]
    names = "; ".join(study.title for study in studies)
    title = f"Policy study: {names}" if len(studies) < 4 else f"Policy study: {len(studies)} sweeps"
    return Report(title, tuple(sections), f"mummergpu {__version__}")


@frozen
class ReportInputs:
    """The data of a report: sweeps in the order of the arguments, and files of ordinary runs."""

    sweeps: tuple[Sweep, ...]
    runs: tuple[RunStats, ...]
    profile_sweeps: tuple[ProfileSweep, ...] = ()


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
    found = [read_study(folder) for folder in folders]
    sweeps = tuple(one for one in found if isinstance(one, Sweep))
    profiles = tuple(one for one in found if isinstance(one, ProfileSweep))
    if sweeps and profiles:
        message = "is a sweep of profiles, beside others of trees: a report shows one subject"
        raise InputError(message, str(profiles[0].folder))
    return ReportInputs(sweeps, tuple(read_run_stats(file) for file in files), profiles)


def _sources(path: Path) -> list[Path]:
    """Return the folders of sweeps that a path names, or the path itself if it is a file."""
    if not path.is_dir() or (path / SETUP_FILE).exists():
        return [path]
    inner = sorted(one for one in path.iterdir() if (one / SETUP_FILE).exists())
    if not inner:
        message = f"holds no sweep: there is no {SETUP_FILE} in it or in a folder of it"
        raise InputError(message, str(path))
    return inner


_LIBRARIES: Final = (
    ("matplotlib", "matplotlib.figure"),
    ("jinja2", "jinja2"),
    ("scipy", "scipy.special"),
)
"""Their names for pip, and a module of each."""


def require_libraries() -> None:
    """Raise `LibraryError` if a library that reports need is not installed or does not work."""
    for name, module in _LIBRARIES:
        library = look_for(name, module)
        if library.problem:
            raise LibraryError("mummergpu report", name, "report", library.problem)
