"""The policies of a study of profile filters, and those that a sweep measures."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.hmm.filter_variants import (
    BASIC,
    BEST,
    CHOICES,
    PAPERS_BEST,
    RowPolicy,
    ThreadPolicy,
    every_row_policy,
    every_thread_policy,
)
from mummergpu.runtime.frozen import frozen


@frozen
class ProcessorPolicy:
    """A policy of a filter on the processor."""

    filter: str  # ``S`` for SSV, ``M`` for MSV, ``V`` for Viterbi
    # The most registers of a part of SSV's row, for which the loop is compiled; 0: known at run
    # time, as for the other filters.
    registers: int

    @property
    def code(self) -> str:
        """The filter's letter, and the registers."""
        return f"{self.filter}{self.registers:02d}"


DevicePolicy = ThreadPolicy | RowPolicy
FilterPolicy = DevicePolicy | ProcessorPolicy

PROCESSOR_POLICIES: Final = (
    *(ProcessorPolicy("S", registers) for registers in (16, 8, 4, 2, 1)),
    ProcessorPolicy("M", 0),
    ProcessorPolicy("V", 0),
)

FILTER_NAMES: Final = {"S": "SSV", "M": "MSV", "V": "Viterbi"}

LADDER: Final = (
    ("basic", BASIC),
    ("1", ThreadPolicy(scores="l")),
    ("1 + 2", ThreadPolicy(scores="l", unroll="8")),
    ("1 + 2 + 3", ThreadPolicy(scores="l", unroll="8", schedule="h")),
    ("1 + 3", ThreadPolicy(scores="l", schedule="h")),
    ("1 + 2 + 3 + 4", ThreadPolicy("l", "8", "h", "s")),
    ("1 + 2 + 3 + 4 + 5", ThreadPolicy("l", "8", "h", "s", special="s")),
    ("1 + 2 + 3 + 4 + 5 + 6", PAPERS_BEST),
)
"""The accelerators of the paper's Table V, by the numbers of its optimisations."""


def policy_of(code: str) -> FilterPolicy:
    """Return the policy of a code; raise `OptionError` if it is none."""
    for one in PROCESSOR_POLICIES:
        if one.code == code:
            return one
    return (
        RowPolicy.from_code(code)
        if code.startswith(tuple(FILTER_NAMES))
        else ThreadPolicy.from_code(code)
    )


def device_policy_of(code: str) -> DevicePolicy:
    """Return the device policy of a code; raise `OptionError` if it is none."""
    policy = policy_of(code)
    if isinstance(policy, ProcessorPolicy):
        raise OptionError("policy", f"'{code}' is a policy of the processor")
    return policy


def filter_of(policy: FilterPolicy) -> str:
    """Return which filter a policy is of: a letter of `FILTER_NAMES`."""
    return "V" if isinstance(policy, ThreadPolicy) else policy.filter


def every_policy() -> list[str]:
    """Return the codes of all policies of all backends, the controls first."""
    threads = [one.code for one in every_thread_policy()]
    rows = [one.code for one in every_row_policy()]
    return [*threads, *rows, *(one.code for one in PROCESSOR_POLICIES)]


def differing_policies(backend: str) -> list[str]:
    """Return the codes of the policies that a backend has, its control first."""
    if backend == "cpu":
        return [one.code for one in PROCESSOR_POLICIES]
    return every_policy()[: -len(PROCESSOR_POLICIES)]


def measured_policies(backend: str) -> list[str]:
    """Return the most informative policies, which a sweep of all measures.

    On a GPU these are: each choice by itself, as a change of the basic accelerator, of the paper's
    final one and of tiles; all combinations of two letters of six choices; and all policies of
    rows.
    """
    if backend == "cpu":
        return differing_policies(backend)
    chosen = {one.code for _, one in LADDER}
    chosen |= {one.code for base in (BASIC, PAPERS_BEST, BEST) for one in neighbours(base)}
    chosen |= {one.code for one in factorial()}
    chosen |= {one.code for one in every_row_policy()}
    return [code for code in differing_policies(backend) if code in chosen]


def factorial() -> list[ThreadPolicy]:
    """Return all combinations of two letters of each choice, but for the special transitions.

    Scores are never as in the basic accelerator, which takes several times as long as all others.
    """
    return [
        ThreadPolicy(scores, unroll, schedule, sequences, steps, "g", emissions)
        for scores, unroll, schedule, sequences, steps, emissions in product(
            "cl", "18", "ch", "rs", "gc", "gs"
        )
    ]


def neighbours(base: ThreadPolicy) -> list[ThreadPolicy]:
    """Return a policy and those that differ from it in one choice."""
    found = [base]
    for name, letters in CHOICES.items():
        for letter in letters:
            one = with_choice(base, name, letter)
            if one is not None and one != base:
                found.append(one)
    return found


def with_choice(policy: ThreadPolicy, name: str, letter: str) -> ThreadPolicy | None:
    """Return a policy with another choice, or None if there is none."""
    place = list(CHOICES).index(name)
    code = policy.code[:place] + letter + policy.code[place + 1 :]
    try:
        return ThreadPolicy.from_code(code)
    except OptionError:
        return None


def choose_policies(text: str, backend: str) -> list[str]:
    """Return the policies that the user requests: ``all``, or codes and patterns with commas.

    Each code comes once, in the order of `every_policy`; the control is always among them.
    """
    if text == "all":
        return measured_policies(backend)
    differing = differing_policies(backend)
    chosen = {differing[0]}
    for word in text.split(","):
        matching = [code for code in differing if fnmatchcase(code, word)]
        if not matching:
            raise OptionError(
                "policies", f"no policy of profiles on the {backend} matches '{word}'"
            )
        chosen.update(matching)
    return [code for code in differing if code in chosen]
