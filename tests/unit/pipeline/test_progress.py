"""Pages and queries that are done, and the share of the work that this is."""

import pytest
from helpers.in_memory import block_of

from mummergpu.index.pages import plan_pages
from mummergpu.pipeline.progress import PageProgress, QueryProgress
from mummergpu.runtime.progress import Phase, Work

BLOCKS = [block_of(("ACGT", "ACGTAC")), block_of(("A" * 30,)), block_of(("", ""))]
"""Blocks of 10, 30 and 0 bases."""


PAGES = plan_pages(25, 12, 2)
"""Pages that own 10, 10 and 5 bases."""


@pytest.fixture
def told():
    return []


def read_all(done, shares=(0.5, 0.9, 1.0)):
    bases = 0
    for block, share in zip(BLOCKS, shares, strict=True):
        bases += block.base_count
        done.read(bases, share)


def write_all(done):
    for block in BLOCKS:
        done.done(block)


def test_blocks_are_done_when_they_are_written(told):
    done = QueryProgress(told.append, 2)
    read_all(done)
    assert told == []
    done.begin_group(0, 1)
    write_all(done)
    assert told == [
        Work(Phase.READS, (0,), 0, 0.0),
        Work(Phase.READS, (2,), 10, 0.25),
        Work(Phase.READS, (3,), 40, 1.0),  # What follows has no bases.
        Work(Phase.READS, (5,), 40, 1.0),
    ]


def test_halves_of_a_block_have_their_shares_of_it(told):
    done = QueryProgress(told.append, 1)
    done.begin_group(0, 1)
    done.read(10, 0.5)
    one, other = BLOCKS[0].halves()
    done.done(one)
    done.done(other)
    assert told[1:] == [Work(Phase.READS, (1,), 4, 0.2), Work(Phase.READS, (2,), 10, 0.5)]


def test_the_bases_of_a_long_query_count_while_it_is_searched(told):
    done = QueryProgress(told.append, 2)
    done.begin_group(0, 1)
    read_all(done)
    done.searched(BLOCKS[1], 20)  # On one of two strands.
    done.done(BLOCKS[0])
    done.searched(BLOCKS[1], 40)
    done.done(BLOCKS[1])
    assert [work.bases for work in told] == [0, 10, 20, 40, 40]
    assert [work.numbers for work in told] == [(0,), (0,), (2,), (2,), (3,)]
    assert [work.share for work in told] == pytest.approx([0, 0.25, 0.5, 1.0, 1.0])


def test_groups_of_pages_share_the_work(told):
    done = QueryProgress(told.append, 1)
    done.begin_group(0, 4)
    read_all(done)
    write_all(done)
    done.begin_group(1, 4)
    done.done(BLOCKS[0])
    done.begin_group(3, 4)
    done.done(BLOCKS[0])
    done.done(BLOCKS[1])
    assert [work.phase for work in told[:-3]] == [Phase.READS_OF_GROUP] * 6
    assert [work.numbers for work in told[3:6]] == [(5, 1, 4), (0, 2, 4), (2, 2, 4)]
    assert [work.share for work in told] == pytest.approx(
        [0, 0.0625, 0.25, 0.25, 0.25, 0.3125, 0.75, 0.8125, 1.0]
    )
    assert told[-1] == Work(Phase.READS, (3,), 160, 1.0)


def test_other_groups_may_follow_or_have_gone_before(told):
    for before, behind in ((0, 2), (2, 0)):
        done = QueryProgress(told.append, 1)
        done.expect_groups(before, behind)
        read_all(done)
        for group in range(2):
            done.begin_group(group, 2)
        write_all(done)
    numbers = [work.numbers for work in told if work.phase is Phase.READS_OF_GROUP]
    assert numbers == [(0, 1, 4), *((reads, 2, 4) for reads in (0, 2, 3, 5)), (0, 3, 4)]
    assert [work.share for work in told[2:5]] == pytest.approx([0.3125, 0.5, 0.5])
    assert told[-1] == Work(Phase.READS, (5,), 160, 1.0)


def test_the_share_of_a_pipe_is_not_known_before_its_end(told):
    done = QueryProgress(told.append, 1)
    done.begin_group(0, 2)
    read_all(done, (None, None, None))
    done.done(BLOCKS[0])
    assert told[-1] == Work(Phase.READS_OF_GROUP, (2, 1, 2), 10, None)
    done.begin_group(1, 2)
    done.done(BLOCKS[0])
    assert told[-1] == Work(Phase.READS, (2,), 50, 0.625)


@pytest.mark.parametrize("writes", [False, True])
def test_pages_and_their_bases_are_counted(writes):
    told = []
    done = PageProgress(told.append, PAGES, writes)
    done.page_is_ready()
    done.share_of_next(0.5)
    done.page_is_ready()
    done.share_of_next(0.2)
    expected = [(0, 0), (1, 10), (1, 15), (2, 20), (2, 21)]
    assert told == [Work(Phase.PAGES, (n, 3), bases, bases / 25) for n, bases in expected]
    done.page_is_ready()
    all_ready = Work(Phase.PAGES, (3, 3), 25, 1.0)
    assert told[-1] == (Work(Phase.WRITING_INDEX) if writes else all_ready)
    done.end()
    assert told[-1] == all_ready


def test_the_share_does_not_shrink(told):
    done = QueryProgress(told.append, 1)
    done.begin_group(0, 1)
    done.read(10, 0.9)
    done.done(BLOCKS[0])
    done.read(40, 1.0)
    done.searched(BLOCKS[1], 15)
    assert [work.share for work in told] == [0.0, 0.9, 0.9]
