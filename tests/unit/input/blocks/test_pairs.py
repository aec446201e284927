"""Pairs of reads from one file and from two, as queries and as reads with qualities."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.loops import each
from helpers.sequences import random_bases

from mummergpu.errors import InputError
from mummergpu.input.blocks.pairs import cut_suffixes, interleave
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.input.blocks.reader import query_reader, read_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.byte_runs import STEP
from mummergpu.input.records.record_arrays import Spans
from mummergpu.sequence.codes import BREAK, MARGIN

Read = tuple[str, str]


@dataclass(frozen=True)
class Door:
    """Who asks for pairs; queries keep ``/1`` and ``/2`` at the ends of names, or get them."""

    keeps_qualities: bool

    def blocks(self, paths, block_size, threads=None):
        if not self.keeps_qualities:
            rules = QueryRules(paired=True)
            with query_reader(paths, block_size, rules=rules, threads=threads) as reader:
                return list(reader)
        pairs = zip(paths[::2], paths[1::2], strict=False)
        sources = [MateFiles(*pair) for pair in pairs] or [ReadFile(paths[0], interleaved=True)]
        with read_reader(sources, block_size, threads=threads) as reader:
            blocks = list(reader)
        assert all(block.paired for block in blocks)
        return list(blocks)

    def read_all(self, paths, block_size, threads=None):
        """Return the reads of all blocks, after a look at the form of each block."""
        found = []
        for index, block in enumerate(self.blocks(paths, block_size, threads)):
            assert block.index == index
            assert block.query_count % 2 == 0
            assert block.padded_codes.size == block.offsets[-1] + 2 * MARGIN
            margins = block.padded_codes[:MARGIN], block.padded_codes[-MARGIN:]
            # Parts of what was read have their neighbours as margins.
            assert len(paths) == 1 or all((margin == BREAK).all() for margin in margins)
            for number in range(block.query_count):
                name = block.names[slice(*block.name_offsets[number : number + 2])]
                codes = block.codes[slice(*block.offsets[number : number + 2])]
                found.append((name.tobytes().decode(), "".join("ACGTN"[code] for code in codes)))
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
    text = "".join(
        f">{title} text\n{bases}\n"
        if is_fasta
        else f"@{title} text\n{bases}\n+\n{'@' * len(bases)}\n"
        for title, bases in reads
    ).encode()
    path = folder / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return str(path)


def pairs_of(chance, count):
    def bases():
        return "".join(chance.choices("ACGTN", k=chance.choice([0, 1, 30, 90])))

    names = [f"read{number}" * chance.choice([1, 3]) for number in range(count)]
    return [(name, bases()) for name in names], [(name, bases()) for name in names]


def in_turn(first, second):
    return [mate for pair in zip(first, second, strict=True) for mate in pair]


@pytest.mark.parametrize("block_size", [1, 50, 1000, 1 << 20])
@pytest.mark.parametrize("count", [1, 2, 57])
@pytest.mark.parametrize("kind", ["fa", "fq.gz"])
def test_two_files_and_one_give_the_same(door, kind, count, block_size, tmp_path):
    first, second = pairs_of(random.Random(count), count)
    both = in_turn(first, second)
    expected = door.named(both)
    paths = [written(tmp_path, f"R1.{kind}", first), written(tmp_path, f"R2.{kind}", second)]
    assert door.read_all(paths, block_size) == expected
    assert door.read_all([written(tmp_path, f"both.{kind}", both)], block_size) == expected
    again = [(f"{name}/{n % 2 + 1}", bases.lower()) for n, (name, bases) in enumerate(both)]
    assert door.read_all([written(tmp_path, f"named.{kind}", again)], block_size) == expected
    assert door.read_all(paths * 2, block_size) == expected * 2
    with ReadingThreads(3) as threads:
        assert door.read_all(paths, block_size, threads) == expected


def test_large_files_that_threads_read(tmp_path):
    chance = random.Random(5)
    bases = random_bases(chance, 2000)
    first = [(f"r{number}", bases[number % 1800 :][:150]) for number in range(60_000)]
    second = [(f"r{number}", bases[number % 1700 :][:200]) for number in range(60_000)]
    paths = [written(tmp_path, "1.fq", first), written(tmp_path, "2.fq", second)]
    with ReadingThreads(4) as threads:
        found = Door(False).read_all(paths, 1 << 18, threads)
    assert found == Door(False).named(in_turn(first, second))


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
    paths = [written(tmp_path, f"{n}.fq", [mate]) for n, mate in enumerate(mates)]
    assert door.read_all(paths, 100) == expected


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
    mates = [(first, "AC"), (second, "GT")]
    paths = [written(tmp_path, f"{n}.fq", [mate]) for n, mate in enumerate(mates)]
    assert door.read_all(paths, 100) == door.named([(name, "AC"), (name, "GT")])


@each("first, second", [("a.1", "b.2"), ("a.2", "a.1"), ("a.1", "a_2"), ("a1", "a2"), (".1", ".2")])
def test_other_ends_that_do_not_agree(door, first, second, tmp_path):
    paths = [written(tmp_path, f"{n}.fq", [(name, "A")]) for n, name in enumerate((first, second))]
    with pytest.raises(InputError, match="not the mate of"):
        door.read_all(paths, 100)


@pytest.mark.parametrize("block_size", [1, 5, 30, 1000])
def test_pairs_and_single_reads_in_one_stream(block_size, tmp_path):
    chance = random.Random(block_size)
    reads = []
    expected = []
    for number in range(60):
        mates = chance.choice([1, 2, 2])
        ends = ("/1", "/2") if chance.random() < 0.5 else ("", "")
        for mate in range(mates):
            reads.append((f"r{number}{ends[mate]}", "ACGT"[: chance.randrange(5)]))
            expected.append((f"r{number}", mates))
    path = written(tmp_path, "mixed.fq", reads)
    told = []
    found = []
    rules = QueryRules(warn=told.append)
    with read_reader([ReadFile(path, interleaved=True)], block_size, rules=rules) as reader:
        for block in reader:
            missing = block.missing
            for number in np.flatnonzero(~missing):
                name = block.names[slice(*block.name_offsets[number : number + 2])]
                mates = 2 if block.paired and not missing[number ^ 1] else 1
                bases = "".join(
                    "ACGTN"[code]
                    for code in block.codes[slice(*block.offsets[number : number + 2])]
                )
                found.append((name.tobytes().decode(), mates, bases))
            assert block.read_count == int((~missing).sum())
    assert [one[:2] for one in found] == expected
    assert [one[2] for one in found] == [bases for _, bases in reads]
    singles = sum(mates == 1 for _, mates in expected)
    assert len(told) == 1 and told[0].startswith(
        f"{singles} reads of interleaved files had no mate"
    )


@each("first, second", [("a", "b"), ("a", "ab"), ("a/1", "a/1"), ("a/2", "a/1"), ("a/2", "a/2")])
@pytest.mark.parametrize("kind", ["fa", "fq.gz"])
def test_names_that_differ(door, kind, first, second, tmp_path):
    good = [(f"x{number}", "ACGT") for number in range(11)]
    lines = 2 if kind == "fa" else 4
    sides = [*good, (first, "AC")], [*good, (second, "AC")]
    paths = [written(tmp_path, f"{n}.{kind}", side) for n, side in enumerate(sides)]
    both = written(tmp_path, f"both.{kind}", in_turn(*sides))
    for block_size in (1, 20, 1000):
        with pytest.raises(InputError, match="not the mate of") as error:
            door.read_all(paths, block_size)
        assert (error.value.path, error.value.line) == (paths[1], 11 * lines + 1)
        assert error.value.record == second
        if door.keeps_qualities:
            continue
        with pytest.raises(InputError, match="not the mate of") as error:
            door.read_all([both], block_size)
        assert (error.value.line, error.value.record) == (23 * lines + 1, second)


@pytest.mark.parametrize("shorter", [0, 1])
@pytest.mark.parametrize("block_size", [1, 30, 1000])
def test_numbers_that_differ(door, shorter, block_size, tmp_path):
    reads = [(f"r{number}", "ACGT") for number in range(9)]
    sides = [reads, reads]
    sides[shorter] = reads[:7]
    paths = [written(tmp_path, f"{n}.fq", side) for n, side in enumerate(sides)]
    with ReadingThreads(4) as some_threads:
        for threads in (None, some_threads):
            with pytest.raises(InputError, match="no mate") as error:
                door.read_all(paths, block_size, threads)
            assert (error.value.path, error.value.line) == (paths[1 - shorter], 29)
            assert error.value.record == "r7"
            assert f"'{paths[shorter]}' has 7 reads" in str(error.value)
    if door.keeps_qualities:
        return
    odd = written(tmp_path, "odd.fa.gz", in_turn(reads, reads)[:-1])
    with pytest.raises(InputError, match="the last read has no mate") as error:
        door.read_all([odd], block_size)
    assert (error.value.path, error.value.line, error.value.record) == (odd, 33, "r8")


def test_a_fault_in_one_of_two_files(door, tmp_path):
    reads = [(f"r{number}", "ACGT") for number in range(9)]
    paths = [written(tmp_path, f"{side}.fq", reads) for side in (0, 1)]
    wrong = Path(paths[1])
    wrong.write_bytes(wrong.read_bytes().replace(b"@r5", b"r5"))
    with ReadingThreads(4) as some_threads:
        for threads in (None, some_threads):
            with pytest.raises(InputError, match="not with '@'") as error:
                door.read_all(paths, 4, threads)
            assert (error.value.path, error.value.line) == (paths[1], 21)


def test_the_first_of_two_faults_is_told(door, tmp_path):
    names = [f"r{number}" for number in range(9)]
    first, second = ([(name, "ACGT") for name in names] for _ in (0, 1))
    second[3] = ("other", "ACGT")
    paths = [written(tmp_path, f"{n}.fq", reads) for n, reads in enumerate((first, second))]
    wrong = Path(paths[0])
    wrong.write_bytes(wrong.read_bytes().replace(b"@r5", b"r5"))
    with ReadingThreads(4) as some_threads:
        for threads in (None, some_threads):
            with pytest.raises(InputError, match="mate") as error:
                door.read_all(paths, 4, threads)
            assert (error.value.path, error.value.record) == (paths[1], "other")


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
    warned = []
    with query_reader([empty], 100, rules=QueryRules(warn=warned.append, paired=True)) as reader:
        assert list(reader) == []
    assert warned == [f"{empty}: no reads"]
    rules = QueryRules(no_empty=True, paired=True)
    with pytest.raises(InputError), query_reader([empty], 1, rules=rules) as reader:
        next(reader)


def test_broken_off(door, tmp_path):
    paths = [
        written(tmp_path, f"{n}.fa", reads)
        for n, reads in enumerate(pairs_of(random.Random(1), 100))
    ]
    with ReadingThreads(4) as threads:
        if door.keeps_qualities:
            with read_reader([MateFiles(*paths)], 1, threads=threads) as reads:
                next(reads)
            assert list(reads) == []
            return
        rules = QueryRules(paired=True)
        with query_reader(paths, 1, rules=rules, threads=threads) as queries:
            next(queries)
        assert list(queries) == []


@each("size", [*range(2 * STEP + 3), 100, 150, 151])
def test_bases_of_mates_are_interleaved(size):
    random = np.random.default_rng(size)
    sizes = np.array([size, 0, 1, size])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    other_sizes = sizes[::-1] + 1
    other_offsets = np.concatenate(([0], np.cumsum(other_sizes)))
    first = random.integers(0, 200, offsets[-1], dtype=np.uint8)
    second = random.integers(0, 200, other_offsets[-1], dtype=np.uint8)
    begin = 7
    target = np.full(begin + first.size + second.size + 5, 255, dtype=np.uint8)
    made = np.empty(2 * sizes.size + 1, dtype=np.int64)
    interleave(Spans(first, offsets), Spans(second, other_offsets), Spans(target, made), begin)
    parts = []
    for pair in range(sizes.size):
        parts.append(first[offsets[pair] : offsets[pair + 1]])
        parts.append(second[other_offsets[pair] : other_offsets[pair + 1]])
    assert np.array_equal(made, np.concatenate(([0], np.cumsum([part.size for part in parts]))))
    assert np.array_equal(target[begin:-5], np.concatenate(parts))
    assert (target[:begin] == 255).all() and (target[-5:] == 255).all()


@pytest.mark.parametrize(
    "names, expected",
    [
        (["a/1", "b/2", "c"], ["a", "b", "c"]),
        (["abc", "d"], ["abc", "d"]),
        (["/1", "", "1", "/", "x/1"], ["", "", "1", "/", "x"]),
        (["a/1/2", "b//1", "c/3", "d/11"], ["a/1", "b/", "c/3", "d/11"]),
        ([], []),
    ],
)
def test_suffixes_are_cut(names, expected):
    text = np.frombuffer(bytearray("".join(names).encode()), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, names)])
    end = cut_suffixes(Spans(text, offsets))
    assert text[:end].tobytes().decode() == "".join(expected)
    assert offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
