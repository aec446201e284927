"""The sections of a report on sweeps of profile filters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mummergpu.drawing.colours import BLUE, INK, ORANGE
from mummergpu.hmm.filter_variants import CHOICES, ThreadPolicy
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.profiles.policies import (
    FILTER_NAMES,
    LADDER,
    filter_of,
    policy_of,
    with_choice,
)
from mummergpu.studies.records import PROFILES, ProfileSweep, median_seconds
from mummergpu.studies.report.effects import mean_interval
from mummergpu.studies.report.figures import MARKERS, SERIES, new_figure, panels
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
    noise_text,
    percent_text,
    range_text,
    time_text,
)
from mummergpu.studies.report.sections import inputs_and_machines
from mummergpu.studies.report.timings import missing_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@frozen
class ProfileStudy:
    """A sweep of profile filters, with the medians of its kernels."""

    sweep: ProfileSweep
    title: str  # Its profile, nodes and device
    # The median seconds of the kernels by policy, without policies that have not run.
    seconds: dict[str, float]
    # The coefficient of variation of the control's runs; None if there are too few.
    noise: float | None

    @property
    def control(self) -> str:
        """The policy that the others are compared with."""
        return PROFILES.controls[self.sweep.setup.machine.backend]

    def gcups(self, code: str) -> float:
        """Return the giga cell updates per second; cells are residues times nodes."""
        return self.sweep.setup.input.cells / self.seconds[code] / 1e9

    def ranked(self, kind: str) -> list[str]:
        """Return the policies of a filter, the fastest first."""
        own = [code for code in self.seconds if filter_of(policy_of(code)) == kind]
        return sorted(own, key=lambda code: self.seconds[code])

    @property
    def kinds(self) -> list[str]:
        """The filters that were measured."""
        return [kind for kind in FILTER_NAMES if self.ranked(kind)]

    def best_with(self, choice: str, letter: str, kind: str) -> str | None:
        """Return the fastest policy with a letter among those of rows; None if none ran."""
        names = {"scores": 1, "rows": 2, "tables": 3}
        found = [
            code
            for code in self.ranked(kind)
            if len(code) < len(CHOICES) and code[names[choice]] == letter
        ]
        return found[0] if found else None


def study_of(sweep: ProfileSweep) -> ProfileStudy:
    """Return a sweep with the figures derived from it."""
    found = median_seconds(sweep.runs)
    order = {code: number for number, code in enumerate(sweep.setup.policies)}
    seconds = {code: found[code] for code in sorted(found, key=lambda one: order.get(one, 0))}
    given, machine = sweep.setup.input, sweep.setup.machine
    title = f"{given.name} ({given.nodes:,} nodes), {machine.device}"
    controls = [run.kernel_seconds for run in sweep.runs if run.kind == "control"]
    noise = float(np.std(controls, ddof=1) / np.mean(controls)) if len(controls) > 1 else None
    return ProfileStudy(sweep, title, seconds, noise)


class ChoiceEffect(NamedTuple):
    """The effect of a letter in place of another, over all pairs that differ in it alone."""

    name: str
    before: str
    after: str
    pairs: int
    # The changes of the time in percent.
    mean: float
    least: float
    greatest: float
    # The confidence interval of the mean; None for a single pair.
    low: float | None
    high: float | None


def choice_effects(study: ProfileStudy) -> list[ChoiceEffect]:
    """Return the effect of each choice of threads against its basic letter; tiles apart."""
    found = []
    for name, letters in CHOICES.items():
        for tiled in (False, True):
            for before, after in combinations(letters, 2):
                changes = _changes(study, name, before, after, tiled)
                if not changes:
                    continue
                interval = mean_interval(np.array(changes)) or (None, None)
                label = f"{name} of tiles" if tiled else name
                spread = float(np.mean(changes)), min(changes), max(changes)
                found.append(ChoiceEffect(label, before, after, len(changes), *spread, *interval))
    return found


def _changes(study: ProfileStudy, name: str, before: str, after: str, tiled: bool) -> list[float]:
    changes = []
    for policy in thread_policies(study):
        if getattr(policy, name) != before or policy.is_tiled != tiled:
            continue
        other = with_choice(policy, name, after)
        if other is not None and other.code in study.seconds:
            changes.append(100 * (study.seconds[other.code] / study.seconds[policy.code] - 1))
    return changes


def thread_policies(study: ProfileStudy) -> list[ThreadPolicy]:
    """Return the policies of threads that were measured."""
    every = map(policy_of, study.seconds)
    return [one for one in every if isinstance(one, ThreadPolicy)]


class ChoiceInteraction(NamedTuple):
    """The effect of two choices together beyond the product of their effects, in percent."""

    first: str
    second: str
    squares: int
    percent: float


def choice_interactions(study: ProfileStudy) -> list[ChoiceInteraction]:
    """Return the interactions of every two choices, over all squares that were measured."""
    found = []
    policies = [one for one in thread_policies(study) if not one.is_tiled]
    for first, second in combinations(CHOICES, 2):
        letters = product(combinations(CHOICES[first], 2), combinations(CHOICES[second], 2))
        for (a, b), (c, d) in letters:
            logs = []
            for policy in policies:
                if (getattr(policy, first), getattr(policy, second)) != (a, c):
                    continue
                corners = [_with(policy, {first: x, second: y}) for y in (c, d) for x in (a, b)]
                times = [study.seconds.get(code, 0.0) if code else 0.0 for code in corners]
                if all(times):
                    none, one, other, both = np.log(times)
                    logs.append(both - other - one + none)
            if len(logs) > 1:
                names = f"{first} {a}→{b}", f"{second} {c}→{d}"
                percent = 100 * float(np.expm1(np.mean(logs)))
                found.append(ChoiceInteraction(*names, len(logs), percent))
    return found


def _with(policy: ThreadPolicy, letters: dict[str, str]) -> str | None:
    found: ThreadPolicy | None = policy
    for name, letter in letters.items():
        found = None if found is None else with_choice(found, name, letter)
    return None if found is None else found.code


class PaperRow(NamedTuple):
    """A row of a table of S. Ferraz, N. Moreano (ICPADS 2013, GeForce GTX 460), and our policy."""

    table: str
    name: str
    seconds: float
    policy: str


def _basic(**letters: str) -> str:
    return ThreadPolicy(**letters).code


_LADDER_SECONDS: Final = (220.85, 10.60, 11.94, 8.04, 10.40, 5.20, 5.17, 4.36)

PAPER_ROWS: Final = (
    PaperRow("III", "scores in global memory (basic)", 144.13, _basic()),
    PaperRow("III", "coalesced", 20.43, _basic(scores="c")),
    PaperRow("III", "coalesced and padded", 18.10, _basic(scores="p")),
    PaperRow("III", "in private memory", 6.70, _basic(scores="l")),
    PaperRow("IV", "transitions in global memory (basic)", 144.13, _basic()),
    PaperRow("IV", "regular ones in constant memory", 143.40, _basic(steps="c")),
    PaperRow("IV", "regular ones in shared memory", 142.54, _basic(steps="s")),
    PaperRow("IV", "special ones in shared memory", 140.99, _basic(special="s")),
    *(
        PaperRow("V", name, seconds, policy.code)
        for (name, policy), seconds in zip(LADDER, _LADDER_SECONDS, strict=True)
    ),
)
"""The paper's optimisations: 1 private scores, 2 the loop unrolled 8 times, 3 scheduled by hand, 4
sequences interleaved and sorted, 5 special transitions in shared memory, 6 regular ones in constant
memory. Special transitions copied for each thread, its other row of Table IV (140.44 s), are no
policy here."""

CUDAMPF_GCUPS: Final = {"S": 440.0, "M": 277.0, "V": 14.3}
"""The most that CUDAMPF reached on a K40 (Jiang and Ganesan, 2016), by filter."""


_BEST: Final = 10
_WORST: Final = 3
_STRONGEST: Final = 12

_LETTERS: Final = (
    "A policy of threads has seven letters: scores g global, c coalesced, p coalesced and padded, "
    "l local (the paper's private), t tiles in registers; the inner loop unrolled 1, 2, 4 or 8 "
    "times; scheduled by the compiler (c) or by hand (h); sequences as read (r), interleaved (i), "
    "sorted (s); transitions of nodes, then special ones, in g global, c constant, s shared memory "
    "or r registers; emissions g global, t transposed, s shared. A policy of rows names its filter "
    "(S, M, V), where scores lie (r registers, s shared, l local), whether the row's length is "
    "compiled (c) or known at run time (t), where the tables lie (s shared, c read-only cache), "
    "and the lanes of a sequence. On the processor: the filter, and the registers of a part of a "
    "row."
)


def profile_sections(sweeps: Sequence[ProfileSweep]) -> list[Section]:
    """Return all sections on sweeps of profile filters; the first is the summary."""
    studies = [study_of(sweep) for sweep in sweeps]
    found = (_summary, _rankings, _paper, _curves, _effects)
    sections = [section for one in found if (section := one(studies))]
    machines = ((study.title, study.sweep.setup, _input_facts(study)) for study in studies)
    return [*sections, inputs_and_machines(machines)]


def _fastest(study: ProfileStudy, kind: str, ranked: Sequence[str]) -> str:
    best = ranked[0]
    found = f"{time_text(study.seconds[best])}, {digits(study.gcups(best))} GCUPS"
    if len(ranked) == 1:
        return f"{FILTER_NAMES[kind]}: the only policy, {best}, takes {found}."
    times = digits(study.seconds[ranked[-1]] / study.seconds[best])
    return (
        f"{FILTER_NAMES[kind]}: the fastest of {len(ranked)} policies is {best} with {found}; "
        f"the slowest, {ranked[-1]}, takes {times} times as long."
    )


def _summary(studies: Sequence[ProfileStudy]) -> Section:
    blocks: list[Block] = [
        Paragraph(
            "Filters of profile HMMs under many policies: every run compared the same proteins, "
            "and found the scores of the processor's filters."
        )
    ]
    for study in studies:
        blocks += _gap(study)
        points = [
            _fastest(study, kind, ranked) for kind in study.kinds if (ranked := study.ranked(kind))
        ]
        noise = None if study.noise is None else 100 * study.noise
        points.append(
            f"The runs of {study.control} between the others vary by {noise_text(noise)}."
        )
        blocks.append(PointList(study.title, tuple(points)))
    blocks.append(
        Paragraph(
            "GCUPS are thousand million cells a second, residues times nodes; papers that count a "
            "match, an insertion and a deletion for each have three times as many. " + _LETTERS
        )
    )
    return Section("summary", "What was found", tuple(blocks))


def _gap(study: ProfileStudy) -> list[Block]:
    missing = missing_of(study.sweep)
    if not missing.runs:
        return []
    absent, planned = missing.runs, missing.planned
    text = f"{study.title}: {absent:,} of {planned:,} runs are missing; the sweep can go on."
    return [Paragraph(text, warns=True)]


def _rankings(studies: Sequence[ProfileStudy]) -> Section:
    blocks: list[Block] = []
    for study in studies:
        for kind in study.kinds:
            ranked = study.ranked(kind)
            count = len(ranked)
            ranks = [*range(min(_BEST, count)), *range(max(_BEST, count - _WORST), count)]
            best = study.seconds[ranked[0]]
            rows = tuple(
                (
                    f"{rank + 1}",
                    ranked[rank],
                    time_text(study.seconds[ranked[rank]]),
                    digits(study.gcups(ranked[rank])),
                    f"{study.seconds[ranked[rank]] / best:,.2f}",
                    *_resources(study, ranked[rank]),
                )
                for rank in ranks
            )
            columns = ("rank", "policy", "kernels", "GCUPS", "times the fastest", *_RESOURCES)
            caption = f"{FILTER_NAMES[kind]}: the fastest and the slowest policies. {study.title}."
            blocks.append(Table(caption, columns, rows))
    return Section("policies", "Best and worst policies", tuple(blocks))


_RESOURCES: Final = ("registers", "local memory", "shared memory")


def _resources(study: ProfileStudy, code: str) -> tuple[str, ...]:
    run = next(run for run in study.sweep.runs if run.policy == code)
    kernel = next((one for one in run.kernels.values() if one.registers is not None), None)
    if kernel is None:
        return (ABSENT,) * len(_RESOURCES)
    return (
        f"{kernel.registers}",
        bytes_text(kernel.local_bytes or 0),
        bytes_text(kernel.shared_bytes or 0),
    )


def _paper(studies: Sequence[ProfileStudy]) -> Section | None:
    """Return the paper's Tables III to V and ours, None if the basic accelerator did not run."""
    own = [study for study in studies if PAPER_ROWS[0].policy in study.seconds]
    if not own:
        return None
    blocks: list[Block] = [
        drawn(
            "paper-tables",
            "Speed-ups against the basic accelerator: the paper's (GeForce GTX 460) and ours.",
            "Bars: the speed-up of each accelerator of the paper's Table V, then and now",
            lambda: _paper_figure(own),
        )
    ]
    for study in own:
        base = study.seconds[PAPER_ROWS[0].policy]
        rows = []
        for row in PAPER_ROWS:
            if row.policy not in study.seconds:
                continue
            first = next(one.seconds for one in PAPER_ROWS if one.table == row.table)
            seconds = study.seconds[row.policy]
            rows.append(
                (
                    *(row.table, row.name, row.policy, f"{row.seconds:.2f} s"),
                    *(f"{first / row.seconds:.2f}", time_text(seconds), f"{base / seconds:.2f}"),
                )
            )
        columns = (
            *("table", "accelerator", "policy", "paper", "paper's speed-up", "here", "speed-up"),
        )
        caption = f"Tables III to V of S. Ferraz and N. Moreano (2013). {study.title}."
        blocks.append(Table(caption, columns, tuple(rows)))
    return Section("paper", "The tables of the paper", tuple(blocks))


def _paper_figure(studies: Sequence[ProfileStudy]) -> Figure:
    ladder = [row for row in PAPER_ROWS if row.table == "V"]
    figure = new_figure(0.4 + 2.6 * len(studies))
    for axes, study in zip(panels(figure, len(studies), 1), studies, strict=True):
        base = study.seconds[ladder[0].policy]
        known = [row for row in ladder if row.policy in study.seconds]
        places = range(len(known))
        axes.barh(
            [place - 0.2 for place in places],
            [ladder[0].seconds / row.seconds for row in known],
            height=0.36,
            color=ORANGE,
            label="paper",
        )
        axes.barh(
            [place + 0.2 for place in places],
            [base / study.seconds[row.policy] for row in known],
            height=0.36,
            color=BLUE,
            label="here",
        )
        axes.set_yticks(list(places), [row.name for row in known])
        axes.invert_yaxis()
        axes.set_title(study.title, fontsize=8)
        axes.set_xlabel("speed-up against the basic accelerator")
        axes.legend(loc="lower right")
    return figure


def _curves(studies: Sequence[ProfileStudy]) -> Section | None:
    """Return GCUPS against the length of the profile, None without rows of several lengths."""
    own = sorted(
        (one for one in studies if any(one.best_with("scores", "r", kind) for kind in "SMV")),
        key=lambda one: one.sweep.setup.input.nodes,
    )
    if len({one.sweep.setup.input.nodes for one in own}) < 2:
        return None
    figure = drawn(
        "lengths",
        "GCUPS against the nodes of the profile: the fastest policy with scores in registers, in "
        "shared and in local memory.",
        "Lines: GCUPS by the length of the profile for SSV, MSV and Viterbi",
        lambda: _curve_figure(own),
    )
    rows = []
    for kind, name in FILTER_NAMES.items():
        for study in own:
            cells = [_gcups_text(study, choice, kind) for choice in _CURVES]
            if any(cell != ABSENT for cell in cells):
                rows.append((name, f"{study.sweep.setup.input.nodes:,}", *cells))
    columns = ("filter", "nodes", *(label for _, _, label in _CURVES))
    best = ", ".join(f"{FILTER_NAMES[kind]} {most:g}" for kind, most in CUDAMPF_GCUPS.items())
    caption = f"GCUPS by the length of the profile. CUDAMPF's best on a K40: {best}."
    return Section(
        "lengths", "Long and short profiles", (figure, Table(caption, columns, tuple(rows)))
    )


_CURVES: Final = (
    ("scores", "r", "registers"),
    ("scores", "s", "shared memory"),
    ("scores", "l", "local memory"),
    ("rows", "t", "length at run time"),
    ("tables", "c", "read-only cache"),
)


def _gcups_text(study: ProfileStudy, choice: tuple[str, str, str], kind: str) -> str:
    code = study.best_with(choice[0], choice[1], kind)
    return ABSENT if code is None else digits(study.gcups(code))


def _curve_figure(studies: Sequence[ProfileStudy]) -> Figure:
    figure = new_figure(2.8)
    axes_of = panels(figure, len(FILTER_NAMES), len(FILTER_NAMES))
    for axes, (kind, name) in zip(axes_of, FILTER_NAMES.items(), strict=True):
        _draw_curves(axes, studies, kind)
        axes.set_title(name, fontsize=8)
        axes.set_xlabel("nodes")
    axes_of[0].set_ylabel("GCUPS")
    axes_of[0].legend(loc="upper left")
    return figure


def _draw_curves(axes: Axes, studies: Sequence[ProfileStudy], kind: str) -> None:
    for number, (choice, letter, label) in enumerate(_CURVES[:3]):
        points = [
            (study.sweep.setup.input.nodes, study.gcups(code))
            for study in studies
            if (code := study.best_with(choice, letter, kind))
        ]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                color=SERIES[number],
                marker=MARKERS[number],
                markersize=3.5,
                markeredgecolor=INK,
                markeredgewidth=0.4,
                label=label,
            )
    axes.set_ylim(bottom=0)
    axes.grid()


def _effects(studies: Sequence[ProfileStudy]) -> Section | None:
    blocks: list[Block] = []
    for study in studies:
        effects = choice_effects(study)
        if not effects:
            continue
        rows = tuple(
            (
                *(one.name, f"{one.before} → {one.after}", f"{one.pairs}", percent_text(one.mean)),
                *(range_text(one.low, one.high), percent_text(one.least)),
                percent_text(one.greatest),
            )
            for one in effects
        )
        columns = (
            *("choice", "letters", "pairs", "mean change", "95% interval", "least", "greatest"),
        )
        caption = (
            "What a choice does to the time of the kernels when all others stay as they are. "
            f"{study.title}."
        )
        blocks.append(Table(caption, columns, rows))
        strongest = sorted(choice_interactions(study), key=lambda one: -abs(one.percent))
        if strongest:
            pairs = tuple(
                (one.first, one.second, f"{one.squares}", percent_text(one.percent))
                for one in strongest[:_STRONGEST]
            )
            caption = (
                "The strongest interactions: what two choices do together beyond the product of "
                f"their effects (geometric mean). {study.title}."
            )
            blocks.append(
                Table(caption, ("one choice", "another", "squares", "interaction"), pairs)
            )
    return Section("effects", "What each choice does", tuple(blocks)) if blocks else None


def _input_facts(study: ProfileStudy) -> tuple[tuple[str, str], ...]:
    given = study.sweep.setup.input
    return (
        ("profile", f"{given.name}, {given.nodes:,} nodes"),
        ("proteins", f"{given.proteins:,} with {given.residues:,} residues"),
        ("their lengths", f"median {given.median_length:,}, longest {given.longest:,}"),
        ("digest", given.digest),
    )
