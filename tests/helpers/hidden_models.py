"""Random hidden Markov models, and slow answers about them: every path, one after the other."""

import math
import random

import numpy as np

from mummergpu.hmm.language.lanes import SymbolBlock, offsets_of_counts
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import Model, State, Transition


def random_model(seed, loops=False, symbols=3, with_end=True):
    """A model of few states: silent ones, transitions that emit, zeros; silent loops if asked."""
    choice = random.Random(seed)
    names = ["s", "a", "b", "c", "d", "x", "y", "z", "e"][: 9 if with_end else 8]
    emits = {name: f"E{choice.randrange(3)}" for name in "abc"}
    emits["d"] = f"E{choice.randrange(3)}"
    states = [State(name, emits.get(name)) for name in names]
    choice.shuffle(states)
    emissions = {f"E{number}": _some(choice, symbols) for number in range(3)}
    steps = []
    for source in names:
        for target in names:
            if source == "e" or target == "s" or choice.random() < 0.45:
                continue
            silent = target not in emits
            if silent and not loops and source in "xyz" and source >= target:
                continue
            weight = choice.choice((0.0, 0.1, 0.25, 0.25, choice.random() / 2))
            emission = f"E{choice.randrange(3)}" if silent and choice.random() < 0.2 else None
            if loops and silent and source in "xyz":
                weight /= 4
            steps.append(Transition(source, target, weight, emission))
    steps += [Transition("s", "a", 0.5), Transition("a", "b", 0.3), Transition("b", "a", 0.2)]
    if with_end:
        steps.append(Transition("a", "e", 0.1))
    alphabet, ends = tuple("ABCDEFGH"[:symbols]), ("s", "e" if with_end else None)
    return Model(f"m{seed}", alphabet, tuple(states), *ends, emissions, tuple(steps))


def _some(choice, count):
    return tuple(choice.choice((0.0, 0.2, 0.5, choice.random())) for _ in range(count))


def every_path(model, codes, silent=7):
    """Yield the probability and the visits of each path, with so many silent steps in a row."""
    emission_of = {state.name: state.emission for state in model.states}

    def walk(state, at, weight, path, quiet):
        if model.end is not None and state == model.end:
            if at == len(codes):
                yield weight, path
            return
        if model.end is None and at == len(codes) and (not path or path[-1][1]):
            yield weight, path
        for step in model.transitions:
            if step.source != state or step.probability == 0:
                continue
            emission = step.emission or emission_of[step.target]
            if emission is None:
                if quiet < silent:
                    more = [*path, (step.target, False)]
                    yield from walk(step.target, at, weight * step.probability, more, quiet + 1)
            elif at < len(codes):
                emitted = model.emissions[emission][codes[at]]
                if emitted > 0:
                    more = [*path, (step.target, True)]
                    both = weight * step.probability * emitted
                    yield from walk(step.target, at + 1, both, more, 0)

    yield from walk(model.start, 0, 1.0, [], 0)


def log(value):
    return math.log(value) if value > 0 else -math.inf


def best_score_of(model, codes, visits):
    """The logarithm of the best path with these visits; the end is not among them."""
    emission_of = {state.name: state.emission for state in model.states}
    values = {model.start: 1.0}
    at = 0
    for name, emits in visits:
        weights = []
        for step in model.transitions:
            emission = step.emission or emission_of[step.target]
            if step.source in values and step.target == name and (emission is not None) == emits:
                emitted = model.emissions[emission][codes[at]] if emission is not None else 1.0
                weights.append(values[step.source] * step.probability * emitted)
        at += emits
        values = {name: max(weights, default=0.0)}
    ((name, value),) = values.items()
    if model.end is None or name == model.end:
        return log(value)
    ends = [
        step.probability
        for step in model.transitions
        if step.source == name and step.target == model.end and step.emission is None
    ]
    return log(value * max(ends, default=0.0))


def whole_matrix_scores(model, codes):
    """The logarithms of the sum over all paths and of the best one, from matrices of all states.

    Silent states may have loops: sums solve equations, and best paths are relaxed until they rest.
    """
    names = [state.name for state in model.states]
    emission_of = {state.name: state.emission for state in model.states}
    count = len(names)
    silent, emitting = np.zeros((count, count)), np.zeros((len(model.alphabet), count, count))
    best_silent, best_emitting = silent.copy(), emitting.copy()
    for step in model.transitions:
        at = names.index(step.source), names.index(step.target)
        emission = step.emission or emission_of[step.target]
        if emission is None:
            silent[at] += step.probability
            best_silent[at] = max(best_silent[at], step.probability)
        else:
            for symbol, chance in enumerate(model.emissions[emission]):
                weight = step.probability * chance
                emitting[(symbol, *at)] += weight
                best_emitting[(symbol, *at)] = max(best_emitting[(symbol, *at)], weight)
    closure = np.linalg.inv(np.eye(count) - silent)
    sums = np.zeros(count)
    sums[names.index(model.start)] = 1
    best = sums.copy()

    def relaxed(values):
        for _ in range(count):
            values = np.maximum(values, (values[:, None] * best_silent).max(axis=0))
        return values

    sums, best = sums @ closure, relaxed(best)
    for code in codes:
        arrived, best_arrived = sums @ emitting[code], (best[:, None] * best_emitting[code]).max(0)
        sums, best = arrived @ closure, relaxed(best_arrived)
    if model.end is not None:
        end = names.index(model.end)
        return log(float(sums[end])), log(float(best[end]))
    if not codes:
        return 0.0, 0.0
    return log(float(arrived.sum())), log(float(best_arrived.max()))


def symbol_block(sequences):
    sizes = np.array([len(one) for one in sequences], dtype=np.int64)
    codes = np.array([code for one in sequences for code in one], dtype=np.uint8)
    return SymbolBlock(codes, offsets_of_counts(sizes))


def some_sequences(seed, symbols, longest=5, count=13):
    choice = random.Random(seed)
    lengths = [0, 1, 1, 2, *(choice.randint(1, longest) for _ in range(count - 4))]
    return [[choice.randrange(symbols) for _ in range(length)] for length in lengths]


PROFILE = """
hmm profile {
  alphabet [A, C, G];
  startstate begin; endstate end;
  emission e[1] = [0.8, 0.1, 0.1]; emission e[2] = [0.1, 0.8, 0.1];
  emission e[3] = [0.2, 0.1, 0.7]; emission any = [0.3, 0.3, 0.4];
  for k in 1..LENGTH {
    state M[k] emits e[FIRST]; state I[k] emits any; state D[k];
    I[k] -> I[k] 0.4; M[k] -> I[k] 0.1;
  }
  for k in 1..BEFORE {
    M[k] -> M[k+1] 0.8; M[k] -> D[k+1] 0.1; I[k] -> M[k+1] 0.6;
    D[k] -> M[k+1] 0.7; D[k] -> D[k+1] 0.3;
  }
  begin -> M[1] 0.6; begin -> D[1] 0.4;
  M[LENGTH] -> end 0.9; I[LENGTH] -> end 0.6; D[LENGTH] -> end 1;
}
"""


def profile(length):
    """A profile whose deletions are worth keeping as silent states."""
    text = PROFILE.replace("LENGTH", str(length)).replace("BEFORE", str(length - 1))
    return parse_program(text.replace("FIRST", "2")).models["profile"]


LOCAL = """
hmm profile {
  alphabet [A, C, G, T];
  startstate s; endstate t;
  emission any = [0.25, 0.25, 0.25, 0.25];
  state N; state B; state E; state J; state C;
  s -> N 1; N -> N 0.9 emits any; N -> B 0.1; J -> J 0.9 emits any; J -> B 0.1;
  for k in 1..LENGTH {
    emission m[k] = [EMISSION]; state M[k] emits m[k]; state I[k] emits any; state D[k];
    B -> M[k] 0.01; M[k] -> E 0.02; D[k] -> E 0.03; I[k] -> I[k] 0.4; M[k] -> I[k] 0.03;
  }
  for k in 1..BEFORE {
    M[k] -> M[k+1] 0.9; M[k] -> D[k+1] 0.05; I[k] -> M[k+1] 0.6; D[k] -> M[k+1] 0.4;
    D[k] -> D[k+1] 0.57;
  }
  E -> J 0.5; E -> C 0.5; C -> C 0.9 emits any; C -> t 0.1;
}
"""


def local_profile(length):
    """A profile of any parts, several times, as HMMER searches: with deletions in a line."""
    text = LOCAL.replace("LENGTH", str(length)).replace("BEFORE", str(length - 1))
    head, _, rest = text.partition("emission m[k] = [EMISSION];")
    choice = random.Random(length)
    rows = ""
    for node in range(1, length + 1):
        chances = [0.7, 0.1, 0.1, 0.1]
        choice.shuffle(chances)
        rows += f"emission m[{node}] = [{', '.join(map(str, chances))}];\n"
    head = head.replace("  state N;", rows + "  state N;")
    return parse_program(head + rest).models["profile"]


# What is likely behind a piece is often not what the path goes through.
STICKY = """hmm m { alphabet [a, b, c]; startstate s; state x emits e; state y emits f;
emission e = [0.5, 0.3, 0.2]; emission f = [0.2, 0.3, 0.5]; s -> x 0.5; s -> y 0.5;
x -> x 0.95; x -> y 0.05; y -> y 0.95; y -> x 0.05; }"""

ISLANDS = """hmm m { alphabet [A, C, G]; startstate s;
  emission e[1] = [1, 0, 0]; emission e[2] = [0, 1, 0]; emission e[3] = [0, 0, 0.5];
  for k in 1..3 { state a[k] emits e[k]; state b[k] emits e[k]; s -> a[k] 0.2; s -> b[k] 0.1; }
  for k in 1..3 { for j in 1..3 { a[j] -> a[k] 0.25; b[j] -> b[k] 0.5 * 0.5; } a[k] -> b[1] 0.1; }
  b[2] -> a[3] 0.2; b[3] -> a[1] 0.15; a[3] -> b[2] 0.1; }"""


def long_models():
    """Models whose long sequences are computed in all the ways that there are."""
    return {
        "random": random_model(2),
        "loops": random_model(101, loops=True),
        "profile": profile(5),
        "large": profile(60),
        "islands": parse_program(ISLANDS).models["m"],
        "sticky": parse_program(STICKY).models["m"],
    }


APART = """hmm m { alphabet [A, B]; startstate s; state a emits x; state b emits y;
    emission x = [0.9, 0.1]; emission y = [0.1, 0.9];
    s -> a 0.5; s -> b 0.5; a -> a 1; b -> b 1; }"""
"""Two states that never meet."""

DEAD_ENDS = """hmm m { alphabet [A, B]; startstate s; endstate e;
    emission i = [0.99, 0.01]; emission j = [0.01, 0.99]; emission k = [0.2, 0.2];
    state dead emits i; state one emits k; state two emits k; state unborn emits j;
    s -> dead 0.5; s -> one 0.2; s -> two 0.3; dead -> dead 1; one -> one 0.5; two -> two 0.5;
    unborn -> unborn 0.99; one -> e 0.5; two -> e 0.5; unborn -> e 0.01; }"""
"""Two states of paths, beside one where none ends and one where none begins."""


def cliques(count):
    """Two groups of states that all follow each other, and never those of the other group."""
    steps, states, emissions = [], [State("s")], {}
    for group, chance in (("a", 0.9), ("b", 0.1)):
        names = [f"{group}{number}" for number in range(count)]
        states += [State(name, group) for name in names]
        emissions[group] = (chance, 1 - chance)
        steps += [Transition("s", name, 0.5 / count) for name in names]
        steps += [Transition(one, two, 1 / count) for one in names for two in names]
    return Model("m", ("A", "B"), tuple(states), "s", None, emissions, tuple(steps))


def runs_of(*parts):
    return [code for code, count in parts for _ in range(count)]


FAR_APART = APART.replace("0.1]", "1e-300]").replace("[0.1", "[1e-300")
FAR_APART_CODES = runs_of((0, 50_000), (1, 50_001))
"""Behind the first part the path of one state is 34 million nats behind that of the other."""


TWO_WAYS = """hmm m { alphabet [B, C, D]; startstate s;
    state a emits x; state b emits y; state c emits z;
    emission x = [1e-300, 0.5, 0.5]; emission y = [0.9, 1e-290, 1e-300];
    emission z = [0.9, 1e-300, 1e-290];
    s -> a 0.5; s -> b 0.25; s -> c 0.25; a -> a 1;
    b -> b 0.5; b -> c 0.5; c -> b 0.5; c -> c 0.5; }"""
"""A path through the last two states is told by the symbols for which the first one is likelier."""


def far_within_a_piece():
    """Symbols of which pieces of 10,000 hold a path that falls too far behind, and comes back."""
    choice = random.Random(2)
    return [*(choice.choice((1, 2)) for _ in range(51_000)), *[0] * 53_000]
