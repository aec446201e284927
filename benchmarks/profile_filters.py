"""SSV of a profile against proteins on one processor beside HMMER's, as pyhmmer has it; Viterbi.

    python benchmarks/profile_filters.py PROFILES.hmm PROTEINS.faa > FIGURES.json

Seconds are those of the processor, the best of several runs; cells are residues times nodes. Where
the processor can interleave sequences, as searches with several profiles do, that is timed too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import pyhmmer
from measure import provenance

from mummergpu.hmm import word_filter
from mummergpu.hmm.byte_filters import find_cells, striped_bytes
from mummergpu.hmm.filters import FilterThresholds, ProfileFilter, lengths_up_to
from mummergpu.hmm.interleaved import BYTE_LANES, can_interleave, interleaved
from mummergpu.hmm.interleaved_bytes import find_interleaved_cells, node_scores
from mummergpu.hmm.profiles import Profile, read_profiles
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.hmm.tables import byte_tables, word_moves
from mummergpu.version import __version__

RUNS = 5
MORE_THAN_ANY = 1000
"""A cell that no sequence reaches: what passes is not timed."""


def main(profiles: str, proteins: str) -> None:
    with pyhmmer.easel.SequenceFile(proteins, digital=True) as file:
        sequences = file.read_block()
    codes = [np.frombuffer(bytes(one.sequence), dtype=np.uint8) for one in sequences]
    offsets = np.cumsum([0, *(one.size for one in codes)], dtype=np.int64)
    block = ProteinBlock(np.concatenate(codes), offsets)
    longest = int(np.diff(offsets).max())
    least = np.full(longest + 1, MORE_THAN_ANY, dtype=np.int64)
    borders = np.empty(longest * BYTE_LANES, dtype=np.uint8)
    every, best = np.arange(len(codes)), np.empty(BYTE_LANES, dtype=np.int8)
    groups = interleaved(block, BYTE_LANES) if can_interleave() else None
    places = np.empty((2, len(codes)), dtype=np.int64)
    rows = []
    for profile in read_profiles(profiles):
        tables, theirs = byte_tables(profile), profile.optimized
        striped, scores = striped_bytes(tables), node_scores(tables)
        cells = block.codes.size * profile.nodes / 1e9
        rows_of = striped, least, borders, every, *places
        ours = seconds_of(lambda: find_cells(block, *rows_of))  # noqa: B023
        in_lanes = []
        if groups is not None:
            lanes = groups, scores, least, borders, best, *places
            in_lanes = seconds_of(lambda: find_interleaved_cells(*lanes))  # noqa: B023
        hmmer = seconds_of(lambda: [theirs.ssv_filter(one) for one in sequences])  # noqa: B023
        row = {"name": profile.name, "nodes": profile.nodes}
        rows.append(row | {"gcups": cells / min(ours), "hmmer_gcups": cells / min(hmmer)})
        rows[-1] |= {"seconds": ours, "hmmer_seconds": hmmer}
        if in_lanes:
            rows[-1] |= {"interleaved_gcups": cells / min(in_lanes)}
        of_viterbi = viterbi_seconds(profile, block, groups is not None)
        rows[-1] |= {f"{name}_gcups": cells / min(times) for name, times in of_viterbi.items()}
    versions = {"mummergpu": __version__, "pyhmmer": pyhmmer.__version__}
    facts = provenance() | {"versions": versions, "profiles": rows}
    json.dump(facts, sys.stdout, indent=2)


def viterbi_seconds(
    profile: Profile, block: ProteinBlock, interleaves: bool
) -> dict[str, list[float]]:
    """Return the seconds of Viterbi by rows, and as searches have it where that is in lanes."""
    every = np.arange(block.offsets.size - 1)
    lengths = lengths_up_to(int(np.diff(block.offsets).max()))
    own = ProfileFilter(profile, FilterThresholds())
    words, moves = word_filter.striped_words(own.words), word_moves(lengths.move.size - 1)
    cells = np.empty(3 * words.registers * word_filter.LANES, dtype=np.int16)
    by_rows = block, words, moves, cells, every, np.empty(every.size, dtype=np.int64)
    found = {"viterbi": seconds_of(lambda: word_filter.score_viterbi(*by_rows))}
    if interleaves:
        # With the grouping, and with the proteins that are left to rows.
        in_lanes = seconds_of(lambda: own.viterbi_words(block, every, lengths))
        found["interleaved_viterbi"] = in_lanes
    return found


def seconds_of(work: Callable[[], object]) -> list[float]:
    """Return the processor's seconds of each run, after one that warms up."""
    work()
    found = []
    for _ in range(RUNS):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
