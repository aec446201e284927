"""The sections on layouts, policies, models and stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mummergpu.studies.analysis.clusters import texture_clusters, texture_name
from mummergpu.studies.analysis.effects import PolicyEffect, flag_name, policy_effects
from mummergpu.studies.analysis.interactions import interactions
from mummergpu.studies.analysis.linear_model import LinearModel, linear_model
from mummergpu.studies.analysis.paper import STAGES_OF_PAPER
from mummergpu.studies.analysis.timings import ALL_STAGES, MADE_ONCE
from mummergpu.studies.report.blocks import Block, Drawing, Paragraph, Section, Table
from mummergpu.studies.report.effect_figures import (
    effects_figure,
    interactions_figure,
    model_figure,
)
from mummergpu.studies.report.layout_figures import (
    clusters_figure,
    layouts_figure,
    stages_figure,
)
from mummergpu.studies.report.study import Study, captioned, common_layouts, compared, named_layouts
from mummergpu.studies.report.words import (
    ABSENT,
    letters_text,
    noise_text,
    percent_text,
    range_text,
    stage_words,
    time_text,
)

_BEST: Final = 10
_WORST: Final = 5
_STRONGEST: Final = 5


def layouts_section(studies: Sequence[Study]) -> Section:
    """Return the section on the best and the worst layouts."""
    blocks = _present(layouts_figure(studies))
    blocks += [_ranking_table(study) for study in studies if study.ranking.policies]
    blocks += _common_table(studies)
    blocks += _present(clusters_figure(studies))
    blocks += [
        _clusters_table(study)
        for study in studies
        if len(texture_clusters(study.timings, study.stage)) > 1
    ]
    return Section("layouts", "Best and worst layouts", tuple(blocks))


def effects_section(studies: Sequence[Study]) -> Section:
    """Return the section on the effects of single policies."""
    blocks = _present(effects_figure(studies))
    blocks += [
        _effects_table(study) for study in studies if policy_effects(study.timings, study.stage)
    ]
    if not blocks:
        blocks = [Paragraph("No two layouts that were measured differ in one policy alone.")]
    return Section("effects", "What each policy does", tuple(blocks))


def interactions_section(studies: Sequence[Study]) -> Section | None:
    """Return the section on two policies together, None if none can be compared."""
    blocks = _present(interactions_figure(studies))
    blocks += [
        _interactions_table(study) for study in studies if interactions(study.timings, study.stage)
    ]
    return Section("interactions", "Two policies together", tuple(blocks)) if blocks else None


def model_section(studies: Sequence[Study]) -> Section | None:
    """Return the section on the linear models, None if there are too few layouts for one."""
    rows: list[tuple[str, ...]] = []
    misfits: list[tuple[str, ...]] = []
    for study in studies:
        models = [linear_model(study.timings, study.stage, both) for both in (False, True)]
        known = [model for model in models if model]
        rows += [_model_row(study, model) for model in known]
        misfits += _misfit_rows(study, known[-1]) if known else []
    if not rows:
        return None
    shown = [study for study in studies if linear_model(study.timings, study.stage, False)]
    columns = ("sweep", "model", "terms", "R²", "residual spread", "degrees of freedom")
    caption = captioned(
        "Least-squares models of the logarithm of the median time. R² is the share of the variance "
        "that a model explains; the residual spread is its standard deviation as a part of a time.",
        shown,
    )
    worst = captioned("The layouts that the larger model of each sweep explains worst.", shown)
    heads = ("sweep", "layout", "measured", "modelled", "difference")
    blocks = [
        *_present(model_figure(studies)),
        Table(caption, columns, tuple(rows)),
        Table(worst, heads, tuple(misfits)),
    ]
    return Section("model", "A linear model", tuple(blocks))


def stages_section(studies: Sequence[Study]) -> Section:
    """Return the section on the stages of a run."""
    blocks = _present(stages_figure(studies))
    blocks += [_stages_table(study) for study in studies if study.ranking.policies]
    return Section("stages", "Where the time goes", tuple(blocks))


def _present(drawing: Drawing | None) -> list[Block]:
    return [drawing] if drawing else []


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
    columns = ("rank", "layout", compared(study), "over the fastest", *map(stage_words, stages))
    return Table(captioned("The fastest and the slowest layouts.", [study]), columns, rows)


def _common_table(studies: Sequence[Study]) -> list[Block]:
    found = common_layouts(studies)[:_BEST]
    if not found:
        return []
    rows = tuple(
        (
            letters_text(one.policy),
            percent_text(100 * (one.mean_ratio - 1)),
            percent_text(100 * (one.worst_ratio - 1)),
        )
        for one in found
    )
    caption = captioned(
        "One layout for all sweeps: what it loses against the fastest layout of each (geometric "
        "mean, and the worst case).",
        studies,
    )
    return [Table(caption, ("layout", "loss on average", "loss at worst"), rows)]


def _clusters_table(study: Study) -> Table:
    rows = tuple(
        (
            texture_name(cluster.textures),
            str(len(cluster.policies)),
            letters_text(cluster.policies[0]),
            f"{cluster.ratios[0]:.3f}",
            f"{cluster.median:.3f}",
            f"{cluster.ratios[-1]:.3f}",
        )
        for cluster in texture_clusters(study.timings, study.stage)
    )
    columns = ("textures", "layouts", "its fastest", "fastest", "median", "slowest")
    caption = captioned(
        f"Layouts by the textures in use: times of {compared(study)} as multiples of the fastest "
        "layout's.",
        [study],
    )
    return Table(caption, columns, rows)


def _effects_table(study: Study) -> Table:
    rest = (stage for stage in ALL_STAGES if stage not in STAGES_OF_PAPER and stage != "build")
    stages = [one for one in (*STAGES_OF_PAPER, *rest) if one in study.timings.stages]
    rows = tuple(
        _effect_row(effect) for stage in stages for effect in policy_effects(study.timings, stage)
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


def _effect_row(effect: PolicyEffect) -> tuple[str, ...]:
    once = effect.stage in MADE_ONCE
    return (
        stage_words(effect.stage),
        f"{flag_name(effect.letter)} ({effect.letter})",
        str(len(effect.pairs)),
        percent_text(effect.mean),
        range_text(effect.low, effect.high),
        percent_text(effect.median),
        range_text(effect.lower_quartile, effect.upper_quartile),
        range_text(effect.least, effect.most),
        "made once" if once else noise_text(effect.noise),
        ABSENT if once else effect.verdict,
    )


def _interactions_table(study: Study) -> Table:
    found = sorted(interactions(study.timings, study.stage), key=lambda one: -abs(one.percent))
    rows = tuple(
        (
            f"{flag_name(one.first)} ({one.first}) and {flag_name(one.second)} ({one.second})",
            percent_text(one.first_alone),
            percent_text(one.first_with_second),
            percent_text(one.percent),
            range_text(one.low, one.high),
            "within the noise" if one.is_within_noise else "",
        )
        for one in found[:_STRONGEST]
    )
    columns = (
        *("policies", "first, without the second", "first, with the second"),
        *("interaction", "95% interval", "note"),
    )
    caption = captioned(
        f"The strongest interactions in the time of {compared(study)} (geometric means over "
        f"{found[0].squares} settings of the other policies).",
        [study],
    )
    return Table(caption, columns, rows)


def _model_row(study: Study, model: LinearModel) -> tuple[str, ...]:
    return (
        study.title,
        "policies and every two" if model.with_interactions else "policies alone",
        str(len(model.terms)),
        f"{model.r_squared:.4f}",
        noise_text(model.residual_percent),
        str(model.degrees_of_freedom),
    )


def _misfit_rows(study: Study, model: LinearModel) -> list[tuple[str, ...]]:
    return [
        (
            study.title,
            letters_text(fit.policy),
            time_text(fit.measured),
            time_text(fit.modelled),
            percent_text(fit.percent),
        )
        for fit in model.fits[:_STRONGEST]
    ]


def _stages_table(study: Study) -> Table:
    timings = study.timings
    named = named_layouts(study)
    columns = ("stage", *(f"{one.part}: {letters_text(one.policy)}" for one in named), "noise")
    rows = []
    for stage in timings.stages:
        noise = timings.noise_of(stage)
        times = (time_text(timings.of(one.policy, stage)) for one in named)
        spread = noise_text(None if noise is None else 100 * noise)
        rows.append((stage_words(stage), *times, "made once" if stage in MADE_ONCE else spread))
    caption = captioned(
        "Median time of each stage under the layouts of note. 'noise' is the coefficient of "
        "variation of the control's runs.",
        [study],
    )
    return Table(caption, columns, tuple(rows))
