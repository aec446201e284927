"""The combinations of policies that a study measures, and the order of its runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import product
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import LETTERS, NO_POLICY, Policy
from mummergpu.runtime.frozen import frozen

CONTROL: Final = NO_POLICY
"""The combination that all others are compared with, as in the paper: every policy is off."""

ALL: Final = "all"

TEXTURE_FLAGS: Final = ("query_texture", "reference_texture", "tree_texture")


@frozen
class PlannedRun:
    """A run that a sweep will make."""

    policy: str
    kind: str  # ``run``, ``control`` or ``profile`` (`records.SweepRun`)
    repeat: int  # The number of the run among those of the same policy and kind


def every_policy() -> list[str]:
    """Return the codes of all 128 combinations; the control is the first."""
    return [
        Policy(**dict(zip(LETTERS, flags, strict=True))).code
        for flags in product((False, True), repeat=len(LETTERS))
    ]


def checked_code(code: str) -> str:
    """Return the code of a policy with its letters in order; raise `OptionError` if it is none."""
    return Policy.from_code(code).code


def differing_policies(backend: str) -> list[str]:
    """Return the codes of the combinations that differ on a backend.

    These are all 128 on a GPU, and the 16 without textures on the processor, which has none.
    """
    codes = every_policy()
    if backend != "cpu":
        return codes
    return [
        code
        for code in codes
        if not any(getattr(Policy.from_code(code), flag) for flag in TEXTURE_FLAGS)
    ]


def choose_policies(text: str, backend: str) -> list[str]:
    """Return the combinations that the user requests: ``all``, or codes separated by commas.

    A code may be a pattern, such as ``T*`` or ``*n``, which stands for all combinations that differ
    on the backend and match it. Each code comes once, in the order of `every_policy`; the control
    is always among them.
    """
    differing = differing_policies(backend)
    if text == ALL:
        return differing
    chosen = {CONTROL}
    for word in text.split(","):
        if any(sign in word for sign in "*?["):
            matching = [code for code in differing if fnmatchcase(code, word)]
            if not matching:
                raise OptionError("policies", f"no policy on the {backend} matches '{word}'")
            chosen.update(matching)
        else:
            try:
                chosen.add(Policy.from_code(word).code)
            except OptionError as error:
                raise OptionError("policies", error.message) from error
    return [code for code in every_policy() if code in chosen]


def by_layout(codes: Sequence[str], wide: bool) -> dict[Layout, list[str]]:
    """Group codes by the layout of their trees: only textures differ within a group."""
    groups: dict[Layout, list[str]] = {}
    for code in codes:
        groups.setdefault(Layout.of(Policy.from_code(code), wide), []).append(code)
    return groups


def order_of_visits(
    codes: Sequence[str],
    runs: int,
    rounds: int,
    control_runs: int,
    seed: int,
    profile: bool,
    control: str = CONTROL,
) -> list[list[PlannedRun]]:
    """Return the runs of some combinations in a random order, visit by visit.

    In each round, every combination is visited once, in a new order. In a visit, its trees are
    loaded once and searched several times. Runs of the control are spread evenly between the
    visits, to show how the machine's speed changes with time. A last run of each combination counts
    the visited nodes if `profile` is set. The same arguments give the same order.
    """
    some = random.Random(seed)
    visits: list[list[PlannedRun]] = []
    for number in range(rounds):
        first, end = number * runs // rounds, (number + 1) * runs // rounds
        order = list(codes)
        some.shuffle(order)
        for code in order:
            visit = [PlannedRun(code, "run", repeat) for repeat in range(first, end)]
            if profile and number == rounds - 1:
                visit.append(PlannedRun(code, "profile", 0))
            visits.append(visit)
    spread = len(visits)
    for repeat in reversed(range(control_runs)):
        place = (2 * repeat + 1) * spread // (2 * control_runs)
        visits.insert(place, [PlannedRun(control, "control", repeat)])
    return visits
