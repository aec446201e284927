"""What is known about the sequences of a task and their domains, as arrays.

Compiled functions write it for all sequences of a group at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mummergpu.hmm.domains import fields
from mummergpu.hmm.domains import forward as rows_of
from mummergpu.hmm.domains.accuracy import Alignment, trace_alignment
from mummergpu.hmm.domains.clustering import Clusters, find_domains
from mummergpu.hmm.domains.forward import END, SCALE, Cells, Group
from mummergpu.hmm.domains.null2 import expected_odds
from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.regions import Occupancy, fill_occupancy, find_regions
from mummergpu.hmm.domains.sampling import SAMPLES, Samples, sample_paths
from mummergpu.hmm.logarithms import Logarithms, log32, log64
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array
from mummergpu.runtime.jit import inline, jit


class Parses(NamedTuple):
    """Sequences."""

    codes: ByteArray  # Of all sequences of the block
    sequences: Int64Array  # (n, 10), as `fields` tells
    scores: Float32Array  # (n, 7)
    # For each sequence: nothing, and of each residue the logarithm of its odds in its domain.
    corrections: Float32Array

    @classmethod
    def of(cls, block: ProteinBlock, numbers: Int64Array) -> Parses:
        """Return some sequences of a block, of which nothing is known."""
        sequences = np.zeros((numbers.size, fields.BEST + 1), dtype=np.int64)
        sequences[:, fields.BEGIN] = block.offsets[numbers]
        sequences[:, fields.RESIDUES] = block.offsets[numbers + 1] - block.offsets[numbers]
        ends = np.cumsum(sequences[:, fields.RESIDUES] + 1)
        sequences[1:, fields.CORRECTIONS] = ends[:-1]
        return cls(
            block.codes,
            sequences,
            np.zeros((numbers.size, fields.SUM + 1), dtype=np.float32),
            np.zeros(ends[-1] if ends.size else 0, dtype=np.float32),
        )


class Envelopes(NamedTuple):
    """Parts of sequences that one domain each is looked for in, in the order of the sequences."""

    places: Int64Array  # (n, fields.ENVELOPE_FIELDS)
    numbers: Float32Array  # (n, fields.NUMBERS)


@inline
def score_of(group: Group, cells: Cells, rows: int, quarter: int, logs: Logarithms) -> np.float32:
    """Return the score of a sequence in nats after `fill_forward`; NaN where no path ends."""
    total = np.float32(0)
    for row in range(rows - group.sizes[quarter] + 1, rows + 1):
        scale = cells.kept[row, SCALE, quarter]
        if scale > np.float32(1):
            total = np.float32(np.float64(total) + log64(logs.long, np.float64(scale)))
    end = cells.kept[rows, END, quarter]
    if end > 0 and end < np.inf:
        left = log64(logs.long, np.float64(end * group.chances[rows_of.MOVE, quarter]))
        return np.float32(np.float64(total) + left)
    return np.float32(np.nan)


@inline
def is_known(score: np.float32, backward: Cells, begin: int, quarter: int) -> bool:
    """Return whether float32 holds the sums over all paths, from both ends."""
    first = backward.kept[begin, rows_of.BEGIN, quarter]
    return bool(np.isfinite(score) and first > 0 and first < np.inf)


@jit
def keep_regions(
    group: Group,
    forward: Cells,
    backward: Cells,
    rows: int,
    parses: Parses,
    own: Int64Array,
    occupancy: Occupancy,
    logs: Logarithms,
    regions: Int64Array,
) -> int:
    """Keep the scores of whole sequences after both parsers, and find their regions.

    Return the number of regions, which are written as pieces.
    """
    count = 0
    for quarter in range(own.size):
        one = own[quarter]
        sequence, scores = parses.sequences[one], parses.scores[one]
        score = score_of(group, forward, rows, quarter, logs)
        scores[fields.FORWARD] = score
        sequence[fields.IS_UNUSUAL] = 1
        if not is_known(score, backward, rows - sequence[fields.RESIDUES], quarter):
            continue
        if not fill_occupancy(group, forward, backward, rows, quarter, occupancy):
            continue
        sequence[fields.IS_UNUSUAL] = 0
        scores[fields.EXPECTED] = occupancy.begins[sequence[fields.RESIDUES]]
        found = find_regions(occupancy, sequence[fields.RESIDUES], regions[count:])
        for region in range(count, count + found):
            regions[region, fields.SEQUENCE] = one
        sequence[fields.REGIONS] = found
        count += found
    return count


@jit
def divide_region(
    odds: Odds,
    group: Group,
    cells: Cells,
    rows: int,
    quarter: int,
    samples: Samples,
    clusters: Clusters,
    parses: Parses,
    piece: Int64Array,
    logs: Logarithms,
) -> int:
    """Divide a region by what sampled paths have in common; return the number of its envelopes.

    `clusters.found` begins with them. The mean odds of the region's residues are kept. A result
    below 0 is that of `sample_paths`.
    """
    count = sample_paths(odds, group, cells, rows, quarter, samples)
    if count < 0:
        return count
    first = parses.sequences[piece[fields.SEQUENCE], fields.CORRECTIONS] + piece[fields.FIRST] - 1
    for place in range(1, group.sizes[quarter] + 1):
        mean = samples.totals[place] / np.float32(SAMPLES)
        parses.corrections[first + place] = log32(logs.short, mean)
    return find_domains(samples.segments, count, clusters)


@jit
def keep_envelopes(
    odds: Odds,
    alignment: Alignment,
    rows: int,
    parses: Parses,
    found: Envelopes,
    own: Int64Array,
    scales: Float32Array,
    logs: Logarithms,
) -> None:
    """Keep the domains of some of the envelopes found, after `fill_accuracies`."""
    group, accuracies = alignment.group, alignment.found
    expected_odds(odds, alignment, scales)
    for quarter in range(own.size):
        envelope, numbers = found.places[own[quarter]], found.numbers[own[quarter]]
        sequence = parses.sequences[envelope[fields.SEQUENCE]]
        size = group.sizes[quarter]
        score = score_of(group, alignment.forward, rows, quarter, logs)
        if not is_known(score, alignment.backward, rows - size, quarter):
            sequence[fields.IS_UNUSUAL] = 1
            continue
        if np.isinf(accuracies.products[quarter]):
            # HMMER takes such an envelope for a repeat.
            continue
        if not trace_alignment(odds, alignment, quarter, rows - size, envelope[fields.NODE :]):
            sequence[fields.IS_UNUSUAL] = 1
            continue
        envelope[fields.IS_DOMAIN] = 1
        envelope[fields.RESIDUE] += envelope[fields.FIRST] - 1
        envelope[fields.LAST_RESIDUE] += envelope[fields.FIRST] - 1
        first, total = sequence[fields.CORRECTIONS] + envelope[fields.FIRST], np.float32(0)
        for place in range(size):
            if not envelope[fields.IS_SAMPLED]:
                code = np.int64(group.codes[group.begins[quarter] + place])
                odds_of_code = accuracies.null2[code, quarter]
                parses.corrections[first + place] = log32(logs.short, odds_of_code)
            total += parses.corrections[first + place]
        numbers[fields.ENVELOPE], numbers[fields.CORRECTION] = score, total
        numbers[fields.ACCURACY] = alignment.cells.kept[rows, END, quarter]
