"""Variants that other programs call from the alignments of the command ``map``."""

import random

from helpers.alignment_tools import bwa_alignments, output_of, samtools
from helpers.requirements import program_of

from mummergpu.cli.main import main

SIMULATION = "-z 5 -N 6000 -1 100 -2 100 -d 350 -s 40 -r 0.005 -R 0.2 -X 0.3 -H -y 0 -o 1"
ERRORS = "-e 0.002 -E 0.002"


def test_variants_are_those_that_are_called_from_bwa(tmp_path):
    caller, dwgsim = program_of("bcftools"), program_of("dwgsim")
    reference = tmp_path / "r.fa"
    bases = "".join(random.Random(8).choices("ACGT", k=50_000))
    reference.write_text(f">r\n{bases}\n")
    words = [*SIMULATION.split(), *ERRORS.split()]
    output_of(dwgsim, *words, reference, tmp_path / "s")
    reads = [tmp_path / f"s.bwa.read{end}.fastq.gz" for end in (1, 2)]
    ours, theirs = tmp_path / "ours.bam", tmp_path / "bwa.bam"
    words = ["map", "--backend", "cpu", "-q", "--sort", "-o", ours, reference, *reads]
    assert main([str(word) for word in words]) == 0
    (tmp_path / "bwa.sam").write_bytes(bwa_alignments(reference, *reads))
    samtools("sort", "-o", theirs, tmp_path / "bwa.sam")
    called = []
    for bam in (ours, theirs):
        piled = bam.with_suffix(".bcf")
        output_of(caller, "mpileup", "-Ou", "-f", reference, "-o", piled, bam)
        rows = output_of(caller, "call", "-mv", "--ploidy", "1", "-Ov", piled).decode().splitlines()
        called.append({row.split("\t")[1] for row in rows if row[0] != "#"})
    truth = (tmp_path / "s.mutations.vcf").read_text().splitlines()
    places = {row.split("\t")[1] for row in truth if row[0] != "#"}
    assert len(places) > 150 and len(called[0] & places) > 0.85 * len(places)
    assert len(called[0] & places) >= len(called[1] & places) - 3
    assert len(called[0] - places) <= len(called[1] - places) + 3
