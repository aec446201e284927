"""What the command ``align`` writes besides .delta, as other programs read it."""

import gzip
import random
import re

import pytest
from helpers.alignment_tools import NO_QUALITIES, output_of, picard_errors, samtools
from helpers.requirements import program_of
from helpers.sequences import random_bases, read_fasta, reverse_complement, write_fasta

import mummergpu
from mummergpu.cli.main import main


def align(*words):
    """Run the command, which must succeed."""
    assert main(["align", "-C", "-q", *map(str, words)]) == 0


def test_each_base_has_one_place_and_others_are_secondary(tmp_path):
    """A read of a repeat, one of two places, and one with both."""
    made = random.Random(11)
    one, two, three = (random_bases(made, 4000) for _ in range(3))
    copy = "".join(made.choice("ACGT") if made.random() < 0.01 else base for base in two)
    reference = write_fasta(tmp_path / "r.fa", {"a": one + two, "b": three + copy})
    reads = {
        "repeat": copy[500:2500],
        "plain": one[100:1500],
        "chimera": one[:1500] + reverse_complement(three[:1000]),
        "both": three[:1500] + two[200:3800],
    }
    queries = write_fasta(tmp_path / "q.fa", reads)
    align("-maxmatch", reference, queries, "-o", tmp_path / "x.bam")
    align("-maxmatch", reference, queries, "-o", tmp_path / "x.paf")
    samtools("quickcheck", "-v", tmp_path / "x.bam")
    rows, found = {name: [] for name in reads}, {}
    for line in samtools("view", tmp_path / "x.bam").decode().splitlines():
        fields = line.split("\t")
        rows[fields[0]].append(fields)
    for name, own in rows.items():
        found[name] = sorted((int(row[1]) & 0xF00, row[2], int(row[4])) for row in own)
    assert found == {
        "repeat": [(0, "b", 60), (256, "a", 0)],
        "plain": [(0, "a", 60)],
        "chimera": [(0, "a", 60), (2048, "b", 60)],
        "both": [(0, "a", 60), (256, "b", 0), (2048, "b", 60)],
    }
    for own in rows.values():
        parts = {}
        for row in own:
            tags = {tag[:2]: tag[5:] for tag in row[11:]}
            strand = "+-"[int(row[1]) >> 4 & 1]
            place = row[2], row[3], strand, row[5].replace("H", "S"), row[4], tags["NM"]
            parts[",".join(place)] = int(row[1]) & 0x100, tags.get("SA")
        primary = {place for place, (is_secondary, _) in parts.items() if not is_secondary}
        for place, (is_secondary, others) in parts.items():
            expected = set() if is_secondary else primary - {place}
            assert set((others or "").split(";")[:-1]) == expected
    told = [line.split("\t") for line in (tmp_path / "x.paf").read_text().splitlines()]
    assert sorted((line[0], line[5], int(line[11]), line[14]) for line in told) == sorted(
        (name, row[2], int(row[4]), f"tp:A:{'PS'[int(row[1]) >> 8 & 1]}")
        for name, own in rows.items()
        for row in own
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A genome of two records, and a changed copy of which a part is reversed."""
    folder = tmp_path_factory.mktemp("pair")
    made = random.Random(5)
    bases = {name: random_bases(made, size) for name, size in (("a", 9000), ("b", 4000))}
    copies = {}
    for name, text in bases.items():
        letters = list(text)
        for place in range(300, len(text) - 300, 200):
            kind = made.randrange(3)
            letters[place] = ("", made.choice("ACGT"), letters[place] + made.choice("ACGT"))[kind]
        copies[f"{name}2"] = "".join(letters)
    long = copies["a2"]
    copies["a2"] = long[:5000] + reverse_complement(long[5000:])
    return write_fasta(folder / "r.fa", bases), write_fasta(folder / "q.fa", copies)


def test_equal_bases_are_told_from_different_ones(pair, tmp_path):
    """With --eqx, only the CIGARs of rows differ, and those say what the bases say."""
    folder = [write_fasta(tmp_path / f"{name}.fa", {}) for name in "rq"]
    for path, own in zip(folder, pair, strict=True):
        # N and letters for several bases differ from what they are beside.
        bases = read_fasta(own)
        first = next(iter(bases))
        changed = bases[first][:2000] + "NNR" + bases[first][2003:]
        write_fasta(path, {**bases, first: changed})
    outputs = [*("-o", tmp_path / "x.sam"), *("-o", tmp_path / "x.paf")]
    align(*folder, "--cs", *outputs)
    plain = [row for row in rows_of(tmp_path / "x.sam") if row[0][0] != "@"]
    align(*folder, "--cs", "--eqx", *outputs, "-o", tmp_path / "x.bam")
    sam, paf = (rows_of(tmp_path / name) for name in ("x.sam", "x.paf"))
    told = [row for row in sam if row[0][0] != "@"]
    assert all(row[-1].startswith("cs:Z:") for row in paf)
    references, letters = read_fasta(folder[0]), set()
    for row, before in zip(told, plain, strict=True):
        cigar = re.findall(r"(\d+)([MIDSH=X])", row[5])
        at, position, different = 0, int(row[3]) - 1, 0
        for number, kind in cigar:
            length = int(number)
            if kind in "=X":
                theirs = references[row[2]][position : position + length]
                pairs = zip(row[9][at : at + length], theirs, strict=True)
                assert {one == other and one in "ACGT" for one, other in pairs} == {kind == "="}
            different += length * (kind in "XID")
            at += length * (kind in "=XIS")
            position += length * (kind in "=XD")
            letters.add(kind)
        nm = next(field for field in row if field.startswith("NM:i:"))
        assert nm == f"NM:i:{different}"
        same = [field for field in row if not field.startswith("SA:Z:")]
        others = [field for field in before if not field.startswith("SA:Z:")]
        assert [*same[:5], *same[6:]] == [*others[:5], *others[6:]]
    assert letters >= {"=", "X", "I", "D"}
    # PAF has the CIGARs of SAM without what is clipped; BAM has the rows of SAM.
    cigars = [next(f[5:] for f in row if f.startswith("cg:Z:")) for row in paf]
    assert sorted(cigars) == sorted(re.sub(r"\d+[SH]", "", row[5]) for row in told)
    bam = samtools("view", tmp_path / "x.bam").decode().splitlines()
    assert [line.split("\t")[:12] for line in bam] == [row[:12] for row in told]


def rows_of(path):
    return [line.split("\t") for line in path.read_text().splitlines() if line[0] != "#"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_vcf_of_a_simulated_copy_makes_the_copy(seed, tmp_path):
    bcftools = program_of("bcftools")
    made = random.Random(seed)
    # The copy differs up to its ends, where no alignment would reach the last base.
    ends = [random_bases(made, 200) for _ in range(2)]
    small = write_fasta(tmp_path / "small.fa", {"small": random_bases(made, 20_000)})
    words = ["workload", "GENOMES", "-q", "--reference", small, "--seed", seed, "-o", tmp_path]
    assert main([str(word) for word in words]) == 0
    texts = [(tmp_path / name).read_text() for name in ("reference.fa", "copy.fa")]
    bases = [ends[0] + "".join(text.splitlines()[1:]) + ends[1] for text in texts]
    reference = write_fasta(tmp_path / "r.fa", {"r": bases[0]})
    query = write_fasta(tmp_path / "q.fa", {"q": bases[1]})
    output = tmp_path / "x.vcf"
    align(reference, query, "-o", tmp_path / "x.paf", "-o", output)
    (line,) = (tmp_path / "x.paf").read_text().splitlines()
    assert line.split("\t")[1:4] == [str(len(bases[1])), "0", str(len(bases[1]))]
    rows = rows_of(output)
    assert len(rows) > 0.9 * 0.01 * len(bases[0]) and {row[6] for row in rows} == {"PASS"}
    output_of(bcftools, "norm", "-f", reference, "-c", "e", "-o", tmp_path / "n.vcf", output)
    assert rows_of(tmp_path / "n.vcf") == rows
    binary = tmp_path / "x.bcf"
    output_of(bcftools, "view", "-Ob", "-o", binary, output)
    output_of(bcftools, "index", binary)
    consensus = output_of(bcftools, "consensus", "-f", reference, binary).decode().splitlines()
    assert "".join(consensus[1:]) == bases[1]


@pytest.mark.parametrize("options", [[], ["--one-to-one"]])
@pytest.mark.parametrize("is_reverse", [False, True])
def test_known_differences_are_found(tmp_path, options, is_reverse):
    made = random.Random(7)
    bases = random_bases(made, 12_000)
    expected = set()
    copy, end = "", 0
    for place in range(400, 11_600, 150):
        base = bases[place]
        # Neighbours that differ leave one place only for each gap.
        others = sorted(set("ACGT") - set(bases[place - 1 : place + 2]))
        kind = made.choice("SID")
        if kind == "S":
            expected.add((place + 1, base, others[0]))
            copy += bases[end:place] + others[0]
        elif kind == "I":
            expected.add((place, bases[place - 1], bases[place - 1] + others[0]))
            copy += bases[end:place] + others[0] + base
        elif base not in (bases[place - 1], bases[place + 1]):
            expected.add((place, bases[place - 1 : place + 1], bases[place - 1]))
            copy += bases[end:place]
        else:
            copy += bases[end : place + 1]
        end = place + 1
    copy += bases[end:]
    if is_reverse:
        copy = reverse_complement(copy)
    reference = write_fasta(tmp_path / "r.fa", {"r": bases})
    query = write_fasta(tmp_path / "q.fa", {"q": copy})
    align(reference, query, *options, "-o", tmp_path / "x.vcf")
    rows = rows_of(tmp_path / "x.vcf")
    assert {(int(row[1]), row[3], row[4]) for row in rows} == expected
    for row in rows:
        values = dict(part.split("=") for part in row[7].split(";"))
        assert values["QSTRAND"] == "+-"[is_reverse]
        at = int(values["QSTART"])
        begin = at - len(row[4]) if is_reverse else at - 1
        found = copy[begin : begin + len(row[4])]
        assert (reverse_complement(found) if is_reverse else found) == row[4]


@pytest.mark.parametrize("ending, penalties", [("delta", (3, 7)), ("paf", (16, 1))])
def test_a_vcf_beside_the_alignments_is_that_of_its_own(pair, tmp_path, ending, penalties):
    names = f"x.{ending}", "beside.vcf", f"y.{ending}", "own.vcf.gz"
    paths = [tmp_path / name for name in names]
    gaps = ["--gap-open", penalties[0], "--gap-extend", penalties[1]]
    align(*pair, "-o", paths[0], "-o", paths[1])
    align(*pair, *gaps, "-o", paths[2])
    align(*pair, *gaps, "-o", paths[3])
    assert paths[0].read_bytes() == paths[2].read_bytes()
    assert paths[1].read_bytes() == gzip.decompress(paths[3].read_bytes())


def test_gaps_cost_less_in_a_vcf_alone(pair, tmp_path):
    made = {
        words: align(*pair, *words, "-o", tmp_path / "x.vcf") or rows_of(tmp_path / "x.vcf")
        for words in [(), ("--gap-open", 16), ("--gap-extend", 1), ("--gap-open", 3)]
    }
    assert made[()] == made["--gap-open", 16] == made["--gap-extend", 1] != made["--gap-open", 3]


@pytest.mark.parametrize("options", [[], ["--one-to-one"]])
def test_other_programs_accept_sam_and_bam(pair, tmp_path, options):
    text, binary = tmp_path / "x.sam", tmp_path / "x.bam"
    for path in (text, binary):
        align(*pair, *options, "-o", path)
    samtools("quickcheck", text, binary)
    assert samtools("view", binary) == samtools("view", text)
    for path in (text, binary):
        assert picard_errors(path, pair[0], *NO_QUALITIES) == []
    rows = [line.split("\t") for line in samtools("view", text).decode().splitlines()]
    parts = sorted((row[0], int(row[1]) & 2048) for row in rows)
    assert parts == [("a2", 0), ("a2", 2048), ("b2", 0)]
    queries = read_fasta(pair[1])
    for name, flag, *_, bases in (row[:10] for row in rows):
        if not int(flag) & 2048:
            turned = reverse_complement(bases)
            assert queries[name] == (turned if int(flag) & 16 else bases)


def test_a_repeat_at_both_ends_of_a_record_is_found_in_it(tmp_path):
    """nucmer finds it only if other bases are before and behind it."""
    made = random.Random(9)
    repeat, middle, unit = (random_bases(made, size) for size in (900, 5000, 700))
    genomes = {
        "both": repeat + middle + repeat,
        "behind": "A" * 120 + repeat + middle + "A" * 120 + repeat,
        "thrice": repeat + middle + repeat + middle[::-1] + repeat,
        # Copies that follow each other are told by the first shift alone.
        "tandem": unit * 3 + unit[:300],
    }
    found = {}
    for name, bases in genomes.items():
        path = write_fasta(tmp_path / f"{name}.fa", {name: bases})
        align("-maxmatch", "--nosimplify", path, path, "-o", tmp_path / "x.delta")
        rows = [line.split() for line in (tmp_path / "x.delta").read_text().splitlines()]
        starts = sorted((int(row[0]), int(row[2])) for row in rows if len(row) == 7)
        found[name] = [start for start in starts if start[0] != start[1]]
    assert found["both"] == [(1, 5901), (5901, 1)]
    assert found["behind"] == [(1, 6021), (6021, 1)]
    places = (1, 5901, 11801)
    assert found["thrice"] == sorted((a, b) for a in places for b in places if a != b)
    assert found["tandem"] == []


def test_a_rotation_of_a_circular_record_is_one_query_in_two_pieces(tmp_path):
    """The second piece, of 50 bases, has no cluster of its own."""
    made = random.Random(10)
    genome, other = random_bases(made, 4000), random_bases(made, 3000)
    reference = write_fasta(tmp_path / "r.fa", {"chr": other, "plasmid": genome})
    query = write_fasta(tmp_path / "q.fa", {"q": genome[50:] + genome[:50]})
    align(reference, query, "-o", tmp_path / "plain.paf")
    assert len(rows_of(tmp_path / "plain.paf")) == 1
    outputs = "-o", tmp_path / "x.paf", "-o", tmp_path / "x.sam", "-o", tmp_path / "x.delta"
    align(reference, query, "--circular", "plasmid", *outputs)
    assert [row[2:4] + row[5:9] for row in rows_of(tmp_path / "x.paf")] == [
        ["3950", "4000", "plasmid", "4000", "0", "50"],
        ["0", "3950", "plasmid", "4000", "50", "4000"],
    ]
    rows = [row for row in rows_of(tmp_path / "x.sam") if row[0][0] != "@"]
    assert [(row[1], row[5]) for row in rows] == [("2048", "3950H50M"), ("0", "3950M50S")]
    assert all(any(field.startswith("SA:Z:plasmid,") for field in row) for row in rows)
    mummergpu.align(reference, query, tmp_path / "y.delta", circular="all")
    texts = [(tmp_path / name).read_text() for name in ("x.delta", "y.delta")]
    assert texts[0] == texts[1]
    found = mummergpu.Index.build(reference).align(query, circular=["chr", "plasmid"])
    assert len(found) == 2
