"""Nothing but what is asked for changes a byte: not threads, pages, blocks, policy, memory."""

from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest
from helpers.mummer_comparison import (
    count_rows,
    difference,
    in_our_order,
    mummer_text,
    our_text,
    record_names,
)
from helpers.options import match_options
from helpers.pairwise import layouts_to_try
from helpers.tables import table
from helpers.trees import LAYOUTS, WIDE_LAYOUTS, layout_id

from mummergpu.index.kmer_index import MIN_SCRATCH_BYTES, UNKNOWN_QUERY_BASES
from mummergpu.index.kmer_plan import KmerJob, choose_sampling
from mummergpu.matching.options import Uniqueness
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.match import run
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import decode
from mummergpu.sequence.strand import Strand

CONTIGS = "B_anthracis_contigs.fasta"
SLICE = "B_anthracis_Mslice.fasta"
PORTIERA = "portiera.GCF_000292685.fna"
PORTIERA_READS = "portiera_SRR2838702_1x.R1.fastq.gz"
COLI = "ecoli_K12_MG1655.NC_000913.2.fa.gz"
COLI_READS = "ecoli_EAS20_8.quast.R1.fastq.gz"

PORTIERA_QUERIES = [(PORTIERA_READS, 4), (PORTIERA, 10_000), PORTIERA]
"""Short reads, reads that cross pages, and the genome itself as one query."""


JOB = KmerJob(60_000, 18, UNKNOWN_QUERY_BASES)
TABLE = choose_sampling(JOB, 1 << 30).table_bytes(60_000)
"""Bytes of a table that such a page has."""


@pytest.fixture(scope="session")
def expected(real, mummer_binary):
    """MUMmer's text for Portiera in our order, by mode."""
    reference = real.reference(PORTIERA)
    paths = [real.path(query) for query in PORTIERA_QUERIES]
    return {
        mode: in_our_order(
            mummer_text(mummer_binary, reference, paths, f"-{mode} -b -l 18"),
            record_names(reference),
        )
        for mode in ("maxmatch", "mumreference", "mum")
    }


@pytest.mark.parametrize("layout", layouts_to_try(LAYOUTS + WIDE_LAYOUTS))
def test_every_layout(layout, real, mummer_binary, tmp_path):
    reference, queries = real.reference(CONTIGS), [real.reference(SLICE)]
    told = mummer_text(mummer_binary, reference, queries, "-maxmatch -b -l 14")
    assert count_rows(told) > 3000
    policy = layout_id(replace(layout, wide=False))
    setting = f"--page-size 120k --policy {policy} --address-bits {32 if layout.wide else 24}"
    found = our_text(tmp_path, reference, queries, "-maxmatch -b -l 14", setting)
    assert not difference(found, in_our_order(told, record_names(reference)))


@pytest.mark.parametrize("mode", ["maxmatch", "mumreference", "mum"])
@pytest.mark.parametrize("setting", table(__file__, "threads, blocks and pages"))
def test_threads_blocks_and_pages(mode, setting, expected, real, tmp_path):
    paths = [real.path(query) for query in PORTIERA_QUERIES]
    flags = f"-{mode} -b -l 18"
    found = our_text(tmp_path, real.reference(PORTIERA), paths, flags, setting)
    assert not difference(found, expected[mode])


@pytest.mark.parametrize("mode", ["maxmatch", "mumreference", "mum"])
@pytest.mark.parametrize("memory", ["much", "some", "none"])
@pytest.mark.parametrize(
    ("search", "from_standard_input"),
    [("tree", False), ("tree", True), ("kmer", True)],
    ids=["trees, file", "trees, stdin", "tables, stdin"],
)
def test_groups_of_pages(
    search, from_standard_input, memory, mode, expected, real, tmp_path, monkeypatch
):
    """What waits in temporary files comes back, also where the queries cannot be read twice."""
    paths = [real.path(query) for query in PORTIERA_QUERIES]
    if from_standard_input:
        text = b"".join(Path(path).read_bytes() for path in paths)
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text)))
        paths = ["-"]
    stats = Stats()
    some = 18_000_000 if search == "tree" else MIN_SCRATCH_BYTES + 3 * TABLE
    told = {"minimum_length": 18, "strands": tuple(Strand), "uniqueness": Uniqueness(mode)}
    told |= {"threads": 2, "page_size": 60_000, "block_size": 50_000, "search": search}
    told |= {"memory": {"much": None, "some": some, "none": 1}[memory]}
    found = str(tmp_path / "found.txt")
    options = match_options(real.reference(PORTIERA), tuple(paths), found, **told)
    run(options, RunContext(options.threads, stats))
    pages, groups = stats.counts["pages"], stats.settings["page_groups"]
    assert pages == 6
    least, most = {"much": (1, 1), "some": (2, pages - 1), "none": (pages, pages)}[memory]
    assert least <= groups <= most
    assert not difference((tmp_path / "found.txt").read_bytes(), expected[mode])


@pytest.mark.parametrize("memory", ["1", "20M", "64M", "8G"])
def test_the_option_for_memory(memory, expected, real, tmp_path):
    paths = [real.path(query) for query in PORTIERA_QUERIES]
    setting = f"--max-memory {memory} --page-size 60000 -t 2"
    found = our_text(tmp_path, real.reference(PORTIERA), paths, "-b -l 18", setting)
    assert not difference(found, expected["maxmatch"])


BASES = 9 << 20
BORDER = 1 << 23
READ = 100


def test_one_large_page_gives_the_bytes_of_two_of_the_papers(tmp_path):
    random = np.random.default_rng(12)
    codes = random.integers(0, 4, BASES, dtype=np.uint8)
    # A repeat with a copy on either side of the border, one of them across it.
    codes[BORDER - 400 : BORDER + 600] = codes[5_000_000:5_001_000]
    text = decode(codes)
    starts = [*random.integers(0, BASES - READ, 2_000), *range(BORDER - 2 * READ, BORDER + READ)]
    starts += [5_000_350, BASES - READ, BASES - READ - 1, 0]
    reads = [text[start : start + READ] for start in starts]
    reference, queries = tmp_path / "reference.fa", tmp_path / "reads.fa"
    reference.write_bytes(b">r\n" + text + b"\n")
    queries.write_bytes(b"".join(b">q%d\n%b\n" % pair for pair in enumerate(reads)))
    found = []
    told = {"minimum_length": 14, "strands": tuple(Strand), "threads": 2, "backend": "cpu"}
    files = str(reference), (str(queries),), str(tmp_path / "found.txt")
    for search, page_size, pages, address_bits in (
        *(("tree", 16 << 20, 1, 32), ("tree", BORDER, 2, 24)),
        *(("kmer", 16 << 20, 1, None), ("kmer", BORDER, 2, None)),
    ):
        stats = Stats()
        options = match_options(*files, search=search, page_size=page_size, **told)
        run(options, RunContext(options.threads, stats))
        assert stats.counts["pages"] == pages
        assert stats.settings.get("address_bits") == address_bits
        found.append((tmp_path / "found.txt").read_bytes())
    assert found[1:] == found[:1] * 3
    rows = [tuple(map(int, row.split())) for row in found[0].splitlines() if row[:1] != b">"]
    whole = {reference_start - 1 for reference_start, _, length in rows if length == READ}
    assert whole.issuperset(starts), "a read is not found where it comes from"
    assert {5_000_350, BORDER - 50} <= whole, "a copy of the repeat is not found"
