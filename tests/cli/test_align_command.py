"""The command ``align``, and what MUMmer's programs make of its files."""

import gzip
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.alignment_tools import output_of
from helpers.genomes import changed
from helpers.requirements import program_of
from helpers.sequences import random_bases, reverse_complement, write_fasta
from helpers.whole_alignments import whole_alignment

from mummergpu.cli.main import main
from mummergpu.mapping.genomes.options import NUCMER_COSTS
from mummergpu.mapping.genomes.whole import suit_whole_matrices
from mummergpu.viterbi.whole.processor_matrix import BLOCK_BYTES, BLOCK_COLUMNS, BLOCK_ROWS

PAIRS = {
    "anthracis": ("B_anthracis_Mslice.fasta", "B_anthracis_contigs.fasta"),
    "pylori": ("H_pylori26695_Eslice.fasta", "H_pyloriJ99_Eslice.fasta"),
    "mitochondria": ("MT-human.fa", "MT-orang.fa"),
}


@pytest.fixture(scope="module")
def genomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genomes")
    some = random.Random(1)
    first, second = random_bases(some, 20_000), random_bases(some, 8000)
    moved = first[:7000] + reverse_complement(first[7000:12_000]) + first[12_000:]
    copies = changed(moved, some, 0.02, 0.002), changed(second, some, 0.05, 0.002)
    queries = {"b0 text": copies[0], "b1 text": copies[1], "b2 text": copies[1][1000:3000]}
    references = {"a0 text": first, "a1 text": second}
    return write_fasta(folder / "a.fa", references), write_fasta(folder / "b.fa", queries)


def align(capfd, *words):
    assert main(["align", "-C", "-q", *map(str, words)]) == 0
    return capfd.readouterr().out


def coordinates(path, *options):
    text = output_of(program_of("show-coords"), "-TH", "-r", *options, path).decode()
    return [line.split("\t") for line in text.splitlines()]


def test_programs_of_mummer_read_the_delta(capfd, genomes, tmp_path):
    path = tmp_path / "x.delta"
    align(capfd, *genomes, "-o", path)
    rows = coordinates(path, "-l")
    assert len(rows) == 5
    assert sum(int(row[4]) for row in rows[:3]) == pytest.approx(20_000, abs=100)
    snps = output_of(program_of("show-snps"), "-CTH", path).decode().splitlines()
    assert 500 < len(snps) < 900
    output_of(program_of("dnadiff"), "-d", path, "-p", tmp_path / "d")
    assert "AlignedBases" in (tmp_path / "d.report").read_text()


def test_one_to_one_keeps_what_delta_filter_keeps(capfd, genomes, tmp_path):
    whole, own, filtered = (tmp_path / f"{name}.delta" for name in ("whole", "own", "filtered"))
    align(capfd, *genomes, "-o", whole)
    align(capfd, *genomes, "-o", own, "--one-to-one", "--block-size", "9000")
    filtered.write_bytes(output_of(program_of("delta-filter"), "-1", whole))
    assert coordinates(own) == coordinates(filtered)
    assert len(coordinates(own)) < len(coordinates(whole))


def test_short_and_unlike_alignments_can_be_left_out(capfd, genomes):
    def lines(*options):
        text = align(capfd, *genomes, "--format", "paf", *options)
        return [line.split("\t") for line in text.splitlines()]

    every = lines()
    long = lines("--min-alignment-length", "6000")
    assert long == [row for row in every if int(row[3]) - int(row[2]) >= 6000]
    alike = lines("--min-identity", "96.5")
    assert alike == [row for row in every if int(row[9]) / int(row[10]) >= 0.965]
    assert 0 < len(long) < len(every) > len(alike) > 0
    forward, reverse = lines("-f"), lines("-r")
    assert {row[4] for row in forward} == {"+"}
    assert {row[4] for row in reverse} == {"-"}
    assert sorted(forward + reverse) == sorted(every)


def test_the_report_counts_alignments(capfd, genomes, tmp_path):
    text = align(capfd, *genomes, "--format", "paf", "--stats", tmp_path / "s.json")
    rows = [line.split("\t") for line in text.splitlines()]
    counts = json.loads((tmp_path / "s.json").read_text())["counts"]
    assert counts["alignments"] == len(rows)
    assert counts["aligned_query_bases"] == sum(int(row[3]) - int(row[2]) for row in rows)
    assert counts["aligned_reference_bases"] == sum(int(row[8]) - int(row[7]) for row in rows)
    assert counts["alignment_columns"] == sum(int(row[10]) for row in rows)


def test_files_of_queries_are_aligned_one_by_one(capfd, genomes):
    words = [str(genomes[0]), str(genomes[1]), str(genomes[1])]
    alone = align(capfd, *words[:2], "--format", "paf")
    assert align(capfd, *words, "--format", "paf") == 2 * alone


@pytest.mark.parametrize("name", PAIRS)
def test_real_genomes_align_as_nucmer_aligns_them(capfd, shared_data, tmp_path, name):
    """One to one: as many bases within 3 of 1,000, no less alike than by 1 of 1,000."""
    files = [shared_data / "references" / file for file in PAIRS[name]]
    own, theirs = tmp_path / "own.delta", tmp_path / "nucmer.delta"
    align(capfd, *files, "-o", own)
    output_of(program_of("nucmer"), "-p", tmp_path / "nucmer", *files)
    found = []
    for path in (own, theirs):
        kept = path.with_suffix(".1")
        kept.write_bytes(output_of(program_of("delta-filter"), "-1", path))
        rows = coordinates(kept)
        total = sum(int(row[4]) for row in rows)
        found.append((total, sum(int(row[4]) * float(row[6]) for row in rows) / total))
    (bases_found, identity), (bases_expected, expected) = found
    assert bases_found >= 0.997 * bases_expected
    assert identity >= expected - 0.1


def test_a_run_needs_no_numba_once_its_code_is_kept(genomes, tmp_path):
    words = ["align", "-C", "-q", *map(str, genomes), "-o", str(tmp_path / "x.paf")]
    code = f"import sys; from mummergpu.cli.main import main; main({words}); print(*sys.modules)"
    for _ in range(2):
        loaded = output_of(sys.executable, "-c", code).decode().split()
    assert "numba" not in loaded
    assert (tmp_path / "x.paf").stat().st_size > 0


def test_a_delta_of_files_that_mummer_cannot_read_is_told_of(capfd, genomes, tmp_path):
    packed = tmp_path / "a.fa.gz"
    packed.write_bytes(gzip.compress(genomes[0].read_bytes()))
    for reference, name, count in (
        *((packed, "x.delta", 1), (genomes[0], "x.delta", 0), (packed, "x.paf", 0)),
    ):
        words = [str(reference), str(genomes[1]), "-o", str(tmp_path / name)]
        assert main(["align", "-C", "--no-progress", *words]) == 0
        errors = capfd.readouterr().err
        assert errors.count("not plain FASTA") == errors.count(str(packed)) == count


def test_a_delta_that_its_readers_would_misread_is_told_of(capfd, tmp_path, monkeypatch):
    """With CR LF or two records of a name, show-snps fails; from here it finds a blank folder."""
    (tmp_path / "a blank").mkdir()
    monkeypatch.chdir(tmp_path / "a blank")
    made = random.Random(3)
    one, two = (random_bases(made, 3000) for _ in range(2))
    write_fasta("r.fa", {"a": one, "b": two})
    other = "ACGT"["CGTA".index(one[1500])]
    write_fasta("q.fa", {"a": one[:1500] + other + one[1501:], "c": two})
    for name in ("r", "q"):
        plain = Path(f"{name}.fa").read_bytes()
        Path(f"{name}_crlf.fa").write_bytes(plain.replace(b"\n", b"\r\n"))
        Path(f"{name}_twice.fa").write_bytes(re.sub(rb">[bc]", b">a", plain))
        Path(f"{name}.fa.gz").write_bytes(gzip.compress(plain))
    show_snps = program_of("show-snps")
    for reference, query, words in (
        ("r.fa", "q.fa", ()),
        ("r_crlf.fa", "q.fa", ("'r_crlf.fa', whose lines end with CR and LF",)),
        ("r.fa", "q_crlf.fa", ("'q_crlf.fa', whose lines end with CR and LF",)),
        ("r_twice.fa", "q.fa", ("r_twice.fa: several records are named 'a'",)),
        ("r.fa", "q_twice.fa", ("q_twice.fa: several records are named 'a'",)),
        ("r.fa.gz", "q_twice.fa", ("r.fa.gz', which is not plain", "q_twice.fa: several")),
    ):
        assert main(["align", "-C", "--no-progress", reference, query, "-o", "x.delta"]) == 0
        lines = capfd.readouterr().err.splitlines()
        told = [line for line in lines if "a folder of its" not in line]
        assert len(told) == len(words)
        assert all(any(word in line for line in told) for word in words)
        done = subprocess.run([show_snps, "-CHT", "x.delta"], capture_output=True, check=False)
        assert (len(done.stdout.splitlines()) == 1) == (not words)
    # Of another folder, no name of a file is without the blank.
    monkeypatch.chdir(tmp_path)
    assert main(["align", "-C", "-q", "a blank/r.fa", "a blank/q.fa", "-o", "x.delta"]) == 1
    assert "a blank in its path" in capfd.readouterr().err


@pytest.fixture
def whole_files(tmp_path, monkeypatch):
    """Two records and three queries, in files of the working folder."""
    monkeypatch.chdir(tmp_path)
    some = random.Random(4)
    records = [random_bases(some, 900), random_bases(some, 300) + "NNN" + random_bases(some, 80)]
    queries = [
        changed(records[0][100:800], some, 0.2, 0.03),
        reverse_complement(changed(records[1], some, 0.1, 0.02)),
        random_bases(some, 40),
    ]
    for name, texts in (("r", records), ("q", queries)):
        write_fasta(f"{name}.fa", ((f"{name}{n}", one) for n, one in enumerate(texts)))
    return records, queries


def codes(text):
    return np.array(["ACGT".find(base) if base in "ACGT" else 4 for base in text], dtype=np.uint8)


def trimmed(path):
    """A path without the gaps at its ends."""
    kinds = [operation & 15 for operation in path]
    last = len(kinds) - kinds[::-1].index(0)
    return path[kinds.index(0) : last]


def align_whole(capfd, *words, code=0):
    assert main(["align", "-q", "-C", *map(str, words)]) == code
    found = capfd.readouterr()
    return found.out if code == 0 else found.err


@pytest.mark.parametrize("method", ["wavefront", "streaming"])
def test_each_query_is_aligned_with_each_record(capfd, whole_files, method):
    text = align_whole(capfd, "--method", method, "r.fa", "q.fa", "--format", "paf")
    rows = [line.split("\t") for line in text.splitlines()]
    expected = {}
    for q, query in enumerate(whole_files[1]):
        for r, record in enumerate(whole_files[0]):
            texts = query, reverse_complement(query)
            both = [whole_alignment(codes(one), codes(record), NUCMER_COSTS) for one in texts]
            strand = "+" if both[0][0] >= both[1][0] else "-"
            score, path = both[strand == "-"]
            gaps = [operation for operation in path if operation not in trimmed(path)]
            lost = sum(3 + 7 * (gap >> 4) for gap in gaps if gap in (path[0], path[-1]))
            expected[f"q{q}", f"r{r}"] = strand, score + lost
    assert len(rows) == 6
    for row in rows:
        strand, score = expected[row[0], row[5]]
        assert row[4] == strand
        found = next(int(field[5:]) for field in row if field.startswith("AS:i:"))
        # Gaps of one kind that meet when they go to the left become one, which scores more.
        assert found >= score


@pytest.mark.parametrize("percent", [1, 5, 10, 15, 20, 25, 30])
def test_auto_aligns_small_pairs_from_end_to_end(capfd, tmp_path, percent):
    """Also where tiles find nothing, for matches are too few."""
    some = random.Random(percent)
    text = random_bases(some, 1500)
    copy = changed(text, some, 0.009 * percent, 0.001 * percent)
    files = [write_fasta(tmp_path / f"{n}.fa", {n: one}) for n, one in (("r", text), ("q", copy))]
    found = {
        method: align_whole(capfd, "--method", method, *files, "--format", "paf").splitlines()
        for method in ("auto", "wavefront", "tile")
    }
    assert found["auto"] == found["wavefront"]
    begin, end, pairs, columns = (int(found["auto"][0].split("\t")[n]) for n in (2, 3, 9, 10))
    # Only bases beside the ends may be in gaps there.
    assert end - begin > len(copy) - 15 and pairs / columns > 1 - 0.011 * percent - 0.02
    if percent >= 25:
        assert found["tile"] == []


def test_auto_chooses_by_the_lengths(capfd, genomes, tmp_path, monkeypatch):
    """A query has its whole matrices, or tiles, whatever else its block has."""
    some = random.Random(7)
    text = genomes[0].read_text().split("\n")[1]
    cuts = {"long": text[1500:2900], "part": text[2000:2400], "alike": text[2020:3000]}
    texts = {name: changed(one, some, 0.02, 0.002) for name, one in cuts.items()}
    for names in (texts, ["long", "part"], ["alike"]):
        write_fasta(tmp_path / f"{'_'.join(names)}.fa", ((name, texts[name]) for name in names))
    records = {"r0": text[2000:3000], "r1": text[12_000:12_900]}
    reference = write_fasta(tmp_path / "r.fa", records)

    def rows(method, names):
        words = ("--method", method, reference, tmp_path / f"{names}.fa", "--format", "paf")
        return align_whole(capfd, *words).splitlines()

    most = 1024 // BLOCK_ROWS * 1024 // BLOCK_COLUMNS * BLOCK_BYTES
    monkeypatch.setattr("mummergpu.viterbi.whole.processor_matrix.FITTING_BYTES", most)
    whole, tiles = rows("wavefront", "alike"), rows("tile", "long_part")
    assert rows("auto", "alike") == whole and rows("auto", "long_part") == tiles
    assert rows("auto", "long_part_alike") == tiles + whole
    assert (len(whole), len(tiles)) == (2, 2) and rows("tile", "alike") != whole
    monkeypatch.setattr("mummergpu.viterbi.whole.processor_matrix.FITTING_BYTES", most - 1)
    assert rows("auto", "alike") == rows("tile", "alike")
    words = "--method auto --circular all".split()
    error = align_whole(capfd, *words, reference, reference, code=2)
    assert "the method 'auto' aligns small records from end to end; use 'tile'" in error


@pytest.mark.parametrize(
    ("length", "records", "suits"),
    [
        *((27_000, [27_000], True), (28_000, [28_000], False)),
        *((100, [200, 50], False), (100, [200], True), (100, [50], True), (100, [201], False)),
        *((100, [49], False), (100, [150, 75], True), (0, [0], True), (0, [1], False)),
    ],
)
def test_the_matrices_of_auto_are_small_and_about_square(length, records, suits):
    assert suit_whole_matrices(np.array([length]), np.array(records)).tolist() == [suits]


def test_sequences_that_are_too_long_are_refused(capfd, tmp_path, monkeypatch):
    long = write_fasta(tmp_path / "long.fa", {"long": "ACGTTGCA" * (1 << 17) + "A"})
    short = write_fasta(tmp_path / "short.fa", {"one": "ACGT", "empty": ""})
    error = align_whole(capfd, "--method", "streaming", short, long, code=1)
    assert "at most 1,048,576 bases on each side" in error and "(record 'long')" in error
    monkeypatch.setattr("mummergpu.pipeline.matrix_opening.free_memory", lambda: 1000)
    error = align_whole(capfd, "--method", "wavefront", short, short, code=1)
    assert "of memory: use --method streaming or tile (record 'one')" in error
    write_fasta(short, {"one": "ACGT"})
    assert align_whole(capfd, "--method", "auto", short, short, code=1) == error
    paf = align_whole(capfd, "--method", "streaming", short, short, "--format", "paf")
    assert paf.count("\n") == 1
