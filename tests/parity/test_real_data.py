"""Real genomes and reads: MUMmer's own lines, in our order, byte for byte."""

from itertools import product

import pytest
from helpers.mummer_comparison import (
    count_rows,
    difference,
    in_our_order,
    mummer_text,
    our_text,
    record_names,
)
from helpers.tables import table

ANTHRAX_SLICE = "B_anthracis_Mslice.fasta"
ANTHRAX_CONTIGS = "B_anthracis_contigs.fasta"
PYLORI_26695 = "H_pylori26695_Eslice.fasta"
PYLORI_J99 = "H_pyloriJ99_Eslice.fasta"
HUMAN_MT = "MT-human.fa"
ORANG_MT = "MT-orang.fa"
COLI = "ecoli_K12_MG1655.NC_000913.2.fa.gz"
INFLUENZAE = "haemophilus_influenzae.GCA_000027305.fna.gz"
HUMAN = "human_grch38.chr20_and_21_first10M.fa.gz"
LAMBDA = "lambda_virus.fasta"
LISTERIA = "listeria_CFSAN023463.HGAP.draft.fasta.gz"
PORTIERA = "portiera.GCF_000292685.fna"
PNEUMONIAE = "streptococcus_pneumoniae.GCF_001457635.fna.gz"
SUIS = "streptococcus_suis.GCF_002285535.fna.gz"
YEAST = "yeast_S288C_R64.ensembl94.fa.gz"

COLI_READS = "ecoli_EAS20_8.quast.R1.fastq.gz"
COLI_MATES = "ecoli_EAS20_8.quast.R2.fastq.gz"
PNEUMONIAE_READS = "spneumoniae_ERR1438863.R1.fastq.gz"
PNEUMONIAE_MATES = "spneumoniae_ERR1438863.R2.fastq.gz"
PORTIERA_READS = "portiera_SRR2838702_1x.R1.fastq.gz"
PORTIERA_MATES = "portiera_SRR2838702_1x.R2.fastq.gz"
PORTIERA_36 = "portiera_SRR2838702_low-proportion.R2.fastq.gz"
NOVASEQ = "human_grch38_1k_subset_chr20_and_chr21.fastq.gz"
GENOME_ANALYZER = "samtools_ex1_EAS_35bp.fastq.gz"
ROCHE_454 = "roche454_biopython.fastq.gz"

PORTIERA_ALL = [(PORTIERA_36, 10), (PORTIERA_READS, 1), (PORTIERA_MATES, 1)]
COLI_ALL = [(COLI_READS, 10), (COLI_MATES, 10), (ROCHE_454, 1)]
PNEUMONIAE_ALL = [(PNEUMONIAE_READS, 10), (PNEUMONIAE_MATES, 10)]
LISTERIA_ALL = [(GENOME_ANALYZER, 1), (LISTERIA, 1000), (COLI_READS, 100)]
INFLUENZAE_ALL = [(INFLUENZAE, 1000), (PNEUMONIAE_READS, 20)]

MODES = ["-maxmatch", "-mumreference", "-mumcand", "-mum"]
STRANDS = ["", "-b", "-r", "-b -c", "-r -c"]
SHAPES = ["", "-F", "-L", "-s", "-F -L -s"]
LENGTHS = [12, 20, 50]

COMBINATIONS = [
    f"{mode} {strands} {SHAPES[(number + number // 5) % 5]} -l {LENGTHS[number % 3]}"
    for number, (mode, strands) in enumerate(product(MODES, STRANDS))
]


def compare(real, mummer, folder, reference, queries, flags, setting=""):
    """Run both programs, return how many rows both wrote.

    Queries are names of genomes, or names of files of reads with their stride.
    """
    path = real.reference(reference)
    paths = [real.path(query) for query in queries]
    told = mummer_text(mummer, path, paths, flags)
    expected = in_our_order(told, record_names(path), "-c" in flags.split())
    assert not difference(our_text(folder, path, paths, flags, setting), expected)
    return count_rows(told)


@pytest.mark.parametrize("flags", COMBINATIONS)
@pytest.mark.parametrize(
    ("reference", "queries"),
    [
        pytest.param(HUMAN_MT, [ORANG_MT, HUMAN_MT], id="MT"),
        pytest.param(LAMBDA, [(COLI_READS, 100), LAMBDA], id="lambda"),
        pytest.param(PYLORI_26695, [PYLORI_J99], id="pylori"),
        pytest.param(ANTHRAX_CONTIGS, [ANTHRAX_SLICE], id="anthrax contigs"),
    ],
)
def test_every_mode_and_strand_on_small_genomes(
    reference, queries, flags, real, mummer_binary, tmp_path
):
    rows = compare(real, mummer_binary, tmp_path, reference, queries, flags)
    assert rows > 0 or "-r" in flags


def value_of(text):
    """The value of a cell, in the names of files above."""
    return eval(text)


@pytest.mark.parametrize("row", table(__file__, None, value_of, value_of), ids=str)
def test_bacteria(row, real, mummer_binary, tmp_path):
    *asked, fewest = row
    assert compare(real, mummer_binary, tmp_path, *asked) >= int(fewest)


def test_yeast(real, mummer_binary, tmp_path):
    """Sixteen records on two pages."""
    queries = [(YEAST, 5000), (NOVASEQ, 10), LAMBDA]
    rows = compare(real, mummer_binary, tmp_path, YEAST, queries, "-maxmatch -b -c -L -l 16")
    assert rows > 10_000


def test_human(real, mummer_binary, tmp_path):
    """Two records with six million N on three pages, one of them nearly all N."""
    queries = [(NOVASEQ, 3), (HUMAN, 50_000), (GENOME_ANALYZER, 10), (ROCHE_454, 1)]
    rows = compare(real, mummer_binary, tmp_path, HUMAN, queries, "-maxmatch -b -l 24")
    assert rows > 50_000
