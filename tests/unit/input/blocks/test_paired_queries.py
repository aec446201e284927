"""Pairs of reads, from one file and from two."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from helpers.loops import each

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.sequence.codes import BREAK, MARGIN

Read = tuple[str, str]

PAIRED = QueryRules(paired=True)


def fasta(reads: list[Read]) -> str:
    return "".join(f">{name} text\n{bases}\n" for name, bases in reads)


def fastq(reads: list[Read]) -> str:
    return "".join(f"@{name} text\n{bases}\n+\n{'@' * len(bases)}\n" for name, bases in reads)


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


def read_all(
    paths: list[str], block_size: int, threads: ReadingThreads | None = None
) -> list[Read]:
    """Return the reads of all blocks, after a look at the form of each block."""
    found = []
    with query_reader(paths, block_size, rules=PAIRED, threads=threads) as reader:
        for index, block in enumerate(reader):
            assert block.index == index
            assert block.query_count % 2 == 0
            assert block.padded_codes.size == block.offsets[-1] + 2 * MARGIN
            for number in range(block.query_count):
                name = block.names[slice(*block.name_offsets[number : number + 2])]
                codes = block.codes[slice(*block.offsets[number : number + 2])]
                bases = "".join("ACGTN"[code] for code in codes)
                found.append((name.tobytes().decode(), bases))
        assert reader.bytes_read == reader.bytes_total
    return found


def pairs_of(chance: random.Random, count: int) -> tuple[list[Read], list[Read]]:
    def bases() -> str:
        return "".join(chance.choices("ACGTN", k=chance.choice([0, 1, 30, 90])))

    names = [f"read{number}" * chance.choice([1, 3]) for number in range(count)]
    return [(name, bases()) for name in names], [(name, bases()) for name in names]


def in_turn(first: list[Read], second: list[Read]) -> list[Read]:
    return [mate for pair in zip(first, second, strict=True) for mate in pair]


def with_suffixes(reads: list[Read]) -> list[Read]:
    return [(f"{name}/{number % 2 + 1}", bases) for number, (name, bases) in enumerate(reads)]


@pytest.mark.parametrize("block_size", [1, 50, 1000, 1 << 20])
@pytest.mark.parametrize("count", [1, 2, 57])
@pytest.mark.parametrize("kind", ["fa", "fq.gz"])
def test_two_files_and_one_give_the_same(
    kind: str, count: int, block_size: int, tmp_path: Path
) -> None:
    text = fasta if kind == "fa" else fastq
    first, second = pairs_of(random.Random(count), count)
    both = in_turn(first, second)
    expected = with_suffixes(both)
    paths = [
        written(tmp_path, f"R1.{kind}", text(first)),
        written(tmp_path, f"R2.{kind}", text(second)),
    ]
    assert read_all(paths, block_size) == expected
    assert read_all([written(tmp_path, f"both.{kind}", text(both))], block_size) == expected
    again = [(name, bases.lower()) for name, bases in expected]
    assert read_all([written(tmp_path, f"named.{kind}", text(again))], block_size) == expected
    assert read_all(paths * 2, block_size) == expected * 2
    with ReadingThreads(3) as threads:
        assert read_all(paths, block_size, threads) == expected


def test_large_files_that_threads_read(tmp_path: Path) -> None:
    chance = random.Random(5)
    bases = "".join(chance.choices("ACGT", k=2000))
    first = [(f"r{number}", bases[number % 1800 :][:150]) for number in range(60_000)]
    second = [(f"r{number}/2", bases[number % 1700 :][:200]) for number in range(60_000)]
    paths = [written(tmp_path, "1.fq", fastq(first)), written(tmp_path, "2.fq", fastq(second))]
    with ReadingThreads(4) as threads:
        found = read_all(paths, 1 << 18, threads)
    mates = [(name.removesuffix("/2"), bases) for name, bases in second]
    assert found == with_suffixes(in_turn(first, mates))


@each(
    "first, second, names",
    [
        ("a", "a", ["a/1", "a/2"]),
        ("a/1", "a/2", ["a/1", "a/2"]),
        ("a/1", "a", ["a/1", "a/2"]),
        ("a", "a/2", ["a/1", "a/2"]),
        ("a.1", "a.1", ["a.1/1", "a.1/2"]),
        ("/1", "/2", ["/1", "/2"]),
        ("a/3", "a/3", ["a/3/1", "a/3/2"]),
    ],
)
def test_names(first: str, second: str, names: list[str], tmp_path: Path) -> None:
    path = written(tmp_path, "both.fa", fasta([(first, "AC"), (second, "GT")]))
    assert [name for name, _ in read_all([path], 100)] == names


@each("first, second", [("a", "b"), ("a", "ab"), ("a/1", "a/1"), ("a/2", "a/1"), ("a/2", "a/2")])
@pytest.mark.parametrize("kind", ["fa", "fq"])
def test_names_that_differ(kind: str, first: str, second: str, tmp_path: Path) -> None:
    text = fasta if kind == "fa" else fastq
    good = [("x", "ACGT"), ("y", "AC")]
    lines = 2 if kind == "fa" else 4
    paths = [
        written(tmp_path, f"1.{kind}", text([*good, (first, "AC")])),
        written(tmp_path, f"2.{kind}", text([*good, (second, "AC")])),
    ]
    for block_size in (1, 1000):
        with pytest.raises(InputError, match="not the mate of") as error:
            read_all(paths, block_size)
        assert (error.value.path, error.value.line) == (paths[1], 2 * lines + 1)
        assert error.value.record == second
        both = in_turn([*good, (first, "")], [*good, (second, "")])
        path = written(tmp_path, f"both.{kind}", text(both))
        with pytest.raises(InputError, match="not the mate of") as error:
            read_all([path], block_size)
        assert (error.value.line, error.value.record) == (5 * lines + 1, second)


@pytest.mark.parametrize("shorter", [0, 1])
@pytest.mark.parametrize("block_size", [1, 1000])
def test_numbers_that_differ(shorter: int, block_size: int, tmp_path: Path) -> None:
    reads = [(f"r{number}", "ACGT") for number in range(9)]
    sides = [reads, reads]
    sides[shorter] = reads[:7]
    paths = [written(tmp_path, f"{side}.fq", fastq(sides[side])) for side in (0, 1)]
    with pytest.raises(InputError, match="no mate") as error:
        read_all(paths, block_size)
    assert (error.value.path, error.value.line) == (paths[1 - shorter], 29)
    assert error.value.record == "r7"
    assert f"'{paths[shorter]}' has 7 reads" in str(error.value)


@pytest.mark.parametrize("block_size", [1, 1000])
def test_an_odd_read(block_size: int, tmp_path: Path) -> None:
    path = written(tmp_path, "both.fa.gz", fasta([("a", "A"), ("a", "C"), ("b", "G")]))
    with pytest.raises(InputError, match="the last read has no mate") as error:
        read_all([path], block_size)
    assert (error.value.path, error.value.line, error.value.record) == (path, 5, "b")


def test_no_reads(tmp_path: Path) -> None:
    empty = written(tmp_path, "empty.fq", "")
    some = written(tmp_path, "some.fq", fastq([("a", "ACGT")]))
    assert read_all([empty, written(tmp_path, "other.fq", "")], 100) == []
    with pytest.raises(InputError, match="the same file for both mates"):
        read_all([some, some], 100)
    warned: list[str] = []
    with query_reader([empty], 100, rules=QueryRules(warn=warned.append, paired=True)) as reader:
        assert list(reader) == []
    assert warned == [f"{empty}: no reads"]
    with pytest.raises(InputError, match="no mate"):
        read_all([some, empty], 100)
    with (
        pytest.raises(InputError),
        query_reader([empty], 1, rules=QueryRules(no_empty=True, paired=True)) as reader,
    ):
        next(reader)


def test_margins_are_breaks(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{side}.fa", fasta([("a", "ACGT")])) for side in (1, 2)]
    with query_reader(paths, 100, rules=PAIRED) as reader:
        block = next(reader)
    assert set(block.padded_codes[:MARGIN]) == set(block.padded_codes[-MARGIN:]) == {BREAK}


def test_broken_off(tmp_path: Path) -> None:
    first, second = pairs_of(random.Random(1), 30)
    paths = [written(tmp_path, "1.fa", fasta(first)), written(tmp_path, "2.fa", fasta(second))]
    with query_reader(paths, 1, rules=PAIRED) as reader:
        next(reader)
    assert list(reader) == []
