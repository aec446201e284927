"""Reads are read ahead, and the share of the work is told that pages and queries are."""

import os
import threading

import pytest
from helpers.in_memory import block_of
from helpers.read_pairs import write_pairs
from helpers.sequences import write_fasta

from mummergpu.errors import OptionError
from mummergpu.index.pages import plan_pages
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.input.blocks.reader import ReadStream, read_reader
from mummergpu.pipeline.map_reads import choose_seed_length, usual_length
from mummergpu.pipeline.progress import PageProgress, QueryProgress
from mummergpu.runtime.progress import Phase, Work
from mummergpu.runtime.stats import Stats

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


PAIRS = 60


@pytest.fixture
def folder(tmp_path):
    write_pairs(tmp_path, PAIRS)
    return tmp_path


def stream_of(*sources, stats=None, size=3000):
    return ReadStream(read_reader(sources, size), stats or Stats(), lambda bases, share: None)


def mates_of(folder):
    return MateFiles(str(folder / "1.fq"), str(folder / "2.fq"))


def count(blocks):
    return sum(block.query_count for block in blocks)


def names_of(blocks):
    return b"".join(bytes(block.names) for block in blocks)


@pytest.mark.parametrize("templates", [1, 7, 15, 16, PAIRS, 10 * PAIRS])
def test_the_first_templates_come_again(folder, templates):
    stats = Stats()
    with stream_of(mates_of(folder), stats=stats) as stream:
        first = stream.first_templates(templates)
        blocks = list(stream.blocks())
    assert count(first) == 2 * min(templates, PAIRS)
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert count(blocks) == 2 * PAIRS
    assert stats.counts["queries"] == 2 * PAIRS
    assert bytes(first[0].codes) == bytes(blocks[0].codes[: first[0].base_count])


def test_more_blocks_are_read_until_they_are_requested(folder):
    stats, seen = Stats(), threading.Semaphore(0)
    reader = read_reader((mates_of(folder),), 500)
    told = ReadStream(reader, stats, lambda bases, share: seen.release(), 4)
    with told as stream:
        assert all(seen.acquire(timeout=10) for _ in range(5))
        assert count(stream.blocks()) == 2 * PAIRS


def test_templates_farther_in_come_by_their_numbers(folder):
    with stream_of(mates_of(folder), size=500) as stream:
        every = names_of(stream.first_templates(PAIRS))
        skipped = range(0, PAIRS, 7)
        assert b"".join(names_of(stream.first_templates(7, one)) for one in skipped) == every
        assert stream.first_templates(7, PAIRS) == []
        assert count(stream.blocks()) == 2 * PAIRS


def test_pairs_and_single_reads_are_templates(folder):
    single, both = ReadFile(str(folder / "1.fq")), ReadFile(str(folder / "both.fq"), True)
    with stream_of(single, both) as stream:
        first = stream.first_templates(PAIRS + 10)
        assert sum(block.pair_count for block in first) == 10
        assert count(first) == PAIRS + 20
        assert count(stream.blocks()) == 3 * PAIRS
    with stream_of(both, single) as stream:
        first = stream.first_templates(10 * PAIRS)
        assert [
            sum(one.query_count for one in first if one.paired == p) for p in (True, False)
        ] == [2 * PAIRS, PAIRS]


def test_the_first_reads_do_not_depend_on_the_blocks(folder):
    """Whatever the threads and the size of a file make of blocks."""
    found = set()
    for size in (100, 3000, 1 << 20):
        with stream_of(ReadFile(str(folder / "1.fq")), size=size) as stream:
            first = stream.first_templates(37)
            assert count(first) == 37
            found.add(names_of(first))
    assert len(found) == 1


def test_the_usual_length_is_that_of_nearly_all_reads(tmp_path):
    """Most of the reads are long, and too few are short for the median."""

    def usual(lengths):
        write_fasta(tmp_path / "q.fa", ((n, "A" * bases) for n, bases in enumerate(lengths)))
        with stream_of(ReadFile(str(tmp_path / "q.fa"))) as stream:
            return usual_length(stream.first_templates(1000))

    assert usual([250] * 60 + [60] * 40) == 60
    assert usual([60] * 9 + [250] * 100) == 250
    assert usual([0] * 30 + [150] * 20 + [7] * 10) == 150
    assert usual([0, 10]) == usual([]) == 0


def test_no_thread_reads_a_pipe_before_the_blocks_are_asked_for(folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    text = (folder / "both.fq").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(text,))
    before = set(threading.enumerate())
    with stream_of(ReadFile(str(pipe), interleaved=True)) as stream:
        assert set(threading.enumerate()) <= before
        writer.start()
        assert count(stream.first_templates(20)) == 40
        assert not any(thread.name == "read" for thread in threading.enumerate())
        assert count(stream.blocks()) == 2 * PAIRS
    writer.join()


def test_a_pipe_without_data_does_not_keep_the_stream_from_ending(folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    with stream_of(ReadFile(str(pipe))):
        pass


def test_the_length_of_seeds_is_that_of_the_user_or_of_the_reads(folder):
    told = []
    with stream_of(mates_of(folder)) as stream:
        block = stream.first_templates(PAIRS)[0]
    assert choose_seed_length(None, [block], 1, "x", told.append) == 20
    assert choose_seed_length(20, [block], 20, "x", told.append) == 20
    assert choose_seed_length(None, [], 1, "x", told.append) == 16
    assert not told
    assert choose_seed_length(None, [block], 40, "x.mgi", told.append) == 40
    assert len(told) == 1 and "index 'x.mgi' finds matches of 40 bases" in told[0]
    with pytest.raises(OptionError, match="'mummergpu index -l 20'"):
        choose_seed_length(20, [block], 21, "x.mgi", told.append)
