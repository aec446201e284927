"""Reads are read ahead, the first ones are looked at, and no thread waits for a pipe."""

import os
import threading

import pytest
from helpers.read_pairs import write_pairs
from helpers.sequences import write_fasta

from mummergpu.errors import OptionError
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.input.blocks.reader import ReadStream, read_reader
from mummergpu.pipeline.map_reads import choose_seed_length, usual_length
from mummergpu.runtime.stats import Stats

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
