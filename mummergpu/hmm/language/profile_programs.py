"""HMMER's profiles as programs of the shape in section 3.2 of the paper, and back.

A path goes through the whole profile once, between residues of the background; HMMER's searches
also find parts of it, several times (`plan7`). Their weights are no probabilities.
"""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO
from typing import Any, Final

import numpy as np

from mummergpu.errors import ModelError
from mummergpu.hmm.language.plan7 import STEPS
from mummergpu.hmm.language.program import Model, State, Transition
from mummergpu.hmm.language.writer import program_text
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import SYMBOLS
from mummergpu.hmm.tables import BACKGROUND
from mummergpu.runtime.arrays import Float64Array
from mummergpu.runtime.pyhmmer_library import pyhmmer_module

_RESIDUES: Final = tuple(SYMBOLS[: BACKGROUND.size])
_LENGTH: Final = 350
"""The mean number of residues of a protein in the null model."""
_NULL: Final = "null"
_BEGIN, _END = "beginprofile", "endprofile"


def program_of_profiles(profiles: list[Profile]) -> str:
    """Return a program that prints the best score of each profile; its model `null` has none."""
    models = {_NULL: _null_model()}
    for profile in profiles:
        model = _profile_model(profile)
        while model.name in models:
            model = replace(model, name=f"{model.name}_")
        models[model.name] = model
    calls = [f"  print viterbi(new {name}()).score;" for name in list(models)[1:]]
    texts = [program_text(model) for model in models.values()]
    return "\n".join([*texts, "main() {", *calls, "}", ""])


def _null_model() -> Model:
    stays = _LENGTH / (_LENGTH + 1)
    steps = (("start", 1.0), ("any", stays))
    return Model(
        _NULL,
        _RESIDUES,
        (State("start"), State("any", "back"), State("end")),
        "start",
        "end",
        {"back": _shares(BACKGROUND)},
        (
            *(Transition(source, "any", chance) for source, chance in steps),
            Transition("any", "end", 1 - stays),
        ),
    )


def _shares(values: Any) -> tuple[float, ...]:
    """Return numbers that sum to 1: the file has five digits of their logarithms."""
    numbers = np.asarray(values, dtype=np.float64)
    return tuple((numbers / numbers.sum()).tolist())


def _profile_model(profile: Profile) -> Model:
    nodes, inserts = profile.nodes, np.array(profile.hmm.insert_emissions)
    emissions = {"back": _shares(BACKGROUND)}
    emissions.update((f"match[{k}]", _shares(profile.matches[k - 1])) for k in range(1, nodes + 1))
    emissions.update((f"insert[{k}]", _shares(inserts[k])) for k in range(nodes + 1))
    states = [State(name) for name in ("start", "before", _BEGIN)]
    states.append(State("I[0]", "insert[0]"))
    for k in range(1, nodes + 1):
        states += [State(f"M[{k}]", f"match[{k}]"), State(f"I[{k}]", f"insert[{k}]")]
        states.append(State(f"D[{k}]"))
    states += [State(name) for name in (_END, "after", "end")]
    stays = _LENGTH / (_LENGTH + 2)
    steps = [Transition("start", "before", 1.0), Transition(_END, "after", 1.0)]
    for name, to in (("before", _BEGIN), ("after", "end")):
        steps += [Transition(name, name, stays, "back"), Transition(name, to, 1 - stays)]
    for k, row in enumerate(profile.transitions):
        steps += _steps_of_node(k, nodes, row)
    used = tuple(step for step in steps if step.probability > 0)
    name = re.sub(r"[^A-Za-z0-9_]", "_", profile.name) or "profile"
    name = name if name[0].isalpha() else f"profile_{name}"
    return Model(name, _RESIDUES, tuple(states), "start", "end", emissions, used)


def _steps_of_node(node: int, nodes: int, row: Any) -> list[Transition]:
    """Return the transitions from the states of a node; those of node 0 are the begin."""
    found: list[Transition] = []
    for kind, columns in (("M", slice(0, 3)), ("I", slice(3, 5)), ("D", slice(5, 7))):
        if node == 0 and kind == "D":
            continue
        shares = _shares(row[columns])
        for step, chance in zip(STEPS[columns], shares, strict=True):
            source, target, further = step
            begin = _BEGIN if node == 0 and source == "M" else f"{source}[{node}]"
            is_last = node == nodes and further
            found.append(
                Transition(begin, _END if is_last else f"{target}[{node + further}]", chance)
            )
    return found


def profile_text(model: Model) -> bytes:
    """Return a model of the shape of `program_of_profiles` as a file of HMMER's, without STATS.

    `ModelError` is raised if the model has another shape; `LibraryError` without pyhmmer.
    """
    names = {state.name: state.emission for state in model.states}
    nodes = 0
    while f"M[{nodes + 1}]" in names:
        nodes += 1
    if nodes == 0 or model.alphabet != _RESIDUES:
        raise ModelError("no profile of proteins: it has no M[1], or other symbols", model.name)
    plan7, easel = pyhmmer_module("plan7"), pyhmmer_module("easel")
    found = plan7.HMM(easel.Alphabet.amino(), nodes, model.name)
    chances: dict[tuple[str, str], float] = {}
    for step in model.transitions:
        pair = step.source, step.target
        chances[pair] = chances.get(pair, 0.0) + step.probability
    for k in range(nodes + 1):
        for place, chance in enumerate(_node_chances(model.name, k, nodes, chances).tolist()):
            found.transition_probabilities[k, place] = chance
        for kind, rows in (("M", found.match_emissions), ("I", found.insert_emissions)):
            name = f"{kind}[{k}]"
            if k == 0 and kind == "M":
                continue
            emission = names.get(name)
            if emission is None:
                raise ModelError(f"no profile: it has no state '{name}' that emits", model.name)
            for code, chance in enumerate(model.emissions[emission]):
                rows[k, code] = chance
    found.set_consensus()
    found.set_composition()
    file = BytesIO()
    found.write(file)
    return file.getvalue()


def _node_chances(
    name: str, node: int, nodes: int, chances: dict[tuple[str, str], float]
) -> Float64Array:
    row = np.zeros(len(STEPS))
    for place, (source, target, further) in enumerate(STEPS):
        begin = _BEGIN if node == 0 and source == "M" else f"{source}[{node}]"
        to = _END if node == nodes and further else f"{target}[{node + further}]"
        if source == "D" and node == 0:
            # There is no such state; HMMER writes 1 for its step.
            row[place] = float(target == "M")
        elif target != "D" or node < nodes:
            row[place] = chances.get((begin, to), 0.0)
    for first, last in ((0, 3), (3, 5), (5, 7)):
        if not row[first:last].sum() > 0:
            raise ModelError(f"no profile: node {node} has no way on", name)
    return row
