"""Index files of all kinds, built for tests."""

from helpers.options import build_options
from mummergpu.index.tree.policy import Policy
from mummergpu.pipeline.build_index import make_index
from mummergpu.pipeline.context import RunContext

SAMPLED = {"search": "kmer", "page_size": None}
SAMPLED_PAGES = {"search": "kmer", "page_size": 700}
TREE = {"search": "tree"}
TREE_PAGES = {"search": "tree", "page_size": 700, "policy": Policy.from_code("Tn")}
WIDE_PAGES = {"search": "tree", "page_size": 900, "address_bits": 32}


def index_of(fasta, folder, name="ref.mgi", **told):
    """Build an index for matches of at least 12 bases; return its path."""
    path = folder / name
    options = build_options(str(fasta), str(path), 2, minimum_length=12, **told)
    make_index(options, RunContext(options.threads))
    return path
