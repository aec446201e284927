"""Blocks of queries and of proteins: where they end, what they need, how they are read ahead."""

import gzip
import os
import sys
import threading
import time
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from helpers.loops import each
from helpers.naive import pairs_of

from mummergpu.errors import InputError, LibraryError, OptionError
from mummergpu.input.blocks.memory import block_in_memory
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import ProteinFiles, ProteinsInMemory
from mummergpu.input.blocks.queries import join_query_blocks
from mummergpu.input.blocks.reader import BLOCKS_AHEAD, ReadStream, query_reader
from mummergpu.input.records.record_arrays import NO_SPANS, Records, Spans
from mummergpu.runtime.pyhmmer_library import bytes_of
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import AMINO_ACIDS, BREAK, MARGIN, decode


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
    # MUMmer takes at most 32 files.
    assert pairs_of(blocks_of(14 * paths, 20)) == 14 * expected


def test_progress_reaches_the_total(tmp_path):
    paths = [
        write(tmp_path, "a.fq", fastq(2000)),
        write(tmp_path, "b.fq.gz", gzip.compress(fastq(2000))),
    ]
    with query_reader(paths, 1000, 5000) as reader:
        assert reader.bytes_total == sum(map(os.path.getsize, paths)) and reader.bytes_read == 0
        progress = [reader.bytes_read for _ in reader]
        assert reader.bytes_read == reader.bytes_total
    assert progress == sorted(progress) and len(set(progress)) > 3


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
        assert np.array_equal(block.codes, codes) and np.array_equal(block.names, names)


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
    blocks = blocks_of([write(tmp_path, "empty.fa", b">\n" * 100_000)], 4000)
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
    assert [block.query_count for block in blocks] == [2, 1] and peak < 2.5 * len(sequence)


@pytest.mark.parametrize("packed", [False, True])
def test_a_fault_behind_many_reads_is_found(tmp_path, packed):
    good = fastq(10_000, 4) * 10
    content = gzip.compress(good, 1)[:-4] if packed else good + b"@bad\nACGT\n+\nIII\n"
    path = write(tmp_path, "a.fq", content)
    count = 0
    with pytest.raises(InputError) as caught, query_reader([path], 1 << 17) as reader:
        for block in reader:
            count += block.query_count
    assert 65_000 < count <= 100_000
    short = "quality has 3 characters, sequence has 4"
    message = f"{path}:400004: {short} (record 'bad')"
    if packed:
        message = f"{path}: the compressed data end too early (truncated?)"
    assert str(caught.value) == message


QUERIES = [("one", "ACGT"), ("", "N"), ("two", ""), ("three", "GGATTACA"), ("four", "T")]


@each("ends", [(2,), (0, 1), (1, 1, 3, 5), (1, 2, 3, 4)])
def test_parts_become_the_whole(ends):
    whole = block_in_memory(QUERIES)
    assert join_query_blocks([whole]) is whole
    parts = [whole.part(first, end) for first, end in pairwise([0, *ends, 5])]
    joined = join_query_blocks(parts)
    for name in ("codes", "offsets", "names", "name_offsets"):
        found, expected = getattr(joined, name), getattr(whole, name)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected), name
    assert (joined.query_count, joined.base_count) == (5, 14)
    assert joined.padded_codes.size == joined.base_count + 2 * MARGIN
    margins = joined.padded_codes[:MARGIN], joined.padded_codes[-MARGIN:]
    assert all((margin == BREAK).all() for margin in margins)


READS = [b"ACGT" * (1 + number % 5) for number in range(200)]


@pytest.fixture
def reads(tmp_path):
    path = tmp_path / "reads.fa"
    path.write_bytes(b"".join(b">r\n%s\n" % read for read in READS))
    return str(path)


def nobody(bases, share):
    """Take what is told of the reading."""


def stream_of(paths, block_size, stats, tell=nobody):
    return ReadStream(query_reader(paths, block_size), stats, tell)


def wait_until(holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_files_are_read_before_anybody_asks(reads):
    stats = Stats()
    with stream_of([reads], 40, stats, nobody):
        # One more than wait has been read, and waits for room.
        wait_until(lambda: stats.counts.get("blocks", 0) == BLOCKS_AHEAD + 1)
    assert stats.counts["blocks"] <= BLOCKS_AHEAD + 2


def test_a_pipe_is_left_alone_until_somebody_asks(tmp_path):
    """Whoever fails meanwhile must not wait for a pipe that has nothing to give."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="meanwhile"), stream_of([path], 40, Stats(), nobody):
        assert set(threading.enumerate()) <= before
        raise ValueError("meanwhile")


@pytest.mark.parametrize("max_bases", [1, 7, 20, 10_000])
def test_blocks_are_cut_to_what_the_backend_likes(reads, max_bases):
    told = []
    stats = Stats()
    with stream_of([reads], 1000, stats, lambda *what: told.append(what)) as stream:
        blocks = list(stream.blocks(max_bases))
    found = [
        decode(block.codes[begin:end])
        for block in blocks
        for begin, end in zip(block.offsets, block.offsets[1:], strict=False)
    ]
    assert found == READS
    # What is not larger than asked for ends with the read that reaches 1,000 bases.
    most = 1000 + 20 if max_bases >= 1000 else 2 * max_bases
    assert all(block.base_count <= most or block.query_count == 1 for block in blocks)
    assert (len(blocks) > len(told)) == (max_bases < 500)
    assert told == sorted(told) and told[-1] == (sum(map(len, READS)), 1.0)
    assert stats.counts["queries"] == len(READS) and stats.counts["blocks"] == len(told)


def test_what_is_wrong_is_told_to_whoever_asks(tmp_path):
    path = tmp_path / "wrong.fa"
    path.write_bytes(b">a\nACGT\n>b\nAC1T\n")
    with stream_of([str(path)], 40, Stats(), nobody) as stream:
        time.sleep(0.01)
        with pytest.raises(InputError, match="is not a sequence character"):
            list(stream.blocks(40))
    with pytest.raises(InputError, match="no such file"):
        stream_of([str(tmp_path / "none.fa")], 40, Stats(), nobody)


def test_a_missing_library_is_told_before_anything_is_read(reads, monkeypatch, tmp_path):
    for name in ("compression", "compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    packed = tmp_path / "reads.fq.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd and more")
    stats = Stats()
    with pytest.raises(LibraryError, match=str(packed)):
        stream_of([reads, str(packed)], 40, stats, nobody)
    assert not stats.counts


PROTEINS = b">a  desc here \nACDEFghikl*\nBJ ZOUX\t.._~\r\n\n>b\n>  c x\x01y\nmnpqrstvwy" * 3


def proteins_of(source):
    return [
        (
            block.name(number),
            block.description(number),
            bytes(AMINO_ACIDS.letters[code] for code in block.codes[begin:end].tolist()),
        )
        for block in source.blocks()
        for number, (begin, end) in enumerate(zip(block.offsets, block.offsets[1:], strict=False))
    ]


@pytest.mark.parametrize("block_residues", [1, 10, 1 << 20])
def test_letters_names_and_descriptions(block_residues, tmp_path):
    path = tmp_path / "some.faa.gz"
    path.write_bytes(gzip.compress(PROTEINS.replace(b"y>", b"y\n>")))
    expected = [
        ("a", "desc here ", b"ACDEFGHIKL*BJZOUX---~"),
        ("b", "", b""),
        ("c", "x", b"MNPQRSTVWY"),
    ]
    assert proteins_of(ProteinFiles([str(path)], ProteinRules(), block_residues)) == 3 * expected


def test_memory_and_names_that_are_no_text():
    source = ProteinsInMemory([("a b", "MKL"), ("\udcff", "W")], ProteinRules())
    assert proteins_of(source) == [("a", "b", b"MKL"), ("\udcff", "", b"W")] == proteins_of(source)


@pytest.mark.parametrize("has_accessions", [True, False])
def test_the_words_of_some_records_are_those_of_each(has_accessions):
    headers = [b"a", b" \t b  c d ", b"x\vy", b"n \x01o", b"\xff z\x01", b"", b"\te\x01f g"]
    accessions = [b"P1", b"", b"\xfe", b"Q 2", b"", b"", b"R"]
    ends = [np.cumsum([0, *map(len, one)]) for one in (headers, accessions)]
    texts = [np.frombuffer(bytearray(b"".join(one)), np.uint8) for one in (headers, accessions)]
    offsets = np.zeros(len(headers) + 1, dtype=np.int64)
    codes = np.full(2 * MARGIN, BREAK, dtype=np.uint8)
    own = Spans(texts[1], ends[1]) if has_accessions else NO_SPANS
    records = Records(codes, offsets, texts[0], ends[0], accessions=own)
    numbers = [6, 0, 1, 2, 3, 4, 5, 1]
    words = records.words(np.array(numbers))
    for number, places in zip(numbers, words.places.tolist(), strict=True):
        expected = records.name(number), records.accession(number), records.description(number)
        texts = words.headers, words.accessions, words.headers
        for word, text, (begin, end) in zip(expected, texts, places, strict=True):
            assert bytes_of(word) == text[begin:end].tobytes()


@pytest.mark.parametrize("wrong", ["-", "1", "@", ">", ";", "\0", "\v"])
def test_what_is_no_residue(wrong, tmp_path):
    path = tmp_path / "wrong.faa"
    path.write_text(f">a\nMKL\nMK{wrong}L\n")
    with pytest.raises(InputError, match=r"wrong\.faa:3: .* is not a sequence character"):
        proteins_of(ProteinFiles([str(path)], ProteinRules()))


def test_proteins_that_are_too_long_are_left_out_or_an_error(tmp_path):
    path, long = tmp_path / "some.faa", "MKLVRAWQEF" * 10_000 + "A"
    path.write_text(f">a x\nMK\n>long y\n{long}\n>b z\nAC\n>l2\n{long}\n>c\n{long[1:]}\n")
    expected = [("a", "x", b"MK"), ("b", "z", b"AC"), ("c", "", long[1:].encode())]
    for residues in (1, 1 << 20):
        told = []
        source = ProteinFiles([str(path)], ProteinRules(), residues)
        assert list(source.blocks(None, told.append)) and proteins_of(source) == expected
        assert told == [f"{path}: 2 proteins of more than 100,000 residues left out: l2, long"]
    with pytest.raises(InputError, match=r"some\.faa:3: 100,001 residues.*'long'"):
        proteins_of(ProteinFiles([str(path)], ProteinRules(long_proteins="error")))
    named = [("a", "MK"), ("long", long)]
    assert proteins_of(ProteinsInMemory(named, ProteinRules())) == [("a", "", b"MK")]
    with pytest.raises(OptionError, match="warn"):
        ProteinRules(long_proteins="warn")


def test_a_file_without_proteins(tmp_path):
    path = tmp_path / "empty.faa"
    path.write_text("")
    told = []
    assert list(ProteinFiles([str(path)], ProteinRules()).blocks(None, told.append)) == []
    assert told == [f"{path}: no sequences"]
    with pytest.raises(InputError, match="empty"):
        proteins_of(ProteinFiles([str(path)], ProteinRules(no_empty=True)))


def test_nucleotides(tmp_path):
    path = tmp_path / "dna.fa"
    path.write_text(">a\n" + 30 * "ACGT")
    with pytest.raises(InputError, match="nucleotides"):
        proteins_of(ProteinFiles([str(path)], ProteinRules()))
    assert len(proteins_of(ProteinFiles([str(path)], ProteinRules(any_letters=True)))) == 1
