"""The sections on kernels, the limit of the device, and the machines."""

from __future__ import annotations

from collections.abc import Sequence

from mummergpu.studies.analysis.kernel_facts import KernelFacts, facts_of, gather_limit
from mummergpu.studies.report.blocks import Block, Section, Table
from mummergpu.studies.report.kernel_figures import gathers_figure, resources_figure
from mummergpu.studies.report.study import Study, captioned, named_layouts
from mummergpu.studies.report.words import (
    ABSENT,
    bytes_text,
    digits,
    letters_text,
    optional,
    time_text,
)


def kernels_section(studies: Sequence[Study]) -> Section | None:
    """Return the section on the resources of kernels, None if there is no GPU's sweep."""
    blocks: list[Block] = []
    for number, study in enumerate(studies, 1):
        if not study.facts:
            continue
        drawing = resources_figure(study, f"resources-{number}")
        blocks += [drawing] if drawing else []
        blocks.append(_resources_table(study))
    title = "Registers, local memory and occupancy"
    return Section("kernels", title, tuple(blocks)) if blocks else None


def gathers_section(studies: Sequence[Study]) -> Section | None:
    """Return the section on visits against the device's limit, None if they were not counted."""
    drawing = gathers_figure(studies)
    if not drawing:
        return None
    blocks: list[Block] = [drawing, *(_gathers_table(study) for study in studies if study.facts)]
    return Section("gathers", "How near the device's limit", tuple(blocks))


def machines_section(studies: Sequence[Study]) -> Section:
    """Return the section on what was searched, and where."""
    rows = [row for study in studies for row in _machine_rows(study)]
    caption = "What was measured, and on which machine."
    table = Table(caption, ("sweep", "fact", "value"), tuple(rows))
    return Section("machines", "Inputs and machines", (table,))


def _machine_rows(study: Study) -> list[tuple[str, str, str]]:
    setup = study.sweep.setup
    machine, given = setup.machine, setup.input
    clocks = (f"{name} {value:g} MHz" for name, value in machine.clocks_megahertz.items())
    versions = (f"{name} {text}" for name, text in machine.versions.items())
    strands = ", ".join(given.strands)
    facts = (
        ("backend, device", f"{machine.backend}, {machine.device}"),
        ("architecture, memory", f"{machine.architecture}, {bytes_text(machine.memory_bytes)}"),
        ("threads, multiprocessors", f"{machine.threads}, {machine.multiprocessors}"),
        ("highest clocks", ", ".join(clocks) or ABSENT),
        ("versions", ", ".join(versions) or ABSENT),
        ("program, day", f"{setup.program}, {setup.date}"),
        ("pages, page size", f"{given.pages}, {given.page_size:,} bases"),
        ("node addresses, strands", f"{given.address_bits} bits, {strands}"),
        ("queries", f"{given.query_count:,} with {given.query_bases:,} bases"),
        ("digests", f"reference {given.reference_digest}, queries {given.query_digest}"),
    )
    return [("" if row else study.title, *fact) for row, fact in enumerate(facts)]


def _resources_table(study: Study) -> Table:
    rows = []
    for kernel in dict.fromkeys(one.kernel for one in study.facts):
        facts = facts_of(study.facts, kernel)
        rows.append(
            (
                kernel,
                _range_text([one.registers for one in facts]),
                _range_text([one.local_bytes for one in facts]),
                _range_text([one.shared_bytes for one in facts]),
                _range_text([_percent(one.occupancy) for one in facts]),
                _times_text(facts),
            )
        )
    columns = (
        *("kernel", "registers of a thread", "local memory of a thread (bytes)"),
        *("shared memory of a block (bytes)", "occupancy (%)", "median time"),
    )
    caption = captioned("The least and the greatest value over all layouts.", [study])
    return Table(caption, columns, tuple(rows))


def _gathers_table(study: Study) -> Table:
    rows = []
    for named in named_layouts(study):
        for one in study.facts:
            if one.policy == named.policy and one.visits_per_second:
                limit = gather_limit(study.sweep, one.policy)
                rows.append(
                    (
                        f"{named.part}: {letters_text(one.policy)}",
                        one.kernel,
                        f"{digits(one.visits_per_second / 1e9)}e9 / s",
                        f"{digits(limit / 1e9)}e9 / s" if limit else ABSENT,
                        optional(one.gather_share, ".0%"),
                    )
                )
    caption = captioned(
        "Nodes visited in a second by the layouts of note, and the random reads that the device "
        "makes in a second.",
        [study],
    )
    columns = ("layout", "kernel", "visits", "limit", "share")
    return Table(caption, columns, tuple(rows))


def _range_text(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ABSENT
    least, most = min(known), max(known)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _times_text(facts: Sequence[KernelFacts]) -> str:
    times = [one.milliseconds / 1000 for one in facts if one.milliseconds is not None]
    return f"{time_text(min(times))} to {time_text(max(times))}" if times else ABSENT


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
