"""Reads on circular records: nothing depends on where the record begins."""

import random
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers.alignment_tools import sam_rows
from helpers.sequences import random_bases, reverse_complement, write_fasta, write_fastq

import mummergpu
from mummergpu.cli.main import main

BASES = 5000


class Row(NamedTuple):
    """A row of SAM."""

    fields: list[str]

    @property
    def flag(self):
        return int(self.fields[1])

    @property
    def begin(self):
        return int(self.fields[3]) - 1

    @property
    def operations(self):
        return [(int(n), kind) for n, kind in re.findall(r"(\d+)([A-Z])", self.fields[5])]

    def bases(self, kinds):
        return sum(length for length, kind in self.operations if kind in kinds)

    def tag(self, name):
        return next(one[5:] for one in self.fields[11:] if one.startswith(name))


def changed(made, bases):
    """Bases with some differences, and sometimes a gap; none near an end, which may be clipped."""
    middle = bases[15:-15]
    found = "".join(made.choice("ACGT") if made.random() < 0.015 else one for one in middle)
    found = bases[:15] + found + bases[-15:]
    at, length = made.randrange(40, len(found) - 50), made.randrange(1, 9)
    kind = made.randrange(5)
    if kind == 0:
        return found[:at] + found[at + length :]
    if kind == 1:
        return found[:at] + random_bases(made, length) + found[at:]
    return found


def write_pairs(folder, made, count, *genomes):
    """Write pairs of circular and of linear genomes, named by their places and sizes."""
    reads = ([], [])
    for number in range(count):
        name, genome = genomes[number % len(genomes)]
        size = max(160, int(made.gauss(400, 40)))
        begin = made.randrange(len(genome) // 2)
        template = genome[begin : begin + size]
        mates = [template[:120], reverse_complement(template[-120:])]
        made.shuffle(mates)
        for of_mate, mate in zip(reads, mates, strict=True):
            of_mate.append((f"{number}:{name}:{begin}:{size}", changed(made, mate)))
    for number, of_mate in enumerate(reads, 1):
        write_fastq(folder / f"{number}.fq", of_mate)


def rows_of(path):
    return [Row(fields) for fields in sam_rows(path)]


def reads_of(rows):
    found = {}
    for row in rows:
        found.setdefault((row.fields[0], row.flag & 192), []).append(row)
    return found


def map_reads(*words):
    assert main(["map", "-q", "--backend", "cpu", *map(str, words)]) == 0


def test_reads_across_the_origin_are_aligned_in_two_parts(tmp_path):
    made = random.Random(5)
    genome, linear = random_bases(made, BASES), random_bases(made, 9000)
    reference = write_fasta(tmp_path / "r.fa", {"chr": linear, "p": genome, "other": linear[::-1]})
    write_pairs(tmp_path, made, 1500, ("p", genome * 2), ("chr", linear))
    mates = tmp_path / "1.fq", tmp_path / "2.fq"
    map_reads(reference, *mates, "--circular", "p", "-o", tmp_path / "x.sam")
    rows = rows_of(tmp_path / "x.sam")
    header = [line for line in (tmp_path / "x.sam").read_text().splitlines() if line[0] == "@"]
    assert [one.endswith("TP:circular") for one in header if one.startswith("@SQ")] == [0, 1, 0]
    cut = 0
    for (name, _), parts in reads_of(rows).items():
        _, record, place, bases = name.split(":")
        if record == "chr":
            continue
        begin, size = int(place), int(bases)
        sizes = [row.bases("MI") for row in parts]
        assert [row.flag & 2304 for row in parts] == [0, 2048][: len(parts)]
        assert sizes[0] == max(sizes)
        # Only a gap at the origin belongs to no part.
        assert parts[0].bases("MISH") - sum(sizes) <= (8 if len(parts) == 2 else 0)
        for row in parts:
            end = row.begin + row.bases("MD")
            assert row.fields[2] == "p"
            assert 0 <= row.begin < end <= BASES
            assert (row.begin - begin + 10) % BASES <= size + 20
            assert row.flag & 2
            assert int(row.fields[4]) == 60
            assert abs(abs(int(row.fields[8])) - size) <= 20
        if len(parts) == 2:
            cut += 1
            ends = {row.begin + row.bases("MD") for row in parts}
            # They meet at the origin, but for a gap there.
            assert min(row.begin for row in parts) <= 8
            assert max(ends) >= BASES - 8
            assert all("SA:Z:" in "\t".join(row.fields) for row in parts)
    assert cut > 20
    map_reads(reference, *mates, "-o", tmp_path / "plain.sam")
    plain = rows_of(tmp_path / "plain.sam")
    linear_rows = [[row for row in of if ":chr:" in row.fields[0]] for of in (rows, plain)]
    assert linear_rows[0] == linear_rows[1] != []
    for options in (("-t", 1, "--block-size", "9k"), ("-t", 3, "--max-memory", "200M")):
        map_reads(reference, *mates, "--circular", "p", "-o", tmp_path / "y.sam", *options)
        assert rows_of(tmp_path / "y.sam") == rows
    mummergpu.map(reference, *mates, output=tmp_path / "z.sam", circular="p", backend="cpu")
    assert rows_of(tmp_path / "z.sam") == rows


def test_an_index_keeps_which_records_are_circular(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = random.Random(6)
    genome, linear = random_bases(made, BASES), random_bases(made, 9000)
    genome = genome[:2500] + "RNN" + genome[2503:]
    records = {"chr": linear, "p": genome, "other": linear[::-1], "q": linear[:3000]}
    write_fasta("r.fa", records)
    write_pairs(tmp_path, made, 600, ("p", genome * 2), ("q", linear[:3000] * 2), ("chr", linear))
    index = ["index", "-q", "r.fa", "-l", "12", "--circular", "q", "--circular", "p"]
    assert main([*index, "-o", "r.mgi"]) == 0
    assert main([*index, "-o", "pages.mgi", "--search", "kmer", "--page-size", "9k"]) == 0

    def written(words):
        map_reads(*words.split(), *"1.fq 2.fq --max-xa 5 -o x.sam".split())
        return [line for line in Path("x.sam").read_text().splitlines() if line[:3] != "@PG"]

    wanted = written("r.fa --circular p --circular q")
    assert sum("TP:circular" in line for line in wanted) == 2
    for words in ("r.mgi", "pages.mgi --max-memory 1M", "r.mgi --circular q --circular p --verify"):
        assert written(words) == wanted
    assert main(["index", "--check", "--info", "r.mgi", "r.fa"]) == 0
    assert "4, 2 of them circular" in capfd.readouterr().out
    for words in ("match r.mgi r.fa", "align r.mgi r.fa", "map r.mgi 1.fq --circular chr"):
        assert main([*words.split(), "-q", "-o", "z.paf"]) == 2
        assert "circular records" in capfd.readouterr().err
    with pytest.raises(mummergpu.MummergpuError, match="circular records"):
        mummergpu.Index.open("r.mgi")
    assert main([*index[:-2], "--search", "tree", "-o", "t.mgi"]) == 2
    assert not Path("t.mgi").exists()


def told_of(rows, shift):
    """What is told of reads, whatever the origin; of equal places, any may be chosen."""
    found = {}
    for read, parts in reads_of(rows).items():
        first = parts[0]
        place = None
        if int(first.fields[4]) > 3:
            # The 5' end of the read on the forward strand: a gap may lie in any part.
            clips = [row.operations[0][0] * (row.operations[0][1] in "SH") for row in parts]
            leading = parts[clips.index(min(clips))]
            place = first.fields[2], (leading.begin + shift - min(clips)) % BASES
        aligned = sum(row.bases("MI") for row in parts)
        found[read] = (aligned, first.flag & ~2048, first.fields[4], first.fields[8], place)
    return found


def test_results_do_not_depend_on_the_origin(tmp_path):
    """A repeat lies at one of the origins, and twice elsewhere, once with differences."""
    made = random.Random(8)
    repeat = random_bases(made, 500)
    near = "".join(made.choice("ACGT") if made.random() < 0.02 else one for one in repeat)
    left, right = random_bases(made, 1800), random_bases(made, 1700)
    genome = repeat[250:] + left + repeat + right + reverse_complement(near) + repeat[:250]
    assert len(genome) == BASES
    write_pairs(tmp_path, made, 1200, ("p", genome * 2))
    reads = []
    for number in range(200):
        begin = made.randrange(BASES)
        read = changed(made, (genome * 2)[begin : begin + 1400])
        reads.append((number, read if number % 2 else reverse_complement(read)))
    write_fasta(tmp_path / "long.fa", reads)
    told = []
    for shift in (0, 900, 3333):
        rotated = {"chr": left[:900] + repeat, "p": genome[shift:] + genome[:shift]}
        reference = write_fasta(tmp_path / "r.fa", rotated)
        found = {}
        for names in (("1.fq", "2.fq"), ("long.fa",)):
            files = [tmp_path / name for name in names]
            map_reads(reference, *files, "--circular", "p", "-o", tmp_path / "x.sam")
            found |= told_of(rows_of(tmp_path / "x.sam"), shift)
        told.append(found)
    assert told[0] == told[1] == told[2]
    assert sum(one[2] == "60" for one in told[0].values()) > 1500
    assert sum(one[2] == "0" for one in told[0].values()) > 50


def test_long_reads_have_one_place_on_a_short_circle(tmp_path):
    made = random.Random(3)
    genome = random_bases(made, 2048)
    reference = write_fasta(tmp_path / "r.fa", {"p": genome})
    reads = {str(begin): (genome * 2)[begin : begin + 1500] for begin in range(0, 2048, 16)}
    query = write_fasta(tmp_path / "q.fa", reads)
    map_reads(reference, query, "--circular", "p", "-o", tmp_path / "x.sam")
    for (name, _), parts in reads_of(rows_of(tmp_path / "x.sam")).items():
        begin = int(name)
        assert {int(row.fields[4]) for row in parts} == {60}
        assert sum(row.bases("M") for row in parts) == 1500
        assert {row.begin for row in parts} == {begin, *([0] if begin > 548 else [])}


def test_other_places_across_the_origin_are_told(tmp_path):
    made = random.Random(9)
    repeat = random_bases(made, 200)
    genome = repeat[80:] + random_bases(made, 2000) + repeat + random_bases(made, 1000)
    genome += repeat[:80]
    reference = write_fasta(tmp_path / "r.fa", {"p": genome})
    # Four bases beside the repeat let a read choose the place that is not at the origin.
    query = write_fasta(tmp_path / "q.fa", {"q": genome[2120:2324]})
    map_reads(reference, query, "--circular", "all", "-N", "all", "-o", tmp_path / "x.sam")
    rows = rows_of(tmp_path / "x.sam")
    assert [(row.flag, row.begin, row.fields[5]) for row in rows] == [
        *((0, 2120, "204M"), (256, 0, "80S120M4S"), (256, 3320, "80M124S"))
    ]
    tags = [(row.tag("AS"), row.tag("NM"), row.fields[4]) for row in rows[1:]]
    assert tags == [("120", "0", "0"), ("80", "0", "0")]
    map_reads(reference, query, "--circular", "all", "--max-xa", 5, "-o", tmp_path / "x.sam")
    (row,) = rows_of(tmp_path / "x.sam")
    assert row.tag("XA") == "p,+1,80S120M4S,0;p,+3321,80M124S,0;"
    # What is told of a place beside that at the origin stays with the primary row.
    query = write_fasta(tmp_path / "q.fa", {"q": genome[-84:] + genome[:120]})
    map_reads(reference, query, "--circular", "p", "--max-xa", 5, "-o", tmp_path / "x.sam")
    rows = rows_of(tmp_path / "x.sam")
    places = [(row.flag, row.begin, row.fields[5]) for row in rows]
    assert places == [(0, 0, "84S120M"), (2048, 3316, "84M120H")]
    assert rows[0].tag("XA") == "p,+2121,4S200M,0;"
    assert "XA:Z" not in "".join(rows[1].fields)
