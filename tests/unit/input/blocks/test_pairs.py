"""Pairs of reads from one file and from two, and from SAM, BAM and CRAM as their flags say."""

import gzip
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pysam
import pytest
from helpers.alignment_tools import samtools
from helpers.loops import each
from helpers.naive import fold, pairs_of, parse_fastq_qualities, reads_of
from helpers.sequences import random_bases

from mummergpu.errors import InputError
from mummergpu.input.blocks.pairs import interleave
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.input.blocks.reader import query_reader, read_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.byte_runs import STEP
from mummergpu.input.records.qualities import NO_QUALITY
from mummergpu.input.records.record_arrays import Spans
from mummergpu.sequence.codes import BREAK, MARGIN


@dataclass(frozen=True)
class Door:
    """Who asks for pairs; queries keep ``/1`` and ``/2`` at the ends of names, or get them."""

    keeps_qualities: bool

    def reader(self, paths, block_size, threads=None):
        if not self.keeps_qualities:
            return query_reader(paths, block_size, rules=QueryRules(paired=True), threads=threads)
        pairs = zip(paths[::2], paths[1::2], strict=False)
        sources = [MateFiles(*pair) for pair in pairs] or [ReadFile(paths[0], interleaved=True)]
        return read_reader(sources, block_size, threads=threads)

    def read_all(self, paths, block_size, threads=None):
        """Return the reads of all blocks, after a look at the form of each block."""
        found = []
        with self.reader(paths, block_size, threads) as reader:
            blocks = list(reader)
        for index, block in enumerate(blocks):
            assert block.index == index and block.query_count % 2 == 0
            assert not self.keeps_qualities or block.paired
            assert block.padded_codes.size == block.offsets[-1] + 2 * MARGIN
            margins = block.padded_codes[:MARGIN], block.padded_codes[-MARGIN:]
            # Parts of what was read have their neighbours as margins.
            assert len(paths) == 1 or all((margin == BREAK).all() for margin in margins)
            found += [(name.decode(), bases.decode()) for name, bases in pairs_of([block])]
        return found

    def named(self, reads):
        """Return mates with the names that blocks have."""
        if self.keeps_qualities:
            return reads
        return [(f"{name}/{number % 2 + 1}", bases) for number, (name, bases) in enumerate(reads)]


@pytest.fixture(params=[False, True], ids=["queries", "reads"])
def door(request):
    return Door(request.param)


def written(folder, name, reads):
    is_fasta = ".fa" in name
    text = ""
    for title, bases in reads:
        quality = "@" * len(bases)
        text += f">{title} t\n{bases}\n" if is_fasta else f"@{title} t\n{bases}\n+\n{quality}\n"
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


def mate_files(folder, first, second, kind="fq"):
    return [written(folder, f"1.{kind}", first), written(folder, f"2.{kind}", second)]


def made_pairs(chance, count):
    def bases():
        return "".join(chance.choices("ACGTN", k=chance.choice([0, 1, 30, 90])))

    names = [f"read{number}" * chance.choice([1, 3]) for number in range(count)]
    return [(name, bases()) for name in names], [(name, bases()) for name in names]


def in_turn(first, second):
    return [mate for pair in zip(first, second, strict=True) for mate in pair]


def errors_of(door, paths, block_size, message):
    """What is told without threads and with them."""
    errors = []
    with ReadingThreads(4) as some_threads:
        for threads in (None, some_threads):
            with pytest.raises(InputError, match=message) as error:
                door.read_all(paths, block_size, threads)
            errors.append(error.value)
    return errors


def damage(path):
    Path(path).write_bytes(Path(path).read_bytes().replace(b"@r5", b"r5"))


@pytest.mark.parametrize("block_size", [1, 50, 1000, 1 << 20])
@each("count", [1, 2, 57])
@pytest.mark.parametrize("kind", ["fa", "fq.gz"])
def test_two_files_and_one_give_the_same(door, kind, count, block_size, tmp_path):
    first, second = made_pairs(random.Random(count), count)
    both = in_turn(first, second)
    expected = door.named(both)
    paths = mate_files(tmp_path, first, second, kind)
    assert door.read_all(paths, block_size) == expected
    assert door.read_all([written(tmp_path, f"both.{kind}", both)], block_size) == expected
    again = [(f"{name}/{n % 2 + 1}", bases.lower()) for n, (name, bases) in enumerate(both)]
    assert door.read_all([written(tmp_path, f"named.{kind}", again)], block_size) == expected
    assert door.read_all(paths * 2, block_size) == expected * 2
    with ReadingThreads(3) as threads:
        assert door.read_all(paths, block_size, threads) == expected


def test_files_that_threads_read_in_pieces(tmp_path, parts_of_reads):
    bases = random_bases(random.Random(5), 2000)
    first = [(f"r{number}", bases[number % 1800 :][:150]) for number in range(600)]
    second = [(f"r{number}", bases[number % 1700 :][:200]) for number in range(600)]
    paths = mate_files(tmp_path, first, second)
    with ReadingThreads(4) as threads:
        found = Door(False).read_all(paths, 1 << 12, threads)
    assert found == Door(False).named(in_turn(first, second)) and len(parts_of_reads.ranges) > 100


@each(
    "first, second, name",
    [
        ("a", "a", "a"),
        ("a/1", "a/2", "a"),
        ("a/1", "a", "a"),
        ("a", "a/2", "a"),
        ("a.1", "a.1", "a.1"),
        ("/1", "/2", ""),
        ("a/3", "a/3", "a/3"),
        ("a 1:N:0:AC", "a 2:N:0:AC", "a"),
        ("a/1 x", "a/2\ty", "a"),
    ],
)
def test_names(door, first, second, name, tmp_path):
    mates = [(first, "AC"), (second, "GT")]
    expected = door.named([(name, "AC"), (name, "GT")])
    assert door.read_all([written(tmp_path, "both.fa", mates)], 100) == expected
    assert door.read_all(mate_files(tmp_path, mates[:1], mates[1:]), 100) == expected


@each(
    "first, second, name",
    [
        ("a.1", "a.2", "a"),
        ("a_1", "a_2", "a"),
        ("a/1", "a/3", "a"),
        ("a_R1", "a_R2", "a"),
        ("a:1", "a:2", "a"),
        ("a/R1", "a/R3", "a"),
        ("SRR1.7.1", "SRR1.7.2", "SRR1.7"),
    ],
)
def test_other_ends_of_names_in_two_files(door, first, second, name, tmp_path):
    paths = mate_files(tmp_path, [(first, "AC")], [(second, "GT")])
    assert door.read_all(paths, 100) == door.named([(name, "AC"), (name, "GT")])


@each("first, second", [("a.1", "b.2"), ("a.2", "a.1"), ("a.1", "a_2"), ("a1", "a2"), (".1", ".2")])
def test_other_ends_that_do_not_agree(door, first, second, tmp_path):
    with pytest.raises(InputError, match="not the mate of"):
        door.read_all(mate_files(tmp_path, [(first, "A")], [(second, "A")]), 100)


@pytest.mark.parametrize("block_size", [1, 5, 30, 1000])
def test_pairs_and_single_reads_in_one_stream(block_size, tmp_path):
    chance = random.Random(block_size)
    reads = []
    expected = []
    for number in range(60):
        mates = chance.choice([1, 2, 2])
        ends = ("/1", "/2") if chance.random() < 0.5 else ("", "")
        for mate in range(mates):
            bases = "ACGT"[: chance.randrange(5)]
            reads.append((f"r{number}{ends[mate]}", bases))
            expected.append((f"r{number}".encode(), bases.encode(), mates))
    path = written(tmp_path, "mixed.fq", reads)
    told = []
    found = []
    rules = QueryRules(warn=told.append)
    with read_reader([ReadFile(path, interleaved=True)], block_size, rules=rules) as reader:
        for block in reader:
            missing = block.missing
            pairs = pairs_of([block])
            for number in np.flatnonzero(~missing):
                mates = 2 if block.paired and not missing[number ^ 1] else 1
                found.append((*pairs[number], mates))
            assert block.read_count == int((~missing).sum())
    assert found == expected
    singles = sum(mates == 1 for _, _, mates in expected)
    (warning,) = told
    assert warning.startswith(f"{singles} reads of interleaved files had no mate")


@each("first, second", [("a", "b"), ("a", "ab"), ("a/1", "a/1"), ("a/2", "a/1"), ("a/2", "a/2")])
@pytest.mark.parametrize(("kind", "lines"), [("fa", 2), ("fq.gz", 4)])
def test_names_that_differ(door, kind, lines, first, second, tmp_path):
    good = [(f"x{number}", "ACGT") for number in range(11)]
    sides = [*good, (first, "AC")], [*good, (second, "AC")]
    paths = mate_files(tmp_path, *sides, kind)
    both = written(tmp_path, f"both.{kind}", in_turn(*sides))
    for block_size in (1, 20, 1000):
        with pytest.raises(InputError, match="not the mate of") as error:
            door.read_all(paths, block_size)
        assert (error.value.path, error.value.line) == (paths[1], 11 * lines + 1)
        assert error.value.record == second
        with pytest.raises(InputError, match="not the mate of") as error:
            Door(False).read_all([both], block_size)
        assert (error.value.line, error.value.record) == (23 * lines + 1, second)


@each("shorter", [0, 1])
@pytest.mark.parametrize("block_size", [1, 30, 1000])
def test_numbers_that_differ(door, shorter, block_size, tmp_path):
    reads = [(f"r{number}", "ACGT") for number in range(9)]
    sides = [reads, reads]
    sides[shorter] = reads[:7]
    paths = mate_files(tmp_path, *sides)
    for error in errors_of(door, paths, block_size, "no mate"):
        assert (error.path, error.line, error.record) == (paths[1 - shorter], 29, "r7")
        assert f"'{paths[shorter]}' has 7 reads" in str(error)
    odd = written(tmp_path, "odd.fa.gz", in_turn(reads, reads)[:-1])
    with pytest.raises(InputError, match="the last read has no mate") as error:
        Door(False).read_all([odd], block_size)
    assert (error.value.path, error.value.line, error.value.record) == (odd, 33, "r8")


def test_a_fault_in_one_of_two_files(door, tmp_path):
    reads = [(f"r{number}", "ACGT") for number in range(9)]
    paths = mate_files(tmp_path, reads, reads)
    damage(paths[1])
    for error in errors_of(door, paths, 4, "not with '@'"):
        assert (error.path, error.line) == (paths[1], 21)


def test_the_first_of_two_faults_is_told(door, tmp_path):
    reads = [(f"r{number}", "ACGT") for number in range(9)]
    paths = mate_files(tmp_path, reads, [*reads[:3], ("other", "ACGT"), *reads[4:]])
    damage(paths[0])
    for error in errors_of(door, paths, 4, "mate"):
        assert (error.path, error.record) == (paths[1], "other")


def test_the_same_file_for_both_mates(door, tmp_path):
    path = written(tmp_path, "1.fq", [("a", "A")])
    (tmp_path / "link.fq").symlink_to(path)
    for first, other in ((path, path), (path, str(tmp_path / "link.fq")), ("-", "-")):
        with pytest.raises(InputError, match="the same file for both mates"):
            door.read_all([first, other], 100)


def test_no_reads(tmp_path):
    empty, too = (written(tmp_path, name, []) for name in ("empty.fq", "too.fq"))
    some = written(tmp_path, "some.fq", [("a", "ACGT")])
    for door in (Door(False), Door(True)):
        assert door.read_all([empty, too], 100) == []
        with pytest.raises(InputError, match="no mate"):
            door.read_all([some, empty], 100)
    rules = QueryRules(no_empty=True, paired=True)
    with pytest.raises(InputError), query_reader([empty], 1, rules=rules) as reader:
        next(reader)


def test_broken_off(door, tmp_path):
    paths = mate_files(tmp_path, *made_pairs(random.Random(1), 100), "fa")
    with ReadingThreads(4) as threads:
        with door.reader(paths, 1, threads) as reader:
            next(reader)
        assert list(reader) == []


@each("size", [*range(2 * STEP + 3), 100, 150, 151])
def test_bases_of_mates_are_interleaved(size):
    random = np.random.default_rng(size)
    sides = []
    for sizes in ([size, 0, 1, size], [size + 1, 2, 1, size + 1]):
        offsets = np.cumsum([0, *sizes])
        sides.append(Spans(random.integers(0, 200, offsets[-1], dtype=np.uint8), offsets))
    begin = 7
    total = sum(side.content.size for side in sides)
    target = Spans(np.full(begin + total + 5, 255, dtype=np.uint8), np.empty(9, dtype=np.int64))
    interleave(*sides, target, begin)
    parts = in_turn(*(np.split(side.content, side.offsets[1:-1]) for side in sides))
    assert target.offsets.tolist() == np.cumsum([0, *(part.size for part in parts)]).tolist()
    assert np.array_equal(target.content[begin:-5], np.concatenate(parts))
    assert (target.content[:begin] == 255).all() and (target.content[-5:] == 255).all()


HEADER = pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6"}, "SQ": [{"SN": "chr1", "LN": 10**6}]})
MODES = {"sam": "w", "bam": "wb", "cram": "wc"}
FIRST, LAST, REVERSE, SECONDARY, SUPPLEMENTARY = 0x41, 0x81, 0x10, 0x100, 0x800
UNMAPPED = 4


def record(name, bases, qualities, flag):
    made = pysam.AlignedSegment(HEADER)
    made.query_name, made.flag = name, flag
    made.query_sequence = bases or None
    if bases and qualities is not None:
        text = bytes(number + 33 for number in qualities).decode()
        made.query_qualities = pysam.qualitystring_to_array(text)
    if not flag & UNMAPPED:
        made.reference_id, made.reference_start = 0, 99
        made.cigarstring = f"{len(bases)}M"
    return made


def write(folder, suffix, records):
    path = str(folder / f"reads.{suffix}")
    options = [b"no_ref"] if suffix == "cram" else []
    mode = MODES[suffix]
    with pysam.AlignmentFile(path, mode, header=HEADER, format_options=options) as file:
        for one in records:
            file.write(one)
    return path


def read(source, block_size=1000):
    with read_reader([source], block_size) as reader:
        blocks = list(reader)
        assert reader.bytes_read == reader.bytes_total
    return blocks


def random_records(paired, count, seed):
    """Return reads, some of them mapped, some with other alignments, some without qualities."""
    chance = random.Random(seed)
    records = []
    for number in range(count):
        for mate in (FIRST, LAST) if paired else (0,):
            length = chance.choice([1, 2, 35, 36, 151])
            bases = "".join(chance.choices("ACGTN", k=length))
            # SAM writes quality 9 of a single base as "*", which means that there is none.
            qualities = bytes(chance.choices([*range(9), *range(10, 94)], k=length))
            kept = qualities if chance.random() < 0.9 else None
            flag = mate | chance.choice([UNMAPPED, 0, REVERSE])
            records.append(record(f"r{number}", bases, kept, flag))
            if not flag & UNMAPPED and chance.random() < 0.3:
                more = chance.choice([SECONDARY, SUPPLEMENTARY])
                records.append(record(f"r{number}", bases, kept, flag | more))
    return records


def qualities_of(made):
    if made.query_qualities is None:
        return bytes([NO_QUALITY]) * len(made.query_sequence or "")
    return bytes(made.get_forward_qualities() or ())


def expected_of(records):
    return [
        (
            (one.query_name or "").encode(),
            fold((one.get_forward_sequence() or "").encode()),
            qualities_of(one),
        )
        for one in records
        if not one.flag & (SECONDARY | SUPPLEMENTARY)
    ]


@pytest.mark.parametrize("suffix", ["sam", "bam", "cram"])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("block_size", [1, 100, 1 << 20])
def test_reads_are_as_they_were_sequenced(suffix, paired, block_size, tmp_path):
    records = random_records(paired, 80, block_size)
    path = write(tmp_path, suffix, records)
    blocks = read(ReadFile(path), block_size)
    assert all(block.paired == paired for block in blocks)
    assert all(block.query_count % 2 == 0 for block in blocks if paired)
    assert reads_of(blocks) == expected_of(records)
    assert reads_of(read(ReadFile(path, paired), block_size)) == expected_of(records)


@pytest.mark.parametrize("suffix", ["sam", "bam", "cram"])
@pytest.mark.parametrize("paired", [False, True])
def test_reads_are_those_of_samtools_fastq(suffix, paired, tmp_path):
    """Of reads that have qualities, and so have their mates."""
    records = random_records(paired, 100, 7)
    without = {made.query_name for made in records if made.query_qualities is None}
    chosen = [made for made in records if made.query_name not in without]
    path = write(tmp_path, suffix, chosen)
    found = reads_of(read(ReadFile(path)))
    assert len(found) > 50 and found == parse_fastq_qualities(samtools("fastq", "-n", path))


@pytest.mark.parametrize("suffix", ["sam", "bam"])
@pytest.mark.parametrize("block_size", [1, 9, 1000])
def test_first_mates_come_first(suffix, block_size, tmp_path):
    records = [
        record("a/2", "ACG", b"\1\2\3", LAST),
        record("a/1", "TTTTTT", b"\4" * 6, FIRST | REVERSE),
        record("b", "GG", None, FIRST | UNMAPPED),
        record("b", "", None, LAST | UNMAPPED),
        record("c", "AC", b"\5\6", LAST | REVERSE),
        record("c", "A", b"\7", FIRST),
    ]
    blocks = read(ReadFile(write(tmp_path, suffix, records)), block_size)
    assert all(block.paired for block in blocks)
    assert reads_of(blocks) == [
        (b"a", b"AAAAAA", b"\4" * 6),
        (b"a", b"ACG", b"\1\2\3"),
        (b"b", b"GG", b"\xff\xff"),
        (b"b", b"", b""),
        (b"c", b"A", b"\7"),
        (b"c", b"GT", b"\6\5"),
    ]


SINGLE = UNMAPPED


@each(
    "flags, names, message, record_name",
    [
        ([FIRST, LAST, SINGLE, FIRST, LAST, SINGLE], "aabccd", "a single read among pairs", "b"),
        ([SINGLE, SINGLE, FIRST, LAST], "abcc", "a read of a pair among single reads", "c"),
        ([FIRST, LAST, FIRST, FIRST, LAST, LAST], "aabcbc", "mates must follow each other", "b"),
        ([FIRST, LAST, FIRST, LAST], "aabc", "mates must follow each other", "b"),
        ([FIRST, LAST, FIRST, FIRST], "aabb", "must tell which one is the first", "b"),
        ([FIRST, LAST, 1, 1], "aabb", "must tell which one is the first", "b"),
        ([FIRST, LAST, FIRST | LAST, 1], "aabb", "must tell which one is the first", "b"),
        ([FIRST, LAST, FIRST], "aab", "the last read has no mate", "b"),
    ],
)
@pytest.mark.parametrize("suffix", ["sam", "bam"])
def test_flags_that_make_no_pairs(suffix, flags, names, message, record_name, tmp_path):
    named = zip(names, flags, strict=True)
    records = [record(name, "ACGT", [40] * 4, flag | UNMAPPED) for name, flag in named]
    path = write(tmp_path, suffix, records)
    for block_size in (1, 8, 1000):
        with pytest.raises(InputError, match=message) as caught:
            read(ReadFile(path), block_size)
        assert (caught.value.path, caught.value.record) == (path, record_name)


def test_single_flags_in_a_file_in_which_mates_alternate(tmp_path):
    def unmapped(names, bases, qualities):
        return [record(name, bases, qualities, UNMAPPED) for name in names.split()]

    path = write(tmp_path, "bam", unmapped("a/1 a/2 b b", "ACGT", b"\1\2\3\4"))
    (block,) = read(ReadFile(path, interleaved=True))
    assert block.paired and [name for name, _, _ in reads_of([block])] == [b"a", b"a", b"b", b"b"]
    first = unmapped("a/1/1 a/2/1 b b/1", "ACGT", b"\1\2\3\4")
    second = unmapped("a/1/2 a/2/2 b/2 b", "AC", None)
    (block,) = read(MateFiles(write(tmp_path, "bam", first), write(tmp_path, "sam", second)))
    assert block.paired and block.pair_count == 4
    assert reads_of([block])[:2] == [(b"a/1", b"ACGT", b"\1\2\3\4"), (b"a/1", b"AC", b"\xff\xff")]


def test_numbers_are_no_characters_of_old_illumina(tmp_path):
    path = write(tmp_path, "bam", [record("a", "ACGT", bytes([31, 71, 71, 31]), UNMAPPED)])
    told = []
    with read_reader([ReadFile(path)], 100, rules=QueryRules(warn=told.append)) as reader:
        list(reader)
    assert told == []


@pytest.mark.parametrize("suffix", ["sam", "bam", "cram"])
def test_single_reads_whatever_the_flags_say(suffix, tmp_path):
    flags = (FIRST | UNMAPPED, FIRST, UNMAPPED, LAST | UNMAPPED, FIRST | REVERSE)
    records = [
        record(f"r{number // 2}", "ACGGT", bytes([number] * 5), flag)
        for number, flag in enumerate(flags)
    ]
    blocks = read(ReadFile(write(tmp_path, suffix, records), ignores_flags=True), 8)
    assert not any(block.paired for block in blocks) and reads_of(blocks) == expected_of(records)
    blocks = read(ReadFile(write(tmp_path, suffix, records[:4]), True, True), 8)
    assert [block.paired for block in blocks] == [True, True]


def test_qualities_too_high(tmp_path):
    made = record("a", "ACGT", b"\1\2\3\4", UNMAPPED)
    made.query_qualities[2] = 94
    made.query_qualities = made.query_qualities
    for suffix in ("bam", "cram"):
        path = write(tmp_path, suffix, [made])
        with pytest.raises(InputError, match="a base quality is higher than 93") as caught:
            read(ReadFile(path))
        assert caught.value.path == path
