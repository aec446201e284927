"""The commands ``hmmsearch`` and ``hmmscan`` beside HMMER's own."""

import bz2
import gzip
import json
import math
import os
import re
import struct
import subprocess
import sys
from collections import Counter
from itertools import product
from random import Random

import pytest
from helpers.hmmer import (
    ORF,
    TABLES,
    data_folder,
    esl_translate,
    hmmer,
    need_hmmer,
    option_of,
    rows,
    write_input,
)
from helpers.sequences import random_bases, read_fasta, reverse_complement, write_fasta

from mummergpu.cli.main import main

CODONS = ["".join(bases) for bases in product("ACGT", repeat=3)]
GENETIC_CODE = "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"

OPTIONS = [
    *("", "-E 1e-9", "-E 1000 --domE 1000", "-T 20", "--domE 1e-6", "--domT 12", "--incE 1e-12"),
    *("--incT 50", "--incdomE 1e-12", "--incdomT 30", "-Z 1e6", "--domZ 500", "--F1 0.1"),
    *("--F2 0.1", "--F3 0.01", "--max", "--nobias", "--nonull2", "--seed 7", "--acc"),
    "--notextw",
]

VERBS = ("hmmsearch", "hmmscan")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return write_input(tmp_path_factory.mktemp("hmmer"))


def ours(verb, folder, *words, threads=2):
    kinds = [*TABLES, *(["alignment"] if verb == "hmmsearch" else [])]
    files = {kind: folder / f"ours.{kind}" for kind in kinds}
    options = [text for kind, path in files.items() for text in (option_of(kind), str(path))]
    assert main([verb, "-q", "-t", str(threads), *options, *map(str, words)]) == 0
    return {kind: path.read_bytes() for kind, path in files.items()}


def assert_equal(verb, folder, *words):
    theirs, found = hmmer(verb, folder, *words), ours(verb, folder, *words)
    for kind, text in theirs.items():
        assert rows(found[kind]) == rows(text), kind
    assert rows(theirs["domtblout"]) != [b""]


def press(profiles):
    if not profiles.with_suffix(".hmm.h3m").exists():
        subprocess.run(["hmmpress", profiles], check=True, capture_output=True)


def rows_of_all(tables):
    return {kind: rows(text) for kind, text in tables.items()}


@pytest.mark.parametrize("options", OPTIONS)
def test_searches_equal_those_of_hmmer(options, inputs, tmp_path):
    need_hmmer()
    assert_equal("hmmsearch", tmp_path, *options.split(), *inputs)


@pytest.mark.parametrize("options", ["", *OPTIONS[2:4], "-Z 1e6", "--domZ 500", "--nobias"])
def test_scans_equal_those_of_hmmer(options, inputs, tmp_path):
    need_hmmer()
    profiles, proteins = inputs
    press(profiles)
    assert_equal("hmmscan", tmp_path, *options.split(), profiles, proteins)


@pytest.mark.parametrize("option", ["--cut_ga", "--cut_nc", "--cut_tc"])
def test_cutoffs_of_profiles(option, inputs, tmp_path, capfd):
    need_hmmer()
    profiles, proteins = inputs
    assert_equal("hmmsearch", tmp_path, option, profiles.with_name("cut.hmm"), proteins)
    assert main(["hmmsearch", "-q", option, *map(str, inputs)]) == 1
    message = capfd.readouterr().err
    assert f"for {option} (" in message and message.count("\n") == 1
    # A scan asks those profiles only that it compares.
    both, few = tmp_path / "both.hmm", tmp_path / "few.faa"
    other = (data_folder() / "hmms/txt/LuxC.hmm").read_text()
    both.write_text(profiles.with_name("cut.hmm").read_text() + other)
    press(both)
    hits = ours("hmmsearch", tmp_path, option, profiles.with_name("cut.hmm"), proteins)["tblout"]
    names = {line.split()[0].decode() for line in rows(hits) if line}
    records = [one for one in proteins.read_text().split(">")[1:] if one.split()[0] in names]
    few.write_text("".join(f">{one}" for one in records))
    assert_equal("hmmscan", tmp_path, option, both, few)


@pytest.mark.parametrize("verb", ["hmmsearch", "hmmscan"])
def test_threads_and_pressed_files_change_nothing(verb, inputs, tmp_path):
    profiles, proteins = inputs
    expected = ours(verb, tmp_path, profiles, proteins, threads=1)
    packed = tmp_path / "p.hmm.bz2", tmp_path / "s.faa.gz"
    packed[0].write_bytes(bz2.compress(profiles.read_bytes()))
    packed[1].write_bytes(gzip.compress(proteins.read_bytes()))
    for threads, files in ((2, inputs), (8, packed)):
        found = ours(verb, tmp_path, *files, threads=threads)
        assert rows_of_all(found) == rows_of_all(expected)


def test_words_of_hmmer_that_scripts_have(inputs, tmp_path, capfd):
    expected = ours("hmmscan", tmp_path, *inputs)["tblout"]
    for words in ("--noali --notextw --acc --cpu 0", "--textw 200 --cpu 1", "--qformat FASTA"):
        assert main(["hmmscan", "-q", *words.split(), *map(str, inputs)]) == 0
        assert rows(capfd.readouterr().out.encode()) == rows(expected)


def uniprot_text(name, accession, residues):
    lines = [residues[at : at + 60] for at in range(0, len(residues), 60)]
    accessions = f"AC   {accession}; Q2;\nAC   Q3;\n" if accession else ""
    body = "".join(f"     {line[:10]} {line[10:]}\n" for line in lines)
    return (
        f"ID   {name}     Reviewed;  9 AA.\n{accessions}DE   RecName: Full=Some;\n"
        f"DE            Short=S;\nOS   Caf\u00e9.\nSQ   SEQUENCE   9 AA;\n{body}//\n"
    )


def genbank_text(name, accession, residues):
    version = f"VERSION     {accession}\n" if accession else ""
    return (
        f"LOCUS       {name}  9 aa\nDEFINITION  some\n            more.\n{version}"
        f"ORIGIN\n        1 {residues.lower()}\n//\n"
    )


def stockholm_text(name, accession, residues):
    words = f"#=GS {name} AC {accession}\n" if accession else ""
    row = f"{name} ..{residues[:9]}--{residues[9:]}"
    return f"# STOCKHOLM 1.0\n{words}#=GS {name} DE one of some\n\n{row}\n//\n"


OTHER_TEXTS = {"uniprot": uniprot_text, "genbank": genbank_text, "stockholm": stockholm_text}


@pytest.mark.parametrize("kind", OTHER_TEXTS)
def test_proteins_in_other_formats_than_fasta(kind, inputs, tmp_path, monkeypatch):
    need_hmmer()
    profiles, proteins = inputs
    press(profiles)
    other = tmp_path / "proteins"
    texts = []
    for number, record in enumerate(proteins.read_text().split(">")[1:-3]):
        header, residues = record.replace("*", "").split("\n", 1)
        accession = "" if number % 3 == 0 else "LONG_ACCESSION_1.2" if number == 8 else f"P{number}"
        texts.append(OTHER_TEXTS[kind](header.split()[0], accession, residues.replace("\n", "")))
    other.write_text("".join(texts), encoding="latin-1")
    for verb in VERBS:
        assert_equal(verb, tmp_path, profiles, other)
    expected = ours("hmmsearch", tmp_path, profiles, other)
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(other.read_bytes()))
    for words in ([packed], ["--tformat", kind.upper(), other]):
        found = ours("hmmsearch", tmp_path, *words[:-1], profiles, words[-1])
        assert rows_of_all(found) == rows_of_all(expected)
    with other.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        found = ours("hmmsearch", tmp_path, profiles, "-")
    assert rows_of_all(found) == rows_of_all(expected)


BLAST_CODES = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"


def write_blast_database(folder, records):
    """Write a database of BLAST, version 4, of names and residues; return its name."""
    name, title, zeros = folder / "db", b"made", bytes(8)
    heads, residues = [0], [1]
    with (folder / "db.phr").open("wb") as head, (folder / "db.psq").open("wb") as text:
        text.write(b"\0")
        for word, letters in records:
            head.write(bytes.fromhex("30803080a0801a000000a1803080a080a1801a"))
            head.write(bytes([len(word)]) + word.encode() + zeros)
            head.write(bytes.fromhex("a280020100") + zeros[:7])
            text.write(bytes(BLAST_CODES.index(one) for one in letters) + b"\0")
            heads.append(head.tell())
            residues.append(text.tell())
    longest = max(len(letters) for _, letters in records)
    numbers = struct.pack(">2I", 4, 1)
    numbers += 2 * (struct.pack(">I", len(title)) + title)
    numbers += struct.pack(">I", len(records)) + struct.pack("<Q", residues[-1])
    numbers += struct.pack(f">I{2 * len(heads)}I", longest, *heads, *residues)
    (folder / "db.pin").write_bytes(numbers)
    return name


def test_a_database_of_blast(inputs, tmp_path, capfd):
    need_hmmer()
    records = [one.split("\n", 1) for one in inputs[1].read_text().split(">")[1:90]]
    named = [(head.split()[0], text.replace("\n", "").rstrip("*")) for head, text in records]
    database = write_blast_database(tmp_path, named)
    assert_equal("hmmsearch", tmp_path, "--tformat", "ncbi", inputs[0], database)
    missing = str(tmp_path / "none")
    assert main(["hmmsearch", "--tformat", "ncbi", str(inputs[0]), missing]) == 1
    assert f"{missing}.psq: no such file" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (uniprot_text("a", "", "ACD") + uniprot_text("b", "", "AC@"), "", ":8: not in the format"),
        (uniprot_text("a", "", "ACD")[:-3], "", ":1: not in the format uniprot: Unexpected EOF"),
        ("# STOCKHOLM 1.0\na AC@\n//\n", "", ": not in the format stockholm: invalid sequence"),
        (">a\nACD\n", "--tformat stockholm", ": not in the format stockholm: missing Stockholm"),
        (uniprot_text("a", "", "ACD"), "--tformat fasta", ":1: text before the first line with"),
        (uniprot_text("a", "", "A"), "--translate --tformat embl", "--tformat: it is of proteins"),
        (uniprot_text("a", "", "ACGT" * 50), "", "nucleotides, and the profiles are of proteins"),
        (uniprot_text("a", "", "ACDE" * 25_001), "--long-proteins error", ":1: 100,004 residues"),
    ],
)
def test_what_is_wrong_with_other_formats_is_told(text, words, message, inputs, tmp_path, capfd):
    (tmp_path / "p.dat").write_text(text)
    given = ["hmmsearch", "-q", *words.split(), str(inputs[0]), str(tmp_path / "p.dat")]
    assert main(given) in (1, 2)
    found = capfd.readouterr().err
    assert message in found and found.count("\n") == 1


@pytest.mark.parametrize("verb", ["hmmsearch", "hmmscan"])
def test_sequences_of_marks_alone_are_compared_with_no_profile(verb, inputs, tmp_path):
    """HMMER stops at them if its filters let them pass."""
    records = inputs[1].read_text().split(">")[1:20]
    found = []
    for name, added in (("with", ["stars\n***\n", "gap\n._\n"]), ("empty", ["stars\n", "gap\n"])):
        proteins = tmp_path / f"{name}.faa"
        proteins.write_text("".join(f">{record}" for record in records[:9] + added + records[9:]))
        tables = ours(verb, tmp_path, "--max", inputs[0].with_name("cut.hmm"), proteins)
        found.append(rows_of_all(tables))
    assert found[0] == found[1] and len(found[0]["domtblout"]) > 5


def write_odd_bytes(folder):
    """Write a profile and proteins that differ in bytes that are not UTF-8, in all their words."""
    data = data_folder()
    profile, proteins = folder / "odd.hmm", folder / "odd.faa"
    text = (data / "hmms/txt/PF02826.hmm").read_bytes()
    name, accession = re.findall(rb"\n(?:NAME|ACC) +(\S+)", text)[:2]
    text = text.replace(name, b"\xffd\xe9h", 1).replace(accession, b"\xfe_" + b"a" * 11, 1)
    profile.write_bytes(re.sub(rb"\nDESC.*", b"\nDESC  \xe9 of \xc3\xa9", text))
    best = (data / "seqs/938293.PRJEB85.HG003687.faa").read_bytes().split(b">")[1:]
    records = [b">\xff%c_%s" % (150 + n % 100, one) for n, one in enumerate(best)]
    proteins.write_bytes(b"".join(records))
    return profile, proteins


def test_words_of_any_bytes(tmp_path, capfd):
    need_hmmer()
    files = write_odd_bytes(tmp_path)
    assert_equal("hmmsearch", tmp_path, *files)
    press(files[0])
    assert_equal("hmmscan", tmp_path, *files)
    broken = files[0].with_name("broken.hmm")
    broken.write_bytes(re.sub(rb"\n(GA|TC|NC) .*", b"", files[0].read_bytes()))
    message = "broken.hmm: the profile has no gathering cutoffs (GA), for --cut_ga (record '\ufffdd"
    assert_refused(message, tmp_path, capfd, "--cut_ga", broken, files[1])


def test_sequences_that_no_path_emits_are_left_out(tmp_path, capfd):
    """HMMER stops at them if no filter does before."""
    need_hmmer()
    alignment, profiles = tmp_path / "a.sto", tmp_path / "p.hmm"
    profiles.write_bytes(b"")
    for number, residues in enumerate(("ACDEFGHIKL", "MNPQRSTVWY")):
        aligned = "".join(f"{name} {residues}\n" for name in "ab")
        alignment.write_text(f"# STOCKHOLM 1.0\n{aligned}//\n")
        one = tmp_path / "one.hmm"
        words = ["-n", f"p{number}", "--pnone", str(one), str(alignment)]
        subprocess.run(["hmmbuild", *words], check=True, capture_output=True)
        profiles.write_bytes(profiles.read_bytes() + one.read_bytes())
    good, proteins = "ACDEFGHIKLMNPQRSTVWY", tmp_path / "s.faa"
    fine = f">a\n{good}\n>b\nAA{good}\n"
    proteins.write_text(fine)
    tables = {verb: ours(verb, tmp_path, "--max", profiles, proteins) for verb in VERBS}
    odd = [f">w{number}\n{'WY' * 9}\n" for number in range(4)]
    proteins.write_text(fine + "".join(odd))
    capfd.readouterr()
    for verb, expected in tables.items():
        files = ["--tblout", str(tmp_path / "t"), str(profiles), str(proteins)]
        assert main([verb, "--max", *(["-Z", "2"] if verb == "hmmsearch" else []), *files]) == 0
        found = rows((tmp_path / "t").read_bytes())
        kept = [one for one in found if not re.match(rb"w|p1 +- +w", one)]
        assert kept == rows(expected["tblout"])
        error = capfd.readouterr().err
        if verb == "hmmsearch":
            text = "p.hmm: profile p0: no path of it emits 4 sequences, left out: w0, w1, w2, ..."
            assert error.count("left out") == 1 and text in error
        else:
            text = f"sequence w3: no path of 1 profile emits it, left out: {profiles}: p0"
            assert error.count("left out") == 4 and text in error


def test_alignments_are_without_sequences_that_have_gaps(inputs, tmp_path, capfd):
    """HMMER stops at them."""
    profile, proteins = inputs[0].with_name("cut.hmm"), tmp_path / "s.faa"
    expected = ours("hmmsearch", tmp_path, profile, inputs[1])
    names = [line.split()[0] for line in rows(expected["tblout"]) if line]
    records = inputs[1].read_text().split(">")
    number = next(n for n, one in enumerate(records) if one.startswith(names[0].decode()))
    text = "".join(records[number].split("\n")[1:])
    middle = len(text) // 2
    for mark in "._":
        odd = f">odd{ord(mark)}\n{text[:middle]}{mark}{text[middle:]}\n"
        proteins.write_text(inputs[1].read_text() + odd)
        words = ["-A", str(tmp_path / "a"), "--tblout", str(tmp_path / "t"), "-Z", "200"]
        assert main(["hmmsearch", *words, str(profile), str(proteins)]) == 0
        assert f"\nodd{ord(mark)} " in (tmp_path / "t").read_text()
        found = rows((tmp_path / "a").read_bytes())
        assert found == rows(expected["alignment"]) and len(found) > 5
        text_told = f"profile 2-Hacid_dh_C: no alignment of sequences with a gap: odd{ord(mark)}\n"
        assert text_told in capfd.readouterr().err


def test_pipes(inputs, tmp_path):
    profiles, proteins = inputs
    found = ours("hmmsearch", tmp_path, profiles, proteins)["tblout"]
    command = [sys.executable, "-m", "mummergpu", "hmmsearch", "-q", str(profiles), "-"]
    text = subprocess.run(command, input=proteins.read_bytes(), capture_output=True, check=True)
    assert rows(text.stdout) == rows(found)


SAM = "@HD\tVN:1.6\nr\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\t*\n"
BAD_SEQUENCES = {
    "gap": (">a\nAC-D\n", "s.faa:2: '-' is not a sequence character (record 'a')"),
    "nameless": (">a\nACD\n> \nACD\n", "s.faa:3: a record without a name"),
    "nucleotides": (">a\n" + "ACGT" * 30, "s.faa: nucleotides, and the profiles are of proteins"),
    "told what to do": (">a\n" + "ACGT" * 30, "--translate searches in their six frames"),
    "FASTQ": ("@a\nACGT\n+\nIIII\n", "s.faa: FASTQ, which holds nucleotides"),
    "SAM": (SAM, "s.faa: SAM, which holds nucleotides; proteins are read as FASTA (--translate"),
    "profiles": ("HMMER3/f [3.4]\nNAME a\n", "s.faa:1: profile HMMs, but not FASTA"),
}


def assert_refused(message, folder, capfd, *words):
    for verb in ("hmmsearch", "hmmscan"):
        tables = {f"--{kind}": folder / f"bad.{kind}" for kind in TABLES}
        options = [str(word) for option in tables.items() for word in option]
        assert main([verb, "-q", *options, *map(str, words)]) == 1
        error = capfd.readouterr().err
        assert message in error and error.count("\n") == 1
        assert not any(path.exists() for path in tables.values())


@pytest.mark.parametrize("what", BAD_SEQUENCES)
def test_bad_sequences(what, inputs, tmp_path, capfd):
    text, message = BAD_SEQUENCES[what]
    bad = tmp_path / "s.faa"
    bad.write_text(text)
    assert_refused(message, tmp_path, capfd, inputs[0], bad)


def test_bam_of_proteins_and_proteins_to_translate(inputs, tmp_path, capfd):
    pysam = pytest.importorskip("pysam")
    bam = tmp_path / "s.bam"
    pysam.AlignmentFile(str(bam), "wb", header={"HD": {"VN": "1.6"}}).close()
    assert_refused("s.bam: BAM, which holds nucleotides", tmp_path, capfd, inputs[0], bam)
    message = "letters are neither bases nor IUPAC codes"
    assert_refused(message, tmp_path, capfd, "--translate", *inputs)


def bad_profiles():
    """Return texts that are no valid profiles, and what is said of them."""
    folder = data_folder() / "hmms/txt"
    names = ("PF02826", "RREFam", "RF00001", "Thioesterase")
    first, many, dna, other = ((folder / f"{name}.hmm").read_text() for name in names)
    begin, end = first.split("     18 ")[0], many.split("\n", 40)[40]
    old = other.replace("HMMER3/f", "HMMER3/b", 1)
    return {
        "nonsense": ("nonsense\n", "p.hmm: not a file of profiles of HMMER (it begins with 'non"),
        "sequences": (">a b\nMKL\n", "p.hmm: not a file of profiles of HMMER (it begins with '>a"),
        "nothing": ("", "p.hmm: the file holds no profile"),
        "cut": (begin, "p.hmm: the file ends within a profile (truncated?) (record '2-Hacid_dh_C'"),
        "cut later": (first + other[:9000], "(truncated?) (record 'Thioesterase')"),
        "mixed up": (begin + end, "p.hmm: profile 1 cannot be read: Expected match line to start"),
        "another text": (first + ">a\nMKL\n", "p.hmm: profile 2 cannot be read, the one after"),
        "no alphabet": (
            first + "".join(line for line in other.splitlines(True) if line[:4] != "ALPH"),
            f"p.hmm:{first.count(chr(10)) + 16}: a profile without an alphabet (ALPH) (record 'Th",
        ),
        "a cutoff too early": (
            first.replace("ALPH ", "GA 1 1\nALPH ", 1),
            "p.hmm:6: a profile without an alphabet (ALPH) (record '2-Hacid_dh_C')",
        ),
        "no length": (
            first + "".join(line for line in other.splitlines(True) if line[:4] != "LENG"),
            f"p.hmm:{first.count(chr(10)) + 16}: a profile without a length (LENG) (record 'Thio",
        ),
        "no letters": (other.replace("amino", "custom"), "p.hmm:4: a profile without an alph"),
        "nan": (
            first + other.replace("2.25147", "    nan", 1),
            f"p.hmm:{first.count(chr(10)) + 24}: no number where HMMER needs one (record 'Th",
        ),
        "infinite": (other.replace("9.57743", "-inf", 1), "p.hmm:23: no number where HMMER needs"),
        "nan in COMPO": (
            many.replace("COMPO ", "COMPO nan ", 1),
            f"p.hmm:{many[: many.index('COMPO')].count(chr(10)) + 1}: no number where HMMER",
        ),
        "no consensus": (
            other.replace("CONS  yes", "CONS  no"),
            "p.hmm: the profile has no consensus (CONS), without which HMMER searches none (record",
        ),
        "odd STATS": (other.replace("-10.1820", "nan"), "p.hmm: STATS that are no numbers (reco"),
        "RNA": (dna.replace("DNA", "RNA", 1), "p.hmm: the profile is of RNA, not of proteins ("),
        "a later one of DNA": (first + dna, "profile 2 cannot be read: it is not of proteins (nhm"),
        "named": (first + dna, "(nhmmer searches with profiles of DNA or RNA) (record '5S_rRNA')"),
        "two formats": (first + old, "p.hmm: profiles in several formats (HMMER3/b and HMMER3/f)"),
    }


BAD_PROFILES = """nonsense, sequences, nothing, cut, cut later, mixed up, another text, RNA, named,
a later one of DNA, two formats, no alphabet, a cutoff too early, no length, no letters, nan,
infinite, nan in COMPO, odd STATS, no consensus""".replace("\n", " ").split(", ")


@pytest.mark.parametrize("what", BAD_PROFILES)
def test_bad_profiles(what, inputs, tmp_path, capfd):
    text, message = bad_profiles()[what]
    bad = tmp_path / "p.hmm"
    bad.write_text(text)
    assert_refused(message, tmp_path, capfd, bad, inputs[1])
    packed = tmp_path / "p.hmm.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert_refused(message.replace("p.hmm", "p.hmm.gz"), tmp_path, capfd, packed, inputs[1])


def test_pressed_files_that_are_cut_or_stale(inputs, tmp_path, capfd):
    pyhmmer = pytest.importorskip("pyhmmer")
    folder = data_folder() / "hmms/txt"
    text, path = (folder / "RREFam.hmm").read_text(), tmp_path / "p.hmm"
    path.write_text(text)
    with pyhmmer.plan7.HMMFile(path) as file:
        pyhmmer.hmmer.hmmpress(file, path)
    pressed = tmp_path / "p.hmm.h3m"
    expected = ours("hmmsearch", tmp_path, path, inputs[1])
    # A text that is newer, and the same, is read without a word.
    os.utime(pressed, (1, 1))
    found = ours("hmmsearch", tmp_path, path, inputs[1])
    assert found["tblout"].split(b"# Pr")[0] == expected["tblout"].split(b"# Pr")[0]
    for other, name in (
        (text + (folder / "LuxC.hmm").read_text(), "LuxC"),
        (text.split("//\n")[0] + "//\n", text.split("NAME  ")[2].split("\n")[0]),
    ):
        path.write_text(other)
        message = f"p.hmm.h3m is older and has other profiles: see hmmpress -f (record '{name}')"
        assert_refused(f"p.hmm: {tmp_path}/{message}", tmp_path, capfd, path, inputs[1])
    os.utime(pressed, None)
    pressed.write_bytes(pressed.read_bytes()[:30000])
    assert_refused("p.hmm.h3m: profile 2 cannot be read", tmp_path, capfd, path, inputs[1])


def test_parquet_has_the_domains(inputs, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path, table = tmp_path / "hits.parquet", tmp_path / "table"
    files = ["--parquet", str(path), "--domtblout", str(table), *map(str, inputs)]
    assert main(["hmmsearch", "-q", *files]) == 0
    found = parquet.read_table(path).to_pylist()
    expected = [line.split() for line in rows(table.read_bytes()) if line]
    named = [(row["target"].encode(), row["query"].encode()) for row in found]
    assert named == [(words[0], words[3]) for words in expected]
    places = [[int(word) for word in words[15:21]] for words in expected]
    names = ("profile_start", "profile_end", "start", "end", "envelope_start", "envelope_end")
    assert [[row[name] + ("start" in name) for name in names] for row in found] == places


@pytest.fixture(scope="module")
def nucleotides(inputs):
    """Write contigs that code for the proteins, on both strands, among noise."""
    random = Random(3)
    codons = {residue: codon for codon, residue in zip(CODONS, GENETIC_CODE, strict=True)}
    contigs = []
    for number, record in enumerate(inputs[1].read_text().split(">")[1:60]):
        _, text = record.split("\n", 1)
        bases = "".join(codons.get(one, "NNN") for one in text.replace("\n", ""))
        noise = [random_bases(random, random.randrange(200)) for _ in range(2)]
        contig = noise[0] + bases + noise[1]
        turned = reverse_complement(contig) if number % 2 else contig
        contigs.append((f"contig{number} made  of {number}", turned))
    return write_fasta(inputs[0].with_name("contigs.fa"), contigs)


def translated(nucleotides):
    """The names, the words and the residues of each ORF that Easel's program finds."""
    for text, residues in esl_translate(nucleotides):
        source, start, end, frame = ORF.match(text).groups()
        yield f"{source}:{frame}:{start}-{end}", text, residues


@pytest.mark.parametrize("verb", VERBS)
def test_translated_searches_equal_those_of_translated_sequences(
    verb, inputs, nucleotides, tmp_path
):
    need_hmmer()
    orfs = ((f"{name} {text}", residues) for name, text, residues in translated(nucleotides))
    press(inputs[0])
    theirs = hmmer(verb, tmp_path, inputs[0], write_fasta(tmp_path / "orfs.faa", orfs))
    packed = tmp_path / "contigs.fa.gz"
    packed.write_bytes(gzip.compress(nucleotides.read_bytes()))
    found = ours(verb, tmp_path, "--translate", inputs[0], packed)
    for kind, text in theirs.items():
        assert rows(found[kind]) == rows(text), kind
    assert len(rows(theirs["domtblout"])) > 5


def test_domains_have_places_on_the_nucleotides(inputs, nucleotides, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    contigs = read_fasta(nucleotides)
    amino_acids = dict(zip(CODONS, GENETIC_CODE, strict=True))
    orfs = {name: residues for name, _, residues in translated(nucleotides)}
    for verb, orf in (("hmmsearch", "target"), ("hmmscan", "query")):
        path = tmp_path / "hits.parquet"
        words = ["--translate", "--parquet", path, inputs[0], nucleotides]
        assert main([verb, "-q", *map(str, words)]) == 0
        found = parquet.read_table(path).to_pylist()
        assert {row["frame"] > 3 for row in found} == {False, True}
        for row in found:
            bases = contigs[row["record"]][row["nucleotide_start"] : row["nucleotide_end"]]
            if row["frame"] > 3:
                bases = reverse_complement(bases)
            codons = [bases[at : at + 3] for at in range(0, len(bases), 3)]
            residues = "".join(amino_acids.get(codon, "X") for codon in codons)
            assert residues == orfs[row[orf]][row["start"] : row["end"]]


@pytest.mark.parametrize("verb", ["hmmsearch", "hmmscan"])
def test_reports_count_what_the_tables_have(verb, inputs, tmp_path):
    files = {kind: tmp_path / kind for kind in ("tblout", "domtblout", "stats")}
    sample = tmp_path / "sample_mqc.json"
    words = [text for kind, path in files.items() for text in (f"--{kind}", str(path))]
    words += ["--incE", "1e-6", "--multiqc", str(sample), *map(str, inputs)]
    assert main([verb, "-q", *words]) == 0
    report = json.loads(files["stats"].read_text())
    texts = [rows(files[kind].read_bytes()) for kind in ("tblout", "domtblout")]
    targets, domains = ([line.split() for line in text if line] for text in texts)
    found, counts = report["profiles"], report["counts"]
    assert (found["hits"], found["domains"]) == (len(targets), len(domains))
    assert counts["hits"] == len(targets) > found["included_hits"] > 0
    assert found["queries"] == counts["profiles" if verb == "hmmsearch" else "sequences"]
    assert found["queries_with_hit"] == len({words[2] for words in targets})
    expected = Counter(math.floor(math.log10(float(words[4]))) for words in targets)
    assert {row["exponent"]: row["hits"] for row in found["e_values"]} == expected
    for name in ("filters", "msv", "viterbi", "finishing"):
        name = f"profile_{name}"
        stage = report["stages"][name]
        assert stage["gcups"] == pytest.approx(stage["cells"] / stage["seconds"] / 1e9)
    assert report["stages"]["profile_filters"]["cells"] == counts["residues"] * counts["nodes"]
    assert "cells" not in report["stages"]["format"]
    shown = json.loads(sample.read_text())["data"]["sample"]
    assert (shown["profiles"], shown["profile_hits"]) == (counts["profiles"], len(targets))


def test_words_as_hmmer_takes_them(inputs, tmp_path, capfd):
    need_hmmer()
    for words in ("-E inf", "-T -inf --domT -inf", "--F1 0", "--F3 0", "--F2 -1", "--incE=inf"):
        tables = []
        for program in (["hmmsearch", "--cpu", "0"], []):
            table = tmp_path / f"{len(program)}.table"
            full = ["--domtbl", str(table), *words.split(), *map(str, inputs)]
            if program:
                subprocess.run([*program, *full], check=True, capture_output=True)
            else:
                assert main(["hmmsearch", "-q", *full]) == 0
            tables.append(rows(table.read_bytes()))
        assert tables[0] == tables[1]
