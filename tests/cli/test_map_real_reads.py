"""The command ``map`` on real and simulated reads, and what other programs make of its files."""

import gzip
import random
import re

import pytest
from helpers.alignment_tools import bwa_alignments, output_of, picard_errors, samtools
from helpers.loops import each
from helpers.requirements import program_of

from mummergpu.cli.main import main

PNEUMONIAE = (
    "streptococcus_pneumoniae.GCF_001457635.fna.gz",
    "spneumoniae_ERR1438863.R{}.fastq.gz",
)

PORTIERA = ("portiera.GCF_000292685.fna", "portiera_SRR2838702_1x.R{}.fastq.gz")

HUMAN = (
    "human_grch38.chr20_and_21_first10M.fa.gz",
    "human_grch38_1k_subset_chr20_and_chr21.fastq.gz",
)


def map_real(shared_data, folder, names, *options):
    """Map real reads to their reference; return the sorted BAM, and the reference as text."""
    source, reads = shared_data / "references" / names[0], shared_data / "reads" / names[1]
    paths = [str(reads)]
    if "{}" in names[1]:
        paths = [str(reads).format(end) for end in (1, 2)]
    reference = folder / names[0].removesuffix(".gz")
    if not reference.exists():
        whole = source.read_bytes()
        reference.write_bytes(gzip.decompress(whole) if source.suffix == ".gz" else whole)
    bam = folder / "x.bam"
    words = [
        *"map --backend cpu -q".split(),
        str(source),
        *paths,
        "--sort",
        "-o",
        str(bam),
        *options,
    ]
    assert main(words) == 0
    return bam, reference


@each(
    "names, least, min_proper",
    [(PORTIERA, 98.5, 94.0), (PNEUMONIAE, 87.0, 80.0), (HUMAN, 90.0, 0.0)],
)
def test_real_reads_are_mapped(shared_data, tmp_path, names, least, min_proper):
    bam, reference = map_real(shared_data, tmp_path, names, "--mark-duplicates")
    samtools("quickcheck", "-v", bam)
    text = samtools("flagstat", bam).decode()
    shares = re.findall(r"(?:primary mapped|properly paired) \(([\d.]+|N/A)", text)
    assert float(shares[0]) >= least
    assert min_proper == 0 or float(shares[1]) >= min_proper
    # NM and MD are those that samtools computes: it would tell each that differs.
    before = samtools("view", bam).splitlines()
    after = samtools("calmd", "--no-PG", "-Q", bam, reference)
    changed = [line for line in after.splitlines() if not line.startswith(b"@")]
    assert [sorted(line.split(b"\t")) for line in changed] == [
        sorted(line.split(b"\t")) for line in before
    ]


@pytest.mark.slow
@each("names", [PORTIERA, PNEUMONIAE, HUMAN])
def test_picard_finds_no_error(shared_data, tmp_path, names):
    bam, reference = map_real(shared_data, tmp_path, names, "--mark-duplicates")
    assert picard_errors(bam, reference) == []


@pytest.mark.slow
def test_most_places_are_those_of_bwa(shared_data, tmp_path):
    bam, reference = map_real(shared_data, tmp_path, PNEUMONIAE)
    reads = [shared_data / "reads" / PNEUMONIAE[1].format(end) for end in (1, 2)]
    ours = _places(samtools("view", "-F", "0x904", "-q", "30", bam))
    theirs = _places(bwa_alignments(reference, *reads))
    both = ours.keys() & theirs.keys()
    assert len(both) > 0.95 * len(ours)
    near = sum(
        ours[read][0] == theirs[read][0] and abs(ours[read][1] - theirs[read][1]) < 20
        for read in both
    )
    assert near > 0.999 * len(both)


def _places(text):
    """Return the record and the position of each mapped read."""
    found = {}
    for line in text.splitlines():
        if not line.startswith(b"@"):
            name, flag, record, position, *_ = line.split(b"\t")
            if int(flag) & 0x904 == 0:
                found[name, int(flag) & 0x80] = record, int(position)
    return found


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
