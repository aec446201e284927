"""A report from its data: the sections in their order."""

from __future__ import annotations

from mummergpu.studies.report.blocks import Report
from mummergpu.studies.report.inputs import ReportInputs
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
