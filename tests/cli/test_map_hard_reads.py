"""Reads that are hard to map: beside mates without a place, of many places, of many lengths."""

import os
import random
import threading
from pathlib import Path

import pytest
from helpers.genomes import changed
from helpers.repeat_reads import rows_of, tags_of
from helpers.sequences import random_bases, reverse_complement, write_fasta, write_fastq

FAMILY = 1200
"""More copies than the second pass looks at of a k-mer."""

GROUP = r"-R '@RG\tID:x'"
"""Otherwise the group has the name of the file."""

UNMAPPED, LAST, EXTRA, SUPPLEMENTARY = 4, 128, 0x900, 2048


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_reads(name, texts):
    """Write reads as FASTQ, the n-th as ``r<n>``; return the name of the file."""
    return write_fastq(name, ((f"r{n}", text) for n, text in enumerate(texts)))


def write_genome(*records):
    write_fasta("r.fa", {f"c{n}": text for n, text in enumerate(records)})


def primary_rows(words, of_second=False):
    """The primary rows of the reads, or of the second mates."""
    rows = [row for row in rows_of(words) if not int(row[1]) & EXTRA]
    return [row for row in rows if bool(int(row[1]) & LAST) == of_second]


def score(row):
    return int(tags_of(row)["AS"]) if not int(row[1]) & UNMAPPED else 0


@pytest.mark.parametrize("seed", range(2))
def test_a_mate_without_a_place_takes_none_from_a_perfect_read(seed):
    """At the edges of arrays and of repeats: the second pass skips k-mers that are frequent."""
    some = random.Random(seed)
    unit = random_bases(some, 300)
    parts, edges = [random_bases(some, 2000), "AC" * 3000], [2000, 8000]
    for _ in range(FAMILY):
        parts.append(random_bases(some, 300))
        edges.append(sum(map(len, parts)) if len(parts) < 20 else edges[-1])
        copy = changed(unit, some, some.choice([0.02, 0.05]))
        parts.append(copy if some.random() < 0.5 else reverse_complement(copy))
    genome = "".join([*parts, random_bases(some, 500)])
    write_genome(genome)
    first, second = [], []
    for number in range(120):
        edge = edges[number % len(edges)]
        length = some.choice([75, 100, 150])
        # Beside the array some 23 bases tell the place.
        begin = edge - (some.randint(20, length - 20) if edge > 8000 else length - 23)
        read = genome[begin : begin + length]
        own = reverse_complement(genome[begin + 200 : begin + 300])
        first.append(read if some.random() < 0.5 else reverse_complement(read))
        mates = ("G" * 100, random_bases(some, 100), "", changed(own, some, 0.14))
        second.append(mates[number % 4])
    files = f"{write_reads('1.fq', first)} {write_reads('2.fq', second)}"
    rows = primary_rows(f"{files} -I 300,30")
    assert [score(row) for row in rows] == [len(read) for read in first]
    single = primary_rows("1.fq --single")
    # The reads whose mates have a place are not compared.
    lonely = [n for n, row in enumerate(rows) if int(row[1]) & 8]
    assert len(lonely) > 60
    for number in lonely:
        assert rows[number][2:6] == single[number][2:6]


def chimeras(some, genome, left, count):
    """Reads of 150 bases, of which the first ones are of another place than the others."""
    texts = []
    for _ in range(count):
        text = ""
        for length in (left, 150 - left):
            begin = some.randrange(len(genome) - length)
            part = genome[begin : begin + length]
            text += part if some.random() < 0.5 else reverse_complement(part)
        texts.append(changed(text, some, 0.004))
    return texts


@pytest.mark.parametrize("left", [30, 45, 60, 71, 75])
def test_the_parts_of_a_chimera_do_not_compete(left):
    some = random.Random(left)
    genome = random_bases(some, 200_000)
    write_genome(genome)
    write_reads("1.fq", chimeras(some, genome, left, 60))
    write_reads("2.fq", [genome[n * 3000 : n * 3000 + 100] for n in range(60)])
    for words in ("1.fq --single", "1.fq 2.fq -I 300,30"):
        rows = primary_rows(words)
        assert sum(int(row[4]) >= 20 for row in rows) >= 59
        assert sum("SA" in tags_of(row) for row in rows) >= 50
        assert not any(int(tags_of(row)["XS"]) for row in rows)


def test_no_alignment_scores_less_than_asked():
    """Supplementary ones either, whose score at the read's end has a bonus that is not told."""
    some = random.Random(8)
    genome = random_bases(some, 100_000)
    write_genome(genome)
    lefts = (22, 26, 29, 33, 40)
    write_reads("q.fq", [text for left in lefts for text in chimeras(some, genome, left, 40)])
    for least in (20, 30, 37):
        rows = [row for row in rows_of(f"q.fq -T {least}") if not int(row[1]) & UNMAPPED]
        assert min(score(row) for row in rows) >= least
        extra = [row for row in rows if int(row[1]) & SUPPLEMENTARY]
        assert len(extra) > 30 and min(score(row) for row in extra) < least + 8


def mixed_reads(some, genome, count):
    texts = []
    for number in range(count):
        length = 60 if number < count // 3 else some.choice([60, 250, 250, 250])
        begin = some.randrange(len(genome) - length)
        texts.append(changed(genome[begin : begin + length], some, 0.08))
    return texts


@pytest.mark.parametrize("seed", range(2))
def test_output_depends_on_the_reads_alone(seed):
    """Not on threads, on blocks, or on whether the length of the input is known."""
    some = random.Random(seed)
    genome = random_bases(some, 60_000)
    write_genome(genome)
    texts = mixed_reads(some, genome, 3000)
    write_reads("q.fq", texts)
    expected = rows_of(f"q.fq {GROUP} -t 1")
    assert sum(int(row[1]) & UNMAPPED == 0 for row in expected) > 0.93 * len(texts)
    for words in ("-t 3", "-t 8", "--block-size 4000", "--block-size 100M"):
        assert rows_of(f"q.fq {GROUP} {words}") == expected
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(Path("q.fq").read_bytes(),))
    writer.start()
    assert rows_of(f"pipe {GROUP}") == expected
    writer.join()


def test_the_order_of_files_changes_no_row():
    some = random.Random(5)
    genome = random_bases(some, 60_000)
    write_genome(genome)
    for name in ("a.fq", "b.fq"):
        texts = mixed_reads(some, genome, 1500)
        write_fastq(name, ((f"{name}{n}", text) for n, text in enumerate(texts)), "F")
    one, other = (rows_of(f"{files} --single {GROUP}") for files in ("a.fq b.fq", "b.fq a.fq"))
    assert sorted(one) == sorted(other) and one != other


READ = 50
OTHER = str.maketrans("ACGT", "CATG")


def _with_changes(bases, places):
    changed = list(bases)
    for place in places:
        changed[place] = bases[place].translate(OTHER)
    return "".join(changed)


@pytest.mark.parametrize("copies", [0, 3, 60])
def test_a_mate_is_looked_for_beside_the_best_places(copies):
    """No match of the mate is long enough for a search, and the copies come before its place."""
    chance = random.Random(copies)

    def bases(count):
        return random_bases(chance, count)

    read, mate = bases(READ), bases(READ)
    copy = _with_changes(read, range(25, 26))
    before = "".join(bases(400) + copy for _ in range(copies)) + bases(500)
    write_genome(before + read + bases(200) + mate + bases(500))
    write_fasta("1.fa", {"pair": read})
    write_fasta("2.fa", {"pair": reverse_complement(_with_changes(mate, range(10, READ, 11)))})
    rows = rows_of("1.fa 2.fa -I 300,30")
    assert [row[3] for row in rows] == [str(len(before) + 1), str(len(before) + READ + 201)]
    assert [int(row[1]) & 2 for row in rows] == [2, 2]
    assert [row[5] for row in rows] == [f"{READ}M"] * 2


def test_each_of_two_equal_copies_gets_its_share_of_pairs():
    made = random.Random(12)
    copy = random_bases(made, 2000)
    genome = random_bases(made, 3000) + copy + random_bases(made, 3000) + copy
    write_genome(genome + random_bases(made, 3000))
    begins = [made.randrange(len(copy) - 300) for _ in range(400)]
    mates = ([copy[at : at + 80] for at in begins],
             [reverse_complement(copy[at + 220 : at + 300]) for at in begins])  # fmt: skip
    for number, reads in enumerate(mates):
        write_fasta(f"{number}.fa", ((f"p{n}", read) for n, read in enumerate(reads)))
    rows = rows_of("0.fa 1.fa")
    first = sum(int(row[3]) < 5500 for row in rows)
    assert len(rows) == 800 and 300 < first < 500
