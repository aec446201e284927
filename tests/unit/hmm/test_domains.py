"""Each step from a sequence that passed the filters to its domains has HMMER's bits."""

import numpy as np
import pytest
from helpers.hmmer_domains import SCALE, B, C, E, J, N, domains_of
from helpers.hmmer_library import some_profiles
from helpers.profiles import block_of, sequences_like

from mummergpu.hmm.domains.forward import fill_forward
from mummergpu.hmm.domains.groups import cells_of, group_of
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import odds_of
from mummergpu.runtime.flushed_floats import flushed_floats

pytest.importorskip("pyhmmer")


def assert_same(ours, theirs):
    """Compare float32 by their bits."""
    np.testing.assert_array_equal(
        np.ascontiguousarray(ours).view(np.int32), np.ascontiguousarray(theirs).view(np.int32)
    )


def test_the_odds_of_profiles(tmp_path):
    for profile in some_profiles((1, 2, 3, 4, 5, 63, 64, 65, 2405)):
        ours = odds_of(profile)
        emissions, steps = domains_of(profile, tmp_path).odds
        assert_same(ours.emissions, emissions)
        assert_same(ours.steps, steps)


WIDTHS = [(0, 1), (0, 1, 2, 3)]


def pieces(profile, quarters, count=16):
    """Sequences like a profile in groups, of similar and of different lengths."""
    found = [one for one in sequences_like(profile, count) if one.size]
    return [found[n : n + len(quarters)] for n in range(0, len(found), len(quarters))]


def group_for(quarters, sequences, several=True, lengths=None):
    block = block_of(sequences)
    sizes = np.diff(block.offsets)
    lengths = sizes if lengths is None else lengths
    return group_of(quarters, block.codes, block.offsets[:-1], sizes, lengths, several)


def rows_of(cells, odds, rows, size, quarter):
    """The emitting cells (rows, registers, 2, 4) and deletions of one sequence."""
    begin = rows - size
    own = slice(quarter * NODES, (quarter + 1) * NODES)
    shape = rows + 1, odds.registers
    emitting = cells.emitting.reshape(*shape, 2, -1)[begin:, :, :, own]
    deletions = cells.deletions.reshape(*shape, -1)[begin:, :, own]
    return emitting, deletions


THEIRS = [N, B, E, J, C, SCALE]


@pytest.mark.parametrize("quarters", WIDTHS)
@pytest.mark.parametrize("several", [True, False])
def test_forward(tmp_path, several, quarters):
    for profile in some_profiles((1, 2, 5, 63, 64, 65, 2405)):
        odds, hmmer = odds_of(profile), domains_of(profile, tmp_path)
        for sequences in pieces(profile, quarters):
            rows = max(one.size for one in sequences)
            full = rows * profile.nodes < 1e6
            kept = rows + 1 if full else 1
            cells = cells_of(odds, quarters, rows, kept, kept)
            with flushed_floats():
                fill_forward(odds, group_for(quarters, sequences, several), cells, rows)
            for quarter, codes in enumerate(sequences):
                hmmer.configure(codes.size, several)
                hmmer.forward(codes, parser=not full)
                theirs, specials, _ = hmmer.matrix(0)
                own = cells.kept[rows - codes.size :, :, quarter]
                assert_same(own[1:], specials[1:, THEIRS])
                assert_same(own[0], specials[0, THEIRS])
                if full:
                    emitting, deletions = rows_of(cells, odds, rows, codes.size, quarter)
                    assert_same(emitting[:, :, 0], theirs[:, :, 0])
                    assert_same(emitting[:, :, 1], theirs[:, :, 2])
                    assert_same(deletions, theirs[:, :, 1])
