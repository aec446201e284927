"""Each step from a sequence that passed the filters to its domains has HMMER's bits."""

import numpy as np
import pytest
from helpers.domain_memory import (
    accuracies_for,
    cells_for,
    clusters_for,
    group_for,
    occupancy_for,
    samples_for,
)
from helpers.hmmer_domains import MATCH, SCALE, B, C, E, J, N, domains_of
from helpers.hmmer_library import some_profiles
from helpers.profiles import repeats, sequences_like

from mummergpu.hmm.domains.accuracy import Alignment, fill_accuracies, trace_alignment
from mummergpu.hmm.domains.backward import fill_backward
from mummergpu.hmm.domains.clustering import find_clusters, find_domains
from mummergpu.hmm.domains.forward import END, fill_forward
from mummergpu.hmm.domains.null2 import expected_odds
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import odds_of
from mummergpu.hmm.domains.regions import fill_occupancy
from mummergpu.hmm.domains.sampling import SAMPLES, sample_paths, seeded
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.jit import jit

pytest.importorskip("pyhmmer")


@jit
def occupancy_of(group, forward, backward, rows, quarter, found):
    return fill_occupancy(group, forward, backward, rows, quarter, found)


WIDTHS = [(0, 1), (0, 1, 2, 3)]
SIZES = 1, 2, 3, 4, 5, 63, 64, 65, 250


def assert_same(ours, theirs):
    """Compare float32 by their bits."""
    ours, theirs = (np.asarray(one, dtype=np.float32).copy() for one in (ours, theirs))
    np.testing.assert_array_equal(ours.view(np.int32), theirs.view(np.int32))


def test_the_odds_of_profiles(tmp_path):
    for profile in some_profiles((*SIZES, 2405)):
        ours = odds_of(profile)
        emissions, steps = domains_of(profile, tmp_path).odds
        assert_same(ours.emissions, emissions)
        assert_same(ours.steps, steps)


def pieces(profile, quarters, count=16):
    """Sequences like a profile in groups, of similar and of different lengths."""
    found = [one for one in sequences_like(profile, count) if one.size]
    return [found[n : n + len(quarters)] for n in range(0, len(found), len(quarters))]


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
    for profile in some_profiles(SIZES):
        odds, hmmer = odds_of(profile), domains_of(profile, tmp_path)
        for sequences in pieces(profile, quarters):
            rows = max(one.size for one in sequences)
            full = rows * profile.nodes < 1e5
            cells = cells_for(odds, quarters, rows, full, full)
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


@pytest.mark.parametrize("quarters", WIDTHS)
@pytest.mark.parametrize("several", [True, False])
def test_backward(tmp_path, several, quarters):
    for profile in some_profiles(SIZES):
        odds, hmmer = odds_of(profile), domains_of(profile, tmp_path)
        for sequences in pieces(profile, quarters):
            rows = max(one.size for one in sequences)
            full = rows * profile.nodes < 1e5
            group = group_for(quarters, sequences, several)
            forward = cells_for(odds, quarters, rows, full)
            cells = cells_for(odds, quarters, rows, False)
            with flushed_floats():
                fill_forward(odds, group, forward, rows)
                fill_backward(odds, group, forward, cells, rows)
            for quarter, codes in enumerate(sequences):
                hmmer.configure(codes.size, several)
                hmmer.forward(codes, parser=not full)
                hmmer.backward(codes, parser=not full)
                theirs, specials, has_own = hmmer.matrix(1)
                assert has_own == cells.has_own_scales[quarter]
                assert_same(cells.kept[rows - codes.size :, :, quarter], specials[:, THEIRS])
                if full:
                    emitting = forward.emitting.reshape(rows + 1, odds.registers, 2, -1)
                    own = slice(quarter * NODES, (quarter + 1) * NODES)
                    own = emitting[rows - codes.size + 1 :, :, :, own]
                    with flushed_floats(), np.errstate(all="ignore"):
                        product = hmmer.matrix(0)[0] * theirs
                    assert_same(own, product[1:, :, ::2])


def theirs_of_trace(states, nodes, places):
    """The first and last aligned nodes and residues of a trace of HMMER with one hit."""
    matches = np.flatnonzero(states == MATCH)
    first, last = matches[0], matches[-1]
    return [nodes[first], places[first], nodes[last], places[last]]


@pytest.mark.parametrize("quarters", WIDTHS)
def test_alignments(tmp_path, quarters):
    compared = 0
    for profile in some_profiles(SIZES):
        odds, hmmer = odds_of(profile), domains_of(profile, tmp_path)
        for sequences in pieces(profile, quarters):
            rows = max(one.size for one in sequences)
            if rows * profile.nodes > 1e5:
                continue
            group = group_for(quarters, sequences, several=False)
            forward = cells_for(odds, quarters, rows, keeps=True)
            backward, cells = (cells_for(odds, quarters, rows, keeps=False) for _ in range(2))
            found = accuracies_for(odds, quarters, rows)
            alignment = Alignment(group, forward, backward, cells, found)
            with flushed_floats():
                fill_forward(odds, group, forward, rows)
                fill_backward(odds, group, forward, backward, rows)
                fill_accuracies(odds, alignment, rows)
                expected_odds(odds, alignment, np.empty(len(quarters), dtype=np.float32))
            for quarter, codes in enumerate(sequences):
                hmmer.configure(codes.size, several=False)
                scores = hmmer.forward(codes), hmmer.backward(codes)
                if hmmer.failed or hmmer.decode() or not np.isfinite(scores).all():
                    continue
                score, *trace = hmmer.accuracy()
                assert_same(cells.kept[rows, END, quarter], score)
                ends = np.zeros(4, dtype=np.int64)
                begin = rows - codes.size
                assert trace_alignment(odds, alignment, quarter, begin, ends)
                assert ends.tolist() == theirs_of_trace(*trace)
                assert_same(found.null2[:, quarter], hmmer.null2())
                compared += 1
    assert compared > 100


@pytest.mark.parametrize("quarters", WIDTHS)
def test_occupancy(tmp_path, quarters):
    for profile in some_profiles(SIZES):
        odds, hmmer = odds_of(profile), domains_of(profile, tmp_path)
        for sequences in pieces(profile, quarters):
            rows = max(one.size for one in sequences)
            group = group_for(quarters, sequences)
            forward, backward = (cells_for(odds, quarters, rows, keeps=False) for _ in range(2))
            with flushed_floats():
                fill_forward(odds, group, forward, rows)
                fill_backward(odds, group, forward, backward, rows)
            for quarter, codes in enumerate(sequences):
                hmmer.configure(codes.size, several=True)
                hmmer.forward(codes, parser=True)
                if hmmer.failed:
                    continue
                hmmer.backward(codes, parser=True)
                found = occupancy_for(codes.size)
                with flushed_floats():
                    occupancy_of(group, forward, backward, rows, quarter, found)
                for ours, theirs in zip(found, hmmer.occupancy(codes.size), strict=True):
                    assert_same(ours, theirs)


@pytest.mark.parametrize("quarters", WIDTHS)
def test_sampled_paths_and_their_domains(tmp_path, quarters):
    domains = 0
    for profile in some_profiles(SIZES):
        odds, hmmer = odds_of(profile), domains_of(profile, tmp_path)
        sequences = repeats(profile, len(quarters))
        rows = max(one.size for one in sequences)
        group = group_for(quarters, sequences)
        forward = cells_for(odds, quarters, rows, True, True)
        with flushed_floats():
            fill_forward(odds, group, forward, rows)
        for quarter, codes in enumerate(sequences):
            hmmer.configure(codes.size, several=True)
            hmmer.forward(codes)
            if hmmer.failed:
                continue
            seed = int(codes.size)
            samples = samples_for(odds, codes.size, 100_000, seeded(seed))
            with flushed_floats():
                count = sample_paths(odds, group, forward, rows, quarter, samples)
            segments, totals = hmmer.sampled(codes, seed, SAMPLES)
            assert samples.segments[:count].tolist() == segments
            assert_same(samples.totals[1:], totals[1:])
            memory = clusters_for(count, max(codes.size, profile.nodes))
            clusters = find_clusters(samples.segments, count, memory)
            theirs = hmmer.clustered(segments)
            own = memory.found[:clusters]
            assert own[:, :2].tolist() == [one[:2] for one in theirs]
            assert_same(
                own[:, 2].astype(np.float32) / np.float32(SAMPLES), [one[2] for one in theirs]
            )
            domains += find_domains(samples.segments, count, memory)
    assert domains > 20
