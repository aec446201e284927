"""Blocks of queries: where they end, whom they belong to, what they need, how they are joined."""

import gzip
import os
import threading
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from helpers.naive import pairs_of

from mummergpu.errors import InputError
from mummergpu.input.blocks.memory import block_in_memory
from mummergpu.input.blocks.queries import join_query_blocks
from mummergpu.input.blocks.reader import query_reader
from mummergpu.sequence.codes import BREAK, MARGIN


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return str(path)


def fastq(count, length=8, prefix=b"r"):
    return b"".join(
        b"@%s%d\n%s\n+\n%s\n" % (prefix, i, b"ACGT" * (length // 4), b"I" * length)
        for i in range(count)
    )


def blocks_of(paths, block_size):
    with query_reader(paths, block_size) as reader:
        return list(reader)


def test_files_come_in_order_and_blocks_are_numbered(tmp_path):
    paths = [
        write(tmp_path, "a.fq", fastq(10, prefix=b"a")),
        write(tmp_path, "b.fa", b">b1\nACGT\n>b2\n\n>b3\nNNN\n"),
        write(tmp_path, "c.fq.gz", gzip.compress(fastq(3, prefix=b"c"))),
    ]
    blocks = blocks_of(paths, 20)
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert [block.query_count for block in blocks] == [3, 3, 3, 1, 3, 3]
    assert [block.base_count for block in blocks] == [24, 24, 24, 8, 7, 24]
    expected = [(b"a%d" % i, b"ACGTACGT") for i in range(10)]
    expected += [(b"b1", b"ACGT"), (b"b2", b""), (b"b3", b"NNN")]
    expected += [(b"c%d" % i, b"ACGTACGT") for i in range(3)]
    assert pairs_of(blocks) == expected


def test_progress_reaches_the_total(tmp_path):
    paths = [
        write(tmp_path, "a.fq", fastq(100_000)),
        write(tmp_path, "b.fq.gz", gzip.compress(fastq(100_000))),
    ]
    with query_reader(paths, 1000) as reader:
        assert reader.bytes_total == sum(map(os.path.getsize, paths))
        assert reader.bytes_read == 0
        progress = [reader.bytes_read for _ in reader]
        assert reader.bytes_read == reader.bytes_total
    assert progress == sorted(progress)
    assert len(set(progress)) > 3


def test_total_is_unknown_where_a_pipe_is_read(tmp_path):
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    plain = write(tmp_path, "a.fq", fastq(5))

    def feed():
        with open(pipe, "wb") as file:
            file.write(fastq(50_000))

    feeder = threading.Thread(target=feed)
    with query_reader([plain, pipe], 1000) as reader:
        assert reader.bytes_total is None
        feeder.start()
        assert sum(block.query_count for block in reader) == 50_005
        assert reader.bytes_read == len(fastq(5)) + len(fastq(50_000))
    feeder.join()


def test_all_files_are_looked_for_before_the_first_is_read(tmp_path):
    plain = write(tmp_path, "a.fq", fastq(5))
    missing = str(tmp_path / "missing.fq")
    for path, message in (
        (missing, "no such file or directory"),
        (str(tmp_path), "is a directory"),
    ):
        with pytest.raises(InputError) as caught:
            query_reader([plain, path], 1000)
        assert (caught.value.path, caught.value.message) == (path, message)


def test_blocks_stay_as_they_are_while_the_reader_goes_on(tmp_path):
    path = write(tmp_path, "a.fq", fastq(1000, 12))
    with query_reader([path], 50) as reader:
        blocks, copies = [], []
        for block in reader:
            blocks.append(block)
            copies.append((block.codes.copy(), block.names.copy()))
    for block, (codes, names) in zip(blocks, copies, strict=True):
        assert np.array_equal(block.codes, codes)
        assert np.array_equal(block.names, names)


def test_blocks_lie_between_breaks_and_their_halves_are_views(tmp_path):
    (block,) = blocks_of([write(tmp_path, "a.fq", fastq(9, 12))], 1000)
    assert block.codes.base is not None and np.shares_memory(block.codes, block.padded_codes)
    margins = block.padded_codes[:MARGIN], block.padded_codes[-MARGIN:]
    assert all((margin == BREAK).all() for margin in margins)
    assert block.base_count == block.codes.size == block.offsets[-1]
    one, other = block.halves()
    assert np.array_equal(np.concatenate((one.codes, other.codes)), block.codes)
    assert one.offsets[0] == other.offsets[0] == 0
    for half in (one, other):
        assert np.shares_memory(half.padded_codes, block.padded_codes)
        assert half.padded_codes.size == half.base_count + 2 * MARGIN


def test_empty_queries_and_long_names_do_not_make_endless_blocks(tmp_path):
    empty = write(tmp_path, "empty.fa", b">\n" * 100_000)
    blocks = blocks_of([empty], 4000)
    assert sum(block.query_count for block in blocks) == 100_000
    assert max(block.query_count for block in blocks) <= 1000
    named = write(tmp_path, "named.fa", (b">" + b"n" * 10_000 + b"\nA\n") * 100)
    blocks = blocks_of([named], 4000)
    assert sum(block.query_count for block in blocks) == 100
    assert max(block.names.size for block in blocks) < 4 * 4000 + 10_000


@pytest.mark.parametrize("width", [60, 20_000_000])
def test_a_record_may_be_much_longer_than_a_block(tmp_path, width):
    sequence = b"ACGTTGCANN" * 2_000_000
    lines = [sequence[i : i + width] for i in range(0, len(sequence), width)]
    path = write(tmp_path, "long.fa", b">s\nAC\n>long x\n" + b"\n".join(lines) + b"\n>t\nGT")
    tracemalloc.start()
    blocks = blocks_of([path], 1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pairs_of(blocks) == [(b"s", b"AC"), (b"long", sequence), (b"t", b"GT")]
    assert [block.query_count for block in blocks] == [2, 1]
    assert peak < 2.5 * len(sequence)


@pytest.mark.parametrize("packed", [False, True])
def test_a_fault_behind_a_million_reads_is_found(tmp_path, packed):
    good = fastq(10_000, 4) * 100
    content = gzip.compress(good, 1)[:-4] if packed else good + b"@bad\nACGT\n+\nIII\n"
    path = write(tmp_path, "a.fq", content)
    count = 0
    with pytest.raises(InputError) as caught, query_reader([path], 1 << 20) as reader:
        for block in reader:
            count += block.query_count
    assert 700_000 < count <= 1_000_000
    if packed:
        assert str(caught.value) == f"{path}: the compressed data end too early (truncated?)"
    else:
        short = "quality has 3 characters, sequence has 4"
        assert str(caught.value) == f"{path}:4000004: {short} (record 'bad')"


def test_a_reader_that_is_closed_gives_no_more(tmp_path):
    path = write(tmp_path, "a.fq", fastq(100))
    with query_reader([path], 50) as reader:
        assert next(reader).query_count == 7
    assert list(reader) == []


QUERIES = [("one", "ACGT"), ("", "N"), ("two", ""), ("three", "GGATTACA"), ("four", "T")]


def made(queries=QUERIES):
    block = block_in_memory(queries)
    assert block is not None
    return block


@pytest.mark.parametrize("ends", [(2,), (0, 1), (1, 1, 3, 5), (1, 2, 3, 4)])
def test_parts_become_the_whole(ends):
    whole = made()
    parts = [whole.part(first, end) for first, end in pairwise([0, *ends, 5])]
    joined = join_query_blocks(parts)
    for name in ("codes", "offsets", "names", "name_offsets"):
        found, expected = getattr(joined, name), getattr(whole, name)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected), name
    assert (joined.query_count, joined.base_count) == (5, 14)


def test_margins_are_those_of_a_block():
    joined = join_query_blocks([made(), made()])
    assert joined.query_count == 10 and joined.padded_codes.size == joined.base_count + 2 * MARGIN
    assert (joined.padded_codes[:MARGIN] == BREAK).all()
    assert (joined.padded_codes[-MARGIN:] == BREAK).all()


def test_a_single_block_stays_as_it_is():
    block = made()
    assert join_query_blocks([block]) is block
