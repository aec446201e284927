"""Matches unique in the reference, of which parts of long queries hold few others."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.in_memory import block_of, reference_of
from helpers.search_cases import difference
from helpers.sequences import random_bases, reverse_complement

from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.options import KmerOptions
from mummergpu.index.reference_index import BuildWork
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.matching.filter import keep_unique
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.search import BlockSearch
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand


@pytest.mark.parametrize("seed", range(6))
def test_unique_matches_need_not_hold_all_others(seed):
    """Parts of a long query, on one or two groups of pages, hold few matches at once."""
    chance = random.Random(seed)
    unit = random_bases(chance, 30 + seed)
    copies = [list(unit) for _ in range(40)]
    for copy in copies:
        copy[chance.randrange(len(copy))] = chance.choice("ACGT")
    text = random_bases(chance, 200) + "".join(map("".join, copies)) + random_bases(chance, 200)
    reference = reference_of([text, reverse_complement(text[300:900]), "A" * 60])
    block = block_of((text[100:-100], "A" * 90, random_bases(chance, 20)))
    plan = KmerIndex.plan(reference, KmerOptions(page_size=1500), 10, MemoryBudget(1 << 40))
    sizes = WorkSizes(100, 64, 80, 500, 1 << 20, 100)

    def found_by(unique_rows):
        groups = []
        with ThreadPoolExecutor(1) as executor:
            work = BuildWork(executor, 1, Stats(), lambda: None)
            pages = plan.load_pages(plan.pages, work)
        for page in pages:
            backend = KmerCpuBackend(Stats())
            backend.sizes = sizes
            backend.load_pages([page], 10)
            search = BlockSearch(
                backend, reference.codes, tuple(Strand), 10, 10, unique_rows=unique_rows
            )
            mems = search.find_mems(block)
            assert mems is not None
            groups.append(mems)
        assert len(groups) > 1
        return search.merge_groups(groups)

    every = found_by(None)
    few = found_by(50)
    for strand in Strand:
        assert few[strand].count < every[strand].count / 3
        for in_query in (False, True):
            expected = keep_unique(every[strand], in_query)
            assert difference(keep_unique(few[strand], in_query), expected) is None
