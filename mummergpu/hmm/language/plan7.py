"""HMMER's profiles as hidden Markov models: Plan 7, as its searches configure it.

Emissions are odds against HMMER's null model, so that scores are log-odds: that of Forward is what
HMMER reports before it corrects for composition, and that of Viterbi is of the best alignment.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.hmm.language.program import Model, State, Transition
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import MARKS, SYMBOLS
from mummergpu.hmm.tables import entry_probabilities, match_scores

LETTERS: Final = tuple(letter for code, letter in enumerate(SYMBOLS) if code not in MARKS)
"""Amino acids, and the letters for several of them."""

STEPS: Final[tuple[tuple[str, str, int], ...]] = (
    *(("M", "M", 1), ("M", "I", 0), ("M", "D", 1), ("I", "M", 1), ("I", "I", 0)),
    *(("D", "M", 1), ("D", "D", 1)),
)
"""The columns of `Profile.transitions`: from a node's state to one of that or of the next node."""


def plan7_model(profile: Profile, length: int) -> Model:
    """Return the model that HMMER compares sequences of a length with.

    States are named as in HMMER: ``N``, ``J`` and ``C`` are before, between and after alignments,
    ``M[k]``, ``I[k]`` and ``D[k]`` are those of node k. There may be several alignments, and each
    may begin and end at any node.
    """
    # The null model continues with the chance `stays`; the model stays outside the nodes longer.
    stays, loop = length / (length + 1), length / (length + 3)
    codes = [SYMBOLS.index(letter) for letter in LETTERS]
    odds = np.exp(match_scores(profile)[codes].T.astype(np.float64)) / stays
    emissions = {"any": (1 / stays,) * len(codes)}
    states = [State("S"), *(State(name) for name in ("N", "B"))]
    steps = [Transition("S", "N", 1.0)]
    steps += [Transition(name, name, loop, "any") for name in ("N", "J", "C")]
    steps += [Transition(name, "B", 1 - loop) for name in ("N", "J")]
    steps += [Transition("E", name, 0.5) for name in ("J", "C")]
    # The null model ends with 1 - stays.
    steps.append(Transition("C", "T", (1 - loop) * (length + 1)))
    entries = entry_probabilities(profile).tolist()
    for node, row in enumerate(odds.tolist(), 1):
        emissions[f"match[{node}]"] = tuple(row)
        states += [State(f"M[{node}]", f"match[{node}]"), State(f"D[{node}]")]
        steps.append(Transition("B", f"M[{node}]", entries[node - 1]))
        steps += [Transition(f"{kind}[{node}]", "E", 1.0) for kind in "MD"]
    for node in range(1, profile.nodes):
        states.append(State(f"I[{node}]", "any"))
        chances = profile.transitions[node].tolist()
        steps += [
            Transition(f"{source}[{node}]", f"{target}[{node + further}]", chance)
            for (source, target, further), chance in zip(STEPS, chances, strict=True)
        ]
    states += [State(name) for name in ("E", "J", "C", "T")]
    used = [step for step in steps if step.probability > 0]
    return Model(profile.name, LETTERS, tuple(states), "S", "T", emissions, tuple(used))
