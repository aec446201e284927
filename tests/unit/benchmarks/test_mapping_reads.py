"""What mappers are compared on: genomes and simulated reads, made once and found again."""

import gzip
from pathlib import Path

import pytest
from helpers.sequences import reverse_complement
from mapping.genomes import genome_file, genome_sources, write_repeats
from mapping.simulation import count_reads, read_set
from mapping.truth import true_span


def records_of(path):
    found = {}
    for text in path.read_text().split(">")[1:]:
        name, *lines = text.splitlines()
        found[name.split()[0]] = "".join(lines)
    return found


def test_genomes_come_from_a_folder_and_from_named_files(tmp_path):
    yeast = tmp_path / "yeast_S288C_R64.ensembl94.fa.gz"
    yeast.touch()
    assert genome_sources(tmp_path, ["mine=x.fa"]) == {
        "yeast": yeast,
        "mine": Path("x.fa"),
        "repeats": None,
    }
    assert genome_sources(None, []) == {"repeats": None}


def test_a_genome_without_its_file_is_refused():
    with pytest.raises(ValueError, match="NAME=FILE: mine"):
        genome_sources(None, ["mine"])


def test_a_compressed_genome_is_unpacked_once(tmp_path):
    source = tmp_path / "a.fa.gz"
    source.write_bytes(gzip.compress(b">a\nACGT\n"))
    path = genome_file("mine", source, tmp_path, 7)
    assert (path.name, path.read_bytes()) == ("mine.fa", b">a\nACGT\n")
    source.unlink()
    assert genome_file("mine", source, tmp_path, 7) == path


def test_the_genome_of_repeats_depends_on_its_seed_alone(tmp_path):
    first, again, other = (tmp_path / name for name in "abc")
    for path, seed in ((first, 1), (again, 1), (other, 2)):
        write_repeats(path, seed, 400_000)
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()
    records = records_of(first)
    assert {name: len(bases) for name, bases in records.items()} == {
        "repeats_1": 133_333,
        "repeats_2": 266_667,
    }
    words = [
        bases[place : place + 31]
        for bases in records.values()
        for place in range(0, len(bases) - 31)
    ]
    repeated = 1 - len(set(words)) / len(words)
    assert repeated > 0.1


def test_reads_lie_where_their_names_tell(tmp_path, dwgsim_binary):
    reference = tmp_path / "repeats.fa"
    write_repeats(reference, 3, 100_000)
    made = read_set("repeats", reference, 60, 400, 5, tmp_path)
    assert (made.name, made.pairs, made.read_bases) == ("repeats.60.seed5.pairs400", 400, 60)
    records = records_of(reference)
    agreeing = 0
    for mate, path in enumerate(made.mates, 1):
        lines = path.read_text().splitlines()
        for head, bases in zip(lines[::4], lines[1::4], strict=True):
            truth = true_span(head.removeprefix("@").rsplit("/", 1)[0], mate, len(bases))
            assert truth is not None
            expected = records[truth.contig][truth.start : truth.end]
            if truth.reverse:
                expected = reverse_complement(expected)
            agreeing += sum(map(str.__eq__, bases, expected)) >= 55
    # The others have an insertion or a deletion.
    assert agreeing >= 780
    before = made.mates[0].stat().st_mtime_ns
    assert read_set("repeats", reference, 60, 400, 5, tmp_path) == made
    assert made.mates[0].stat().st_mtime_ns == before


def test_reads_are_counted(tmp_path):
    path = tmp_path / "a.fq"
    path.write_text("@a\nA\n+\nI\n" * 3)
    assert count_reads(path) == 3
