"""The first page: what a study found, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mummergpu.index.tree.policy import DEFAULT_POLICY, Policy
from mummergpu.runtime.words import counted
from mummergpu.studies.analysis.effects import (
    FASTER,
    MIXED,
    NOISE,
    SLOWER,
    UNCLEAR,
    flag_name,
    policy_effects,
)
from mummergpu.studies.report.blocks import Block, Paragraph, PointList, Section, Table
from mummergpu.studies.report.study import (
    CONTROL_POLICY,
    FASTEST,
    SLOWEST,
    Study,
    captioned,
    common_layouts,
    compared,
    named_layouts,
)
from mummergpu.studies.report.words import (
    ABSENT,
    letters_text,
    listed,
    noise_text,
    percent_text,
    range_text,
    time_text,
)

_MAX_CODES: Final = 8
_NOISY: Final = 3.0
"""The coefficient of variation in percent from which a machine counts as noisy."""


def summary_section(studies: Sequence[Study]) -> Section:
    """Return the first section of a report on sweeps."""
    blocks: list[Block] = [_overview(studies)]
    for study in studies:
        text = gap_text(study)
        blocks += [Paragraph(text, warns=True)] if text else []
    for study in studies:
        blocks.append(PointList(study.title, tuple(_points(study))))
    common = common_layouts(studies)
    if common:
        best = common[0]
        text = (
            f"One layout for all {len(studies)} sweeps: {letters_text(best.policy)} loses least, "
            f"{percent_text(100 * (best.mean_ratio - 1))} against the fastest of each on average "
            f"and {percent_text(100 * (best.worst_ratio - 1))} at worst."
        )
        blocks.append(Paragraph(text))
    return Section("summary", "Summary", tuple(blocks))


def gap_text(study: Study) -> str | None:
    """Return what a sweep lacks, in words; None if it is complete."""
    missing = study.missing
    digests = {run.digest for run in study.sweep.runs}
    if len(digests) > 1:
        return f"{study.title}: the layouts found different matches; do not trust these times."
    if not missing.runs:
        return None
    text = (
        f"{study.title}: this sweep was interrupted. {missing.made:,} of {missing.planned:,} runs "
        f"were made, {missing.runs:,} are missing."
    )
    if missing.codes:
        shown = [code for code in missing.codes[:_MAX_CODES]]
        more = len(missing.codes) - len(shown)
        codes = ", ".join(shown) + (f" and {more} more" if more else "")
        text += f" {counted(len(missing.codes), 'layout')} were not measured at all: {codes}."
    return f"{text} Run the same sweep again: it goes on where it stopped."


def _overview(studies: Sequence[Study]) -> Table:
    rows = []
    for study in studies:
        names = {named.part: named.policy for named in named_layouts(study)}
        best, worst = names.get(FASTEST), names.get(SLOWEST)
        rows.append(
            (
                study.title,
                letters_text(best) if best else ABSENT,
                time_text(study.timings.of(best, study.stage)) if best else ABSENT,
                _loss(study, DEFAULT_POLICY),
                _loss(study, CONTROL_POLICY),
                f"{letters_text(worst)}, {study.ranking.ratios[-1]:.2f}" if worst else ABSENT,
                noise_text(study.noise_percent),
            )
        )
    columns = (
        "sweep",
        "fastest",
        "time",
        f"default {letters_text(DEFAULT_POLICY)}",
        "control none",
        "slowest, times the fastest",
        "noise",
    )
    stages = " or ".join(dict.fromkeys(compared(study) for study in studies))
    caption = captioned(f"The fastest layout by the median time of {stages}.", studies)
    return Table(caption, columns, tuple(rows))


def _loss(study: Study, policy: Policy) -> str:
    ratio = study.ranking.ratio_of(policy)
    return ABSENT if ratio is None else percent_text(100 * (ratio - 1))


def _points(study: Study) -> list[str]:
    if not study.ranking.policies:
        return ["No run has been made yet."]
    return [_best_text(study), *_effect_texts(study), _noise_sentence(study)]


def _best_text(study: Study) -> str:
    ranking = study.ranking
    best = ranking.policies[0]
    noise = (study.noise_percent or 0.0) / 100
    equal = [
        letters_text(policy)
        for policy, ratio in zip(ranking.policies[1:], ranking.ratios[1:], strict=True)
        if ratio <= 1 + noise
    ]
    text = (
        f"The fastest layout is {letters_text(best)}: {time_text(float(ranking.seconds[0]))} in "
        f"{compared(study)}."
    )
    others = [
        f"{named.part} ({letters_text(named.policy)}) takes {_more(ranking.ratio_of(named.policy))}"
        for named in named_layouts(study)[1:]
        if named.policy != best
    ]
    text += f" {_capital(listed(others))}." if others else ""
    if equal:
        more = len(equal) - _MAX_CODES
        shown = equal[:_MAX_CODES] + ([f"{more} more"] if more > 0 else [])
        text += f" Within the noise of the fastest: {listed(shown)}."
    return text


def _more(ratio: float | None) -> str:
    if ratio is None:
        return ABSENT
    return f"{ratio:.1f} times as long" if ratio >= 2 else f"{100 * (ratio - 1):.1f}% more"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _effect_texts(study: Study) -> list[str]:
    effects = sorted(policy_effects(study.timings, study.stage), key=lambda one: -abs(one.mean))
    texts = []
    for verdict, words in ((FASTER, "Worth having on"), (SLOWER, "Better left off")):
        named = [
            f"{flag_name(one.letter)} ({one.letter}, {percent_text(one.mean)})"
            for one in effects
            if one.verdict == verdict
        ]
        texts += [f"{words} (mean change of the time): {listed(named)}."] if named else []
    mixed = [
        f"{flag_name(one.letter)} ({one.letter}, {range_text(one.least, one.most)})"
        for one in effects
        if one.verdict == MIXED
    ]
    texts += [f"Good or bad, as it {MIXED}: {listed(mixed)}."] if mixed else []
    for verdict, words in ((NOISE, "No effect beyond the noise"), (UNCLEAR, f"Effect {UNCLEAR}")):
        named = [
            f"{flag_name(one.letter)} ({one.letter})" for one in effects if one.verdict == verdict
        ]
        texts += [f"{words}: {listed(named)}."] if named else []
    return texts or ["No two layouts that were measured differ in one policy alone."]


def _noise_sentence(study: Study) -> str:
    noise = study.noise_percent
    if noise is None:
        return "How noisy the machine was is not known: the control ran fewer than two times."
    quiet = "quiet" if noise < 1 else "fairly quiet" if noise < _NOISY else "noisy"
    text = (
        f"The machine was {quiet}: {counted(study.timings.noise_runs, 'run')} of the control "
        f"spread by {noise_text(noise)} (coefficient of variation)."
    )
    return text if noise < _NOISY else f"{text} Sweep again while nothing else runs on it."
