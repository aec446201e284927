"""Every number that mapping compares something with: one below it, at it, and one above it.

`thresholds` reads the numbers and the functions that compare with them off the source. Each has
cases here, in the smallest function that applies it, or a reason why no output depends on it. The
functions are called in plain Python, so nothing is compiled.
"""

from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from helpers.candidate_tables import scoring_of, table_of, whole
from helpers.thresholds import thresholds
from helpers.uncompiled import MACHINE_CODE, Uncompiled

from mummergpu import mapping
from mummergpu.errors import OptionError
from mummergpu.input.circular_records import NO_CIRCLES
from mummergpu.mapping import options
from mummergpu.mapping.alignments.columns import new_columns
from mummergpu.mapping.alignments.summary import count_alignments
from mummergpu.mapping.candidates import candidates, column
from mummergpu.mapping.genomes import chaining, device_tiles
from mummergpu.mapping.genomes import mapping_quality as genome_quality
from mummergpu.mapping.genomes.clustering import cluster_rule
from mummergpu.mapping.genomes.clusters import ChainColumns, Clusters, _best_chain
from mummergpu.mapping.genomes.columns import Anchors, Bounds, GenomeAlignments
from mummergpu.mapping.genomes.options import NUCMER_COSTS
from mummergpu.mapping.genomes.overlaps import best_cover
from mummergpu.mapping.genomes.whole import suit_whole_matrices
from mummergpu.mapping.placing import choice, insert_size, mapping_quality, rescue, secondary
from mummergpu.mapping.placing.insert_size import PairSizes
from mummergpu.mapping.placing.pairing import Placing
from mummergpu.mapping.placing.refinement import new_tops
from mummergpu.mapping.seeding import pruning
from mummergpu.sequence.codes import MARGIN, with_margins
from mummergpu.viterbi.recurrence.model import Costs

ROOT = Path(next(iter(mapping.__path__)))
plain = Uncompiled().function
COSTS = Costs(end_bonus=0)
ODDS = mapping_quality.Odds(candidates.likelihoods_of_scores(), candidates.quality_thresholds())
SINGLE = PairSizes.of_sizes(None, 17).pairing(False)
PAIRED = PairSizes.of_sizes(options.InsertSizes(150.0, 10.0, 120, 190), 17).pairing(True)

NONE_CHANGES_OUTPUT = {
    "alignments/paths.py ROWS_AHEAD": "what is fetched ahead",
    "candidates/candidates.py NUMBERS": "the columns of a table, all of which are copied",
    "candidates/candidates.py UNIT": "the scale of both sides",
    "candidates/key_sort.py DIGITS": "the counts of a digit, all of which are summed",
    "candidates/key_sort.py FEW_ROWS": "two ways to sort (test_candidates has counts beside it)",
    "genomes/aligner.py _ANCHORS_OF_TASK": "the parts of the work",
    "genomes/aligner.py _CLUSTERS_OF_TASK": "the parts of the work",
    "genomes/clustering.py _LISTS_IN_CACHE": "how many lists matches are looked up in",
    "genomes/clustering.py _MATCHES_OF_LIST": "how many lists matches are looked up in",
    "genomes/clustering.py _MILLION": "the scale of both sides",
    "genomes/finishing.py _ALIGNMENTS_OF_TASK": "the parts of the work",
    "genomes/mapping_quality.py _SLICE_BASES": "the parts of the work",
    "options.py LONGEST_SEED": "in seed_length: no read has one of more than 39 bases",
    "placing/rescue.py DIAGONALS_AT_ONCE": "the parts of the work (test_rescue)",
    "placing/second_pass.py MATCHES_AT_ONCE": "the parts of the work",
    "placing/second_pass.py READS_AT_FIRST": "the parts of the work",
    "seeding/candidate_search.py MATCHES_AHEAD": "what is fetched ahead",
    "seeding/candidate_search.py MOST_SEEDS_USED_AGAIN": "which memory is used",
    "seeding/candidate_search.py MOST_USED_AGAIN": "which memory is used",
    "seeding/candidate_search.py _SCORED": "a bit that no value of a match has",
    "seeding/candidate_search.py _STRAND_BIT": "a bit that no diagonal has",
}
"""Numbers that decide how something is found, and not what."""

NEEDLESS = {
    ("candidates/candidates.py FARTHEST", "weigh_pairs"): "pairs beyond it weigh nothing",
}
"""Places where a number that has cases elsewhere spares work only."""


class Border(NamedTuple):
    threshold: str
    value: float
    function: str
    outcome: object
    cases: dict


def insert_counted(size):
    columns = new_columns(1, 0)
    for name in ("records", "qualities", "mate_rows"):
        getattr(columns, name)[:] = 0
    columns.flags[0], columns.template_lengths[0] = 1 | 2 | 64, size
    counts = np.zeros(1 << 15, dtype=np.int64)
    plain(count_alignments)(columns, np.zeros(9, np.int64), np.zeros(256, np.int64), counts)
    return int(np.flatnonzero(counts)[0])


def weighs(function):
    return lambda worse: bool(plain(function)(worse, ODDS.weights) > 0)


def is_kept(worse):
    """Whether a candidate is, besides three that score 100 points, so many units worse."""
    tested = whole(100 - worse // 64, CREDIT=-(worse % 64))
    return marks_of([whole(100), whole(100), whole(100), tested])[3]


def keeps_all(clip):
    """Whether a bad candidate is kept because the best one has a clip."""
    best = whole(100, 100 - clip, SEED_BEGIN=clip)
    return marks_of([best, whole(100), whole(100), whole(5)])[3]


def marks_of(rows):
    table, limits = table_of(rows), options.Limits(20, 0, 0)
    placing = Placing(scoring_of(100), SINGLE, table)
    plain(pruning.mark_candidates)(0, 0, placing, limits, new_tops(), (6400, 6400), 6400)
    return table.numbers[:, column.MARK].tolist()


def best_kept(count):
    """How many of so many equal candidates are marked."""
    table = table_of([whole(50)] * count)
    plain(pruning.mark_best)(0, 100, COSTS, table)
    return int(table.numbers[:, column.MARK].sum())


def left_of(count):
    """How many of so many candidates are left, of which the first is good."""
    table = table_of([whole(100, BOUND=100), *[whole(5)] * (count - 1)])
    placing = Placing(scoring_of(100), SINGLE, table)
    kept = plain(pruning.prune_template)(0, placing, options.Limits(20, 0, 0), new_tops())
    assert kept == table.offsets[1] and table.counts[0] == kept
    return int(kept)


def clusters_apart(distance):
    """Two clusters of one match each, on one diagonal, so many bases apart."""
    starts = np.array([0, 50 + distance], dtype=np.int64)
    anchors = Anchors(starts, starts, np.full(2, 50))
    return Clusters(np.zeros(2, dtype=np.int64), np.arange(3), anchors)


def next_close(distance):
    bounds = Bounds(*(np.array([place]) for place in (0, 1 << 20, 0, 1 << 20)))
    extender = SimpleNamespace(costs=NUCMER_COSTS, break_length=200)
    return plain(chaining._next_close)(clusters_apart(distance), bounds, 0, extender)[0]


def next_on_diagonal(distance):
    return plain(chaining._next_on_diagonal)(clusters_apart(distance), 0, (50, 50), 200)[0]


def chain(*matches):
    """Whether the last of some matches continues a chain that begins with the first one."""
    anchors = Anchors(*(list(part) for part in zip(*matches, strict=True)))
    count = len(matches)
    chains = ChainColumns(*([0] * count for _ in range(4)))
    plain(_best_chain)(anchors, list(range(count)), 0, count, chains)
    return chains.before[-1] == 0


def chained(query_gap=None, reference_gap=None):
    """The same of a long match and a short one, with gaps between them."""
    return chain((0, 0, 6000), (6000 + query_gap, 6000 + reference_gap, 100))


def chained_over(count):
    """The same of two matches that follow each other if those between them do not count.

    Those are on a diagonal far away, where each continues the one before.
    """
    between = [(100 + number, 1_000_000 + number, 1) for number in range(count - 1)]
    return chain((0, 0, 300), *between, (99 + count, 99 + count, 50))


def goes_to_device(cells):
    tiles, asked = SimpleNamespace(cells=cells, count=0), []
    none = np.zeros(0, dtype=np.int64)
    linked = SimpleNamespace(offsets=np.zeros(1, np.int64), anchors=Anchors(none, none, none))
    with (
        patch.object(device_tiles, "list_tiles", lambda *_: 0),
        patch.object(device_tiles, "fit_two", lambda *_: np.zeros(0, np.bool_)),
        patch.object(device_tiles, "TileSet", lambda *_: tiles),
    ):
        device_tiles.align_tiles_ahead(linked, (none, none), COSTS, lambda *_: asked.append(1))
    return bool(asked)


def genome_quality_at(error):
    """The quality of a long alignment that competes with others, which are right so often."""
    place, none = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    end = np.full(1, 10_000)
    odds = np.array([error / (1 - error)])
    found = GenomeAlignments(
        *(place, place.astype(np.uint8), place, place, end, place, end, np.array([0, 1])),
        *(np.array([160_000], dtype=np.uint32), none, none, none, end, odds),
    )
    reference = SimpleNamespace(record_starts=place)
    with patch.object(genome_quality, "find_words", lambda *_: (none[:0], none)):
        return int(genome_quality.MappingQualities(reference).of(found)[0])


def looked_at(bases):
    """The places of words in a reference, and one in how many words is taken."""
    asked = []

    def sample(codes, first, end, limit, places, hashes):
        asked.append((end - first, (1 << 63) // limit))
        return 0

    with patch.object(genome_quality, "sample_words", sample):
        genome_quality.find_words(SimpleNamespace(codes=np.zeros(bases, dtype=np.uint8)))
    return sum(count for count, _ in asked), {step for _, step in asked}


def steps(bases):
    """One in how many words of a reference is taken."""
    return min(looked_at(bases)[1])


def words_sampled(bases):
    codes = np.array([4, *[0, 1, 2, 3] * 6, 0][: bases + 1] + [4] * 30, dtype=np.uint8)
    places, hashes = np.empty(60, dtype=np.int64), np.empty(60, dtype=np.int64)
    with np.errstate(over="ignore"):
        sample = plain(genome_quality.sample_words)
        return int(sample(codes, 0, codes.size - 23, (1 << 63) - 1, places, hashes))


def are_both_taken(overlap):
    begins, ends = np.array([0, 100 - overlap]), np.array([100, 300])
    return plain(best_cover)(np.zeros(2, np.int64), begins, ends, np.ones(2)).tolist()


def told_mean(mean):
    try:
        return options.InsertSizes.of_user(mean, 20.0).mean
    except OptionError:
        return None


def mate_is_placed(score):
    """Whether the mate of a well placed read is, with such a score."""
    one = whole(50, 50, diagonal=100)
    other = whole(score, 40, diagonal=210, STRAND=1)
    placing = Placing(scoring_of(50, 40), PAIRED, table_of([one], [other]))
    choices = choice.new_choices(2)
    with np.errstate(over="ignore"):
        plain(choice.choose_template)(0, placing, 30, ODDS, np.uint64(1), choices)
    assert choices.candidates[0] == 0
    return bool(choices.candidates[1] >= 0)


def second_score(score):
    return int(plain(choice.second_score)(table_of([whole(90), whole(score)]), 0, 0, 100, COSTS))


def measured_of(sizes, quality=60):
    rows = np.zeros((insert_size.MEASURED, len(sizes)), dtype=np.int64)
    rows[insert_size.SIZE], rows[insert_size.QUALITY] = sizes, quality
    return rows


def is_measured(quality):
    table = table_of([whole(50, 50, diagonal=100)], [whole(40, 40, diagonal=210, STRAND=1)])
    choices = choice.Choices(
        np.array([0, 1]), np.array([quality, 60], dtype=np.uint8), np.zeros(2, dtype=np.int32)
    )
    rows = np.empty((insert_size.MEASURED, 1), dtype=np.int64)
    offsets = np.array([0, 50, 90])
    return int(plain(insert_size.measure_templates)(offsets, choices, table, NO_CIRCLES, rows))


def bells(*groups, of=None):
    """How many bells sizes have; each group is a size and how many pairs have it."""
    sizes = np.sort(np.repeat([size for size, _ in groups], [count for _, count in groups]))
    return len(insert_size.find_bells(sizes, sizes if of is None else np.zeros(of))[0])


def near_bells(difference, size):
    """The same of pairs that are just enough for a bell, one of which has a larger size."""
    return bells((size, 24), (size + difference, 1))


def is_estimated(size):
    return insert_size.estimate_insert_sizes(np.full(25, size)) is not None


def proper_sizes(extremes):
    """The proper sizes of 100 pairs with quartiles of 295 and 305, some 20 bases beyond each."""
    middle = 50 - extremes
    sizes = np.repeat([275, 295, 305, 325], [extremes, middle, middle, extremes])
    found = insert_size.estimate_insert_sizes(sizes)
    return found.min_size, found.max_size


def is_dense(equal, size, others):
    """Whether so many of 200 pairs that have one size are a bell; the others have another one."""
    return bells((others, 200 - equal), (size, equal)) > 0


def share_of_other(size):
    """The share of the pairs of 300 bases beside a wide bell, in which some have such a size."""
    sizes = np.array([300] * 30 + [8000] * 100 + [size] * 20)
    found = insert_size.with_bells(options.InsertSizes(9000.0, 10.0, 5000, 11_000), sizes)
    return [other.share for other in found.others]


def are_bells_alone(left=0, width=5000):
    """Whether two narrow bells take the place of a wide one, beside so many of 1,000 pairs."""
    sizes = [300] * 500 + [800] * (500 - left) + [3000 + 100 * number for number in range(left)]
    first = options.InsertSizes(300.0, 10.0, 1, 1 + width)
    return insert_size.with_bells(first, np.array(sizes)).min_size == 296


def largest_size(size):
    """The largest proper size where the only pair has such a size."""
    return insert_size.sizes_of_library(measured_of([size])).max_size


def chosen_orientation(size):
    """The orientation of pairs, more of which have mates back to back, and such a size."""
    measured = measured_of([size] * 30 + [300] * 26)
    measured[insert_size.ORIENTATION, :30] = insert_size.ORIENTATIONS.index("rf")
    return insert_size.sizes_of_library(measured).orientation


def doubt(length, is_proper=False):
    return round(float(plain(mapping_quality.doubt_of)(is_proper, length)), 3)


def quality(error, is_proper=True, length=1000):
    quality_of = plain(mapping_quality.quality_of)
    return quality_of((error, 0.0), 1.0, is_proper, length, ODDS.thresholds)


def unseen_places(copies):
    table = table_of([])
    table.seeds_kept[0] = 3
    return round(plain(mapping_quality.unseen_places)(table, 0, copies), 3)


def unseen_beside(count, mate):
    """Whether a place of a mate counts that was left out beside so many of the other one."""
    counts = [count, 1] if mate == 1 else [1, count]
    table = table_of(*([whole(50)] * each for each in counts))
    found = mapping_quality.Unseen(50 * 64, 1.0)
    none = mapping_quality.Unseen(-(1 << 40), 0.0)
    unseen = (none, found) if mate == 1 else (found, none)
    pair = mapping_quality.ChosenPair(0, 0, 3200, 3200, 6400, True)
    return plain(mapping_quality.unseen_pairs)(0, table, pair, unseen, ODDS.weights)[0] > 0


def windows_tried(count):
    """Near how many of equal placements of a read its mate is looked for."""
    tried = []
    instead = {"rescue_mate": lambda *given: tried.append(given) or 0}
    rescued = Uncompiled(MACHINE_CODE | instead).function(rescue.rescue_template)
    rows = [whole(50, 50, diagonal=500 * row) for row in range(count)]
    placing = Placing(scoring_of(50, 40), PAIRED, table_of(rows, []))
    rescued(0, placing, options.Limits(20, 12, 30), rescue.new_marks(50), 0)
    return len(tried)


def marked(places):
    """How many of 100 diagonals are marked by a word that a read has so often."""
    marks = rescue.new_marks(60)
    plain(rescue.list_words)(with_margins(np.zeros(40, np.uint8)), MARGIN, places + 7, marks)
    reference = with_margins(np.array([0] * 8 + [1] * 60, dtype=np.uint8))
    plain(rescue.mark_diagonals)(reference, 0, 8, -50, 50, marks)
    return int(marks.marked.sum())


def words_listed(bases):
    marks = rescue.new_marks(30)
    codes = np.array([1, 0, 2, 3, 1, 3, 0, 0, 2], dtype=np.uint8)[:bases]
    plain(rescue.list_words)(with_margins(codes), MARGIN, bases, marks)
    return sum(int(one).bit_count() for one in marks.listed)


def words_looked_up(bases):
    """The diagonals that so many bases of a reference mark for a read that has them."""
    marks = rescue.new_marks(30)
    codes = np.array([1, 0, 2, 3, 1, 3, 0, 0, 2], dtype=np.uint8)
    plain(rescue.list_words)(with_margins(np.append(codes, [3] * 9)), MARGIN, 18, marks)
    reference = with_margins(np.concatenate((codes[:bases], codes[:0])))
    plain(rescue.mark_diagonals)(reference, 0, bases, 0, 1, marks)
    return int(marks.marked.sum())


def added(run, bases):
    """How many candidates a diagonal adds on which a match of a read is so long, and no other."""
    reference = np.zeros(100, dtype=np.uint8)
    codes = np.array([0] * run + [1, 4] * (bases - run), dtype=np.uint8)[:bases]
    scoring = scoring_of(bases, costs=Costs(end_bonus=20), codes=codes, reference=reference)
    return add_diagonal(scoring, table_of([], spare=1))


def added_by_score(score):
    """The same of a read whose match scores so much, and is a part of it."""
    codes = np.array([0] * score + [1] * 30, dtype=np.uint8)
    return add_diagonal(scoring_of(codes.size, codes=codes), table_of([], spare=1))


def add_diagonal(scoring, table):
    return plain(rescue.add_diagonal)(0, scoring, table, rescue.MateWindow(0, 0, 0, 1), 0)


def diagonals_looked_at(low, high):
    """The first and the last diagonal of a record of 1,000 bases on which 40 bases may lie."""
    seen = []
    instead = {"mark_diagonals": lambda *given: seen.append(given[3:5])}
    window = rescue.MateWindow(0, 0, low, high)
    rescue_mate = Uncompiled(MACHINE_CODE | instead).function(rescue.rescue_mate)
    rescue_mate(0, scoring_of(40), rescue.new_marks(40), table_of([]), window)
    return int(seen[0][0]), int(seen[-1][1])


def is_split(clip):
    """Whether a read has another alignment, of bases that the first one clips."""
    rows = [whole(90, 100 - clip, SEED_BEGIN=clip), whole(40, clip)]
    extra = secondary.Extra(np.empty(1, dtype=np.int64), np.empty(1, dtype=np.uint8))
    choices = choice.new_choices(1)
    choices.candidates[0] = 0
    offsets = np.array([0, 100])
    plain(secondary.split_reads)(offsets, table_of(rows), choices, COSTS, 0, ODDS, extra)
    return extra.candidates[0] == 1


def shares_place(shared):
    return plain(secondary.are_at_one_place)((100, 120), (120 - shared, 160))


NO, YES = False, True
BORDERS = [
    Border(*row)
    for row in [
        ("alignments/summary.py MAX_INSERT", 16_384, "count_alignments", insert_counted,
         {16_383: 16_383, 16_384: 16_384, 16_385: 16_384}),
        ("candidates/candidates.py FARTHEST", 1920, "weight_of",
         weighs(mapping_quality.weight_of), {1919: YES, 1920: YES, 1921: NO}),
        ("candidates/candidates.py FARTHEST", 1920, "repeat_similarity_of",
         weighs(mapping_quality.repeat_similarity_of), {1919: YES, 1920: YES, 1921: NO}),
        ("candidates/candidates.py FARTHEST", 1920, "is_near", is_kept,
         {1919: 1, 1920: 1, 1921: 0}),
        # An error makes one of three bases: 4.8 more than the quality.
        ("candidates/candidates.py HIGHEST_PHRED", 33, "credits_of_qualities",
         lambda phred: int(candidates.credits_of_qualities(Costs())[phred]),
         {28: -28, 29: -31, 30: -31}),
        ("candidates/candidates.py SHARED_PARTS", 2, "are_apart",
         lambda shared: plain(candidates.are_apart)((0, 40), (40 - shared, 90)),
         {19: YES, 20: NO, 21: NO}),
        ("genomes/chaining.py MAX_DISTANCE", 10_000, "_next_close", next_close,
         {9_999: 1, 10_000: 1, 10_001: -1}),
        ("genomes/chaining.py FAR_DISTANCE", 100_000, "_next_on_diagonal", next_on_diagonal,
         {99_999: 1, 100_000: 1, 100_001: -1}),
        ("genomes/clustering.py _MAX_DIFFERENCE", 1 << 40, "cluster_rule",
         lambda most: cluster_rule(10, most, 0.0, 1).width - (1 << 40),
         {(1 << 40) - 1: 0, 1 << 40: 1, (1 << 40) + 1: 1}),
        ("genomes/clustering.py _MAX_DIFFERENCE", 1 << 40, "cluster_rule",
         lambda most: cluster_rule(most, 9, 1.0, 1).width - (1 << 40),
         {(1 << 40) - 1: 0, 1 << 40: 1, (1 << 40) + 1: 1}),
        ("genomes/clustering.py _MAX_RANGES", 4, "cluster_rule",
         lambda ranges: cluster_rule(10 * ranges, 9, 1.0, 1)[3:5],
         {3: (10, 3), 4: (10, 4), 5: (51, 1)}),
        ("genomes/clusters.py MAX_BETWEEN", 4000, "_best_chain",
         lambda gap: chained(gap, gap), {3_999: YES, 4_000: YES, 4_001: NO}),
        ("genomes/clusters.py MAX_BETWEEN", 4000, "_best_chain",
         lambda gap: chained(0, gap), {3_999: YES, 4_000: YES, 4_001: NO}),
        # The bases of an overlap are cut off, so they lie between the matches, too.
        ("genomes/clusters.py MAX_BETWEEN", 4000, "_best_chain",
         lambda gap: chained(-10, gap), {3_989: YES, 3_990: YES, 3_991: NO}),
        ("genomes/clusters.py MAX_PREDECESSORS", 4096, "_best_chain", chained_over,
         {4_095: YES, 4_096: YES, 4_097: NO}),
        ("genomes/device_tiles.py MIN_CELLS", 1 << 36, "align_tiles_ahead", goes_to_device,
         {(1 << 36) - 1: NO, 1 << 36: YES, (1 << 36) + 1: YES}),
        ("genomes/mapping_quality.py BEST_QUALITY", 60, "of", genome_quality_at,
         {0.5e-6: 60, 1e-6: 60, 1.1e-6: 59}),
        ("genomes/mapping_quality.py MAX_ERROR", 0.3, "of", genome_quality_at,
         {0.29: 5, 0.3 - 1e-9: 5, 0.3 + 1e-9: 0}),
        ("genomes/mapping_quality.py MAX_WORDS", 1 << 21, "find_words", steps,
         {(17 << 21) - 1: 16, 17 << 21: 17, (17 << 21) + 1: 17}),
        ("genomes/mapping_quality.py WORD_STEP", 16, "find_words",
         lambda step: steps(step << 21), {15: 16, 16: 16, 17: 17}),
        ("genomes/mapping_quality.py WORD_BASES", 24, "find",
         lambda bases: looked_at(bases)[0], {23: 0, 24: 1, 25: 2}),
        ("genomes/mapping_quality.py WORD_BASES", 24, "sample_words", words_sampled,
         {23: 0, 24: 1, 25: 2}),
        ("genomes/overlaps.py MAX_OVERLAP", 0.75, "_cover", are_both_taken,
         {74: [YES, YES], 75: [YES, YES], 76: [NO, YES]}),
        ("genomes/whole.py MOST_TIMES", 2, "suit_whole_matrices",
         lambda length: bool(suit_whole_matrices(np.array([length]), np.array([100]))[0]),
         {199: YES, 200: YES, 201: NO}),
        ("genomes/whole.py MOST_TIMES", 2, "suit_whole_matrices",
         lambda length: bool(suit_whole_matrices(np.array([100]), np.array([length]))[0]),
         {199: YES, 200: YES, 201: NO}),
        ("options.py BASES_OF_EDIT", 40, "seed_length", options.seed_length,
         {199: 39, 200: 33, 201: 33}),
        ("options.py MIN_EDITS", 4, "seed_length",
         lambda edits: options.seed_length(40 * edits), {3: 24, 4: 32, 5: 33}),
        ("options.py MIN_EDITS", 4, "has_enough_windows",
         lambda windows: options.has_enough_windows(20 * windows, 20), {3: NO, 4: NO, 5: YES}),
        ("options.py SHORTEST_SEED", 16, "seed_length", options.seed_length,
         {79: 16, 84: 16, 85: 17}),
        ("options.py LONGEST_SECOND_SEED", 20, "second_seed_length", options.second_seed_length,
         {29: 19, 30: 20, 32: 20}),
        ("options.py SHORTEST_SECOND_SEED", 12, "second_seed_length", options.second_seed_length,
         {17: 12, 18: 12, 20: 13}),
        ("options.py MOST_TOLD", 1e6, "of_user", told_mean,
         {999_999.0: 999_999.0, 1e6: None, 1_000_001.0: None}),
        ("options.py PROPER_DEVIATIONS", 4, "of_user",
         lambda mean: options.InsertSizes.of_user(mean, 20.0).min_size,
         {80.0: 1, 81.0: 1, 82.0: 2}),
        # Four deviations of these sizes are more than 35 from five extreme ones on.
        ("options.py PROPER_DEVIATIONS", 4, "estimate_insert_sizes", proper_sizes,
         {4: (265, 335), 5: (263, 337), 6: (261, 339)}),
        ("placing/insert_size.py PROPER_RANGES", 3, "estimate_insert_sizes", proper_sizes,
         {4: (265, 335), 5: (263, 337), 6: (261, 339)}),
        ("placing/choice.py MIN_SCORE_OF_MATE", 19, "choose_template", mate_is_placed,
         {18: NO, 19: YES, 20: YES}),
        ("placing/choice.py MIN_SCORE_OF_MATE", 19, "second_score", second_score,
         {18: 0, 19: 19, 20: 20}),
        ("placing/insert_size.py BARELY_PLACED", 1, "measure_templates", is_measured,
         {0: 0, 1: 1, 2: 1}),
        ("placing/insert_size.py WELL_PLACED", 20, "is_enough",
         lambda placed: insert_size.is_enough(measured_of([300] * 256, placed)),
         {19: NO, 20: YES, 21: YES}),
        ("placing/insert_size.py ENOUGH_PAIRS", 256, "is_enough",
         lambda pairs: insert_size.is_enough(measured_of([300] * pairs)),
         {255: NO, 256: YES, 257: YES}),
        # Of 160 bases, an eighth is 20, and of 800 it is 100.
        ("placing/insert_size.py BELL_BASES", 16, "find_bells",
         lambda bases: near_bells(bases + 20, 160), {15: 1, 16: 0, 17: 0}),
        ("placing/insert_size.py BELL_SHARE", 0.125, "find_bells",
         lambda bases: near_bells(bases + 16, 800), {99: 1, 100: 0, 101: 0}),
        ("placing/insert_size.py DENSITY_OF_BELL", 1.35, "find_bells",
         lambda pairs: is_dense(pairs, 8000, 7000), {134: NO, 135: YES, 136: YES}),
        ("placing/insert_size.py MAX_BASES", 10_000, "estimate_insert_sizes", is_estimated,
         {9_999: YES, 10_000: YES, 10_001: NO}),
        ("placing/insert_size.py MAX_BASES", 10_000, "with_bells",
         share_of_other, {9_999: [0.25], 10_000: [0.25], 10_001: [0.3]}),
        # The window beside 8,875 bases ends at the border: the next one is denser there.
        ("placing/insert_size.py MAX_BASES", 10_000, "find_bells",
         lambda size: is_dense(135, size, 7760), {8_874: YES, 8_875: YES, 8_876: NO}),
        ("placing/insert_size.py MAX_BASES", 10_000, "sizes_of_library", largest_size,
         {9_999: 19_998, 10_000: 20_000, 10_001: 1_000}),
        ("placing/insert_size.py MAX_BASES", 10_000, "sizes_of_library", chosen_orientation,
         {9_999: "rf", 10_000: "rf", 10_001: "fr"}),
        ("placing/insert_size.py MIN_PAIRS", 25, "estimate_insert_sizes",
         lambda pairs: insert_size.estimate_insert_sizes(np.full(pairs, 300)) is not None,
         {24: NO, 25: YES, 26: YES}),
        ("placing/insert_size.py MIN_PAIRS", 25, "find_bells",
         lambda pairs: bells((300, pairs)), {24: 0, 25: 1, 26: 1}),
        ("placing/insert_size.py MOST_BELLS", 8, "find_bells",
         lambda count: bells(*((200 * 3**number >> number, 30) for number in range(count - 1))),
         {7: 6, 8: 7, 9: 7}),
        ("placing/insert_size.py SHARE_OF_BELL", 0.01, "find_bells",
         lambda pairs: bells((300, pairs), of=3000), {29: 0, 30: 1, 31: 1}),
        ("placing/insert_size.py SHARE_OF_BELLS", 0.95, "with_bells", are_bells_alone,
         {49: YES, 50: YES, 51: NO}),
        # Two bells of equal sizes are 16 bases wide together.
        ("placing/insert_size.py WIDTH_OF_BELLS", 0.5, "with_bells",
         lambda width: are_bells_alone(0, width), {31: NO, 32: NO, 33: YES}),
        ("placing/insert_size.py WIDE_MAX", 1000, "sizes_of_library", largest_size,
         {499: 1000, 500: 1000, 501: 1002}),
        ("placing/mapping_quality.py FULL_DOUBT_LENGTH", 50, "doubt_of", doubt,
         {49: 29.777, 50: 35.0, 51: 35.0}),
        ("placing/mapping_quality.py UNSUPPORTED_DOUBT", 35, "doubt_of", doubt,
         {36: 2.85, 37: 3.147, 38: 3.896}),
        ("placing/mapping_quality.py MAX_PAIRED_DOUBT", 2.85, "doubt_of",
         lambda length: doubt(length, True), {51: 2.85, 52: 2.812, 53: 2.744}),
        ("placing/mapping_quality.py MAX_ERROR", 0.3, "quality_of", quality,
         {0.29: 5, 0.3: 5, 0.3 + 1e-9: 0}),
        # The doubt of a read without a mate is 35.
        ("placing/mapping_quality.py MAX_DOUBTED_ERROR", 0.8, "quality_of",
         lambda doubted: quality(doubted / 35, False), {0.79: 1, 0.8: 1, 0.8 + 1e-9: 0}),
        ("placing/mapping_quality.py UNSEEN_OF_COPY", 10, "unseen_places", unseen_places,
         {0.09: 1.0, 0.1: 1.0, 0.11: 1.1}),
        ("placing/rescue.py MAX_TRIES", 16, "unseen_pairs",
         lambda count: unseen_beside(count, 0), {15: NO, 16: NO, 17: YES}),
        ("placing/rescue.py MAX_TRIES", 16, "unseen_pairs",
         lambda count: unseen_beside(count, 1), {15: NO, 16: NO, 17: YES}),
        ("placing/rescue.py MAX_TRIES", 16, "rescue_beside_marked", windows_tried,
         {15: 15, 16: 16, 17: 16}),
        ("placing/rescue.py MAX_PLACES", 16, "mark_diagonals", marked, {15: 15, 16: 16, 17: 100}),
        ("placing/rescue.py WORD_BASES", 8, "list_words", words_listed, {7: 0, 8: 1, 9: 2}),
        ("placing/rescue.py WORD_BASES", 8, "mark_diagonals", words_looked_up, {7: 0, 8: 1, 9: 1}),
        ("placing/rescue.py MIN_RUN", 8, "add_diagonal",
         lambda run: added(run, 40), {7: 0, 8: 1, 9: 1}),
        ("placing/rescue.py MIN_RESCUED", 20, "add_diagonal", added_by_score,
         {19: 0, 20: 1, 21: 1}),
        ("placing/rescue.py MIN_RUN", 8, "rescue_mate",
         lambda bases: diagonals_looked_at(bases - 40, 500)[0], {7: -32, 8: -32, 9: -31}),
        ("placing/rescue.py MIN_RUN", 8, "rescue_mate",
         lambda bases: 1000 - diagonals_looked_at(500, 1000 - bases)[1], {7: 8, 8: 8, 9: 9}),
        ("placing/secondary.py MIN_CLIPPED", 20, "split_reads", is_split,
         {19: NO, 20: YES, 21: YES}),
        ("placing/secondary.py MIN_CLIPPED", 20, "mark_candidates", keeps_all,
         {19: 0, 20: 1, 21: 1}),
        ("placing/secondary.py PARTS_OF_PLACE", 20, "are_at_one_place", shares_place,
         {18: NO, 19: NO, 20: YES}),
        ("seeding/pruning.py BEST_KEPT", 3, "mark_best", best_kept, {2: 2, 3: 3, 4: 3}),
        ("seeding/pruning.py BEST_KEPT", 3, "prune_template", left_of, {2: 2, 3: 3, 4: 3}),
    ]
]  # fmt: skip


def test_every_threshold_has_its_cases_or_a_reason():
    found = {(f"{file} {name}", function) for file, name, function in thresholds(ROOT)}
    excused = {use for use in found if use[0] in NONE_CHANGES_OUTPUT or use in NEEDLESS}
    assert {name for name, _ in excused} == {*NONE_CHANGES_OUTPUT, *(name for name, _ in NEEDLESS)}
    assert {(border.threshold, border.function) for border in BORDERS} == found - excused


@pytest.mark.parametrize("border", BORDERS, ids=lambda one: f"{one.threshold}, {one.function}")
def test_one_below_at_and_one_above(border):
    file, name = border.threshold.split()
    words = file.removesuffix(".py").replace("/", ".")
    assert getattr(import_module(f"mummergpu.mapping.{words}"), name) == border.value
    assert len(border.cases) == 3 and all(one < two for one, two in pairwise(border.cases))
    found = {given: border.outcome(given) for given in border.cases}
    assert found == border.cases
    # Otherwise no border would be seen.
    assert len({repr(outcome) for outcome in found.values()}) > 1


def test_thresholds_are_read_off_the_source(tmp_path):
    (tmp_path / "one.py").write_text(
        "from typing import Final\n"
        "LEAST: Final = 3\nMOST, PLACE = 1 << 4, 1\nTWICE = -(2 * LEAST)\nNAME = 'x'\nFEW = 2\n"
        "def one(x, rows):\n    return x[PLACE] < LEAST + 1 or rows[x >= TWICE]\n"
        "def two(x):\n    return x == LEAST or x + MOST or x < NAME\n"
    )
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/other.py").write_text(
        "from package.one import FEW, MOST as MOST_OF_ONE\nOWN = 0.5\n"
        "def outer(x):\n"
        "    def inside():\n        return min(x, MOST_OF_ONE), range(FEW), range(0, 9, OWN)\n"
        "    return OWN > x\n"
    )
    assert thresholds(tmp_path) == {
        *(("one.py", name, "one") for name in ("LEAST", "TWICE")),
        *(("one.py", name, "inside") for name in ("MOST", "FEW")),
        ("inner/other.py", "OWN", "outer"),
    }
