"""Reads with their qualities, single and in pairs: from files, parts of files, and memory."""

import gzip
import io
import os
import random
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers.compressions import PACKERS
from helpers.containers import bgzf
from helpers.loops import each
from helpers.naive import parse_fastq_qualities, reads_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input.blocks.file_cuts import UncutError, cut_source, is_cuttable
from mummergpu.input.blocks.memory import ReadsInMemory
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.input.blocks.reader import read_reader
from mummergpu.input.bytes.formats import BGZF_END
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.qualities import NO_QUALITY
from mummergpu.sequence.codes import BREAK, LETTERS, MARGIN


@pytest.fixture(scope="module")
def two_threads():
    with ReadingThreads(2) as pool:
        yield pool


def fastq(reads, suffix=b""):
    text = b""
    for name, bases, qualities in reads:
        characters = bytes(number + 33 for number in qualities)
        text += b"@%s%s 1:N:0:ACGT\n%s\n+\n%s\n" % (name, suffix, bases, characters)
    return text


def written(folder, name, text):
    path = folder / name
    path.write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
    return str(path)


def read_blocks(sources, block_size=1000, threads=None, chunk_size=1 << 20):
    """Return all blocks, after a look at the form of each."""
    with read_reader(sources, block_size, chunk_size, threads=threads) as reader:
        blocks = list(reader)
        assert reader.bytes_read == reader.bytes_total
    for index, block in enumerate(blocks):
        assert block.index == index and block.query_count > 0
        assert block.padded_codes.size == block.offsets[-1] + 2 * MARGIN
        assert block.pair_count * 2 == (block.query_count if block.paired else 0)
        arrays = (block.padded_codes, block.offsets, block.names, block.name_offsets)
        assert all(array.flags.c_contiguous for array in (*arrays, block.base_qualities))
    return blocks


def random_reads(chance, count, longest=90):
    reads = []
    for number in range(count):
        length = chance.choice([0, 1, longest // 3, longest])
        bases = "".join(chance.choices("ACGTN", k=length)).encode()
        name = b"read%d" % number * chance.choice([1, 3])
        reads.append((name, bases, bytes(chance.choices(range(94), k=length))))
    return reads


def mates_of(reads, chance):
    others = random_reads(chance, len(reads))
    return [(read[0], *other[1:]) for read, other in zip(reads, others, strict=True)]


def in_turn(first, second):
    return [mate for pair in zip(first, second, strict=True) for mate in pair]


def shapes(blocks):
    return [(block.file_number, block.query_count, block.base_count) for block in blocks]


@pytest.mark.parametrize("name", ["reads.fq", "reads.fq.gz"])
@pytest.mark.parametrize("block_size", [1, 50, 1 << 20])
def test_single_reads(name, block_size, tmp_path, threads):
    reads = random_reads(random.Random(block_size), 60)
    path = written(tmp_path, name, fastq(reads))
    blocks = read_blocks([ReadFile(path)], block_size)
    assert reads_of(blocks) == reads and not any(block.paired for block in blocks)
    assert all(block.base_count - len(reads[-1][1]) <= block_size + 90 for block in blocks)
    assert shapes(read_blocks([ReadFile(path)], block_size, threads)) == shapes(blocks)


@pytest.mark.parametrize("block_size", [1, 50, 400])
def test_a_block_ends_with_the_pair_that_fills_it(block_size, tmp_path):
    chance = random.Random(9)
    first = random_reads(chance, 80)
    second = mates_of(first, chance)
    one, other = (written(tmp_path, f"{n}.fq", fastq(r)) for n, r in enumerate((first, second)))
    blocks = read_blocks([MateFiles(one, other)], block_size)
    for block in blocks[:-1]:
        before = int(block.offsets[-3])
        names = int(block.name_offsets[-1])
        most = max(block_size // 8 + 1, 2)
        assert before < block_size and block.query_count <= most + 1
        is_full = block.base_count >= block_size or names >= 4 * block_size
        assert is_full or block.query_count >= most


READ = st.tuples(
    st.from_regex(rb"[!-.0-~]{1,12}", fullmatch=True),
    st.from_regex(rb"[ACGTNacgtn]{0,40}", fullmatch=True),
)


@settings(max_examples=60)
@given(
    st.lists(READ, min_size=1, max_size=12),
    st.sampled_from([2, 3, 13, 31, 33, 1 << 20]),
    st.integers(1, 60),
    st.integers(1, 41),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_fastq_is_read_as_plain_python_reads_it(
    tmp_path, records, chunk_size, block_size, width, with_returns, chance
):
    text = b""
    for name, bases in records:
        quality = bytes(chance.choices(range(33, 127), k=len(bases)))
        lines = [bases[at : at + width] for at in range(0, len(bases), width)]
        others = [quality[at : at + width] for at in range(0, len(bases), width)]
        text += b"\n".join([b"@" + name + b" x", *lines, b"+", *others, b""])
    text = text.replace(b"\n", b"\r\n") if with_returns else text
    path = written(tmp_path, "reads.fq", text)
    found = read_blocks([ReadFile(path)], block_size, chunk_size=chunk_size)
    assert reads_of(found) == parse_fastq_qualities(text)


@pytest.mark.parametrize("block_size", [100, 1000])
def test_blocks_are_the_same_for_every_number_of_threads(
    block_size, tmp_path, threads, two_threads, parts_of_reads
):
    chance = random.Random(4)
    first = random_reads(chance, 120)
    second = mates_of(first, chance)
    both = in_turn(first, second)
    one = written(tmp_path, "1.fq", fastq(first, b"/1"))
    other = written(tmp_path, "2.fq", fastq(second, b"/2"))
    together = written(tmp_path, "both.fq", fastq(both))
    # The pieces at the end of the last file are not valid on their own.
    last = written(tmp_path, "wrapped.fq", fastq(both) + b"@w\nACG\nACG\n+\n@++\n@++\n" * 200)
    sources = [ReadFile(one), ReadFile(together, True), MateFiles(one, other), ReadFile(last)]
    alone = read_blocks(sources, block_size)
    tail = [(b"w", b"ACGACG", bytes([31, 10, 10] * 2))] * 200
    assert reads_of(alone) == [*first, *both, *both, *both, *tail] and len(alone) > 20
    for pool in (threads, two_threads):
        shared = read_blocks(sources, block_size, pool)
        assert shapes(shared) == shapes(alone) and reads_of(shared) == reads_of(alone)
    assert len(parts_of_reads.ranges) > 20


@pytest.fixture
def some_pairs():
    chance = random.Random(12)
    first = random_reads(chance, 40)
    return first, mates_of(first, chance)


@pytest.mark.parametrize("kind", [*PACKERS, "bgzf"])
def test_files_are_compressed_in_every_way(kind, some_pairs, tmp_path, threads):
    pack = PACKERS.get(kind, bgzf)
    paths = [tmp_path / f"R{number}" for number in (1, 2)]
    for path, reads in zip(paths, some_pairs, strict=True):
        path.write_bytes(pack(fastq(reads)))
    plain = written(tmp_path, "plain.fq", fastq(some_pairs[0]))
    for pool in (None, threads):
        both = read_blocks([MateFiles(str(paths[0]), str(paths[1]))], 500, pool)
        assert reads_of(both) == in_turn(*some_pairs)
        mixed = read_blocks([MateFiles(plain, str(paths[1]))], 500, pool)
        assert reads_of(mixed) == in_turn(*some_pairs) and shapes(mixed) == shapes(both)
        assert reads_of(read_blocks([ReadFile(str(paths[1]))], 500, pool)) == some_pairs[1]


def test_standard_input(some_pairs, tmp_path, monkeypatch):
    expected = in_turn(*some_pairs)
    second = written(tmp_path, "R2.fq.gz", fastq(some_pairs[1]))
    for source, text in (
        (ReadFile("-"), expected),
        (ReadFile("-", interleaved=True), expected),
        (MateFiles("-", second), some_pairs[0]),
    ):
        path = Path(written(tmp_path, "input", gzip.compress(fastq(text))))
        with path.open("rb") as file:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
            with read_reader([source], 500) as reader:
                assert reader.bytes_total is None and reads_of(reader) == expected


def test_mates_from_two_pipes(some_pairs, tmp_path, two_threads):
    paths = [tmp_path / f"pipe{number}" for number in (1, 2)]
    writers = []
    for path, reads in zip(paths, some_pairs, strict=True):
        os.mkfifo(path)
        writers.append(threading.Thread(target=path.write_bytes, args=(fastq(reads),)))
        writers[-1].start()
    with read_reader([MateFiles(str(paths[0]), str(paths[1]))], 100, threads=two_threads) as reader:
        found = reads_of(reader)
    for writer in writers:
        writer.join()
    assert found == in_turn(*some_pairs)


def test_names_of_single_reads(tmp_path):
    names = b"a/1 bc d/2 e/3 /f g/12 a/1 /1 1 / x/1 h/1/2 i//1".split(b" ")
    expected = b"a bc d e/3 /f g/12 a  1 / x h/1 i/".split(b" ")
    path = written(tmp_path, "r.fq", fastq([(name, b"A", b"!") for name in names]))
    for block_size in (1, 3, 100):
        assert [read[0] for read in reads_of(read_blocks([ReadFile(path)], block_size))] == expected


def test_fasta_has_no_qualities(tmp_path):
    path = written(tmp_path, "reads.fa", b">a/1 x\nACGT\nAC\n>b\nG\n")
    (block,) = read_blocks([ReadFile(path)])
    assert reads_of([block]) == [(b"a", b"ACGTAC", bytes([NO_QUALITY] * 6)), (b"b", b"G", b"\xff")]


def test_no_reads(tmp_path):
    empty, too = (written(tmp_path, name, b"") for name in ("empty.fq", "too.fq"))
    some = written(tmp_path, "some.fq", fastq([(b"a", b"ACGT", b"!!!!")]))
    warned = []
    sources = [MateFiles(empty, too), ReadFile(empty), ReadFile(some)]
    with read_reader(sources, 100, rules=QueryRules(warn=warned.append)) as reader:
        (block,) = reader
    assert block.file_number == 2
    assert warned == [f"{path}: no reads" for path in (empty, too, empty)]
    rules = QueryRules(no_empty=True)
    with pytest.raises(InputError), read_reader([ReadFile(empty)], 1, rules=rules) as reader:
        next(reader)


def test_files_that_are_not_there_are_told_first(tmp_path):
    some = written(tmp_path, "some.fq", fastq([(b"a", b"ACGT", b"!!!!")]))
    with pytest.raises(InputError, match="no such file"):
        read_reader([ReadFile(some), MateFiles(some, str(tmp_path / "none.fq"))], 100)


@each(
    "least, most, is_told",
    [(31, 71, True), (26, 46, True), (2, 71, False), (26, 40, False), (30, 93, False)],
)
def test_old_qualities_are_told(least, most, is_told, tmp_path):
    reads = [(b"a", b"ACGT", bytes([least, most, most, least]))]
    paths = [written(tmp_path, f"{n}.fq", fastq(reads)) for n in (1, 2)]
    for source in (ReadFile(paths[0]), MateFiles(*paths)):
        told = []
        with read_reader([source], 100, rules=QueryRules(warn=told.append)) as reader:
            (block,) = reader
        assert block.base_qualities[:4].tolist() == [least, most, most, least]
        assert len(told) == int(is_told)
        assert not told or (paths[0] in told[0] and "Phred+64" in told[0])


def test_parts_of_a_block(tmp_path):
    reads = [(b"r%d" % (n // 2), b"ACGT" * (n % 3), bytes([n] * 4 * (n % 3))) for n in range(10)]
    (block,) = read_blocks([ReadFile(written(tmp_path, "r.fq", fastq(reads)), interleaved=True)])
    for first, end in ((0, 10), (2, 6), (3, 5), (0, 1), (4, 4)):
        part = block.part(first, end)
        assert reads_of([part]) == reads[first:end]
        assert part.paired == (first % 2 == 0 and end % 2 == 0)
    one, other = block.halves()
    assert (one.query_count, other.query_count) == (4, 6) and one.paired and other.paired
    assert reads_of([one, other]) == reads
    for bases in (0, 1, 9, 30, 35, 36, 100):
        one, other = block.split_at(bases)
        assert one.paired and other.paired and one.pair_count and other.pair_count
        assert reads_of([one, other]) == reads
    pair = block.part(0, 2)
    assert [(one.query_count, one.paired) for one in pair.halves()] == [(1, False)] * 2
    assert [one.query_count for one in pair.split_at(1)] == [1, 1]


def test_nothing_is_searched_with_long_reads_and_letters(tmp_path):
    """The memory of a search grows with the longest read of a block."""
    texts = [b"ACGT", b"ACRYN" * 40, b"T" * 11, b"A" * 10, b""]
    reads = [(b"r%d" % n, text, bytes([n]) * len(text)) for n, text in enumerate(texts)]
    path = written(tmp_path, "long.fq", fastq(reads))
    for size in (1, 1000):
        warnings = []
        rules = QueryRules(warn=warnings.append, max_bases=10)
        with read_reader([ReadFile(path)], size, rules=rules) as reader:
            blocks = list(reader)
        assert max(block.longest for block in blocks) == 10
        assert sum(block.base_count for block in blocks) == 14
        assert all(block.codes.max(initial=0) <= BREAK for block in blocks)
        parts = [block.part(n, n + 1) for block in blocks for n in range(block.query_count)]
        for part, (_, text, qualities) in zip(parts, reads, strict=True):
            own = part.as_written
            assert bytes(LETTERS[code] for code in own.padded_codes[MARGIN:-MARGIN]) == text
            assert own.qualities.tobytes() == qualities and own.offsets.tolist() == [0, len(text)]
        (warning,) = warnings
        told = "2 reads of more than 10 bases stayed unmapped, the longest of 200"
        assert warning.startswith(told)
    refused = QueryRules(max_bases=10, refuses_long=True)
    with (
        pytest.raises(InputError, match=r"a read of 200 bases, .* \(record 'r1'\)"),
        read_reader([ReadFile(path)], 1000, rules=refused) as reader,
    ):
        list(reader)


@st.composite
def reads_with_text(draw):
    bases = draw(st.text("ACGTNacgt", max_size=40))
    characters = st.characters(min_codepoint=33, max_codepoint=126)
    quality = draw(st.text(characters, min_size=len(bases), max_size=len(bases)))
    # A FASTQ file cannot tell a lonely '@' at the start of a line of qualities from a name.
    return draw(st.text("abc./12", min_size=1, max_size=6)), bases, quality.replace("@", "A")


def blocks(source, size):
    with read_reader([source], size) as reader:
        return list(reader)


def joined(found):
    """What all blocks have together, however they are cut."""
    return reads_of(found), {block.paired for block in found}


def write_records(path, records):
    path.write_text("".join(f"@{name}\n{bases}\n+\n{text}\n" for name, bases, text in records))
    return str(path)


@settings(max_examples=30)
@given(records=st.lists(reads_with_text(), min_size=1, max_size=12), size=st.integers(1, 90))
def test_single_reads_in_memory(records, size, tmp_path_factory):
    path = write_records(tmp_path_factory.mktemp("reads") / "r.fq", records)
    of_numbers = [
        (name, bases, np.array([ord(one) - 33 for one in text], dtype=np.int16))
        for name, bases, text in records
    ]
    of_bytes = [tuple(part.encode() for part in record) for record in records]
    expected = joined(blocks(ReadFile(path), 1 << 20))
    for given_reads in (records, iter(of_numbers), of_bytes):
        assert joined(blocks(ReadsInMemory(given_reads), size)) == expected


@settings(max_examples=30)
@given(records=st.lists(reads_with_text(), min_size=1, max_size=12), size=st.integers(1, 90))
def test_pairs_in_memory(records, size, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reads")
    named = [(f"{n}/1", bases, text) for n, (_, bases, text) in enumerate(records)]
    mates = [(f"{n}/2", bases, text) for n, (_, bases, text) in enumerate(records[::-1])]
    paths = write_records(folder / "1.fq", named), write_records(folder / "2.fq", mates)
    expected = joined(blocks(MateFiles(*paths), 1 << 20))
    pairs = list(zip(named, mates, strict=True))
    alternating = [read for pair in pairs for read in pair]
    for source in (
        ReadsInMemory(named, mates),
        ReadsInMemory(pairs, interleaved=True),
        ReadsInMemory(iter(alternating), interleaved=True),
    ):
        found = blocks(source, size)
        assert joined(found) == expected and all(block.query_count % 2 == 0 for block in found)


@pytest.mark.parametrize(
    "quality", ["FFF", "FFFFF", "FFF\x7f", "FFF\n", b"\xff" * 4, [0, 1, 2, 94], [-1] * 4, [256] * 4]
)
def test_wrong_qualities_name_their_read(quality):
    right = ("right", "ACGT", [0, 93, 7, 1])
    with pytest.raises(InputError, match=r"<memory>: .*qualit.* \(record 'wrong'\)"):
        blocks(ReadsInMemory([right, ("wrong", "ACGT", quality), right]), 100)


def made_reads(count, seed, end=b""):
    chance = random.Random(seed)
    reads = []
    for number in range(count):
        size = chance.randrange(1, 150)
        bases = "".join(chance.choices("ACGTN", k=size)).encode()
        # Qualities that begin like names and like the third line.
        reads.append((b"r%d%s" % (number, end), bases, bytes(chance.choices([31, 10, 37], k=size))))
    return reads


def fasta(reads):
    return b"".join(b">%s\n%s\n%s\n" % (name, bases[:40], bases[40:]) for name, bases, _ in reads)


def records_of(sources):
    """Return all reads of some sources, one after the other."""
    found = []
    for source in sources:
        with read_reader([source], 1000) as reader:
            found += reads_of(reader)
    return found


def files_to_cut(count):
    single = fastq(made_reads(count, 1))
    first, second = made_reads(count, 2, b"/1"), made_reads(count, 3, b"/2")
    mixed, first, second = fastq(in_turn(first, second)), fastq(first), fastq(second)
    return {
        "fastq": [single],
        "carriage returns": [single.replace(b"\n", b"\r\n")],
        "fasta": [fasta(made_reads(count, 1))],
        "bgzf": [bgzf(single, 700)],
        "bgzf of large blocks": [bgzf(single, 20_000)],
        "interleaved": [mixed],
        "interleaved bgzf": [bgzf(mixed, 700)],
        "mates": [first, second],
        "mates, bgzf first": [bgzf(first, 700), second],
        "mates, bgzf last": [first, bgzf(second, 900)],
    }


@pytest.mark.parametrize(
    ("part_bytes", "count", "least"),
    [(1, 40, 4), (2500, 300, 4), (10_000, 300, 2), (1 << 40, 40, 1)],
)
@pytest.mark.parametrize("kind", files_to_cut(1))
def test_parts_have_all_reads(tmp_path, kind, part_bytes, count, least):
    paths = []
    for number, content in enumerate(files_to_cut(count)[kind]):
        paths.append(written(tmp_path, f"{number}.fq", content))
    source = ReadFile(paths[0], kind.startswith("interleaved"))
    if kind.startswith("mates"):
        source = MateFiles(*paths)
    assert is_cuttable([source])
    parts = list(cut_source(source, part_bytes))
    # No block of bgzf begins two parts.
    assert len(parts) >= (1 if kind == "bgzf of large blocks" else least)
    assert part_bytes < 1 << 40 or len(parts) == 1
    assert records_of(parts) == records_of([source])


SINGLE = fastq(made_reads(100, 1))


@each(
    "content",
    [
        gzip.compress(SINGLE),
        bgzf(SINGLE, 700)[: -len(BGZF_END)],
        b"\xef\xbb\xbf" + SINGLE,
        b"@HD\tVN:1.6\nr\t4\t*\t0\t0\t*\t*\t0\t0\tA\tF\n",
        b"nothing of that kind\n",
        b"",
    ],
)
def test_what_cannot_be_cut(tmp_path, content):
    source = ReadFile(written(tmp_path, "reads", content))
    assert not is_cuttable([source])
    with pytest.raises(UncutError):
        list(cut_source(source, 1000))


def test_standard_input_and_missing_files_cannot_be_cut(tmp_path):
    assert not is_cuttable([ReadFile("-")])
    assert not is_cuttable([ReadFile(str(tmp_path / "none.fq"))])


def test_mates_in_another_order_cannot_be_cut(tmp_path):
    one = written(tmp_path, "1.fq", SINGLE)
    other = written(tmp_path, "2.fq", SINGLE.replace(b"@r", b"@xr"))
    with pytest.raises(UncutError):
        list(cut_source(MateFiles(one, other), 2000))


def test_parts_of_folded_fastq_are_no_valid_files(tmp_path):
    """Who reads them learns that the cuts are wrong."""
    text = b"@first\nAC\n+\nFF\n"
    for name, bases, _ in made_reads(300, 1):
        quality = b"F" * (len(bases) - 1)
        text += b"@%s\n%s\n+\n@%s\n+%s\n" % (name, bases, quality, quality[:9])
    with pytest.raises((InputError, UncutError)):
        records_of(cut_source(ReadFile(written(tmp_path, "folded.fq", text)), 3000))


def test_a_wrong_range_of_bgzf_is_refused(tmp_path):
    path = written(tmp_path, "r.fq.bgz", bgzf(SINGLE, 700))
    first, *_ = cut_source(ReadFile(path), 5000)
    begin = first.part.begin._replace(at=first.part.begin.at + 5)
    wrong = ReadFile(path, part=first.part._replace(begin=begin))
    with pytest.raises(InputError, match="other bytes between blocks"):
        records_of([wrong])
