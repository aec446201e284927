"""The section on one ordinary run, from its ``--stats`` file."""

from __future__ import annotations

from pathlib import Path

from mummergpu.studies.analysis.run_stats import WHOLE_RUN, RunStats
from mummergpu.studies.report.blocks import Block, Paragraph, Section, Table
from mummergpu.studies.report.mapping_section import mapping_blocks
from mummergpu.studies.report.match_section import match_blocks
from mummergpu.studies.report.run_figures import run_figure
from mummergpu.studies.report.words import ABSENT, bytes_text, optional, time_text

_SETTINGS = ("backend", "device", "search", "mode", "policy", "threads", "minimum_length")


def run_section(stats: RunStats, number: int) -> Section:
    """Return the section on a run; `number` makes the names of its parts unique."""
    name = f"run-{number}"
    drawing = run_figure(stats, name, _caption(stats))
    blocks: list[Block] = [Paragraph(_first_words(stats))]
    blocks += [drawing] if drawing else []
    blocks.append(_stages_table(stats))
    if stats.kernels:
        blocks.append(_kernels_table(stats))
    blocks += match_blocks(stats, name)
    if stats.mapping is not None:
        blocks += mapping_blocks(stats.mapping, name)
    blocks.append(_facts_table(stats))
    return Section(name, f"Where the time of a run went: {Path(stats.path).name}", tuple(blocks))


def _whole_seconds(stats: RunStats) -> float | None:
    return next((stage.seconds for stage in stats.stages if stage.name == WHOLE_RUN), None)


def _settings_text(stats: RunStats) -> str:
    known = ((name.replace("_", " "), stats.setting(name)) for name in _SETTINGS)
    return ", ".join(f"{name} {text}" for name, text in known if text is not None)


def _caption(stats: RunStats) -> str:
    return (
        "Seconds of each stage of one run, summed over the threads that worked on it. Stages that "
        f"overlap can add up to more than '{WHOLE_RUN}', which is wall-clock time; the kernels of "
        f"a GPU are the device's own time. One run, no median: {_settings_text(stats)}."
    )


def _first_words(stats: RunStats) -> str:
    whole = _whole_seconds(stats)
    parts = sorted(
        (stage for stage in stats.stages if stage.name != WHOLE_RUN), key=lambda one: -one.seconds
    )
    text = f"The run took {time_text(whole)}." if whole is not None else "The run did not end."
    if parts:
        most = ", ".join(f"{stage.name} ({time_text(stage.seconds)})" for stage in parts[:3])
        text += f" Most went to {most}; seconds are summed over threads."
    return f"{text} Its memory peaked at {bytes_text(stats.peak_memory_bytes)}."


def _stages_table(stats: RunStats) -> Table:
    whole = _whole_seconds(stats)
    rows = tuple(
        (
            stage.name,
            time_text(stage.seconds),
            f"{stage.seconds / whole:.1%}" if whole else ABSENT,
            f"{stage.count:,}",
            bytes_text(stage.peak_memory_bytes) if stage.peak_memory_bytes else ABSENT,
        )
        for stage in stats.stages
    )
    columns = ("stage", "seconds, all threads", f"of {WHOLE_RUN}", "times", "peak memory then")
    caption = f"The stages of one run: {_settings_text(stats)}."
    return Table(caption, columns, rows)


def _kernels_table(stats: RunStats) -> Table:
    rows = tuple(
        (
            kernel.name,
            time_text(kernel.milliseconds / 1000),
            f"{kernel.launches:,}",
            optional(kernel.registers, ".0f"),
            optional(kernel.local_bytes, ".0f"),
            optional(kernel.occupancy, ".0%"),
            optional(kernel.node_visits),
        )
        for kernel in stats.kernels
    )
    columns = (
        *("kernel", "device time", "launches", "registers of a thread"),
        *("local memory of a thread (bytes)", "occupancy", "node visits"),
    )
    return Table(f"The kernels of one run: {_settings_text(stats)}.", columns, rows)


def _facts_table(stats: RunStats) -> Table:
    rows = [(one.name, f"{one.number:,}") for one in stats.counts]
    rows += [(f"bytes, {one.name}", bytes_text(one.number)) for one in stats.bytes]
    rows += [(one.name, one.text) for one in stats.settings]
    return Table("What the run counted, and how it was set.", ("name", "value"), tuple(rows))
