"""Memory for the compiled functions of `hmm/domains`, as arrays of numpy."""

from types import FunctionType

import numpy as np

from helpers.profiles import block_of
from mummergpu.hmm.domains import fields, groups
from mummergpu.hmm.domains.parses import Parses
from mummergpu.hmm.proteins import meanings


def in_python(function):
    """A function of `groups` for Python: it makes arrays in place of parts of lent memory."""
    plain = function.function
    names = {**plain.__globals__, "take": lambda _, shape, kind: np.zeros(shape, dtype=kind)}
    return FunctionType(plain.__code__, names)


def cells_for(odds, quarters, rows, keeps, keeps_deletions=False):
    return in_python(groups.cells_of)(odds, quarters, rows, keeps, keeps_deletions, None)


def accuracies_for(odds, quarters, rows):
    return in_python(groups.accuracies_of)(odds, quarters, rows, meanings(), None)


def occupancy_for(rows):
    return in_python(groups.occupancy_of)(rows, None)


def samples_for(odds, residues, segments, first):
    random = np.array([first])
    return in_python(groups.samples_of)(odds, residues, segments, random, meanings(), None)


def clusters_for(segments, places):
    return in_python(groups.clusters_of)(segments, places, None)


def group_for(quarters, sequences, several=True):
    """Whole sequences, as many as there are quarters or fewer, as a group."""
    own = np.arange(len(sequences))
    parses = Parses.of(block_of(sequences), own)
    pieces = np.ones((own.size, fields.PIECE_FIELDS), dtype=np.int64)
    pieces[:, fields.SEQUENCE] = own
    pieces[:, fields.LAST] = parses.sequences[:, fields.RESIDUES]
    of = in_python(groups.group_of)
    return of(quarters, parses.codes, parses.sequences, pieces, own, several, None)
