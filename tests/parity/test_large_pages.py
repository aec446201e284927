"""A page larger than the paper's, built and searched for real."""

import numpy as np
from helpers.options import match_options

from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.match import run
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import decode
from mummergpu.sequence.strand import Strand

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
    for search, page_size, pages, address_bits in (
        ("tree", 16 << 20, 1, 32),
        ("tree", BORDER, 2, 24),
        ("kmer", 16 << 20, 1, None),
        ("kmer", BORDER, 2, None),
    ):
        stats = Stats()
        options = match_options(
            str(reference),
            (str(queries),),
            str(tmp_path / "found.txt"),
            minimum_length=14,
            strands=(Strand.FORWARD, Strand.REVERSE),
            threads=2,
            backend="cpu",
            search=search,
            page_size=page_size,
        )
        run(options, RunContext(options.threads, stats))
        assert stats.counts["pages"] == pages
        assert stats.settings.get("address_bits") == address_bits
        found.append((tmp_path / "found.txt").read_bytes())
    assert found[1:] == found[:1] * 3
    rows = [tuple(map(int, row.split())) for row in found[0].splitlines() if row[:1] != b">"]
    whole = {reference_start - 1 for reference_start, _, length in rows if length == READ}
    assert whole.issuperset(starts), "a read is not found where it comes from"
    assert {5_000_350, BORDER - 50} <= whole, "a copy of the repeat is not found"
