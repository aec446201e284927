"""Pages with their tables or trees: built, or loaded from an index file."""

from concurrent.futures import ThreadPoolExecutor

from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.kmer_table import build_kmer_page
from mummergpu.index.reference_index import BuildWork
from mummergpu.index.tree.policy import Policy
from mummergpu.index.tree_index import TreeIndex
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats


def build_kmer_pages(reference, pages, sampling, with_bases_beside=False):
    return [
        build_kmer_page(
            *(reference, page, sampling, 1 << 20, Stats()), with_bases_beside=with_bases_beside
        )
        for page in pages
    ]


def load_pages(file, page_is_ready=lambda: None):
    """All pages of an index file."""

    header = file.header
    budget = MemoryBudget(1 << 40)
    if header.search == "kmer":
        index = KmerIndex.from_file(file, header.minimum_length, budget)
    else:
        policy = Policy.from_code(header.policy)
        index = TreeIndex.from_file(file, policy, header.minimum_length, budget)
    with ThreadPoolExecutor(1) as executor:
        return index.load_pages(index.pages, BuildWork(executor, 1, Stats(), page_is_ready))
