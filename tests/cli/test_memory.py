"""How much memory a run takes: within its limit, whatever reference and reads are like."""

import json
import random

import numpy as np
import pytest
from helpers.alignment_tools import sam_rows
from helpers.children import COMMAND, child, printed_by
from helpers.sequences import random_bases, reverse_complement, write_fasta

from mummergpu.runtime.memory import PROCESS_BYTES, PROCESS_BYTES_PER_THREAD

THREADS = 2
MIB = 1 << 20
LINE = 100


def write_random(path, bases, unknown=0):
    """Write a record of random bases, with so many that are unknown behind them."""
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)
    text = letters[np.random.default_rng(bases).integers(0, 4, bases, dtype=np.uint8)]
    text = np.concatenate((text, np.full(unknown, ord("N"), dtype=np.uint8)))
    lines = np.full((text.size // LINE, LINE + 1), ord("\n"), dtype=np.uint8)
    lines[:, :LINE] = text.reshape(-1, LINE)
    path.write_bytes(b">r\n" + lines.tobytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """24 Mbp, and reads of them."""
    folder = tmp_path_factory.mktemp("memory")
    write_random(folder / "ref.fa", 24_000_000)
    lines = (folder / "ref.fa").read_text().split("\n")[1::97]
    write_fasta(folder / "reads.fa", ((f"q{n}", line) for n, line in enumerate(lines[:1000])))
    return folder


def measured(folder, *words, threads=THREADS):
    """Return the report of a process that compiles nothing, its output, and what it said."""
    command = [*COMMAND, *words, *f"--backend cpu -t {threads} -o out --stats stats.json".split()]
    for _ in range(2):
        done = child(*command, cwd=folder, check=True, timeout=250)
        # Compiling takes memory, too, where nothing has been compiled before.
        if "compiling" not in done.stderr:
            break
    assert "compiling" not in done.stderr
    report = json.loads((folder / "stats.json").read_text())
    return report, (folder / "out").read_text(), done.stderr


def run(folder, *words):
    """Return the peak of resident memory, the groups of pages, and the output."""
    report, output, _ = measured(folder, *words)
    return report["peak_memory_bytes"], report["settings"]["page_groups"], output


def allowed(limit, threads=THREADS):
    """The most bytes that a run may take whose limit is so many MiB."""
    return limit * MIB + PROCESS_BYTES + threads * PROCESS_BYTES_PER_THREAD


def test_a_run_keeps_to_its_limit(folder):
    files = [str(folder / "ref.fa"), str(folder / "reads.fa"), "-b"]
    _, groups, expected = run(folder, *files)
    assert groups == 1 and expected.count("\n") >= 3000
    for limit, has_groups in ((60, False), (26, True)):
        peak, groups, found = run(folder, *files, "--max-memory", f"{limit}M")
        assert found == expected
        # A smaller table comes first, and only then several.
        assert (groups > 1) == has_groups
        assert peak < allowed(limit)


def test_an_index_file_is_let_go_group_by_group(folder):
    words = "index ref.fa --search kmer --page-size 3M -q -o ref.mgi"
    child(*COMMAND, *words.split(), cwd=folder, check=True, timeout=250)
    files = ("ref.mgi", "reads.fa", "-b")
    whole, groups, expected = run(folder, *files)
    assert groups == 1
    peak, groups, found = run(folder, *files, "--max-memory", "60M")
    assert found == expected and groups == 8
    assert peak < whole - 150 * MIB


def test_unknown_bases_take_the_memory_of_their_codes_only(tmp_path):
    write_random(tmp_path / "few.fa", 10_000)
    few, _, expected = run(tmp_path, str(tmp_path / "few.fa"), str(tmp_path / "few.fa"))
    write_random(tmp_path / "many.fa", 10_000, unknown=80_000_000)
    many, groups, found = run(tmp_path, str(tmp_path / "many.fa"), str(tmp_path / "few.fa"))
    assert found == expected and groups == 1
    assert many < few + 80_000_000 + 60 * MIB


MODES = {
    "maxmatch": ["-maxmatch", "-b"],
    "mumreference": ["-mumreference", "-b"],
    "mum": ["-mum", "-b"],
    "map": ["map"],
    "align": ["align"],
}


def made(folder, kind):
    """Write a reference and three reads; return the bases of its records."""
    chance = random.Random(5)
    records = {
        "letter": lambda: ["A" * 200_000],
        "unknown": lambda: ["N" * 1_000_000, "N" * 10],
        "records": lambda: ["".join(chance.choices("ACGT", k=100)) for _ in range(50_000)],
    }[kind]()
    write_fasta(folder / "r.fa", enumerate(records))
    write_fasta(folder / "q.fa", enumerate(record[:90] for record in (records * 3)[:3]))
    return records


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["letter", "unknown", "records"])
def test_hard_references(tmp_path, kind, mode):
    records = made(tmp_path, kind)
    queries = "r.fa" if mode == "align" and kind != "records" else "q.fa"
    formats = {"map": "sam", "align": "paf"}
    words = [*MODES[mode], "r.fa", queries, "--max-memory", "100M"]
    words += ["--format", formats.get(mode, "mummer")]
    report, output, said = measured(tmp_path, *words)
    assert report["peak_memory_bytes"] < allowed(100)
    found = [row for row in output.splitlines() if row[0] not in ">@"]
    assert ("the reference holds no A, C, G or T" in said) == (kind == "unknown")
    if mode == "map":
        mapped = [row for row in found if int(row.split("\t")[1]) & 4 == 0]
        assert len(found) == 3 and len(mapped) == (0 if kind == "unknown" else 3)
        if kind == "letter":
            assert all(row.split("\t")[4] == "0" for row in mapped)
    elif kind == "unknown":
        assert found == []
    elif kind == "letter":
        # Each copy of the read, and at either end what is left of it.
        copies = len(records[0]) - 90 + 1 + 2 * (90 - 20)
        count = {"maxmatch": 3 * copies, "align": 1}.get(mode, 0)
        assert len(found) == count
    else:
        assert len(found) >= 3


READ_BASES = 100


def changed(chance, text, share):
    """The same bases, of which a share is drawn anew."""
    return "".join(c if chance.random() >= share else chance.choice("ACGT") for c in text)


def satellite(chance, copies, share=0.02):
    """Copies of 171 bases, of which a share differs in each."""
    unit = random_bases(chance, 171)
    return "".join(changed(chance, unit, share) for _ in range(copies))


def reads_of(chance, text, count):
    begins = [chance.randrange(len(text) - READ_BASES + 1) for _ in range(count)]
    return [changed(chance, text[begin : begin + READ_BASES], 0.01) for begin in begins]


def run_in(folder, limit, *words):
    """Return the peak of a process, the groups of pages, and the lines but that of the command."""
    peak, groups, output = run(folder, *words, "r.fa", "q.fa", "--max-memory", limit)
    return peak, groups, [line for line in output.splitlines() if line[:3] != "@PG"]


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
    write_fasta(tmp_path / "q.fa", enumerate(reads))
    write_fasta(tmp_path / "r.fa", enumerate(texts))
    for words in verbs:
        peak, _, lines = run_in(tmp_path, "200M", *words)
        assert peak < allowed(200)
        assert words[0] == "-mum" or len(lines) >= len(reads)


@pytest.mark.parametrize("words", [["map"], ["-maxmatch", "-b", "-l", "40"]])
def test_reads_of_a_satellite_keep_to_the_limit_on_several_groups(words, tmp_path):
    """The first groups have none of the satellite, so nothing tells of what is to come."""
    chance = random.Random(7)
    copies = satellite(chance, 6000)
    write_fasta(tmp_path / "r.fa", {"r": random_bases(chance, 2_500_000) + copies})
    reads = reads_of(chance, copies, 1500 if words[0] == "map" else 500)
    write_fasta(tmp_path / "q.fa", enumerate(reads))
    _, one, expected = run_in(tmp_path, "1G", *words)
    peak, groups, found = run_in(tmp_path, "9M", *words)
    assert one == 1 < groups
    assert found == expected
    assert peak < allowed(9)


PAIRS = 400
FRAGMENT = 350
MANY_THREADS = 6
MAX_PEAK = 400 << 20
"""Some 100 MB are needed; 13 MB a pair once were."""


def with_errors(read, chance):
    """The same bases; half of the reads differ in one, near the middle or at an end."""
    if chance.random() < 0.5:
        return read
    place = chance.randrange(len(read))
    return read[:place] + chance.choice("ACGT") + read[place + 1 :]


def check_visits(counts):
    """Each read was searched on both strands at least once, and looked at a bounded part."""
    prefix = "reads_visiting_"
    named = [(key.removeprefix(prefix), n) for key, n in counts.items() if key.startswith(prefix)]
    by_visits = {int(visits): count for visits, count in named}
    searched, visited = sum(by_visits.values()), counts["occurrences_visited"]
    assert 4 * PAIRS <= searched <= 8 * PAIRS
    least = sum(visits * count for visits, count in by_visits.items())
    assert 0 < least <= visited < 2 * least
    assert searched <= counts["seeds_looked_up"] <= 150 * searched
    # Short reads keep 8 times 300 matches. Few reads look at more places of a frequent seed: those
    # whose windows have a difference behind a k-mer that is listed.
    many = sum(count for visits, count in by_visits.items() if visits >= 32_768)
    assert many <= 0.05 * searched
    assert counts["reads_with_chosen_seeds"] <= searched


@pytest.mark.parametrize("length", [150, 100, 60])
@pytest.mark.parametrize("kind", ["AC", "T", "alpha"])
def test_reads_of_satellites_are_mapped_in_little_memory(tmp_path, kind, length):
    chance = random.Random(11)
    genome = {"AC": "AC" * 50_000, "T": "T" * 200_000}.get(kind) or satellite(chance, 1000)
    write_fasta(tmp_path / "r.fa", {"c": genome})
    files = ([], [])
    for number in range(PAIRS):
        begin = chance.randrange(len(genome) - FRAGMENT)
        end = begin + FRAGMENT
        mates = genome[begin : begin + length], reverse_complement(genome[end - length : end])
        for of_mate, read in zip(files, mates, strict=True):
            of_mate.append((f"{begin}_{end - length}_{number}", with_errors(read, chance)))
    for name, of_mate in zip(("1.fa", "2.fa"), files, strict=True):
        write_fasta(tmp_path / name, of_mate)
    words = "map r.fa 1.fa 2.fa --max-memory 200M -I 350,20"
    stats, _, _ = measured(tmp_path, *words.split())
    assert stats["peak_memory_bytes"] < MAX_PEAK
    check_visits(stats["counts"])
    reads = [row for row in sam_rows(tmp_path / "out") if int(row[1]) & 0x900 == 0]
    assert len(reads) == 2 * PAIRS
    assert sum(int(row[1]) & 4 == 0 for row in reads) >= 0.99 * len(reads)
    if kind != "alpha":
        assert {row[4] for row in reads} == {"0"}
        return
    # Copies that were not looked at count in mapping qualities.

    def begin_of(row):
        return int(row[0].split("_")[int(row[1]) & 128 > 0])

    sure = [row for row in reads if int(row[4]) >= 20]
    wrong = [row for row in sure if begin_of(row) != int(row[3]) - 1]
    assert len(sure) > (100 if length > 60 else 10)
    assert len(wrong) <= 0.01 * len(sure)
    assert all(int(row[4]) < 40 for row in wrong)


def test_all_places_of_reads_of_a_satellite_fit_the_memory(tmp_path):
    """All of 50,000 copies are candidates of each read where other places are wanted."""
    genome = "AC" * 50_000
    write_fasta(tmp_path / "r.fa", {"c": genome})
    write_fasta(tmp_path / "q.fa", ((n, genome[n : n + 150]) for n in range(60)))
    stats, _, _ = measured(tmp_path, *"map r.fa q.fa -N 3 --max-memory 200M".split())
    assert stats["peak_memory_bytes"] < allowed(200)
    assert len(sam_rows(tmp_path / "out")) == 60 * 4


@pytest.mark.parametrize("unit", ["A", "AC"])
def test_few_listed_places_of_a_satellite_stand_for_all(tmp_path, unit):
    """Tables that list one place of many, and reads with more places than they list."""
    write_fasta(tmp_path / "r.fa", {"c": unit * (2000 // len(unit))})
    write_fasta(tmp_path / "q.fa", {"q": unit * (150 // len(unit))})

    def run(words):
        rows = printed_by(*COMMAND, *words.split(), "-q", "-t", "1", cwd=tmp_path).splitlines()
        return [row for row in rows if row[0] != "@"]

    (row,) = run("map r.fa q.fa")
    assert row.split("\t")[5] == "150M"
    assert run("map r.fa q.fa --max-memory 1") == [row]
    assert len(run("map r.fa q.fa --max-occurrences 1000")) == 1
    for words in ("--for memory -l 12", "--max-memory 1"):
        run(f"index r.fa -o i.mgi {words}")
        assert run("map i.mgi q.fa") == [row]


def test_many_threads_share_the_memory_of_candidates(tmp_path):
    """Short reads have thousands of candidates each, whichever thread maps them."""
    chance = random.Random(2)
    genome = satellite(chance, 4000, 0.01)
    write_fasta(tmp_path / "r.fa", {"c": genome})
    begins = [chance.randrange(len(genome) - 75) for _ in range(2500)]
    write_fasta(tmp_path / "q.fa", ((n, genome[at : at + 75]) for n, at in enumerate(begins)))
    # Up to three times as many near matches of a read count: all of them here.
    words = "map r.fa q.fa --max-memory 60M --max-occurrences 5000".split()
    stats, _, _ = measured(tmp_path, *words, threads=MANY_THREADS)
    assert stats["counts"]["occurrences_visited"] > 10_000_000
    assert stats["peak_memory_bytes"] < allowed(60, MANY_THREADS)
