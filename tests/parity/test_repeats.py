"""Repeats, names and letters that other programs stumble over, held against MUMmer 3.23."""

from random import Random

import pytest
from helpers.mummer_comparison import (
    count_rows,
    difference,
    fasta_of,
    in_our_order,
    mummer_text,
    our_text,
    record_names,
)
from helpers.oracle import reverse_complement
from helpers.sequences import random_bases

from mummergpu.cli.main import main


def mutated(random, text, divergence):
    letters = list(text)
    for place in range(len(letters)):
        if random.random() < divergence:
            letters[place] = random.choice("ACGT".replace(letters[place], ""))
    return "".join(letters)


def array_and_reads(unit, copies, divergence, reads, length):
    """Return a tandem array of diverged copies, and reads of both its strands, as FASTA."""
    random = Random(171)
    consensus = random_bases(random, unit)
    array = "".join(mutated(random, consensus, divergence) for _ in range(copies))
    made = []
    for number in range(reads):
        begin = random.randrange(len(array) - length)
        read = mutated(random, array[begin : begin + length], 0.005)
        read = reverse_complement(read) if number % 2 else read
        made.append(f">read{number}\n{read}\n")
    return f">array\n{array}\n", "".join(made)


def compare(mummer, folder, reference, queries, flags, setting=""):
    """Run both programs on two texts; return how many rows both wrote."""
    (folder / "reference.fa").write_text(reference, newline="")
    (folder / "queries.fa").write_text(queries, newline="")
    files = str(folder / "reference.fa"), [str(folder / "queries.fa")]
    told = mummer_text(mummer, *files, flags)
    names = record_names(files[0]) if reference.count(">") > 1 else []
    expected = in_our_order(told, names, "-c" in flags.split())
    assert not difference(our_text(folder, *files, flags, setting), expected)
    return count_rows(told)


@pytest.mark.parametrize(
    ("flags", "setting"),
    [
        ("-maxmatch -b -l 20", ""),
        ("-maxmatch -b -c -l 31", "--page-size 100k"),
        ("-mumreference -b -l 20", "--page-size 50k --max-memory 1"),
        ("-mum -b -l 20", "-t 3 --block-size 1k"),
    ],
)
def test_satellite_array(flags, setting, mummer_binary, tmp_path):
    """342 kb of 171 bp; MUMmer 4 reports matches here that are none."""
    array, reads = array_and_reads(171, 2000, 0.02, 24, 250)
    rows = compare(mummer_binary, tmp_path, array, reads, flags, setting)
    assert rows > 50_000 or "maxmatch" not in flags


@pytest.mark.parametrize(
    ("flags", "setting"),
    [
        ("-maxmatch -b -l 20", "--page-size 40k"),
        ("-maxmatch -r -c -s -l 40", ""),
        ("-mumcand -b -l 20", "--page-size 10k"),
    ],
)
def test_array_of_31_mers(flags, setting, mummer_binary, tmp_path):
    array, reads = array_and_reads(31, 3000, 0.02, 20, 150)
    rows = compare(mummer_binary, tmp_path, array, reads, flags, setting)
    assert rows > 5_000 or "maxmatch" not in flags


@pytest.mark.parametrize("setting", ["", "--page-size 64", "--page-size 25 --max-memory 1"])
@pytest.mark.parametrize("mode", ["-maxmatch", "-mumreference", "-mum"])
def test_homopolymers_and_short_units(mode, setting, mummer_binary, tmp_path):
    random = Random(3)
    flank = [random_bases(random, 40) for _ in range(4)]
    array = flank[0] + "A" * 300 + flank[1] + "ACT" * 100 + flank[2] + "AG" * 90 + flank[3]
    reads = ["A" * 25, "A" * 300, "A" * 400, "T" * 80, "ACT" * 8, "ACT" * 120, "AGT" * 20]
    reads.append("AG" * 60)
    reads.append(flank[0][-10:] + "A" * 300 + flank[1][:10])
    queries = "".join(f">q{number}\n{read}\n" for number, read in enumerate(reads))
    for length in (3, 20) if mode == "-maxmatch" and not setting else (20,):
        flags = f"{mode} -b -L -l {length}"
        rows = compare(mummer_binary, tmp_path, f">r\n{array}\n", queries, flags, setting)
        assert rows > 100 or mode != "-maxmatch"


@pytest.mark.parametrize("setting", ["", "--page-size 2500", "--search tree -t 2"])
@pytest.mark.parametrize("unit", ["A", "AC", "TTAGGG"])
def test_a_repeat_against_itself(unit, setting, mummer_binary, tmp_path):
    """The k-mers of the repeat occur so often that most occurrences are skipped at once."""
    copies = unit * (4000 // len(unit))
    array = f"{copies}GATTACA{copies[:300]}N{copies[1:500]}"
    queries = f">q\n{array}\n>p\n{copies[5:90]}C{copies[:2000]}\n"
    texts = f">r\n{array}\n", queries
    assert compare(mummer_binary, tmp_path, *texts, "-maxmatch -b -l 20", setting) > 1000


@pytest.mark.parametrize("mode", ["-maxmatch", "-mumreference", "-mum"])
def test_repeats_of_a_human_genome(mode, mummer_binary, tmp_path):
    """Old and young families, segmental copies, satellites of higher order and runs of N."""
    made = ["workload", "REPEATS", "--scale", "0.0003", "-q", "-o", str(tmp_path / "made")]
    assert main(made) == 0
    reference = (tmp_path / "made" / "reference.fa").read_text()
    # A read of a satellite has hundreds of rows.
    reads = fasta_of((tmp_path / "made" / "reads_1.fq").read_bytes(), 8).decode()
    rows = compare(mummer_binary, tmp_path, reference, reads, f"{mode} -b -l 31")
    assert rows > (2000 if mode == "-maxmatch" else 100)


HEADERS = [
    *("plain", "plain", "with a description", "tab\tand more", "carriage return\r"),
    *(" leading blank", "", "trailing ", "n" * 5000, "n" * 5000 + " and " + "d" * 5000),
    *("a>b@c|d:e/1", "Reverse", "\x0bvertical", "form\x0cfeed"),
]


@pytest.mark.parametrize("flags", ["-b", "-b -L", "-r -c", "-F -b"])
def test_names(flags, mummer_binary, tmp_path):
    """Duplicate, empty and very long names of queries and of the one record."""
    text = random_bases(Random(5), 90)
    queries = "".join(f">{header}\n{text[:60]}\n" for header in HEADERS)
    for header in HEADERS if "-F" in flags else HEADERS[:1]:
        reference = f">{header}\n{text}\n"
        flags_of_all = f"-maxmatch {flags} -l 20"
        (tmp_path / "reference.fa").write_text(reference, newline="")
        (tmp_path / "queries.fa").write_text(queries, newline="")
        files = str(tmp_path / "reference.fa"), [str(tmp_path / "queries.fa")]
        # One match a query: there is no order to speak of.
        expected = mummer_text(mummer_binary, *files, flags_of_all)
        assert not difference(our_text(tmp_path, *files, flags_of_all), expected)


@pytest.mark.parametrize("header", HEADERS)
def test_names_of_several_records(header, mummer_binary, tmp_path):
    text = random_bases(Random(7), 120)
    (tmp_path / "reference.fa").write_text(
        f">{header}\n{text[:60]}\n>other name\n{text[60:]}\n>{header}\n{text[:60]}\n", newline=""
    )
    (tmp_path / "queries.fa").write_text(f">q\n{text[60:]}\n>p\n{text[:20]}\n", newline="")
    files = str(tmp_path / "reference.fa"), [str(tmp_path / "queries.fa")]
    found = our_text(tmp_path, *files, "-maxmatch -b -l 20")
    told = mummer_text(mummer_binary, *files, "-maxmatch -b -l 20")
    assert sorted(found.split(b"\n")) == sorted(told.split(b"\n"))
    assert found.count(b"\n") == 7


@pytest.mark.parametrize("mode", ["-maxmatch", "-mumreference", "-mum"])
def test_protein_text_and_other_letters(mode, mummer_binary, tmp_path):
    """Of protein only the runs of A, C, G and T can match."""
    random = Random(11)
    protein = "".join(random.choices("ACDEFGHIKLMNPQRSTVWY", weights=[9, 9, *[1] * 18], k=3000))
    codes = "".join(random.choices("ACGTRYKMSWBDHVN", weights=[9] * 4 + [1] * 11, k=3000))
    reference = f">p\n{protein}\n>c\n{codes}\n>x\nACGTx*-.ACGTT\n"
    queries = f">p\n{protein[500:1500]}\n>c\n{codes[:900].lower()}\n"
    assert compare(mummer_binary, tmp_path, reference, queries, f"{mode} -b -l 4") > 20


@pytest.mark.parametrize("mode", ["-maxmatch", "-mumreference", "-mum"])
def test_rna_matches_as_its_dna(mode, mummer_binary, tmp_path):
    """MUMmer takes U for no base, so it is given T for it."""
    genome = random_bases(Random(12), 3000)
    reads = "".join(f">{n}\n{genome[70 * n : 70 * n + 50].lower()}\n" for n in range(40))
    files = {"reference.fa": f">c\n{genome}\n", "queries.fa": reads}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        (tmp_path / f"rna_{name}").write_text(text.replace("T", "U").replace("t", "u"))
    flags = f"{mode} -b -l 12"
    dna = str(tmp_path / "reference.fa"), [str(tmp_path / "queries.fa")]
    rna = str(tmp_path / "rna_reference.fa"), [str(tmp_path / "rna_queries.fa")]
    expected = in_our_order(mummer_text(mummer_binary, *dna, flags), [])
    assert count_rows(expected) >= 40
    for reference, _ in (dna, rna):
        for _, queries in (dna, rna):
            assert not difference(our_text(tmp_path, reference, queries, flags), expected)
