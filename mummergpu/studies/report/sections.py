"""The sections of a report on sweeps of trees, without the one about the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from mummergpu.index.tree.policy import DEFAULT_POLICY, Policy
from mummergpu.runtime.words import pluralize
from mummergpu.studies.records import StudySetup
from mummergpu.studies.report.effects import (
    FASTER,
    MIXED,
    NOISE,
    SLOWER,
    UNCLEAR,
    PolicyEffect,
    flag_name,
    interactions,
    policy_effects,
)
from mummergpu.studies.report.figures import (
    draw_effects,
    draw_interactions,
    draw_ranking,
    study_panels,
)
from mummergpu.studies.report.page import (
    ABSENT,
    Block,
    Paragraph,
    PointList,
    Section,
    Table,
    bytes_text,
    digits,
    drawn,
    letters_text,
    listed,
    noise_text,
    percent_text,
    range_text,
    stage_words,
    time_text,
)
from mummergpu.studies.report.paper import STAGES_OF_PAPER
from mummergpu.studies.report.study import CONTROL_POLICY, Study, best_common_layout, captioned
from mummergpu.studies.report.timings import ALL_STAGES, MADE_ONCE, KernelFacts, missing_of

_BEST: Final = 10
_WORST: Final = 5
_MAX_CODES: Final = 8
_NOISY: Final = 3.0
"""The coefficient of variation in percent from which a machine counts as noisy."""


def summary_section(studies: Sequence[Study]) -> Section:
    """Return the first section of a report on sweeps."""
    blocks: list[Block] = [_overview(studies)]
    blocks += [Paragraph(text, warns=True) for text in map(_gap_text, studies) if text]
    blocks += [PointList(study.title, tuple(_points(study))) for study in studies]
    if best := best_common_layout(studies):
        policy, mean, worst = best
        text = (
            f"One layout for all {len(studies)} sweeps: {letters_text(policy)} loses least, "
            f"{percent_text(100 * (mean - 1))} against the fastest of each on average "
            f"and {percent_text(100 * (worst - 1))} at worst."
        )
        blocks.append(Paragraph(text))
    return Section("summary", "Summary", tuple(blocks))


def _overview(studies: Sequence[Study]) -> Table:
    rows = []
    for study in studies:
        ranked = study.ranking.policies
        rows.append(
            (
                study.title,
                letters_text(ranked[0]) if ranked else ABSENT,
                time_text(float(study.ranking.seconds[0])) if ranked else ABSENT,
                _loss(study, DEFAULT_POLICY),
                _loss(study, CONTROL_POLICY),
                f"{letters_text(ranked[-1])}, {study.ranking.ratios[-1]:.2f}" if ranked else ABSENT,
                noise_text(study.noise_percent),
            )
        )
    columns = (
        *("sweep", "fastest", "time", f"default {letters_text(DEFAULT_POLICY)}", "control none"),
        *("slowest, times the fastest", "noise"),
    )
    stages = " or ".join(dict.fromkeys(study.compared_by for study in studies))
    caption = captioned(f"The fastest layout by the median time of {stages}.", studies)
    return Table(caption, columns, tuple(rows))


def _loss(study: Study, policy: Policy) -> str:
    ratio = study.ranking.ratio_of(policy)
    return ABSENT if ratio is None else percent_text(100 * (ratio - 1))


def _gap_text(study: Study) -> str | None:
    """Return the warning of a sweep that is not complete."""
    if len({run.digest for run in study.sweep.runs}) > 1:
        return f"{study.title}: the layouts found different matches; do not trust these times."
    missing = missing_of(study.sweep)
    if not missing.runs:
        return None
    text = (
        f"{study.title}: this sweep was interrupted. {missing.made:,} of {missing.planned:,} runs "
        f"were made, {missing.runs:,} are missing."
    )
    if missing.codes:
        more = len(missing.codes) - _MAX_CODES
        codes = ", ".join(missing.codes[:_MAX_CODES]) + (f" and {more} more" if more > 0 else "")
        text += f" {pluralize(len(missing.codes), 'layout')} were not measured at all: {codes}."
    return f"{text} Run the same sweep again: it goes on where it stopped."


def _points(study: Study) -> list[str]:
    if not study.ranking.policies:
        return ["No run has been made yet."]
    return [_best_text(study), *_effect_texts(study), _noise_sentence(study)]


def _best_text(study: Study) -> str:
    ranking = study.ranking
    best = ranking.policies[0]
    time = time_text(float(ranking.seconds[0]))
    text = f"The fastest layout is {letters_text(best)}: {time} in {study.compared_by}."
    others = []
    for part, policy in study.named_layouts()[1:]:
        ratio = ranking.ratio_of(policy)
        if policy != best and ratio is not None:
            more = f"{ratio:.1f} times as long" if ratio >= 2 else f"{100 * (ratio - 1):.1f}% more"
            others.append(f"{part} ({letters_text(policy)}) takes {more}")
    if others:
        sentence = listed(others)
        text += f" {sentence[0].upper()}{sentence[1:]}."
    noise = (study.noise_percent or 0.0) / 100
    equal = [
        letters_text(policy)
        for policy, ratio in zip(ranking.policies[1:], ranking.ratios[1:], strict=True)
        if ratio <= 1 + noise
    ]
    if equal:
        rest = len(equal) - _MAX_CODES
        shown = equal[:_MAX_CODES] + ([f"{rest} more"] if rest > 0 else [])
        text += f" Within the noise of the fastest: {listed(shown)}."
    return text


def _effect_texts(study: Study) -> list[str]:
    effects = sorted(policy_effects(study.timings, study.stage), key=lambda one: -abs(one.mean))
    texts = []
    for verdict, words in (
        (FASTER, "Worth having on (mean change of the time)"),
        (SLOWER, "Better left off (mean change of the time)"),
        (MIXED, f"Good or bad, as it {MIXED}"),
        (NOISE, "No effect beyond the noise"),
        (UNCLEAR, f"Effect {UNCLEAR}"),
    ):
        named = [_named_effect(one) for one in effects if one.verdict == verdict]
        texts += [f"{words}: {listed(named)}."] if named else []
    return texts or ["No two layouts that were measured differ in one policy alone."]


def _named_effect(effect: PolicyEffect) -> str:
    change = ""
    if effect.verdict in (FASTER, SLOWER):
        change = f", {percent_text(effect.mean)}"
    elif effect.verdict == MIXED:
        change = f", {range_text(effect.least, effect.most)}"
    return f"{flag_name(effect.letter)} ({effect.letter}{change})"


def _noise_sentence(study: Study) -> str:
    noise = study.noise_percent
    if noise is None:
        return "How noisy the machine was is not known: the control ran fewer than two times."
    quiet = "quiet" if noise < 1 else "fairly quiet" if noise < _NOISY else "noisy"
    text = (
        f"The machine was {quiet}: {pluralize(study.timings.noise_runs, 'run')} of the control "
        f"spread by {noise_text(noise)} (coefficient of variation)."
    )
    return text if noise < _NOISY else f"{text} Sweep again while nothing else runs on it."


def layouts_section(studies: Sequence[Study]) -> Section:
    """Return the section on the best and the worst layouts."""
    blocks: list[Block] = []
    if shown := [study for study in studies if len(study.ranking.policies) > 1]:
        by = " or of ".join(dict.fromkeys(study.compared_by for study in shown))
        caption = captioned(
            f"Every layout from the fastest to the slowest, by the median time of {by}. Large "
            "marks are the layouts that the text speaks of.",
            shown,
        )
        blocks.append(
            drawn(
                "layouts",
                caption,
                "Points: the time of each layout as a multiple of the fastest one's",
                lambda: study_panels(shown, 2.6, draw_ranking),
            )
        )
    blocks += [_ranking_table(study) for study in studies if study.ranking.policies]
    return Section("layouts", "Best and worst layouts", tuple(blocks))


def _ranking_table(study: Study) -> Table:
    ranking, count = study.ranking, len(study.ranking.policies)
    ranks = [*range(min(_BEST, count)), *range(max(_BEST, count - _WORST), count)]
    stages = [stage for stage in ("match", "print", "total") if stage in study.timings.stages]
    rows = tuple(
        (
            f"{rank + 1}",
            letters_text(ranking.policies[rank]),
            time_text(float(ranking.seconds[rank])),
            percent_text(100 * (float(ranking.ratios[rank]) - 1)),
            *(time_text(study.timings.of(ranking.policies[rank], stage)) for stage in stages),
        )
        for rank in ranks
    )
    columns = ("rank", "layout", study.compared_by, "over the fastest", *map(stage_words, stages))
    return Table(captioned("The fastest and the slowest layouts.", [study]), columns, rows)


def effects_section(studies: Sequence[Study]) -> Section:
    """Return the section on the effects of single policies."""
    shown = [
        study
        for study in studies
        if any(policy_effects(study.timings, stage) for stage in STAGES_OF_PAPER)
    ]
    blocks: list[Block] = []
    if shown:
        caption = captioned(
            "The change of a stage's time when a policy is switched on and all others stay as they "
            "are. A mark is the mean over all pairs of layouts, a thin line its 95% confidence "
            "interval (Student's t), a thick line the middle half of the pairs. The grey band is "
            "the noise: the coefficient of variation of the control's runs in the stage by which "
            "layouts are compared.",
            shown,
        )
        blocks.append(
            drawn(
                "effects",
                caption,
                "Points with intervals: change of the time in percent for each policy and stage",
                lambda: study_panels(shown, 3.0, draw_effects, columns=1),
            )
        )
        blocks += [_effects_table(study) for study in shown]
    else:
        text = "No two layouts that were measured differ in one policy alone."
        blocks.append(Paragraph(text))
    return Section("effects", "What each policy does", tuple(blocks))


def _effects_table(study: Study) -> Table:
    rest = (stage for stage in ALL_STAGES if stage not in STAGES_OF_PAPER and stage != "build")
    stages = [one for one in (*STAGES_OF_PAPER, *rest) if one in study.timings.stages]
    rows = tuple(
        (
            stage_words(stage),
            f"{flag_name(effect.letter)} ({effect.letter})",
            str(len(effect.pairs)),
            percent_text(effect.mean),
            range_text(effect.low, effect.high),
            percent_text(effect.median),
            range_text(effect.lower_quartile, effect.upper_quartile),
            range_text(effect.least, effect.most),
            "made once" if stage in MADE_ONCE else noise_text(effect.noise),
            ABSENT if stage in MADE_ONCE else effect.verdict,
        )
        for stage in stages
        for effect in policy_effects(study.timings, stage)
    )
    columns = (
        *("stage", "policy", "pairs", "mean", "95% interval", "median"),
        *("middle half", "least to greatest", "noise", "verdict"),
    )
    caption = captioned(
        "The change of the time of each stage when a policy is switched on, all else equal. "
        "'kernels' is match, print and ordering, 'total' is upload and search.",
        [study],
    )
    return Table(caption, columns, rows)


def interactions_section(studies: Sequence[Study]) -> Section | None:
    """Return the section on two policies together, None if none can be compared."""
    shown = [study for study in studies if interactions(study.timings, study.stage)]
    if not shown:
        return None
    caption = captioned(
        "How the effect of one policy changes with another, in percent of the time: both together "
        "against the product of their effects (geometric mean over all settings of the other "
        "five). Positive: together they are slower than their single effects foretell. Numbers in "
        "brackets are within the noise of four runs.",
        shown,
    )
    figure = drawn(
        "interactions",
        caption,
        "Heat map: the interaction of every two policies in percent",
        lambda: study_panels(shown, 3.0, draw_interactions),
    )
    return Section("interactions", "Two policies together", (figure,))


def kernels_section(studies: Sequence[Study]) -> Section | None:
    """Return the section on the resources of kernels, None if there is no GPU's sweep."""
    blocks: list[Block] = []
    for study in studies:
        blocks += [_resources_table(study)] if study.facts else []
        if any(one.visits_per_second for one in study.facts):
            blocks.append(_visits_table(study))
    title = "Registers, local memory and occupancy"
    return Section("kernels", title, tuple(blocks)) if blocks else None


def _resources_table(study: Study) -> Table:
    rows = []
    for kernel in dict.fromkeys(one.kernel for one in study.facts):
        facts = [one for one in study.facts if one.kernel == kernel]
        shares = [None if one.occupancy is None else 100 * one.occupancy for one in facts]
        times = [one.milliseconds / 1000 for one in facts if one.milliseconds is not None]
        rows.append(
            (
                kernel,
                _span_text([one.registers for one in facts]),
                _span_text([one.local_bytes for one in facts]),
                _span_text([one.shared_bytes for one in facts]),
                _span_text(shares),
                f"{time_text(min(times))} to {time_text(max(times))}" if times else ABSENT,
            )
        )
    columns = (
        *("kernel", "registers of a thread", "local memory of a thread (bytes)"),
        *("shared memory of a block (bytes)", "occupancy (%)", "median time"),
    )
    caption = captioned("The least and the greatest value over all layouts.", [study])
    return Table(caption, columns, tuple(rows))


def _span_text(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ABSENT
    least, most = min(known), max(known)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _visits_table(study: Study) -> Table:
    rows = []
    for part, policy in study.named_layouts():
        for one in study.facts:
            if one.policy == policy and one.visits_per_second:
                rate, limit = one.visits_per_second, one.limit
                rows.append((f"{part}: {letters_text(policy)}", *_visit_cells(one, rate, limit)))
    caption = captioned(
        "Nodes visited in a second by the layouts of note, and the random reads that the device "
        "makes in a second.",
        [study],
    )
    return Table(caption, ("layout", "kernel", "visits", "limit", "share"), tuple(rows))


def _visit_cells(facts: KernelFacts, rate: float, limit: float | None) -> tuple[str, ...]:
    visits = f"{digits(rate / 1e9)}e9 / s"
    if limit is None:
        return facts.kernel, visits, ABSENT, ABSENT
    return facts.kernel, visits, f"{digits(limit / 1e9)}e9 / s", f"{rate / limit:.0%}"


def stages_section(studies: Sequence[Study]) -> Section:
    """Return the section on the stages of a run."""
    tables = tuple(_stages_table(study) for study in studies if study.ranking.policies)
    return Section("stages", "Where the time goes", tables)


def _stages_table(study: Study) -> Table:
    timings = study.timings
    named = study.named_layouts()
    columns = ("stage", *(f"{part}: {letters_text(policy)}" for part, policy in named), "noise")
    rows = []
    for stage in timings.stages:
        noise = timings.noise_of(stage)
        times = (time_text(timings.of(policy, stage)) for _, policy in named)
        spread = noise_text(None if noise is None else 100 * noise)
        rows.append((stage_words(stage), *times, "made once" if stage in MADE_ONCE else spread))
    caption = captioned(
        "Median time of each stage under the layouts of note. 'build', 'order' and 'flatten' make "
        "the trees, 'search' is the wall-clock time from queries to matches in memory. On the "
        "processor 'match', 'print' and 'ordering' are summed over threads. 'noise' is the "
        "coefficient of variation of the control's runs.",
        [study],
    )
    return Table(caption, columns, tuple(rows))


def machines_section(studies: Sequence[Study]) -> Section:
    """Return the section on the inputs and the machines."""
    return inputs_and_machines(
        (study.title, study.sweep.setup, _input_facts(study)) for study in studies
    )


def inputs_and_machines(
    sweeps: Iterable[tuple[str, StudySetup, Sequence[tuple[str, str]]]],
) -> Section:
    """Return that section for sweeps of any subject: their titles, setups, and facts of inputs."""
    rows: list[tuple[str, str, str]] = []
    for title, setup, given in sweeps:
        machine = setup.machine
        clocks = (f"{name} {value:g} MHz" for name, value in machine.clocks_megahertz.items())
        versions = (f"{name} {text}" for name, text in machine.versions.items())
        facts = (
            ("backend, device", f"{machine.backend}, {machine.device}"),
            ("architecture, memory", f"{machine.architecture}, {bytes_text(machine.memory_bytes)}"),
            ("threads, multiprocessors", f"{machine.threads}, {machine.multiprocessors}"),
            ("highest clocks", ", ".join(clocks) or ABSENT),
            ("versions", ", ".join(versions) or ABSENT),
            ("program, day", f"{setup.program}, {setup.date}"),
            *given,
        )
        rows += [("" if row else title, *fact) for row, fact in enumerate(facts)]
    caption = "What was measured, and on which machine."
    table = Table(caption, ("sweep", "fact", "value"), tuple(rows))
    return Section("machines", "Inputs and machines", (table,))


def _input_facts(study: Study) -> tuple[tuple[str, str], ...]:
    given = study.sweep.setup.input
    strands = ", ".join(given.strands)
    return (
        ("pages, page size", f"{given.pages}, {given.page_size:,} bases"),
        ("node addresses, strands", f"{given.address_bits} bits, {strands}"),
        ("queries", f"{given.query_count:,} with {given.query_bases:,} bases"),
        ("digests", f"reference {given.reference_digest}, queries {given.query_digest}"),
    )
