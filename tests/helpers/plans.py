"""Runs as they are planned, for references that take no memory."""

import numpy as np

from helpers.options import index_options
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.options import KmerOptions
from mummergpu.index.tree_index import TreeIndex
from mummergpu.input.reference import Reference
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.sequence.codes import BREAK, MARGIN


def reference_of_size(bases, base_count=None):
    """A reference of so many bases that takes no memory, some of which can match."""
    codes = np.broadcast_to(np.uint8(0), bases)
    padded = np.broadcast_to(np.uint8(BREAK), bases + 2 * MARGIN)
    starts, lengths = np.zeros(1, dtype=np.int64), np.array([bases], dtype=np.int64)
    reference = Reference("made.fa", codes, starts, lengths, (b"r",), padded)
    # It would take seconds to count them.
    vars(reference)["base_count"] = bases if base_count is None else base_count
    return reference


def plan_of(bases, max_tree_bytes=None, base_count=None, threads=1, **told):
    """The index of a reference as it is planned, whether or not it keeps to a limit."""
    reference = reference_of_size(bases, base_count)
    options = index_options(**told)
    budget = MemoryBudget.of(options.memory, max_tree_bytes)
    if isinstance(options.kind, KmerOptions):
        return KmerIndex.plan(reference, options.kind, options.minimum_length, budget)
    return TreeIndex.plan(reference, options.kind, options.minimum_length, budget, threads)


def padded_bytes(bases):
    """What the reference itself takes."""
    return bases + 2 * MARGIN


def sizes_of(plan):
    return [page.end - page.begin for page in plan.pages]
