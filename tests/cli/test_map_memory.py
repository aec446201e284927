"""Mapping with any memory and any cut of the reference: one output."""

import random
from pathlib import Path

import pytest
from helpers.sequences import random_bases, reverse_complement

from mummergpu.cli.main import main
from mummergpu.mapping import block_mapper
from mummergpu.mapping.block_mapper import BlockMapper


def output(*words):
    """The lines of a run, but for the one that names the command."""
    assert main(["map", "--backend", "cpu", "-q", *words, "-o", "x.sam"]) == 0
    lines = Path("x.sam").read_text().splitlines()
    return [line for line in lines if not line.startswith("@PG")]


def body(lines):
    """The lines without those of the header."""
    return [line for line in lines if not line.startswith("@")]


def write_satellite():
    """Pairs of copies of a unit and beside them, with errors, some of which need a second pass."""
    chosen = random.Random(11)

    def bases(count):
        return random_bases(chosen, count)

    def copied(text, share):
        return "".join(c if chosen.random() > share else chosen.choice("ACGT") for c in text)

    unit = bases(40)
    genome = bases(1500) + "".join(copied(unit, 0.02) for _ in range(60)) + bases(1500)
    Path("s.fa").write_text(f">s\n{genome}\n>t\n{bases(800)}{'AC' * 300}\n")
    first, second = [], []
    for number in range(120):
        at, size = chosen.randrange(len(genome) - 420), chosen.randrange(260, 400)
        whole = copied(genome[at : at + size], chosen.choice([0, 0.01, 0.1]))
        for reads, read in ((first, whole), (second, reverse_complement(whole))):
            reads.append(f"@{number}\n{read[:100]}\n+\n{'I' * 100}\n")
    Path("s1.fq").write_text("".join(first))
    Path("s2.fq").write_text("".join(second))


@pytest.mark.parametrize("most", ["4", "300"])
def test_memory_and_pages_do_not_change_the_output(tmp_path, monkeypatch, most):
    """Tables of other k-mers, and pages on which matches are found before seeds are chosen."""
    monkeypatch.chdir(tmp_path)
    write_satellite()
    given = ["s1.fq", "s2.fq", "-I", "330,40", "--max-occurrences", most]
    one, *others = (output("s.fa", *given, "--max-memory", size) for size in ("10M", "50M", "1G"))
    assert others == [one, one]
    for page_size, length in (("2k", "20"), ("700", "12")):
        index = [
            *"index -q --search kmer -l".split(),
            length,
            "--page-size",
            page_size,
            *"s.fa -o s.mgi".split(),
        ]
        assert main(index) == 0
        assert body(output("s.mgi", *given)) == body(one)
    assert sum(int(line.split("\t")[4]) >= 20 for line in body(one)) > 60


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
