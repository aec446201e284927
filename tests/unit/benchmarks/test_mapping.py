"""The comparison of mappers: genomes and reads, their truth, the judge, lists and figures."""

import gzip
import json
import shlex
import sys
from pathlib import Path

import mapping_accuracy
import measure
import pysam
import pytest
from helpers.sequences import read_fasta, reverse_complement
from mapping.genomes import genome_file, genome_sources, write_repeats
from mapping.judge import Verdict, accuracy_of, verdicts
from mapping.listing import differing_lines, wrong_lines
from mapping.mappers import OURS, PEERS, MappingJob, chosen_mappers, our_mapper
from mapping.sam import Placement, primary_records, program_version, read_lines, reference_bases
from mapping.simulation import count_reads, read_set
from mapping.tables import shortfalls, table
from mapping.truth import Span, overlaps, true_span
from mapping.visits import visits_of, visits_plot
from mapping_speed import timed_command

TRUE_NAME = "chr20_2099194_2098997_1_0_0_0_0:0:0_1:0:0_1f"


def test_the_span_of_each_mate_counts_from_zero():
    assert true_span(TRUE_NAME, 1, 150) == Span("chr20", 2099193, 2099343, True)
    assert true_span(TRUE_NAME, 2, 100) == Span("chr20", 2098996, 2099096, False)
    contig = "chr1_KI270706v1_random"
    assert true_span(TRUE_NAME.replace("chr20", contig), 1, 150).contig == contig


def test_a_read_of_random_bases_comes_from_nowhere():
    name = "chr20_2099194_2098997_1_0_0_1_0:0:0_1:0:0_1f"
    assert true_span(name, 1, 150) is not None and true_span(name, 2, 150) is None
    with pytest.raises(ValueError, match=r"dwgsim: LMONO\.17"):
        true_span("LMONO.17", 1, 150)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # Of 100 bases moved by 81, 19 are common to both and 181 covered together: over a tenth.
        ((1081, 1181), (1000, 1100), True),
        # Of 100 moved by 82, 18 of 182 are not.
        ((1082, 1182), (1000, 1100), False),
        ((919, 1019), (1000, 1100), True),
        ((918, 1018), (1000, 1100), False),
        ((1100, 1200), (1000, 1100), False),
        # Exactly a tenth is too little: 10 common bases, 100 covered together.
        ((0, 55), (45, 100), False),
        # One within the other agrees if it is long enough.
        ((60, 76), (0, 150), True),
        ((60, 75), (0, 150), False),
    ],
)
def test_spans_agree_over_a_tenth_of_their_union(one, other, expected):
    assert overlaps(Span("a", *one, True), Span("a", *other, False)) is expected
    assert not overlaps(Span("b", *one, True), Span("a", *other, False))


def test_genomes_come_from_a_folder_and_from_named_files(tmp_path):
    yeast = tmp_path / "yeast_S288C_R64.ensembl94.fa.gz"
    yeast.touch()
    assert genome_sources(tmp_path, ["mine=x.fa"]) == {
        "yeast": yeast,
        "mine": Path("x.fa"),
        "repeats": None,
    }
    assert genome_sources(None, []) == {"repeats": None}
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
    records = read_fasta(first)
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
    records = read_fasta(reference)
    agreeing = 0
    for mate, path in enumerate(made.mates, 1):
        lines = path.read_text().splitlines()
        for head, bases in zip(lines[::4], lines[1::4], strict=True):
            truth = true_span(head.removeprefix("@").rsplit("/", 1)[0], mate, len(bases))
            expected = records[truth.contig][truth.start : truth.end]
            if truth.reverse:
                expected = reverse_complement(expected)
            agreeing += sum(map(str.__eq__, bases, expected)) >= 55
    # The others have an insertion or a deletion.
    assert agreeing >= 780 and count_reads(made.mates[0]) == 400
    before = made.mates[0].stat().st_mtime_ns
    assert read_set("repeats", reference, 60, 400, 5, tmp_path) == made
    assert made.mates[0].stat().st_mtime_ns == before


HEADER = [
    "@HD\tVN:1.6\n",
    "@SQ\tSN:chr20\tLN:10000\n",
    "@SQ\tSN:chr21\tLN:10000\n",
    "@PG\tID:bwa.1\tPN:bwa\tVN:0.7\tCL:bwa mem\n",
    "@PG\tID:samtools\tPN:samtools\tVN:1.16\n",
]


def name_of(start, mate_start, number=0):
    return f"chr20_{start}_{mate_start}_0_1_0_0_0:0:0_0:0:0_{number:x}"


def line(name, flag, place, quality, cigar="10M", contig="chr20"):
    fields = [name, str(flag), contig, str(place), str(quality), cigar, "*", "0", "0"]
    return "\t".join([*fields, "ACGTACGTAC", "IIIIIIIIII", "AS:i:9", "XS:i:-3"]) + "\n"


def judged(lines, reads=None):
    return accuracy_of(verdicts(primary_records([*HEADER, *lines])), reads)


@pytest.mark.parametrize(
    ("cigar", "bases"),
    [("10M", 10), ("3S7M", 7), ("4M2D6M", 12), ("4M2I4M", 8), ("5=1X4=", 10), ("2H3M9N5M1P", 17)],
)
def test_an_alignment_covers_what_it_takes_of_the_reference(cigar, bases):
    assert reference_bases(cigar) == bases


def test_a_record_is_read_with_its_place_and_its_scores():
    (found,) = primary_records([*HEADER, line("r/2", 0x91, 101, 37, "2S6M2D2M")])
    assert (found.name, found.mate, found.read_bases, found.quality) == ("r", 2, 10, 37)
    assert found.span == Span("chr20", 100, 110, True)
    assert (found.tag("AS"), found.tag("XS"), found.tag("NM")) == ("9", "-3", "-")


def test_each_mate_is_judged_from_its_primary_record():
    name = name_of(101, 401)
    lines = [
        line(name, 0x41, 101, 60),
        line(name, 0x141, 900, 60),
        line(name, 0x841, 5_000, 60),
        line(name, 0x91, 101, 20),
        line(name, 0x191, 401, 60),
    ]
    found = judged(lines)
    assert (found.reads, found.right, found.wrong) == (2, {60: 1}, {20: 1})


def test_another_contig_is_wrong_and_another_strand_is_counted_apart():
    lines = [
        line(name_of(101, 401, 1), 0, 101, 60, contig="chr21"),
        line(name_of(101, 401, 2), 0x10, 101, 60),
    ]
    found = judged(lines)
    assert (found.right, found.wrong, found.turned) == ({60: 1}, {60: 1}, 1)


def test_clipped_ends_do_not_count_as_placed():
    # One base is placed, of ten: a tenth, and not over it.
    assert judged([line(name_of(101, 401), 0, 101, 60, "1M9S")]).wrong == {60: 1}
    assert judged([line(name_of(101, 401), 0, 101, 60, "2M8S")]).right == {60: 1}


def test_an_unmapped_read_is_neither_right_nor_wrong_though_it_has_a_place():
    found = judged([line(name_of(101, 401), 0x4, 101, 0, "*")])
    assert (found.reads, found.from_quality(0)) == (1, (0, 0))
    assert found.figures()["mapped_percent"] == 0


def test_reads_are_counted_from_each_quality_on():
    qualities = [60, 60, 59, 40, 20, 19, 10, 1, 0, 0]
    lines = [
        line(name_of(101, 401, number), 0, 101 if number % 2 else 5_000, quality)
        for number, quality in enumerate(qualities)
    ]
    counts = judged(lines).figures()["from_quality"]
    assert counts == {
        "60": {"reads": 2, "wrong": 1},
        "40": {"reads": 4, "wrong": 2},
        "20": {"reads": 5, "wrong": 3},
        "10": {"reads": 7, "wrong": 4},
        "1": {"reads": 8, "wrong": 4},
        "0": {"reads": 10, "wrong": 5},
    }


def test_reads_that_were_left_out_are_not_right():
    figures = judged([line(name_of(101, 401), 0, 101, 60)], 4).figures()
    assert (figures["right_percent"], figures["without_record"]) == (25.0, 3)
    assert "| peer | 25.000 | 25.000 | 1, 0 | 1, 0 |" in table({"peer": figures})


FIRST, SECOND = (line(name_of(101, 401, number), 0, 101, 60) for number in (1, 2))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([FIRST, SECOND], "2 primary records of 1 reads"),
        ([FIRST, FIRST], "two primary records of chr20_101"),
        (["r\t0\tchr20\t1\n"], "not a line of SAM"),
        ([FIRST.replace("ACGTACGTAC", "*")], "has no sequence"),
    ],
)
def test_wrong_records_are_refused(lines, message):
    with pytest.raises(ValueError, match=message):
        judged(lines, 1)


def test_bam_is_judged_as_sam_is(tmp_path):
    sam, bam = tmp_path / "a.sam", tmp_path / "a.bam"
    lines = [line(name_of(101, 401, 1), 0, 101, 60), line(name_of(101, 401, 2), 0, 900, 7)]
    sam.write_text("".join([*HEADER, *lines]))
    with pysam.AlignmentFile(str(sam)) as texts:
        with pysam.AlignmentFile(str(bam), "wb", template=texts) as records:
            for record in texts:
                records.write(record)
    of_sam, of_bam = (list(primary_records(read_lines(path))) for path in (sam, bam))
    assert of_sam == of_bam and len(of_sam) == 2
    assert program_version(sam) == program_version(bam) == "bwa 0.7"


TRUTH = Span("a", 100, 150, True)


def read(name, start, quality=60):
    span = None if start is None else Span("a", start, start + 50, False)
    placed = Placement(name, 1, 50, span, quality, "50M", "AS:i:50\tXS:i:44")
    return Verdict(placed, TRUTH, start == 100)


def cells(lines):
    head, *rest = (line.split("\t") for line in lines)
    return [dict(zip(head, words, strict=True)) for words in rest]


def test_wrong_and_unmapped_reads_are_listed():
    found = cells(wrong_lines([read("x", 100), read("y", 900, 7), read("z", None, 0)]))
    assert found[0] == {
        "read": "y",
        "mate": "1",
        "truth": "a:101-150:-",
        "placed": "a:901-950:+",
        "mapq": "7",
        "cigar": "50M",
        "AS": "50",
        "XS": "44",
    }
    assert [(row["read"], row["placed"]) for row in found] == [("y", "a:901-950:+"), ("z", "-")]
    # Those of low quality can be left out.
    found = cells(wrong_lines([read("y", 900, 7), read("z", 900, 8)], 8))
    assert [row["read"] for row in found] == ["z"]


def test_reads_that_two_mappers_differ_in_are_listed_in_any_order():
    first = [read("both", 100), read("mine", 100), read("theirs", 700), read("neither", 700)]
    second = [read("theirs", 100), read("neither", 800), read("both", 100), read("mine", 900, 3)]
    found = cells(differing_lines(first, second))
    assert [(row["read"], row["right"]) for row in found] == [("mine", "1"), ("theirs", "2")]
    assert (found[0]["1_placed"], found[0]["2_placed"]) == ("a:101-150:+", "a:901-950:+")
    assert found[0]["2_mapq"] == "3"


def test_a_read_that_one_mapper_left_out_is_listed_if_the_other_is_right():
    found = cells(differing_lines([read("x", 100), read("y", 900)], [read("z", 100)]))
    assert [(row["read"], row["right"]) for row in found] == [("x", "1"), ("z", "2")]
    assert (found[0]["2_placed"], found[1]["1_placed"]) == ("-", "-")


def test_differing_reads_of_low_quality_in_both_can_be_left_out():
    first = [read("x", 100, 3), read("y", 100, 3)]
    second = [read("x", 900, 9), read("y", 900, 4)]
    assert [row["read"] for row in cells(differing_lines(first, second, 5))] == ["x"]


SINGLE = MappingJob(Path("g.fa"), (Path("r1.fq"),), 3)
PAIRS = MappingJob(Path("g.fa"), (Path("r1.fq"), Path("r2.fq")), 3)

MADE_UP_MAPPER = """
import sys
reference, reads, *mates = sys.argv[1:sys.argv.index("-t")]
with open(sys.argv[sys.argv.index("-o") + 1], "w") as out:
    out.write("@PG\\tID:made-up\\tPN:made-up\\tVN:1\\n")
    for mate, path in enumerate([reads, *mates], 1):
        lines = open(path).read().splitlines()
        for number, (head, bases) in enumerate(zip(lines[::4], lines[1::4])):
            name = head[1:].rsplit("/", 1)[0]
            words = name.rsplit("_", 9)
            flag = (0x41, 0x81)[mate - 1] if mates else 0
            # Every tenth read is told to lie at the beginning, without confidence.
            place, quality = (1, 0) if number % 10 == 0 else (words[mate], 60)
            fields = [name, flag, words[0], place, quality, f"{len(bases)}M", "*", 0, 0, bases, "*"]
            out.write("\\t".join(map(str, fields)) + "\\n")
"""


@pytest.mark.parametrize("mapper", PEERS, ids=lambda mapper: mapper.name)
def test_peers_are_given_both_files_of_pairs_and_one_of_single_reads(mapper):
    assert [word for word in mapper.command(PAIRS) if word.endswith(".fq")] == ["r1.fq", "r2.fq"]
    assert [word for word in mapper.command(SINGLE) if word.endswith(".fq")] == ["r1.fq"]
    assert "3" in mapper.command(SINGLE)


def test_bowtie2_is_told_of_fasta():
    bowtie2 = next(mapper for mapper in PEERS if mapper.name == "bowtie2")
    assert "-f" in bowtie2.command(MappingJob(Path("g.fa"), (Path("reads.fa"),), 1))
    assert "-f" not in bowtie2.command(SINGLE)


def test_an_unknown_peer_is_refused():
    with pytest.raises(ValueError, match="no mapper bwa-sw"):
        chosen_mappers(["bwa-sw"], None)


def test_ours_maps_to_the_reference_or_to_its_index():
    plain, indexed = our_mapper("mummergpu map"), our_mapper("mummergpu map", "mummergpu index")
    assert plain.index(PAIRS) == []
    assert plain.command(PAIRS) == shlex.split("mummergpu map g.fa r1.fq r2.fq -t 3")
    assert indexed.index(PAIRS) == shlex.split("mummergpu index g.fa -o g.fa.mgi")
    assert indexed.command(SINGLE) == shlex.split("mummergpu map g.fa.mgi r1.fq -t 3")


def test_bam_is_written_by_us_and_by_samtools_for_the_peers():
    ours, bwa = our_mapper("mummergpu map"), PEERS[0]
    file = Path("out.bam")
    assert timed_command(ours, SINGLE, "sam", file)[-2:] == ["-t", "3"]
    assert timed_command(ours, SINGLE, "sorted", file)[-3:] == ["--sort", "-o", "out.bam"]
    assert timed_command(bwa, SINGLE, "bam", file)[-1] == (
        "bwa mem -t 3 g.fa r1.fq | samtools view -b -@ 3 -o out.bam -"
    )


def figures(right, confident, any_lead):
    counts = {"20": confident, "1": any_lead}
    return {
        "right_percent": right,
        "from_quality": {
            least: {"reads": reads, "wrong": wrong} for least, (reads, wrong) in counts.items()
        },
    }


def test_what_a_peer_does_better_is_told():
    peer = figures(86.2, (1_000, 5), (1_100, 22))
    assert shortfalls(peer, peer) == []
    assert shortfalls(figures(86.3, (1_001, 4), (1_101, 21)), peer) == []
    assert shortfalls(figures(86.1, (999, 6), (1_200, 23)), peer) == [
        "right 86.100%, not 86.200%",
        "MAPQ>=20: 999 reads, not 1,000",
        "MAPQ>=20: 6 wrong, not 5",
        "MAPQ>=1: 23 wrong, not 22",
    ]


def test_a_mapper_is_compared_from_reads_to_saved_figures(
    tmp_path, monkeypatch, capsys, dwgsim_binary
):
    mapper = tmp_path / "made_up.py"
    mapper.write_text(MADE_UP_MAPPER)
    genome = tmp_path / "genome.fa"
    # Long enough that a read at the beginning is seldom right.
    write_repeats(genome, 4, 200_000)
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    monkeypatch.setattr(
        sys,
        "argv",
        [
            *("mapping_accuracy.py", "--genome", f"tiny={genome}", "--genomes", "tiny"),
            *("--lengths", "100", "--pairs", "300", "--threads", "1", "--folder", str(tmp_path)),
            *("--ours", shlex.join([sys.executable, str(mapper)]), "--name", "figures.json"),
            # One that surely is not on the PATH is left out.
            *("--mappers", "strobealign"),
        ],
    )
    monkeypatch.setenv("PATH", str(Path(dwgsim_binary).parent))
    mapping_accuracy.main()
    saved = json.loads((tmp_path / "figures.json").read_text())["reads"]
    assert list(saved) == ["tiny.100.pairs300 pairs", "tiny.100.pairs300 single"]
    for mode, reads in (("pairs", 600), ("single", 300)):
        found = saved[f"tiny.100.pairs300 {mode}"][OURS]
        assert (found["program"], found["reads"], found["without_record"]) == (
            "made-up 1",
            reads,
            0,
        )
        assert found["from_quality"]["60"] == {"reads": reads * 9 // 10, "wrong": 0}
        assert found["from_quality"]["0"]["wrong"] >= reads // 10 - 2
    assert "| mummergpu | " in capsys.readouterr().out


def test_visits_are_plotted_in_ascending_order():
    counts = {
        "reads_visiting_4": 50,
        "reads_visiting_0": 1,
        "reads_visiting_128": 49,
        "occurrences_visited": 7000,
        "seeds_looked_up": 300,
        "reads_with_chosen_seeds": 49,
        "reads_at_spread_places": 2,
        "queries": 50,
    }
    visits = visits_of(counts)
    assert visits["mean"] == 70 and visits["searched"] == 100
    assert list(visits["reads"].items()) == [("0", 1), ("4", 50), ("128", 49)]
    lines = visits_plot(visits)
    assert [line.count("#") for line in lines] == [1, 50, 49]
    assert lines[2].split()[:2] == ["128", "49"]
