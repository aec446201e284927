"""Peaks of memory on references that are nothing but repeats, unknown bases or short records."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest
from helpers.sequences import random_bases

from mummergpu.runtime.memory import PROCESS_BYTES, PROCESS_BYTES_PER_THREAD

THREADS = 2
READ_BASES = 100


def write_fasta(path, texts):
    path.write_text("".join(f">{number}\n{text}\n" for number, text in enumerate(texts)))


def changed(chance, text, share):
    """The same bases, of which a share is drawn anew."""
    return "".join(c if chance.random() >= share else chance.choice("ACGT") for c in text)


def satellite(chance, copies):
    """Copies of 171 bases that differ in 2%."""
    unit = random_bases(chance, 171)
    return "".join(changed(chance, unit, 0.02) for _ in range(copies))


def reads_of(chance, text, count):
    begins = [chance.randrange(len(text) - READ_BASES + 1) for _ in range(count)]
    return [changed(chance, text[begin : begin + READ_BASES], 0.01) for begin in begins]


def run(folder, limit, *words):
    """Return the peak of a process, the groups of pages, and the lines but that of the command."""
    command = [sys.executable, "-m", "mummergpu", *words, "r.fa", "q.fa", "-C", "-q"]
    command += ["--backend", "cpu", "-t", str(THREADS), "--max-memory", limit]
    files = ["-o", "x", "--stats", "s.json"]
    subprocess.run([*command, *files], cwd=folder, check=True, timeout=250)
    report = json.loads((folder / "s.json").read_text())
    lines = (folder / "x").read_text().splitlines()
    groups = report["settings"]["page_groups"]
    return report["peak_memory_bytes"], groups, [line for line in lines if line[:3] != "@PG"]


def allowed(limit):
    """The most bytes that a run may take whose limit is so many MiB."""
    return (limit << 20) + PROCESS_BYTES + THREADS * PROCESS_BYTES_PER_THREAD


@pytest.mark.parametrize("kind", ["letter", "two letters", "satellite", "records", "unknown"])
def test_hard_references_keep_to_the_limit(kind, tmp_path):
    chance = random.Random(6)
    verbs = [["map"], ["-mum", "-b", "-l", "20"], ["-maxmatch", "-b", "-l", "31"]]
    if kind == "records":
        drawn = np.random.default_rng(6).integers(0, 4, 100_000_000, dtype=np.uint8)
        text = np.frombuffer(b"ACGT", dtype=np.uint8)[drawn].tobytes().decode()
        texts = [text[begin : begin + 100] for begin in range(0, len(text), 100)]
        reads = [chance.choice(texts) for _ in range(300)]
    else:
        text = {
            "letter": "A" * 10_000_000,
            "two letters": "AC" * 50_000,
            "satellite": satellite(chance, 5000),
            "unknown": "N" * 10_000_000,
        }[kind]
        texts, reads = [text], reads_of(chance, text, 100)
    if kind == "letter":
        # A match for each base of the reference and each read is too much to write.
        verbs, reads = verbs[:1], reads[:20]
    write_fasta(tmp_path / "q.fa", reads)
    for words in verbs:
        # What is compiled first is not in the peak of the second run.
        write_fasta(tmp_path / "r.fa", [texts[0][:50_000]])
        run(tmp_path, "200M", *words)
        write_fasta(tmp_path / "r.fa", texts)
        peak, _, lines = run(tmp_path, "200M", *words)
        assert peak < allowed(200)
        assert words[0] == "-mum" or len(lines) >= len(reads)


@pytest.mark.parametrize("words", [["map"], ["-maxmatch", "-b", "-l", "40"]])
def test_reads_of_a_satellite_keep_to_the_limit_on_several_groups(words, tmp_path):
    """The first groups have none of the satellite, so nothing tells of what is to come."""
    chance = random.Random(7)
    copies = satellite(chance, 6000)
    write_fasta(tmp_path / "r.fa", [random_bases(chance, 2_500_000) + copies])
    write_fasta(tmp_path / "q.fa", reads_of(chance, copies, 1500 if words[0] == "map" else 500))
    _, one, expected = run(tmp_path, "1G", *words)
    peak, groups, found = run(tmp_path, "9M", *words)
    assert one == 1 < groups
    assert found == expected
    assert peak < allowed(9)
