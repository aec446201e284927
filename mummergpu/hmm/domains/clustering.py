"""The domains of a region, as segments that many sampled paths have in common."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.domains.sampling import SAMPLES
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline, jit

_OVERLAP: Final = np.float32(0.8)
_DIAGONALS: Final = 4
_SHARE: Final = np.float32(0.25)
"""The share of the paths that a domain is in."""
_END_SHARE: Final = np.float32(0.02)
"""The share of a domain's paths that begin or end at a place, for the domain to do so."""


class Clusters(NamedTuple):
    """The memory of `find_domains`; (segments,) each but the last two."""

    available: Int64Array
    connected: Int64Array
    labels: Int64Array
    counts: Int64Array  # Of places: as many as residues or nodes
    found: Int64Array  # (segments, 4): first and last residue, paths, and 1 if another hides it


@inline
def share_of(common: int, shorter: int) -> np.float32:
    """Return how much of a segment is in another."""
    return np.float32(common) / np.float32(shorter)


@inline
def are_linked(one: Int64Array, other: Int64Array) -> bool:
    """Return whether two segments are of the same domain."""
    common = min(one[2], other[2]) - max(one[1], other[1]) + 1
    if share_of(common, min(one[2] - one[1] + 1, other[2] - other[1] + 1)) < _OVERLAP:
        return False
    common = min(one[4], other[4]) - max(one[3], other[3])
    if share_of(common, min(one[4] - one[3] + 1, other[4] - other[3] + 1)) < _OVERLAP:
        return False
    begins = (one[1] - one[3]) - (other[1] - other[3])
    ends = (one[2] - one[4]) - (other[2] - other[4])
    return bool(abs(begins) <= _DIAGONALS or abs(ends) <= _DIAGONALS)


@inline
def label_segments(segments: Int64Array, count: int, memory: Clusters) -> int:
    """Label the segments by their clusters (single linkage); return the number of clusters."""
    available, connected = memory.available, memory.connected
    for one in range(count):
        available[one] = count - one - 1
    left, clusters = count, 0
    while left:
        left -= 1
        connected[0], waiting = available[left], 1
        while waiting:
            waiting -= 1
            one = connected[waiting]
            memory.labels[one] = clusters
            for place in range(left - 1, -1, -1):
                other = available[place]
                if are_linked(segments[one], segments[other]):
                    left -= 1
                    available[place] = available[left]
                    connected[waiting] = other
                    waiting += 1
        clusters += 1
    return clusters


@inline
def common_place(
    segments: Int64Array, count: int, memory: Clusters, label: int, field: int, paths: int
) -> int:
    """Return the outermost place at which enough segments of a cluster begin, or end."""
    lowest, highest = -1, -1
    for one in range(count):
        if memory.labels[one] == label:
            place = segments[one, field]
            lowest = place if lowest < 0 else min(lowest, place)
            highest = max(highest, place)
    counts = memory.counts
    for place in range(highest - lowest + 1):
        counts[place] = 0
    for one in range(count):
        if memory.labels[one] == label:
            counts[segments[one, field] - lowest] += 1
    # Rounded to float32 as in HMMER.
    share = np.float32(paths) * _END_SHARE
    enough = np.int64(share)
    enough += np.float32(enough) < share
    best = 0
    for step in range(highest - lowest + 1):
        place = step if field == 1 or field == 3 else highest - lowest - step
        if counts[place] >= enough:
            return lowest + place
    for place in range(highest - lowest + 1):
        if counts[place] > counts[best]:
            best = place
    return lowest + best


@inline
def copy_row(source: Int64Array, target: Int64Array) -> None:
    """Copy a row to another place."""
    for field in range(target.size):
        target[field] = source[field]


@jit
def find_clusters(segments: Int64Array, count: int, memory: Clusters) -> int:
    """Find the clusters of enough paths, in the order of their begins; return their number."""
    found = memory.found
    kept = 0
    for label in range(label_segments(segments, count, memory)):
        paths, last = 0, -1
        for one in range(count):
            if memory.labels[one] == label:
                paths += segments[one, 0] != last
                last = segments[one, 0]
        if np.float32(paths) / np.float32(SAMPLES) < _SHARE:
            continue
        ends = found[kept]
        for field in range(4):
            ends[field] = common_place(segments, count, memory, label, field + 1, paths)
        if ends[0] > ends[1] or ends[2] > ends[3]:
            continue
        place, first, last = kept, ends[0], ends[1]
        while place and found[place - 1, 0] > first:
            copy_row(found[place - 1], found[place])
            place -= 1
        found[place, 0], found[place, 1], found[place, 2], found[place, 3] = first, last, paths, 0
        kept += 1
    return kept


@jit
def find_domains(segments: Int64Array, count: int, memory: Clusters) -> int:
    """Find the domains that the segments have in common; return their number.

    `memory.found` begins with them. Of two that overlap, the one of fewer paths is left out.
    """
    found = memory.found
    clusters = find_clusters(segments, count, memory)
    for one in range(clusters):
        for other in range(one + 1, clusters):
            common = min(found[one, 1], found[other, 1]) - max(found[one, 0], found[other, 0]) + 1
            # HMMER goes on to the next one here, whatever follows.
            if common == 0:
                break
            shorter = min(found[one, 1] - found[one, 0] + 1, found[other, 1] - found[other, 0] + 1)
            if share_of(common, shorter) >= _OVERLAP:
                if found[one, 2] > found[other, 2]:
                    found[other, 3] = 1
                else:
                    found[one, 3] = 1
    kept = 0
    for one in range(clusters):
        if not found[one, 3]:
            copy_row(found[one], found[kept])
            kept += 1
    return kept
