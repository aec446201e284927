"""SSV of a profile against proteins on one processor beside HMMER's, as pyhmmer has it; Viterbi.

    python benchmarks/profile_filters.py PROFILES.hmm PROTEINS.faa > FIGURES.json

Seconds are those of the processor, the best of several runs; cells are residues times nodes.
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
from mummergpu.hmm.byte_filters import LANES, find_cells, striped_bytes
from mummergpu.hmm.filters import FilterThresholds, ProfileFilter, lengths_up_to
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
    borders = np.empty(longest * LANES, dtype=np.uint8)
    places = np.empty((2, len(codes)), dtype=np.int64)
    rows = []
    for profile in read_profiles(profiles):
        striped, theirs = striped_bytes(byte_tables(profile)), profile.optimized
        cells = block.codes.size * profile.nodes / 1e9
        rows_of = striped, least, borders, *places
        ours = seconds_of(lambda: find_cells(block, *rows_of))  # noqa: B023
        hmmer = seconds_of(lambda: [theirs.ssv_filter(one) for one in sequences])  # noqa: B023
        row = {"name": profile.name, "nodes": profile.nodes}
        rows.append(row | {"gcups": cells / min(ours), "hmmer_gcups": cells / min(hmmer)})
        rows[-1] |= {"seconds": ours, "hmmer_seconds": hmmer}
        rows[-1] |= {"viterbi_gcups": cells / min(viterbi_seconds(profile, block))}
    versions = {"mummergpu": __version__, "pyhmmer": pyhmmer.__version__}
    facts = provenance() | {"versions": versions, "profiles": rows}
    json.dump(facts, sys.stdout, indent=2)


def viterbi_seconds(profile: Profile, block: ProteinBlock) -> list[float]:
    """Return the seconds of Viterbi."""
    every = np.arange(block.offsets.size - 1)
    lengths = lengths_up_to(int(np.diff(block.offsets).max()))
    own = ProfileFilter(profile, FilterThresholds())
    words, moves = word_filter.striped_words(own.words), word_moves(lengths.move.size - 1)
    cells = np.empty(3 * words.registers * word_filter.LANES, dtype=np.int16)
    by_rows = block, words, moves, cells, every, np.empty(every.size, dtype=np.int64)
    return seconds_of(lambda: word_filter.score_viterbi(*by_rows))


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
