"""What `viterbi.extension` must find: the whole matrix in plain Python, from the same model."""

from mummergpu.sequence.codes import BREAK
from mummergpu.viterbi.recurrence.model import PAIRWISE

NEVER = -(10**9)


def emission(base, other, costs):
    if base == BREAK:
        return -costs.unknown
    return costs.match if base == other else -costs.mismatch


def cost_of(step, costs):
    return sum(getattr(costs, name) for name in step.costs)


class FullMatrix:
    """All cells between the outermost diagonals; sequences are written from the corner."""

    def __init__(self, read, reference, costs):
        self.read, self.reference, self.costs = read, reference, costs
        first = PAIRWISE.states[0]
        self.scores = {(state.name, (0, 0)): NEVER for state in PAIRWISE.states}
        self.scores[first.name, (0, 0)] = 0
        self.sources = {}
        self._steps = [
            (state, [(step.source.name, cost_of(step, costs)) for step in PAIRWISE.into(state)])
            for state in PAIRWISE.states
        ]
        for i in range(len(read) + 1):
            for j in range(len(reference) + 1):
                if (i or j) and abs(j - i) <= costs.max_gap:
                    self._fill(i, j)

    def _fill(self, i, j):
        for state, steps in self._steps:
            before = i - state.read_bases, j - state.reference_bases
            best, source = NEVER, ""
            for name, cost in steps:
                score = self.scores.get((name, before), NEVER) - cost
                if score > best:
                    best, source = score, name
            if state.emits and best > NEVER // 2:
                best += emission(self.read[i - 1], self.reference[j - 1], self.costs)
            self.scores[state.name, (i, j)] = best
            self.sources[state.name, (i, j)] = source

    def best(self):
        """The score and the end, by the rules of the module's docstring."""
        found = []
        for (state, (i, j)), score in self.scores.items():
            if state == PAIRWISE.states[0].name and score > NEVER // 2:
                at_end = i == len(self.read)
                score += self.costs.end_bonus * at_end
                found.append((score, at_end, -abs(j - i), j > i, -i, i, j))
        score, *_, i, j = max(found)
        return score, i, j

    def operations(self, i, j):
        """The operations of the path to a cell, with their lengths."""
        state = PAIRWISE.states[0]
        found = []
        while (i, j) != (0, 0):
            length = found.pop()[0] if found and found[-1][1] == state.operation else 0
            found.append((length + 1, state.operation))
            source = self.sources[state.name, (i, j)]
            i, j = i - state.read_bases, j - state.reference_bases
            state = next(other for other in PAIRWISE.states if other.name == source)
        return found[::-1]


def score_of(operations, read, reference, costs):
    """The score of an alignment, added up along its operations."""
    score = i = j = 0
    for length, operation in operations:
        if operation == 0:
            pairs = zip(read[i : i + length], reference[j : j + length], strict=True)
            score += sum(emission(base, other, costs) for base, other in pairs)
            i, j = i + length, j + length
        elif operation == 1:
            score -= costs.insertion_open + length * costs.insertion_extend
            i += length
        else:
            score -= costs.deletion_open + length * costs.deletion_extend
            j += length
    return score + costs.end_bonus * (i == len(read))
