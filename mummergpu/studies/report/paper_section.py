"""The paper's findings, figures and tables beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from mummergpu.index.tree.policy import Policy
from mummergpu.studies.analysis.effects import (
    MIXED,
    NOISE,
    UNCLEAR,
    PolicyEffect,
    flag_name,
    policy_effect,
)
from mummergpu.studies.analysis.paper import (
    DEFAULT_CODE,
    DEVICE,
    FIGURES,
    FINDINGS,
    FIRST_VERSION_CODE,
    TABLE_1,
    TABLE_2,
    WORKLOAD,
)
from mummergpu.studies.report.blocks import Block, Paragraph, Section, Table
from mummergpu.studies.report.paper_figures import paper_figure
from mummergpu.studies.report.study import Study, captioned
from mummergpu.studies.report.words import (
    ABSENT,
    letters_text,
    listed,
    percent_text,
    stage_words,
    time_text,
)


def paper_section(studies: Sequence[Study]) -> Section:
    """Return the section that compares our sweeps with the paper."""
    intro = (
        f"Trapnell and Schatz measured 128 layouts on a {DEVICE} in 2009. Their figures are of "
        f"{WORKLOAD} and carry no numbers; what the text and the tables print stands here beside "
        "our own values."
    )
    blocks: list[Block] = [Paragraph(intro), _findings_table(studies)]
    drawings = [paper_figure(figure, studies) for figure in FIGURES]
    absent = [
        str(figure.number) for figure, drawing in zip(FIGURES, drawings, strict=True) if not drawing
    ]
    blocks += [drawing for drawing in drawings if drawing]
    if absent:
        noun = "Figure" if len(absent) == 1 else "Figures"
        words = "is" if len(absent) == 1 else "are"
        why = (
            "no two layouts of these sweeps differ in that policy alone"
            if any(study.is_gpu for study in studies)
            else "the cpu backend has no textures"
        )
        blocks.append(Paragraph(f"{noun} {listed(absent)} {words} missing: {why}."))
    blocks += [_times_table(studies), _workloads_table(studies)]
    return Section("paper", "The paper, and our data", tuple(blocks))


def _findings_table(studies: Sequence[Study]) -> Table:
    rows = []
    for finding in FINDINGS:
        effects = [policy_effect(one.timings, finding.letter, finding.stage) for one in studies]
        name = f"{flag_name(finding.letter)} ({finding.letter}), {stage_words(finding.stage)}"
        cells = [_effect_cell(effect) for effect in effects]
        rows.append((name, f"{finding.words} (section {finding.place})", *cells))
    caption = captioned(
        "The effect of each policy as the paper printed it, and as our data show it: mean (least "
        "to greatest change) over all pairs of layouts. 'kernels' is match, print and ordering "
        "here, and the total computation time in the paper.",
        studies,
    )
    columns = ("policy and stage", f"paper, {WORKLOAD}", *(study.title for study in studies))
    return Table(caption, columns, tuple(rows))


def _effect_cell(effect: PolicyEffect | None) -> str:
    if effect is None:
        return ABSENT
    noise = f" {effect.verdict}" if effect.verdict in (NOISE, MIXED, UNCLEAR) else ""
    spread = f"({percent_text(effect.least)} to {percent_text(effect.most)})"
    return f"{percent_text(effect.mean)} {spread}{noise}"


def _times_table(studies: Sequence[Study]) -> Table:
    rows = [
        (
            f"paper: {row.workload}, {DEVICE}",
            "MUMmerGPU 1.0",
            f"{row.first_match:,} ms",
            f"{row.first_print:,} ms",
            "1.00",
        )
        for row in TABLE_2
    ]
    rows += [
        (
            f"paper: {row.workload}, {DEVICE}",
            "MUMmerGPU 2.0",
            f"{row.second_match:,} ms",
            f"{row.second_print:,} ms",
            f"{row.speedup:.2f}",
        )
        for row in TABLE_2
    ]
    rows.sort(key=lambda row: [one.workload in row[0] for one in TABLE_2], reverse=True)
    for study in studies:
        rows += _own_times(study)
    caption = captioned(
        "Table 2 of the paper, and our times under the layouts of its two versions. Version 1.0 "
        f"used {FIRST_VERSION_CODE} and printed on the processor; version 2.0 used {DEFAULT_CODE}. "
        "Both kernels are ours here, so that only the layouts differ. Speedup: match and print "
        "together, against the first row of the same sweep.",
        studies,
    )
    return Table(caption, ("workload, device", "layout", "match", "print", "speedup"), tuple(rows))


def _own_times(study: Study) -> list[tuple[str, str, str, str, str]]:
    """Return the rows of a study; the layouts of the paper, and its own fastest."""
    codes = [FIRST_VERSION_CODE, DEFAULT_CODE] if study.is_gpu else ["rtn", "n"]
    policies = [Policy.from_code(code) for code in codes] + list(study.ranking.policies[:1])
    rows = []
    base = None
    for policy in policies:
        match, printing = (study.timings.of(policy, stage) for stage in ("match", "print"))
        both = match + printing
        if not both > 0:
            continue
        base = base or both
        fastest = ", the fastest" if policy is policies[-1] else ""
        rows.append(
            (
                study.title,
                letters_text(policy) + fastest,
                time_text(match),
                time_text(printing),
                f"{base / both:.2f}",
            )
        )
    return rows


def _workloads_table(studies: Sequence[Study]) -> Table:
    rows = [
        (
            f"paper: {row.name}",
            f"{row.reference_bases:,}",
            str(row.minimum_length),
            row.read_type,
            f"{row.read_count:,}",
        )
        for row in TABLE_1
    ]
    for study in studies:
        given = study.sweep.setup.input
        reads = f"median {given.median_query_length:,} bp"
        cells = (f"{given.reference_bases:,}", str(given.minimum_length), reads)
        rows.append((study.title, *cells, f"{given.query_count:,}"))
    columns = ("workload", "reference (bases)", "least match (bases)", "reads", "number of reads")
    caption = "Table 1 of the paper, and what our sweeps searched."
    return Table(caption, columns, tuple(rows))
