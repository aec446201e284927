"""The command ``map``: options of bwa mem and minimap2 do what they do there."""

import random
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers.sequences import random_bases, read_fasta, reverse_complement, write_fasta
from helpers.tables import table

from mummergpu.cli.main import main

SECONDARY, SUPPLEMENTARY, UNMAPPED, MATE_UNMAPPED = 256, 2048, 4, 8
LETTERS = {2_050: "R", 4_060: "N", 6_040: "Y"}


class Row(NamedTuple):
    name: str
    flag: int
    record: str
    position: int
    quality: int
    cigar: str
    bases: str
    tags: dict[str, str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs with differences, gaps, clipped ends and parts far apart; some are of no genome."""
    made = tmp_path_factory.mktemp("habits")
    chance = random.Random(7)
    genome = chance.choices("ACGT", k=30_000)
    for place, letter in LETTERS.items():
        genome[place] = letter
    whole = "".join(genome)
    # A repeat of three copies, two of which differ in one base.
    whole = whole + whole[1000:1600] + whole[1000:1300] + "A" + whole[1301:1600]
    write_fasta(made / "g.fa", {"g": whole, "h": random_bases(chance, 500)})
    mates = ([], [])
    for number in range(400):
        at = chance.randrange(28_000)
        first, second = whole[at : at + 120], reverse_complement(whole[at + 250 : at + 370])
        if number % 4 == 1:
            cut = chance.randrange(30, 90)
            first = first[:cut] + first[cut + chance.randrange(1, 4) :]
            second = second[:cut] + "ACG"[: chance.randrange(1, 4)] + second[cut:]
        if number % 8 == 2:
            other = chance.randrange(28_000)
            first = first[:70] + whole[other : other + 50]
        if number % 10 == 3:
            second = random_bases(chance, 100)
        if number % 20 == 4:
            first, second = (random_bases(chance, 100) for _ in "12")
        if number % 5 == 0:
            first = first[:50] + chance.choice("ACGTN") + first[51:]
        for mate, bases in enumerate((first, second)):
            quality = "".join(chance.choices("5:?DI", k=len(bases)))
            mates[mate].append(f"@r{number} BC:Z:AC\n{bases}\n+\n{quality}\n")
    for mate, records in enumerate(mates, start=1):
        (made / f"{mate}.fq").write_text("".join(records))
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def mapped(words, capfd, reads="g.fa 1.fq 2.fq"):
    assert main(["map", "-q", *shlex.split(reads), *shlex.split(words)]) == 0
    return capfd.readouterr().out


def rows_of(text):
    rows = []
    for fields in (line.split("\t") for line in text.splitlines() if line[0] != "@"):
        tags = {field[:2]: field[5:] for field in fields[11:]}
        numbers = int(fields[1]), fields[2], int(fields[3]), int(fields[4])
        rows.append(Row(fields[0], *numbers, fields[5], fields[9], tags))
    return rows


def operations(cigar):
    return [(int(count), kind) for count, kind in re.findall(r"([0-9]+)([A-Z=])", cigar)]


def other_program(*words):
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def of_bwa(*options):
    if not Path("g.fa.bwt").exists():
        other_program("bwa", "index", "g.fa")
    return rows_of(other_program("bwa", "mem", *options, "g.fa", "1.fq", "2.fq"))


@pytest.fixture
def usual(capfd):
    return rows_of(mapped("", capfd))


# -M and -Y.


@pytest.mark.parametrize("options", [["-M"], ["-Y"], ["-M", "-Y"], []], ids="".join)
def test_further_parts_are_written_as_by_bwa(options, capfd):
    found = [row for row in of_bwa(*options) if "SA" in row.tags]
    theirs = {(row.name, row.position, row.flag & 64): row for row in found}
    alike = 0
    for row in rows_of(mapped(" ".join(options), capfd)):
        other = theirs.get((row.name, row.position, row.flag & 64))
        if "SA" in row.tags and other and operations(row.cigar) == operations(other.cigar):
            assert (row.flag, row.bases) == (other.flag, other.bases)
            alike += 1
    assert alike >= 60


def test_flags_and_clips_change_nothing_else(usual, capfd):
    for_bwa = rows_of(mapped("-M", capfd))
    further = [row for row in usual if row.flag & SUPPLEMENTARY]
    assert len(further) >= 30
    for row, other in zip(usual, for_bwa, strict=True):
        flag = row.flag
        if flag & SUPPLEMENTARY:
            flag = flag & ~SUPPLEMENTARY | SECONDARY
        assert other == row._replace(flag=flag)
    whole = {(row.name, row.flag & 64): len(row.bases) for row in usual if not row.flag & 2304}
    for row, other in zip(usual, rows_of(mapped("-Y", capfd)), strict=True):
        if row.flag & SUPPLEMENTARY:
            assert "H" in row.cigar and row.bases in other.bases
            assert len(other.bases) == whole[row.name, row.flag & 64]
            row = row._replace(cigar=row.cigar.replace("H", "S"), bases=other.bases)
        assert other == row


# --eqx and the tags.


def walked(row, cigar):
    """Each operation with its bases of the reference and of the read."""
    at, position, found = 0, row.position - 1, []
    for count, kind in operations(cigar):
        theirs = ours = ""
        if kind in "M=XD":
            theirs = read_fasta("g.fa")[row.record][position : position + count]
            position += count
        if kind in "M=XIS":
            ours = row.bases[at : at + count]
            at += count
        found.append((kind, theirs, ours))
    return found


def test_equal_and_different_bases_have_their_own_operations(usual, capfd):
    rows = rows_of(mapped("--eqx", capfd))
    kinds = set()

    def joined(run):
        return f"{sum(int(count) for count in re.findall('[0-9]+', run[0]))}M"

    for row, plain in zip(rows, usual, strict=True):
        assert re.sub("(?:[0-9]+[=X])+", joined, row.cigar) == plain.cigar
        if row.flag & UNMAPPED:
            continue
        edits = 0
        for kind, theirs, ours in walked(row, row.cigar):
            if kind == "=":
                assert theirs == ours and "N" not in ours
            elif kind == "X":
                assert all(a != b or a == "N" for a, b in zip(theirs, ours, strict=True))
            kinds.add(kind)
            edits += len(ours) if kind in "XI" else len(theirs) if kind == "D" else 0
        assert edits == int(row.tags["NM"]) and row.tags["MD"] == plain.tags["MD"]
    assert kinds == set("=XIDSH")


def as_changes(steps):
    """The value of cs of an alignment, from its operations."""
    parts, equal = [], 0
    for kind, theirs, ours in steps:
        if kind in "ID":
            parts.append(f":{equal}" if equal else "")
            parts.append("+" + ours.lower() if kind == "I" else "-" + theirs.lower())
            equal = 0
        elif kind == "M":
            for one, other in zip(theirs, ours, strict=True):
                if one == other != "N":
                    equal += 1
                    continue
                parts.append((f":{equal}" if equal else "") + f"*{one}{other}".lower())
                equal = 0
    return "".join([*parts, f":{equal}" if equal else ""])


def divergence(row):
    gaps = [count for count, kind in operations(row.cigar) if kind in "ID"]
    columns = sum(count for count, kind in operations(row.cigar) if kind == "M") + len(gaps)
    return (int(row.tags["NM"]) - sum(gaps) + len(gaps)) / columns


def test_tags_of_minimap2_tell_the_alignment(capfd):
    rows = rows_of(mapped("--tags cs,tp,de -N 3", capfd))
    primary = [row for row in rows if not row.flag & (UNMAPPED | SECONDARY)]
    assert len(primary) > 700 and any(row.flag & SECONDARY for row in rows)
    for row in rows:
        if row.flag & UNMAPPED:
            assert not {"tp", "de", "cs"} & set(row.tags)
            continue
        assert row.tags["tp"] == ("S" if row.flag & SECONDARY else "P")
        assert float(row.tags["de"]) == pytest.approx(divergence(row), abs=0.000051)
    for row in primary:
        assert row.tags["cs"] == as_changes(walked(row, row.cigar))
    assert list(primary[0].tags)[-3:] == ["tp", "de", "cs"]


def test_minimap2_writes_the_same_tags(capfd):
    words = "minimap2 -ax sr --cs --secondary=no g.fa 1.fq 2.fq"
    theirs = {(row.name, row.flag & 64): row for row in rows_of(other_program(*words.split()))}
    alike = 0
    for row in rows_of(mapped("-ax sr --cs --tags de,tp --secondary=no", capfd)):
        other = theirs.get((row.name, row.flag & 64))
        if other and (row.position, row.cigar) == (other.position, other.cigar):
            # minimap2 takes all letters but four for N.
            if row.flag & UNMAPPED or set(row.bases) - set("ACGT"):
                continue
            # It writes four digits that are cut from a float, so the last one may differ.
            assert {row.tags[tag] for tag in ("tp", "cs")} == {other.tags[t] for t in ("tp", "cs")}
            assert float(row.tags["de"]) == pytest.approx(float(other.tags["de"]), abs=0.00011)
            alike += 1
    assert alike >= 400


def test_paf_has_the_tags(capfd):
    expected = [row for row in rows_of(mapped("--tags cs,de", capfd)) if not row.flag & UNMAPPED]
    lines = mapped("-x sr --tags cs,de --eqx", capfd).splitlines()
    for row, line in zip(expected, lines, strict=True):
        tags = {field[:2]: field[5:] for field in line.split("\t")[12:]}
        assert (tags["cs"], tags["de"]) == (row.tags["cs"], row.tags["de"])
        assert "M" not in tags["cg"]


# Reads that are left out, the header, and the read group.


def test_reads_that_are_placed_nowhere_can_be_left_out(usual, capfd):
    kept = [row for row in usual if row.flag & (UNMAPPED | MATE_UNMAPPED) != 12]
    assert len(usual) - len(kept) == 40
    assert rows_of(mapped("--no-unal", capfd)) == kept
    single = rows_of(mapped("--no-unal --single", capfd))
    assert len(single) > 700 and not any(row.flag & UNMAPPED for row in single)


def test_alternatives_stay_with_their_rows_if_others_are_left_out(capfd):
    every = rows_of(mapped("-h 5", capfd))
    kept = [row for row in every if row.flag & (UNMAPPED | MATE_UNMAPPED) != 12]
    assert sum("XA" in row.tags for row in kept) >= 3
    assert rows_of(mapped("--max-xa 5 --no-unal", capfd)) == kept


def test_lines_are_added_to_the_header(capfd, tmp_path):
    more = tmp_path / "more"
    more.write_text("@CO\tof a file\n@PG\tID:trim\tPN:trim\n")
    words = rf"-H '@CO\tfirst' -H {more} -R '@RG\tID:lane\tSM:s1\tPL:ILLUMINA'"
    head = [line for line in mapped(words, capfd).splitlines() if line.startswith("@")]
    assert head[-5:-1] == [
        "@RG\tID:lane\tSM:s1\tPL:ILLUMINA",
        *("@CO\tfirst", "@CO\tof a file", "@PG\tID:trim\tPN:trim"),
    ]
    assert head[-1].startswith("@PG\tID:mummergpu")


# Words whose letters mean something else, or nothing.


@pytest.mark.parametrize(
    "words",
    [
        *("-K 100000000", "-v 3", "-t 2 -L 5,5", "--secondary=no", "--MD"),
        *("-ax sr", "-j", "-K 9 -v 1", "-v 2 --secondary no"),
    ],
)
def test_some_words_change_nothing(words, usual, capfd):
    assert rows_of(mapped(words, capfd)) == usual


@pytest.mark.parametrize(("words", "same"), table(__file__, "words that are others"))
def test_some_words_are_others(words, same, capfd):
    assert rows_of(mapped(words, capfd)) == rows_of(mapped(same, capfd))


def test_levels_of_messages(capfd, tmp_path):
    out = str(tmp_path / "x.sam")
    told = []
    for level in "134":
        assert main(["map", "g.fa", "1.fq", "-v", level, "-o", out]) == 0
        told.append(len(capfd.readouterr().err))
    assert told[0] == told[1] == 0 < told[2]


@pytest.mark.parametrize("words", ["-h", "--help", "-h g.fa"])
def test_help_is_help(words, capfd):
    assert main(["map", *words.split()]) == 0
    assert capfd.readouterr().out.startswith("Usage: mummergpu map")


def test_alternative_contigs_are_refused_unless_all_are_alike(usual, capfd, tmp_path):
    shutil.copy("g.fa", tmp_path)
    reference = tmp_path / "g.fa"
    (tmp_path / "g.fa.alt").write_text("h\t0\tg\t1\t60\t500M\t*\t0\t0\t*\t*\n")
    assert main(["map", str(reference), "1.fq", "2.fq"]) == 2
    assert "g.fa.alt' names alternative contigs" in capfd.readouterr().err
    assert rows_of(mapped("-j", capfd, f"{reference} 1.fq 2.fq")) == usual
