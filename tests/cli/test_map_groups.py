"""Mapping with any memory and any cut of the reference: one output."""

import json
import os
import random
import shlex
import tempfile
from pathlib import Path

import pytest
from helpers.alignment_tools import sam_rows
from helpers.loops import each
from helpers.read_pairs import write_drifting_pairs
from helpers.sequences import random_bases, reverse_complement, write_fasta, write_fastq

from mummergpu.cli.main import main
from mummergpu.mapping import block_mapper
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.pipeline.block_search_loop import BlockParts
from mummergpu.runtime.progress import Messages, Phase

PAIRS = 100
PAGES = ("--search", "kmer", "--page-size", "2k", "-l", "16")
MOST_GROUPS = 17


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs of which some need the second pass, and an index of small pages."""
    made = tmp_path_factory.mktemp("groups")
    write_drifting_pairs(made, PAIRS)
    assert main(["index", "-q", *PAGES, str(made / "r.fa"), "-o", str(made / "p.mgi")]) == 0
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def alignments(words):
    """The alignments without the header, and the number of groups of pages."""
    command = f"map --backend cpu -q {words} -o x.sam --stats x.json"
    assert main(shlex.split(command)) == 0
    found = "".join("\t".join(row) + "\n" for row in sam_rows("x.sam"))
    return found, json.loads(Path("x.json").read_text())["settings"]["page_groups"]


@each(
    "words",
    [
        "p.mgi 1.fq 2.fq",
        "p.mgi 1.fq 2.fq --block-size 2500 -t 2",
        "p.mgi both.fq -p -I 300,25",
        "p.mgi 1.fq --block-size 2500 -t 2",
        "p.mgi 1.fq 2.fq --single",
        # Of reads of which all matches are as short as the index finds, no second pass is made.
        "p.mgi 1.fq 2.fq -k 16",
    ],
)
def test_alignments_do_not_depend_on_the_groups(words):
    expected, count = alignments(words)
    assert count == 1
    counts = []
    for memory in ("900k", "400k", "40k"):
        found, count = alignments(f"{words} --max-memory {memory}")
        assert found == expected
        counts.append(count)
    assert 1 < counts[0] < counts[1] < counts[2] == MOST_GROUPS


def test_the_second_pass_has_all_groups(monkeypatch):
    """The reads that differ most are placed by it, on all pages."""
    words = "p.mgi 1.fq 2.fq --max-memory 40k"
    both, _ = alignments(words)
    monkeypatch.setattr("mummergpu.pipeline.mapping_search.SecondSearch", None)
    monkeypatch.setattr("mummergpu.pipeline.map_reads.length_of_second_pass", lambda *_: 30)
    first, count = alignments(words)
    assert count == MOST_GROUPS
    mapped = [
        sum(int(row.split("\t")[1]) & 4 == 0 for row in rows.splitlines()) for rows in (both, first)
    ]
    assert mapped[0] > mapped[1] + 4


def test_reads_of_the_second_pass_are_mapped_in_the_parts_that_are_searched(monkeypatch):
    """A part has as few reads as its matches ask for, whatever the block has."""
    expected, _ = alignments("p.mgi 1.fq 2.fq")
    parts, map_again = [], BlockMapper.map_again

    def counted(*arguments):
        parts.append(arguments[1].query_count)
        return map_again(*arguments)

    monkeypatch.setattr(BlockMapper, "map_again", counted)
    monkeypatch.setattr(BlockParts, "max_bases", lambda _self: 900)
    found, count = alignments("p.mgi 1.fq 2.fq --max-memory 40k")
    assert found == expected and count == MOST_GROUPS
    assert len(parts) > 3 and max(parts) <= 900 // 40


def test_a_reference_file_is_mapped_to_in_groups(tmp_path):
    """Its pages are built anew for each pass; no page is smaller than a megabase."""
    made = random.Random(2)
    bases = random_bases(made, 3_000_000)
    begins = [made.randrange(len(bases) - 100) for _ in range(50)]
    large = write_fasta(tmp_path / "large.fa", {"large": bases})
    reads = ((f"{n}_{at}", bases[at : at + 100]) for n, at in enumerate(begins))
    words = f"{large} {write_fasta(tmp_path / 'reads.fa', reads)}"
    expected, count = alignments(f"{words} --max-memory 1G")
    found, groups = alignments(f"{words} --max-memory 6M")
    assert count == 1 and groups > 1
    assert found == expected
    for line in found.splitlines():
        name, flag, _, position, quality = line.split("\t")[:5]
        assert (flag, int(position) - 1, quality) == ("0", int(name.split("_")[1]), "60")


def test_no_reads_and_no_bad_reads():
    Path("none.fq").write_text("")
    write_fasta("exact.fa", {"one": Path("r.fa").read_text().splitlines()[1][300:400]})
    assert alignments("p.mgi none.fq --max-memory 40k") == ("", MOST_GROUPS)
    found, _ = alignments("p.mgi exact.fa --max-memory 40k")
    assert found.split("\t")[:6] == ["one", "0", "one", "301", "60", "100M"]


def test_progress_ascends_over_both_passes(monkeypatch):
    told = []
    monkeypatch.setattr(Messages, "tell", lambda _self, work: told.append(work))
    _, count = alignments("p.mgi 1.fq 2.fq --max-memory 400k -t 2")
    numbers = [work.numbers for work in told if work.phase is Phase.READS_OF_GROUP]
    groups = [int(group) for _, group, _ in numbers]
    assert groups == sorted(groups) and groups[-1] == 2 * count - 1
    assert {of for _, _, of in numbers} == {2 * count}
    shares = [work.share for work in told if work.phase in (Phase.READS_OF_GROUP, Phase.READS)]
    known = [share for share in shares if share is not None]
    assert known == sorted(known) and known[-1] == 1.0


def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "w+b"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    output = tmp_path / "x.bam"
    words = [*"map --backend cpu -q p.mgi 1.fq 2.fq --max-memory 40k -o".split(), str(output)]
    assert main(words) == 1
    assert "temporary data cannot be kept" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def output(*words):
    """The lines of a run, but for the one that names the command."""
    assert main(["map", "--backend", "cpu", "-q", *words, "-o", "x.sam"]) == 0
    return [line for line in Path("x.sam").read_text().splitlines() if line[:3] != "@PG"]


def write_satellite():
    """Pairs of copies of a unit and beside them, with errors, some of which need a second pass."""
    chosen = random.Random(11)

    def bases(count):
        return random_bases(chosen, count)

    def copied(text, share):
        return "".join(c if chosen.random() > share else chosen.choice("ACGT") for c in text)

    unit = bases(40)
    genome = bases(1500) + "".join(copied(unit, 0.02) for _ in range(60)) + bases(1500)
    write_fasta("s.fa", {"s": genome, "t": bases(800) + "AC" * 300})
    first, second = [], []
    for number in range(120):
        at, size = chosen.randrange(len(genome) - 420), chosen.randrange(260, 400)
        whole = copied(genome[at : at + size], chosen.choice([0, 0.01, 0.1]))
        first.append((number, whole[:100]))
        second.append((number, reverse_complement(whole)[:100]))
    write_fastq("s1.fq", first)
    write_fastq("s2.fq", second)


@pytest.mark.parametrize("most", ["4", "300"])
def test_memory_and_pages_do_not_change_the_output(tmp_path, monkeypatch, most):
    """Tables of other k-mers, and pages on which matches are found before seeds are chosen."""
    monkeypatch.chdir(tmp_path)
    write_satellite()
    given = ["s1.fq", "s2.fq", "-I", "330,40", "--max-occurrences", most]
    one, *others = (output("s.fa", *given, "--max-memory", size) for size in ("10M", "50M", "1G"))
    assert others == [one, one]
    rows = sam_rows("x.sam")
    for words in ("--page-size 2k -l 20", "--page-size 700 -l 12"):
        assert main(f"index -q --search kmer {words} s.fa -o s.mgi".split()) == 0
        output("s.mgi", *given)
        assert sam_rows("x.sam") == rows
    assert sum(int(row[4]) >= 20 for row in rows) > 60


def test_reads_are_mapped_again_in_any_parts(tmp_path, monkeypatch):
    """The second pass takes few reads at a time where they have many matches."""
    monkeypatch.chdir(tmp_path)
    write_satellite()
    given, parts = ["s.fa", "s1.fq", "s2.fq", "-I", "330,40"], []
    map_again = BlockMapper.map_again

    def counted(*arguments):
        parts.append(arguments[1].query_count)
        return map_again(*arguments)

    monkeypatch.setattr(BlockMapper, "map_again", counted)
    together = output(*given)
    assert len(parts) == 1
    monkeypatch.setattr(block_mapper, "READS_AT_FIRST", 6)
    monkeypatch.setattr(block_mapper, "MATCHES_AT_ONCE", 40)
    assert output(*given) == together
    assert len(parts) > 4
    assert sum(parts[1:]) == parts[0]
