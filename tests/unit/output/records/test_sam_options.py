"""The read group of a run whose user names none."""

from helpers.loops import each

from mummergpu.output.options import usual_read_group


@each(
    "paths, sample",
    [
        ("lane1.fq.gz", "lane1"),
        ("in/lane1.R1.fastq.gz in/lane1.R2.fastq.gz", "lane1"),
        ("lane1_R1.fq", "lane1"),
        ("lane1_R2.fq.zst", "lane1"),
        ("lane1-R2.fq.bz2", "lane1"),
        ("lane1_r1.fq", "lane1"),
        ("x_S1_L001_R1_001.fastq.gz x_S1_L001_R2_001.fastq.gz", "x_S1_L001"),
        ("x_S1_L001_R2_001.fastq", "x_S1_L001"),
        ("x.R1.bam", "x"),
        ("x_R1.fa", "x"),
        ("SRR2838702_1.fastq.gz SRR2838702_2.fastq.gz", "SRR2838702"),
        ("SRR2838702_1.fastq.gz", "SRR2838702"),
        ("SRR2838702_2.fq", "SRR2838702"),
        ("a_1.fa a_2.fa", "a"),
        ("a.1.fq a.2.fq", "a"),
        # These may be the first of many samples.
        ("a.1.fq", "a.1"),
        ("a.1.fq b.2.fq", "a.1"),
        ("one/a_2.fa two/a_2.fa", "a_2"),
        ("a_1.fa", "a_1"),
        ("a_1.bam", "a_1"),
        ("a_3.fq", "a_3"),
        ("a_11.fq", "a_11"),
        ("a1.fq a2.fq", "a1"),
        ("aR1.fq", "aR1"),
        ("a_R1_01.fq", "a_R1_01"),
        ("_1.fq _2.fq", "_1"),
        ("R1.fq R2.fq", "R1"),
        ("1.fq 2.fq", "1"),
        ("- x_2.fq", "reads"),
    ],
)
def test_the_sample_is_not_named_after_mates(paths, sample):
    tags = dict(tag.split(":") for tag in usual_read_group(paths.split()).line.split("\t")[1:])
    assert tags["SM"] == sample


def test_the_group_has_the_name_of_the_first_file():
    group = usual_read_group(["in/lane 1.R1.fq.gz", "in/lane 1.R2.fq.gz"])
    assert group.name == "lane_1.R1"
    assert group.line == "@RG\tID:lane_1.R1\tSM:lane_1\tPL:OTHER"
