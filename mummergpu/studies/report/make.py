"""Makes the report of sweeps, from their folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mummergpu.errors import InputError, LibraryError
from mummergpu.input.bytes.files import reading
from mummergpu.runtime import optional_imports
from mummergpu.studies.records import SETUP_FILE, ProfileSweep, Sweep, read_study
from mummergpu.studies.report.page import Report
from mummergpu.studies.report.paper_section import paper_section
from mummergpu.studies.report.sections import (
    effects_section,
    interactions_section,
    kernels_section,
    layouts_section,
    machines_section,
    stages_section,
    summary_section,
)
from mummergpu.studies.report.study import make_studies
from mummergpu.version import __version__


def make_report(paths: Sequence[str]) -> Report:
    """Return the report of folders of sweeps, or of folders of such folders.

    It is the same for the same sweeps. A path that is none of these, or damaged, raises
    `InputError`.
    """
    found = [read_study(folder) for path in paths for folder in _folders(Path(path))]
    sweeps = [one for one in found if isinstance(one, Sweep)]
    profiles = [one for one in found if isinstance(one, ProfileSweep)]
    program = f"mummergpu {__version__}"
    if profiles:
        if sweeps:
            message = "is a sweep of profiles, beside others of trees: a report shows one subject"
            raise InputError(message, str(profiles[0].folder))
        # Reports of trees need no filters.
        from mummergpu.studies.report.profile_sections import profile_sections

        return Report("Study of profile filters", tuple(profile_sections(profiles)), program)
    studies = make_studies(sweeps)
    sections = [summary_section(studies)]
    if any(study.ranking.policies for study in studies):
        sections += [
            paper_section(studies),
            layouts_section(studies),
            effects_section(studies),
            *filter(None, (interactions_section(studies), kernels_section(studies))),
            stages_section(studies),
        ]
    sections.append(machines_section(studies))
    names = "; ".join(study.title for study in studies)
    title = f"Policy study: {names}" if len(studies) < 4 else f"Policy study: {len(studies)} sweeps"
    return Report(title, tuple(sections), program)


def _folders(path: Path) -> list[Path]:
    """Return the folders of sweeps that a path names."""
    with reading(str(path)):
        inner = sorted(one for one in path.iterdir() if (one / SETUP_FILE).exists())
    if (path / SETUP_FILE).exists():
        return [path]
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
        library = optional_imports.find(name, module)
        if library.problem:
            raise LibraryError("mummergpu report", name, "report", library.problem)
