"""Secondary alignments of the command ``map``: the other places of reads of a repeat."""

from __future__ import annotations

import random
import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest
from helpers.alignment_tools import picard_errors, samtools
from helpers.loops import each

from mummergpu import map as map_reads
from mummergpu.cli.main import main
from mummergpu.errors import OptionError

COMPLEMENT = str.maketrans("ACGT", "TGCA")
READ = 100
REPEAT = 400
COPIES = 14
PAIRS = 60
LEAST_SCORE = 30
SECONDARY, REVERSE = 256, 16

Row = list[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A genome with copies of a repeat that differ more and more, and pairs of its reads.

    A tandem repeat lies in it too: a read of it fits at each period.
    """
    made = tmp_path_factory.mktemp("secondary")
    chance = random.Random(11)
    repeat = "".join(chance.choices("ACGT", k=REPEAT))
    parts = []
    for number in range(COPIES):
        copy = _changed(chance, repeat, 0.006 * number)
        parts.append("".join(chance.choices("ACGT", k=chance.randrange(200, 900))))
        parts.append(_reverse(copy) if number % 3 == 2 else copy)
    parts.append("".join(chance.choices("ACGT", k=300)) + "ACGTTCAG" * 40)
    parts.append("".join(chance.choices("ACGT", k=300)))
    records = "".join(parts[:COPIES]), "".join(parts[COPIES:])
    (made / "r.fa").write_text(f">one\n{records[0]}\n>two\n{records[1]}\n")
    mates: tuple[list[str], list[str]] = ([], [])
    for number in range(PAIRS):
        record = records[number % 2]
        begin = chance.randrange(len(record) - 300)
        ends = record[begin : begin + READ], _reverse(record[begin + 300 - READ : begin + 300])
        for bases, texts in zip(ends, mates, strict=True):
            bases = _changed(chance, bases, 0.01)[:READ]
            texts.append(f"@p{number}\n{bases}\n+\n{'F' * len(bases)}\n")
    for name, texts in zip(("1.fq", "2.fq"), mates, strict=True):
        (made / name).write_text("".join(texts))
    return made


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def _reverse(bases: str) -> str:
    return bases.translate(COMPLEMENT)[::-1]


def _changed(chance: random.Random, bases: str, share: float) -> str:
    """The bases with some of them replaced, and a few left out or doubled."""
    changed = []
    for base in bases:
        draw = chance.random() / share if share else 2.0
        if draw < 0.8:
            changed.append(chance.choice("ACGT".replace(base, "")))
        elif draw > 1.0 or draw > 0.9:
            changed.append(base if draw > 1.0 else base + base)
    return "".join(changed)


def rows_of(words: str) -> list[Row]:
    assert main(["map", "-C", "-q", "r.fa", *shlex.split(words), "-o", "x.sam"]) == 0
    lines = Path("x.sam").read_text().splitlines()
    return [line.split("\t") for line in lines if line[0] != "@"]


def is_secondary(row: Row) -> bool:
    return bool(int(row[1]) & SECONDARY)


def tags_of(row: Row) -> dict[str, str]:
    return {field[:2]: field[5:] for field in row[11:]}


def records() -> dict[str, str]:
    lines = Path("r.fa").read_text().split()
    return {name[1:]: bases for name, bases in zip(lines[0::2], lines[1::2], strict=True)}


def reads() -> dict[tuple[str, int], str]:
    """The reads by name and mate."""
    found = {}
    for mate, path in enumerate(("1.fq", "2.fq")):
        lines = Path(path).read_text().splitlines()
        found |= {
            (name[1:], mate): bases for name, bases in zip(lines[0::4], lines[1::4], strict=True)
        }
    return found


def read_of(row: Row) -> tuple[str, int]:
    return row[0], int(row[1]) >> 7 & 1


def edits_and_score(row: Row, bases: str, record: str) -> tuple[int, int]:
    """The edits of an alignment and its score, from the bases alone."""
    edits = score = at = 0
    place = int(row[3]) - 1
    for text, kind in re.findall(r"(\d+)([MIDS])", row[5]):
        length = int(text)
        if kind == "M":
            pairs = zip(bases[at : at + length], record[place : place + length], strict=True)
            differing = sum(one != other for one, other in pairs)
            edits += differing
            score += length - 5 * differing
        elif kind != "S":
            edits += length
            score -= 6 + length
        at += length if kind in "MIS" else 0
        place += length if kind in "MD" else 0
    assert at == len(bases)
    return edits, score


def span_of(row: Row) -> tuple[int, int]:
    begin = int(row[3]) - 1
    return begin, begin + sum(int(n) for n, kind in re.findall(r"(\d+)([MD])", row[5]))


@each("words", ["1.fq 2.fq", "1.fq 2.fq --single"])
def test_the_other_rows_stay_as_they_are(words: str) -> None:
    assert [row for row in rows_of(f"{words} -a") if not is_secondary(row)] == rows_of(words)


def test_every_secondary_row_tells_the_truth() -> None:
    sequences, bases_of = records(), reads()
    by_read: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows_of("1.fq 2.fq --all"):
        by_read[read_of(row)].append(row)
    count = 0
    for read, rows in by_read.items():
        # The primary row comes first, and then the best.
        assert [is_secondary(row) for row in rows] == sorted(is_secondary(row) for row in rows)
        secondary = [row for row in rows if is_secondary(row)]
        scores = []
        for row in secondary:
            count += 1
            tags = tags_of(row)
            bases = bases_of[read]
            bases = _reverse(bases) if int(row[1]) & REVERSE else bases
            found = edits_and_score(row, bases, sequences[row[2]])
            assert found == (int(tags["NM"]), int(tags["AS"])), row
            assert found[1] >= LEAST_SCORE
            assert row[4] == "0" and row[9:11] == ["*", "*"]
            assert set(tags) <= {"NM", "MD", "MC", "MQ", "AS", "XS", "RG"}
            scores.append(found[1])
        places = [(row[2], int(row[1]) & REVERSE, *span_of(row)) for row in rows if row[2] != "*"]
        for number, (record, strand, begin, end) in enumerate(places):
            for other in places[:number]:
                if other[:2] == (record, strand):
                    shared = min(end, other[3]) - max(begin, other[2])
                    assert shared <= 0.95 * min(end - begin, other[3] - other[2])
    assert count > 5 * PAIRS


def test_all_places_are_listed() -> None:
    """Those with up to four bases that differ, and no gap: all of them have a long match."""
    sequences = records()
    listed = defaultdict(list)
    for row in rows_of("1.fq 2.fq -a --single"):
        listed[row[0], row[9] if row[9] != "*" else None].append(row)
    by_name = defaultdict(list)
    for (name, _), rows in listed.items():
        by_name[name] += rows
    count = 0
    for (name, _), bases in reads().items():
        rows = by_name[name]
        for record, sequence in sequences.items():
            for strand, oriented in ((0, bases), (REVERSE, _reverse(bases))):
                for begin in range(len(sequence) - len(bases) + 1):
                    here = sequence[begin : begin + len(bases)]
                    if sum(map(str.__ne__, oriented, here)) > 4:
                        continue
                    count += 1
                    assert any(
                        row[2] == record
                        and int(row[1]) & REVERSE == strand
                        and min(span_of(row)[1], begin + len(bases)) - max(span_of(row)[0], begin)
                        > 0.95 * (len(bases) - 8)
                        for row in rows
                    ), (name, record, strand, begin)
    assert count > 3 * PAIRS


def test_a_user_may_ask_for_the_best_few() -> None:
    rows = rows_of("1.fq 2.fq -a")
    for most in (0, 1, 3):
        kept: dict[tuple[str, int], int] = defaultdict(int)
        expected = []
        for row in rows:
            if is_secondary(row):
                kept[read_of(row)] += 1
            if not is_secondary(row) or kept[read_of(row)] <= most:
                expected.append(row)
        assert rows_of(f"1.fq 2.fq -N {most}") == expected == rows_of(f"1.fq 2.fq -aN {most}")


@each("words", ["-t 2 --block-size 1000", "-t 1 --block-size 5000"])
def test_rows_do_not_depend_on_blocks(words: str) -> None:
    assert rows_of(f"1.fq 2.fq -a {words}") == rows_of("1.fq 2.fq -a")


def test_samtools_and_picard_accept_them() -> None:
    assert main(["map", "-C", "-q", "-a", "r.fa", "1.fq", "2.fq", "--sort", "-o", "x.bam"]) == 0
    samtools("quickcheck", "-v", "x.bam")
    assert int(samtools("view", "-c", "-f", "256", "x.bam")) > 5 * PAIRS
    # With the reference, Picard stops at secondary alignments, whoever wrote them: it counts edits
    # from the bases, which they do not have.
    assert picard_errors(Path("x.bam"), None, "-IGNORE", "QUALITY_NOT_STORED") == []
    plain = samtools("view", "-F", "256", "x.bam")
    assert main(["map", "-C", "-q", "r.fa", "1.fq", "2.fq", "--sort", "-o", "y.bam"]) == 0
    assert samtools("view", "y.bam") == plain


def test_python_callers_may_ask_too() -> None:
    map_reads("r.fa", "1.fq", "2.fq", max_secondary=2, output="x.sam", backend="cpu")
    lines = Path("x.sam").read_text().splitlines()
    found = [line.split("\t") for line in lines if line[0] != "@"]
    assert found == rows_of("1.fq 2.fq -N 2") and any(map(is_secondary, found))
    with pytest.raises(OptionError, match="max_secondary"):
        map_reads("r.fa", "1.fq", max_secondary=-1, output="x.sam", backend="cpu")
