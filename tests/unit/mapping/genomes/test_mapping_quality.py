"""Mapping qualities of alignments of genomes: the words of a reference, and what copies do."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from helpers.alignments import COMPLEMENT
from helpers.genomes import align, changed
from helpers.in_memory import named_records, reference_of
from helpers.loops import each
from helpers.sequences import random_bases, reverse_complement

from mummergpu.mapping.genomes import mapping_quality as module
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.mapping_quality import WORD_BASES, MappingQualities, find_words


def test_words_are_unique_on_both_strands(monkeypatch):
    text = bytes(random.Random(4).choices(b"ACGT", k=3000))
    part = text[500:900]
    reference = named_records(
        [
            (b"a", text + b"N" + part),
            (b"b", text[1500:1900].translate(COMPLEMENT)[::-1]),
            (b"c", b"ACGT"),
            (b"d", b"A" * 100),
        ]
    )
    joined = b"N".join([text + b"N" + part, text[1500:1900].translate(COMPLEMENT)[::-1]])
    joined += b"NACGTN" + b"A" * 100

    def word_at(place):
        word = joined[place : place + WORD_BASES]
        return min(word, word.translate(COMPLEMENT)[::-1])

    every = [place for place in range(len(joined) - WORD_BASES + 1) if b"N" not in word_at(place)]
    counts = Counter(word_at(place) for place in every)
    places, unique_before = find_words(reference)
    # One of 16, chosen by their bases.
    assert len(every) / 30 < places.size < len(every) / 9
    assert {word_at(place) for place in places.tolist()}.isdisjoint(
        word_at(place) for place in set(every) - set(places.tolist())
    )
    is_unique = np.diff(unique_before).tolist()
    assert is_unique == [int(counts[word_at(place)] == 1) for place in places.tolist()]
    assert 0 in is_unique and 1 in is_unique
    monkeypatch.setattr(module, "_SLICE_BASES", 100)
    with ThreadPoolExecutor(3) as pool:
        again = find_words(reference, pool.map)
    assert [column.tolist() for column in again] == [places.tolist(), unique_before.tolist()]


@pytest.mark.parametrize("text", [b"A", b"ACGT" * 5, b"ACGT" * 6])
def test_references_of_hardly_a_word(text):
    places, unique_before = find_words(named_records([(b"r", text)]))
    assert places.size <= 1 and unique_before.size == places.size + 1


def qualities_of(reference, query):
    """The record and the quality of each alignment of a query."""
    columns = align(reference, [query])
    qualities = MappingQualities(reference_of(reference)).of(columns)
    return list(zip(columns.records.tolist(), qualities.tolist(), strict=True))


@each("seed", range(5))
def test_qualities_tell_of_copies(seed):
    some = random.Random(seed)
    repeat, *flanks = random_bases(some, 3000), random_bases(some, 2000), random_bases(some, 2000)
    near, far = changed(repeat, some, 0.002, 0), changed(repeat, some, 0.2, 0)
    read = changed(repeat, some, 0.01, 0.002)
    assert qualities_of([repeat, far], read) == [(0, 60)]
    # A copy makes the place doubtful, even if the matches of the read are unique.
    ((record, quality),) = qualities_of([repeat, near], read)
    assert record == 0 and quality < 20
    # On its strand the copy is unique; the two others are not found.
    turned = reverse_complement(repeat)
    assert qualities_of([repeat, turned, repeat], read) == [(1, 0)]
    # Flanks make one of them certain, and the others are secondary.
    whole = flanks[0][-1500:] + read + flanks[1][:1500]
    found = dict(qualities_of([flanks[0] + repeat + flanks[1], turned, repeat], whole))
    assert found[0] == 60 and set(found.values()) <= {0, 60}


def test_the_more_differences_the_less_certain():
    some = random.Random(3)
    repeat = random_bases(some, 4000)
    copy = changed(repeat, some, 0.01, 0)
    reference = [repeat, reverse_complement(copy), copy]
    qualities = [
        max(quality for _, quality in qualities_of(reference, changed(repeat, some, rate, 0)))
        for rate in (0.001, 0.01, 0.03)
    ]
    assert qualities == sorted(qualities, reverse=True) and qualities[0] > qualities[2]


def test_nothing_has_no_qualities():
    reference = [random_bases(random.Random(1), 500)]
    columns = align(reference, [random_bases(random.Random(2), 500)])
    assert MappingQualities(reference_of(reference)).of(columns).size == 0


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        # Three words, of which one is repeated: 1.5 of 4 with the word that is assumed. So copies
        # differ in -ln(0.375) / 24 of the bases, 4.659 of 114, and the query in 3 and one more: an
        # error of 10**-(2 * 4.659 / 4).
        (10, 124, 23),
        # The last word ends beyond: 0.5 of 3, and 8.436 of 113 bases.
        (10, 123, 42),
        (10, 125, 23),
        # The first word begins before: 1.5 of 3, 3.264 of 113 bases, and odds of 0.02334.
        (11, 124, 16),
        (9, 124, 23),
        # No word: 0.5 of 1, and 2.888 of 100 bases: odds of 0.0360.
        (200, 300, 14),
    ],
)
def test_the_quality_worked_out_by_hand(begin, end, expected):
    places, unique_before = np.array([10, 50, 100]), np.array([0, 1, 2, 2])
    none, first = np.zeros(1, dtype=np.int64), np.array([begin])
    found = GenomeAlignments(
        *(none, none.astype(np.uint8), none, none, np.array([end - begin]), first, np.array([end])),
        *(np.array([0, 1]), np.array([(end - begin) << 4], dtype=np.uint32)),
        *(np.array([3]), none, none, none, np.zeros(1)),
    )
    with patch.object(module, "find_words", lambda *_: (places, unique_before)):
        assert MappingQualities(SimpleNamespace(record_starts=none)).of(found) == [expected]
