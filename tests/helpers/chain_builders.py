"""Models of other programs as hidden Markov models, whose best paths are slow answers for those.

Integer scores become probabilities: a unit is `UNIT` nats, so that a logarithm tells the integer.
"""

import itertools
import math
import random

from helpers.full_matrix import cost_of, emission
from mummergpu.hmm.language.program import Model, State, Transition
from mummergpu.hmm.tables import WORD_LEAVE, WORD_NEVER, word_moves
from mummergpu.viterbi.recurrence.model import PAIRWISE

UNIT = math.log(2) / 64


def chance(score):
    return math.exp(score * UNIT)


def plan7(tables, length):
    """HMMER's model of a profile for sequences of a length, as its Viterbi filter adds words."""
    move = int(word_moves(length)[length])
    codes, nodes = tables.emissions.shape
    emissions = {"any": (1.0,) * codes}
    states = [State("S"), *(State(name) for name in ("N", "B", "E", "J", "C", "T"))]
    steps = [
        Transition("S", "N", 1.0),
        *(Transition(name, name, 1.0, "any") for name in ("N", "J", "C")),
        *(Transition(name, "B", chance(move)) for name in ("N", "J")),
        *(Transition("E", name, chance(-WORD_LEAVE)) for name in ("J", "C")),
        Transition("C", "T", 1.0),
    ]

    def add(source, target, word):
        if word != WORD_NEVER:
            steps.append(Transition(source, target, chance(int(word))))

    for node in range(nodes):
        row = [int(word) for word in tables.emissions[:, node]]
        emissions[f"m{node}"] = tuple(0.0 if word == WORD_NEVER else chance(word) for word in row)
        states += [State(f"M{node}", f"m{node}"), State(f"I{node}", "any"), State(f"D{node}")]
        add("B", f"M{node}", tables.transitions[0, node])
        add(f"M{node}", "E", 0)
        add(f"M{node}", f"I{node}", tables.transitions[5, node])
        add(f"I{node}", f"I{node}", tables.transitions[6, node])
        if node:
            for kind, state in enumerate("MID", 1):
                add(f"{state}{node - 1}", f"M{node}", tables.transitions[kind, node])
            add(f"M{node - 1}", f"D{node}", tables.transitions[4, node - 1])
            add(f"D{node - 1}", f"D{node}", tables.transitions[7, node - 1])
    symbols = tuple(chr(code + 32) for code in range(codes))
    return Model("plan7", symbols, tuple(states), "S", "T", emissions, tuple(steps))


def pairwise(reference, costs):
    """The alignments of whole reads to a beginning of a reference, by `viterbi`'s own model."""
    codes = range(5)
    states = [State("start"), State("match0")]
    emissions = {"free": (1.0,) * len(codes)}
    steps = [Transition("start", "match0", 1.0)]
    for at in range(len(reference) + 1):
        for state in PAIRWISE.states:
            if state.emits and at == 0:
                continue
            name = f"{state.name}{at}"
            emits = f"e{at}" if state.emits else "free"
            if state.emits:
                row = tuple(chance(emission(code, reference[at - 1], costs)) for code in codes)
                emissions[emits] = row
            if state.read_bases or at:
                states.append(State(name, emits if state.read_bases else None))
        for step in PAIRWISE.transitions:
            source, target = at - step.target.reference_bases, f"{step.target.name}{at}"
            if source >= 0 and (source or step.source.name != "deletion"):
                weight = chance(-cost_of(step, costs))
                steps.append(Transition(f"{step.source.name}{source}", target, weight))
        steps.append(Transition(f"match{at}", "end", 1.0))
    states.append(State("end"))
    symbols = tuple("ACGTN")
    return Model("pairwise", symbols, tuple(states), "start", "end", emissions, tuple(steps))


def dense(count, seed=3):
    """States that all follow each other, rows of others and of silent ones, and hubs."""
    choice = random.Random(seed)
    names = [f"s{number}" for number in range(count)]
    row = [f"r{number}" for number in range(3 * count)]
    emits = {name: f"E{choice.randrange(4)}" for name in (*names, *row)}
    emissions = {f"E{number}": tuple(choice.random() for _ in range(4)) for number in range(4)}
    steps = [Transition("start", name, choice.random() / count) for name in names]
    steps += [Transition(one, two, choice.random() / count) for one in names for two in names]
    steps += [Transition(one, two, 0.5) for one, two in itertools.pairwise(row)]
    steps += [Transition(name, "hub", choice.random() / count) for name in (*names, *row)]
    steps += [Transition("hub", "other", 0.5), Transition("other", names[1], 0.25)]
    steps += [Transition("hub", name, choice.random() / count) for name in row]
    steps += [Transition(name, "sink", choice.random() / count) for name in (*names, *row)]
    steps += [Transition(name, "end", 0.01) for name in ("other", row[-1], names[0], "sink")]
    # Silent states in a line, with ways from a hub, too; some of their ways are equally good.
    line = [f"q{number}" for number in range(20)]
    steps += [Transition("hub", name, 0.25) for name in line]
    steps += [
        Transition(one, two, choice.choice((0.5, 1.0))) for one, two in itertools.pairwise(line)
    ]
    for one, two in zip(line, row, strict=False):
        steps += [Transition(two, one, 0.25), Transition(one, two, 0.25)]
    states = [State("start"), *(State(name, emits[name]) for name in names), State("hub")]
    states += [
        State("other"),
        *(State(name) for name in line),
        *(State(name, emits[name]) for name in row),
    ]
    states += [State("sink", "E0"), State("end")]
    return Model("dense", tuple("ABCD"), tuple(states), "start", "end", emissions, tuple(steps))
