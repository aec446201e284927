"""Records of SAM made by hand are judged once each, and counted by mapping quality."""

import pysam
import pytest
from mapping.judge import accuracy_of, verdicts
from mapping.sam import primary_records, program_version, read_lines, reference_bases
from mapping.tables import table
from mapping.truth import Span

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


def test_more_records_than_reads_are_refused():
    lines = [line(name_of(101, 401, number), 0, 101, 60) for number in (1, 2)]
    with pytest.raises(ValueError, match="2 primary records of 1 reads"):
        judged(lines, 1)


def test_a_second_primary_record_is_refused():
    with pytest.raises(ValueError, match="two primary records of chr20_101"):
        judged([line(name_of(101, 401), 0, 101, 60)] * 2)


def test_a_short_line_and_a_record_without_sequence_are_refused():
    with pytest.raises(ValueError, match="not a line of SAM"):
        judged(["r\t0\tchr20\t1\n"])
    with pytest.raises(ValueError, match="has no sequence"):
        judged([line(name_of(101, 401), 0, 101, 60).replace("ACGTACGTAC", "*")])


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
