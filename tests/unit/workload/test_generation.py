"""Workloads as users get them: the paper's sizes, the same bytes for ever, the truth told."""

import hashlib
import json
import os
from dataclasses import replace

import numpy as np
import pytest
from helpers.sequences import read_fasta, reverse_complement
from helpers.truth import edit_distance, fragment, parse

from mummergpu.errors import InputError, OptionError, OutputError
from mummergpu.input.reference import Reference
from mummergpu.runtime.progress import Phase, Work
from mummergpu.workload import generation
from mummergpu.workload import read_simulator as sequencing
from mummergpu.workload.declaration import Excerpt, load_declaration, workload_names
from mummergpu.workload.generation import fasta_text, generate
from mummergpu.workload.genome import synthesize

SYNTHETIC = ["CBRIGG", "HSYNTH", "LMONO", "SSUIS"]
SCALE = 0.002

# They change only together with FORMAT.
SHA256 = dict(
    line.rsplit(" ", 1)
    for line in """\
CBRIGG reference 713de3b42e1c216b9211bc05b2d6543f2c6bd481ca9d7015521b0a6651afd6cc
CBRIGG reads ec88adc9a13ac2c67e7108867777057e150803c0b81dc70f2a12c9c27d84e87a
HSYNTH reference 34d1d1b3d96a2451f34174ae54adc34eb13df9ca3da23703054a7c7bfbb08d75
HSYNTH reads 44cac960fcf528c504106fdb158e28e9a3646857934e0a0a6583fed044018d72
LMONO reference 03a469a7b4f94e61435f168a0d9a63a43d24cafa7ff5ee83a9fa28ab85a10a0c
LMONO reads 20c470a4f53fc91ba304d76622536317c6a36c6141989c1434cbeb5bf6380da2
SSUIS reference 53ed7772fdbca84f9ca13b28efc6c9878f834ac6d97265cd9880e26fa5083300
SSUIS reads 72d721e705b6fd74e15a2e481ef05768b2721bf7fc98750844d0a3c8323b8570
HS100 reads.fa e3dfb79362edff56250b3b9c858d1cdf219de5b9c579b9701ebe3d62530d02d8
GENOMES copy.fa b388182adb801795bd4dd79ec2bd4d60b20f0d6516f96367fe93d9ba0109f918
REPEATS reference f53d3f13d8da5b8c8f3322c6c5b128de7559cc3ad09c24a285a2a184980e9184
REPEATS reads 6f10a41aa41b39a7e57715d568de3f70a0a5616ea51703fd17b6beea1d173dee
REPEATS mates fd09067d2789a2cab2526c1b85e8930ddef77c568ea808676e9ada91c0ed25c5
HS100 genome d8ebf6dd4115de9bcc7378c96283df5a6236d58992b32e0129a68355e9badcce
GENOMES genome 21d841ab09540e9236608aa03ce14d75df24b7b459b28379ef804a32c164f869
""".splitlines()
)


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module", params=SYNTHETIC)
def made(request, tmp_path_factory):
    return generate(request.param, tmp_path_factory.mktemp(request.param), SCALE)


def description_of(files):
    return json.loads(files.description.read_text())


# What stands in Table 1 of the paper


@pytest.mark.parametrize(
    ("name", "bases", "minimum_length", "count", "read_length", "platform"),
    [
        ("HSYNTH", 16_000_000, 14, 500_000, 29, "Illumina"),
        ("CBRIGG", 13_000_000, 100, 500_000, 700, "Sanger"),
        ("LMONO", 2_944_528, 20, 1_000_000, 120, "454"),
        ("SSUIS", 2_007_491, 10, 1_000_000, 36, "Illumina"),
        ("HS100", 100_000_000, 31, 10_000_000, 150, "Illumina"),
    ],
)
def test_sizes_are_the_documented_ones(name, bases, minimum_length, count, read_length, platform):
    workload = load_declaration(name)
    assert name in workload_names()
    assert (workload.genome.length, workload.minimum_length) == (bases, minimum_length)
    reads = workload.queries
    assert (reads.count, reads.length_mean, reads.platform) == (count, read_length, platform)


# The same bytes for ever


def test_the_bytes_are_those_of_the_first_release(made):
    description = description_of(made)
    for part, path in (("reference", made.reference), ("reads", made.queries)):
        assert sha256_of(path) == description[part]["sha256"]
        assert sha256_of(path) == SHA256[f"{description['name']} {part}"]


@pytest.mark.parametrize(
    ("name", "scale", "file"), [("HS100", 0.0001, "reads.fa"), ("GENOMES", 1.0, "copy.fa")]
)
def test_the_queries_at_scale_are_those_of_the_first_release(name, scale, file, tmp_path):
    source = generate("LMONO", tmp_path / "source", 0.00001).reference
    files = generate(name, tmp_path / "made", scale, reference=source)
    assert files.queries.name == file and sha256_of(files.queries) == SHA256[f"{name} {file}"]
    assert description_of(files)[file.removesuffix(".fa")]["sha256"] == sha256_of(files.queries)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HS100", "GENOMES"])
def test_the_genomes_at_scale_are_those_of_the_first_release(name):
    workload = load_declaration(name)
    codes = synthesize(workload.genome, workload.seed, name)
    starts, lengths = (np.array([number], dtype=np.int64) for number in (0, codes.size))
    reference = Reference("made.fa", codes, starts, lengths, (name.encode(),))
    made = hashlib.sha256()
    for text in fasta_text(reference):
        made.update(text)
    assert made.hexdigest() == SHA256[f"{name} genome"]


def declare_excerpt(monkeypatch, text, *regions):
    """Let HSILL be cut from a small genome, of which the regions have a text."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    small = replace(load_declaration("HSILL"), genome=Excerpt("a small genome", regions, digest))
    monkeypatch.setattr(generation, "load_declaration", lambda name: small)


def test_the_paper_s_human_workload_is_cut_from_a_real_genome(monkeypatch, tmp_path):
    genome = load_declaration("HSILL").genome
    assert genome.source == "GRCh38"
    spans = [region.partition(":")[2].split("-") for region in genome.regions]
    assert sum(int(last) - int(first) + 1 for first, last in spans) == 14_930_000
    bases = "ACGGTCATTGCAAGGCCTTA" * 3
    (tmp_path / "r.fa").write_text(f">one first\nGG{bases[:50].lower()}\n>two\n{bases}N\n")
    text = f">one:3-52\n{bases[:50]}\n>two:1-61\n{bases}\nN\n"
    declare_excerpt(monkeypatch, text, "one:3-52", "two:1-61")
    files = generate("HSILL", tmp_path / "made", 0.00002, tmp_path / "r.fa")
    assert files.reference.read_text() == text and len(parse(files.queries.read_bytes())) == 10
    assert description_of(files)["reference"]["source"] == "r.fa"


@pytest.mark.parametrize(
    ("region", "message"),
    [
        ("one:3-53", "has no bases one:3-53, of a small genome"),
        ("three:1-50", "has no bases three:1-50, of a small genome"),
        ("one:2-51", "has other bases than a small genome in its regions"),
    ],
)
def test_another_genome_is_refused(monkeypatch, tmp_path, region, message):
    bases = "ACGGTCATTGCAAGGCCTTA" * 3
    (tmp_path / "r.fa").write_text(f">one\nGG{bases[:50]}\n>two\n{bases}\n")
    declare_excerpt(monkeypatch, f">one:2-51\n{bases[:50]}\n", region)
    with pytest.raises(InputError, match=message) as caught:
        generate("HSILL", tmp_path / "made", 0.00002, tmp_path / "r.fa")
    assert caught.value.path == str(tmp_path / "r.fa") and not (tmp_path / "made").exists()


def test_a_real_genome_must_be_given(tmp_path):
    with pytest.raises(
        OptionError, match="'HSILL' is cut from GRCh38: name a FASTA file"
    ) as caught:
        generate("HSILL", tmp_path / "made")
    assert caught.value.option == "--reference"


def files_of(files):
    return (files.reference, *files.query_paths, files.description)


def test_blocks_leave_no_trace(monkeypatch, tmp_path):
    one = generate("LMONO", tmp_path / "one", 0.0005)
    monkeypatch.setattr(sequencing, "_BLOCK_BYTES", 5_000)
    other = generate("LMONO", tmp_path / "other", 0.0005)
    for left, right in zip(files_of(one), files_of(other), strict=True):
        assert left.read_bytes() == right.read_bytes()


def test_another_seed_makes_another_workload(tmp_path):
    one = generate("LMONO", tmp_path / "one", 0.0005)
    other = generate("LMONO", tmp_path / "other", 0.0005, seed=1)
    assert one.reference.read_bytes() != other.reference.read_bytes()
    assert one.queries.read_bytes() != other.queries.read_bytes()
    assert description_of(other)["seed"] == 1
    positions = [
        {read.position for read in parse(files.queries.read_bytes())} for files in (one, other)
    ]
    assert len(positions[0] & positions[1]) < 50


def test_a_smaller_scale_makes_the_first_reads_of_the_same_genome(tmp_path):
    large = generate("SSUIS", tmp_path / "large", 0.001)
    small = generate("ssuis", tmp_path / "small", 0.0001)
    assert small.reference.read_bytes() == large.reference.read_bytes()
    assert len(parse(small.queries.read_bytes())) == 100
    assert large.queries.read_bytes().startswith(small.queries.read_bytes())


# What is declared is what is made


def test_counts_lengths_and_strands_are_the_declared_ones(made):
    description = description_of(made)
    workload = load_declaration(description["name"])
    reads = parse(made.queries.read_bytes())
    assert len(reads) == description["reads"]["count"] == round(workload.queries.count * SCALE)
    assert [read.name for read in reads] == [f"{workload.name}.{n + 1}" for n in range(len(reads))]
    lengths = np.array([len(read.bases) for read in reads])
    assert lengths.sum() == description["reads"]["bases"]
    assert lengths.min() >= workload.queries.length_minimum
    assert lengths.max() <= workload.queries.length_maximum
    spread = workload.queries.length_deviation
    assert abs(lengths.mean() - workload.queries.length_mean) <= 0.25 * spread
    assert abs(lengths.std() - spread) <= 0.1 * spread
    forward = sum(read.strand == "+" for read in reads)
    assert forward == description["reads"]["forward_reads"] and 0.44 < forward / len(reads) < 0.56


def test_error_rates_are_the_declared_ones(made):
    description = description_of(made)
    declared = load_declaration(description["name"]).queries
    for kind, key in [
        ("substitution", "substitutions"),
        ("insertion", "insertions"),
        ("deletion", "deletions"),
        ("unknown", "unknown_bases"),
    ]:
        if kind in ("insertion", "deletion") and declared.homopolymer:
            continue  # Runs of equal bases add to these; they have a test of their own.
        points = np.array(getattr(declared, kind))
        rate = (np.diff(points[:, 0]) * (points[1:, 1] + points[:-1, 1]) / 2).sum()
        expected = rate * description["reads"]["bases"]
        assert abs(description["reads"][key] - expected) <= 5 * expected**0.5 + 0.03 * expected + 3


def test_reads_are_found_where_they_say(made):
    records = read_fasta(made.reference)
    reads = parse(made.queries.read_bytes())[: 60_000 // load_declaration_length(made)]
    for read in reads:
        source = fragment(records, read)
        assert set(source) <= set("ACGT"), "a fragment holds an N of the reference"
        # Far fewer errors than two unrelated sequences would show.
        seeds = {source[i : i + 10] for i in range(len(source) - 9)}
        found = sum(read.bases[i : i + 10] in seeds for i in range(len(read.bases) - 9))
        assert found >= 1 or edit_distance(read.bases, source) <= len(source) // 3


def load_declaration_length(files):
    return round(load_declaration(description_of(files)["name"]).queries.length_mean)


@pytest.mark.parametrize(("name", "scale"), [("LMONO", 0.0001), ("CBRIGG", 0.00001)])
def test_edits_are_as_many_as_counted(name, scale, tmp_path):
    files = generate(name, tmp_path, scale)
    counts = description_of(files)["reads"]
    counted = sum(
        counts[key] for key in ("substitutions", "insertions", "deletions", "unknown_bases")
    )
    records = read_fasta(files.reference)
    reads = parse(files.queries.read_bytes())
    distance = sum(edit_distance(read.bases, fragment(records, read)) for read in reads)
    # The shortest explanation may need fewer edits than there were.
    assert 0.85 * counted <= distance <= counted
    net = sum(len(read.bases) - read.span for read in reads)
    assert net == counts["insertions"] - counts["deletions"]
    assert sum(read.bases.count("N") for read in reads) == counts["unknown_bases"]


def test_illumina_errors_rise_to_the_end_and_qualities_fall(tmp_path):
    files = generate("SSUIS", tmp_path, 0.003)
    records = read_fasta(files.reference)
    wrong = np.zeros(36, dtype=int)
    quality = np.zeros(36, dtype=int)
    qualities_of_wrong = []
    for read in parse(files.queries.read_bytes()):
        assert len(read.quality) == len(read.bases) == 36
        quality += [ord(letter) - 33 for letter in read.quality]
        if read.span == 36:
            pairs = zip(read.bases, fragment(records, read), strict=True)
            differs = [base != true for base, true in pairs]
            if sum(differs) < 8:
                wrong += differs
                qualities_of_wrong += [ord(read.quality[i]) - 33 for i in np.flatnonzero(differs)]
    assert wrong[:12].sum() * 2 < wrong[24:].sum() and wrong[12:24].sum() < wrong[24:].sum()
    assert quality[:12].sum() > quality[12:24].sum() > quality[24:].sum()
    assert np.mean(qualities_of_wrong) < 0.7 * quality.sum() / quality.size / 3000


def test_synthetic_genomes_have_the_declared_length_and_composition(made):
    description = description_of(made)
    workload = load_declaration(description["name"])
    (name, text), *others = read_fasta(made.reference).items()
    assert (name, others) == (workload.name, [])
    assert len(text) == workload.genome.length == description["reference"]["bases"]
    unknown = text.count("N")
    assert unknown == description["reference"]["unknown_bases"]
    assert (unknown > 0) == bool(workload.genome.gaps)
    gc = (text.count("G") + text.count("C")) / (len(text) - unknown)
    assert gc == pytest.approx(workload.genome.gc, abs=0.006)
    assert {len(line) for line in made.reference.read_text().splitlines()[1:-1]} == {60}


def test_reads_without_qualities_are_fasta_with_their_names_alone(tmp_path):
    source = generate("LMONO", tmp_path / "source", 0.00001).reference
    files = generate("HS100", tmp_path / "made", 0.0002, reference=source)
    assert sorted(os.listdir(tmp_path / "made")) == ["reads.fa", "reference.fa", "workload.json"]
    lines = files.queries.read_text().splitlines()
    assert lines[::2] == [f">HS100.{n + 1}" for n in range(2_000)]
    assert {len(bases) for bases in lines[1::2]} == {150}
    (text,) = read_fasta(files.reference).values()
    both = text + "N" + reverse_complement(text)
    counts = description_of(files)["reads"]
    assert (counts["bases"], counts["insertions"], counts["deletions"]) == (300_000, 0, 0)
    assert 1_300 < counts["substitutions"] < 1_700
    # A read is found whole if none of its bases is wrong: 0.995 ** 150.
    assert 0.4 < sum(bases in both for bases in lines[1:401:2]) / 200 < 0.55


def test_a_copy_has_the_records_of_the_reference(tmp_path):
    given = tmp_path / "given.fa"
    given.write_text(">one\n" + "ACGTTGCAAC" * 500 + "\n>two\n" + "GATTNACACCA" * 300 + "\n")
    files = generate("GENOMES", tmp_path / "made", reference=given)
    records = read_fasta(files.queries)
    assert list(records) == ["one.copy", "two.copy"] and records["two.copy"].count("N") == 300
    counts = description_of(files)["copy"]
    assert counts["bases"] == sum(map(len, records.values()))
    assert counts["bases"] == 8_300 + counts["insertions"] - counts["deletions"]
    assert 40 < counts["substitutions"] < 110


# A genome with the repeats of a human one, and pairs

REPEATS_SCALE = 0.0025


@pytest.fixture(scope="module")
def repeats(tmp_path_factory):
    return generate("REPEATS", tmp_path_factory.mktemp("REPEATS"), REPEATS_SCALE)


def test_a_scale_makes_a_smaller_genome_with_the_same_bytes_for_ever(repeats):
    description = description_of(repeats)
    told = description["reads"]
    digests = [sha256_of(path) for path in (repeats.reference, *repeats.query_paths)]
    assert digests == [description["reference"]["sha256"], told["sha256"], told["sha256_of_mates"]]
    assert digests == [SHA256[f"REPEATS {part}"] for part in ("reference", "reads", "mates")]
    lengths = [len(text) for text in read_fasta(repeats.reference).values()]
    assert sum(lengths) + len(lengths) - 1 == round(3_100_000_000 * REPEATS_SCALE)
    assert len(lengths) == 24 and lengths == sorted(lengths, reverse=True)
    assert lengths[0] == pytest.approx(3 * lengths[-1], rel=0.001)


def test_mates_are_the_ends_of_a_template(repeats):
    records = read_fasta(repeats.reference)
    firsts, seconds = (parse(path.read_bytes()) for path in repeats.query_paths)
    assert len(firsts) == len(seconds) == description_of(repeats)["reads"]["count"] == 25_000
    templates = []
    wrong = 0
    for first, second in zip(firsts[:4_000], seconds, strict=False):
        assert (first.name, first.record) == (second.name, second.record)
        left, right = (first, second) if first.strand == "+" else (second, first)
        assert (left.strand, right.strand) == ("+", "-")
        templates.append(right.position + right.span - left.position)
        for read in (first, second):
            source = fragment(records, read)
            assert set(source) <= set("ACGT")
            if read.span == len(read.bases):
                wrong += sum(a != b for a, b in zip(read.bases, source, strict=True))
    assert 200 <= min(templates) and max(templates) <= 600
    assert np.mean(templates) == pytest.approx(400, abs=4)
    assert np.std(templates) == pytest.approx(50, abs=4) and 0.003 < wrong / (8_000 * 150) < 0.008
    assert 0.45 < np.mean([read.strand == "+" for read in firsts]) < 0.55
    # The errors of two mates are not the same ones.
    assert (
        len({read.quality for pair in zip(firsts[:99], seconds, strict=False) for read in pair})
        == 198
    )


# A given reference


def test_a_given_reference_is_written_anew(tmp_path):
    given = tmp_path / "given.fa"
    long, short = "ACGTTGCAAC" * 50, "GATTACACCA" * 13
    given.write_text(f">one and more\r\n{long.lower()}\r\n>two\n{short[:100]}\n{short[100:]}RYN\n")
    files = generate("LMONO", tmp_path / "made", 0.0005, reference=given)
    assert read_fasta(files.reference) == {"one": long, "two": short + "NNN"}
    description = description_of(files)["reference"]
    assert (description["source"], description["records"]) == ("given.fa", 2)
    assert (description["bases"], description["unknown_bases"]) == (633, 3)
    records = read_fasta(files.reference)
    for read in parse(files.queries.read_bytes()):
        assert set(fragment(records, read)) <= set("ACGT")


def test_reads_of_a_real_genome(shared_data, tmp_path):
    source = shared_data / "references" / "portiera.GCF_000292685.fna"
    files = generate("SSUIS", tmp_path, 0.002, reference=source)
    records = read_fasta(files.reference)
    assert [len(text) for text in records.values()] == [358_242]
    reads = parse(files.queries.read_bytes())
    assert len(reads) == 2_000
    same = sum(
        sum(a != b for a, b in zip(read.bases, fragment(records, read), strict=True)) <= 4
        for read in reads
        if read.span == 36
    )
    assert same > 1_950


# What users can do wrong


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("ECOLI", 1.0, r"no workload 'ECOLI' \(there are: CBRIGG, GENOMES, HS"),
        ("../LMONO", 1.0, "no workload"),
        *(("LMONO", s, "--scale") for s in (0.0, -1.0, float("nan"), float("inf"))),
        *(("LMONO", scale, "--scale") for scale in (1e-9, 1e9)),
        *(("GENOMES", scale, "--scale") for scale in (0.5, 2.0, 0.0)),
        ("REPEATS", 1e-4, r"--scale.*makes a genome of 310000 bases; .* hold"),
    ],
)
def test_what_cannot_be_made_is_refused(name, scale, message, tmp_path):
    with pytest.raises(OptionError, match=message):
        generate(name, tmp_path / "none", scale)
    assert not (tmp_path / "none").exists()


def test_a_missing_reference_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match=r"missing\.fa"):
        generate("LMONO", tmp_path, 0.001, reference=tmp_path / "missing.fa")


def test_a_reference_shorter_than_a_read_is_refused(tmp_path):
    short = tmp_path / "short.fa"
    short.write_text(">short\nACGTACGTACNACGTAC\n")
    with pytest.raises(InputError, match="no 40 bases in a row"):
        generate("LMONO", tmp_path / "made", 0.001, reference=short)
    assert not (tmp_path / "made" / "reads.fq").exists()
    assert not (tmp_path / "made" / "workload.json").exists()


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        generate("LMONO", tmp_path / "file", 0.001)


def test_an_older_workload_is_replaced(tmp_path):
    generate("LMONO", tmp_path, 0.0002)
    assert len(parse(generate("LMONO", tmp_path, 0.0001).queries.read_bytes())) == 100
    assert sorted(os.listdir(tmp_path)) == ["reads.fq", "reference.fa", "workload.json"]


@pytest.mark.parametrize("name", ["SSUIS", "GENOMES"])
def test_progress_tells_what_is_made(name, tmp_path, monkeypatch):
    monkeypatch.setattr("mummergpu.workload.read_simulator._BLOCK_BYTES", 1 << 13)
    source = generate("LMONO", tmp_path / "source", 0.00001).reference
    told = []
    scale = 0.0003 if name == "SSUIS" else 1.0
    files = generate(name, tmp_path / "made", scale, source, tell=told.append)
    description = description_of(files)
    bases = description["reference"]["bases"]
    assert told[0] == Work(Phase.READING_REFERENCE)
    assert Work(Phase.WRITING_FILE, ("reference.fa",), bases, 1.0) in told
    if name == "SSUIS":
        reads = description["reads"]
        made = [work for work in told if work.phase is Phase.READS_MADE]
        assert made[0] == Work(Phase.READS_MADE, (0,), 0, 0.0) and len(made) > 3
        assert made[-1] == Work(Phase.READS_MADE, (reads["count"],), reads["bases"], 1.0)
        assert [work.share for work in made] == sorted(work.share or 0 for work in made)
    else:
        assert Work(Phase.MAKING_COPY) in told
        assert told[-1].numbers == ("copy.fa",) and told[-1].share == 1.0
