"""A page with its table of k-mers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import KmerTable, build_kmer_table
from mummergpu.index.pages import Page
from mummergpu.input.reference import Reference
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, CodeArray


@frozen
class KmerPage:
    """A part of a reference and its table of k-mers: the input of a k-mer search.

    Attributes
    ----------
    page : Page
        The position of the part in the joined reference. The page owns all of the part,
        because matches are extended in the whole reference.
    padded_reference : ndarray, dtype=uint8
        The codes of the whole reference with margins (`codes.with_margins`), shared.
    index_path : str
        The index file that the page is from, or ``""`` if it was built in memory.
    sample_step : int or None
        Only matches matter that contain a whole window of their query; windows of so many bases
        lie side by side from its first base, and are at least as long as the table's
        `KmerSampling.shortest_match`. A search looks up as many k-mers of each window as the
        reference step, one of which is listed; it lists the matches of a query in no certain
        order. Of picked k-mers it looks up one. None for a search that finds all matches.
    window_distance : int or None
        The bases from one window to the next, if they do not lie side by side.
    max_matches : int or None
        Where a query has more matches on a strand, with a window if those matter, only those are
        found that have a seed which `seed_rule` takes, in no certain order; None to find all. It
        is for a page that has the whole reference.
    only_unique : bool
        Only matches matter that are unique in the reference: a search may leave out matches that
        lie in others, and of several with the same bases all but two.
    """

    page: Page
    table: KmerTable
    padded_reference: CodeArray
    index_path: str = ""
    sample_step: int | None = None
    window_distance: int | None = None
    max_matches: int | None = None
    only_unique: bool = False

    @property
    def joined_reference(self) -> CodeArray:
        """The codes of the whole reference, without the margins."""
        return self.padded_reference[MARGIN:-MARGIN]

    @property
    def is_for_mapping(self) -> bool:
        """Whether a search finds the matches that a mapper wants (`seed_search`), not all."""
        return self.sample_step is not None or self.max_matches is not None

    @property
    def sample_leads(self) -> range:
        """The bases of a window before each k-mer that is looked up; 0 without windows.

        With picked k-mers, those before the span of which one is looked up.
        """
        if self.sample_step is None:
            return range(1)
        sampling = self.table.sampling
        assert self.sample_step >= sampling.shortest_match
        last = self.sample_step - sampling.sample_bases
        return range(last - sampling.leads + 1, last + 1)

    def query_step(self, minimum_length: int) -> int:
        """Return the bases from one k-mer that is looked up to the next (`KmerSampling`)."""
        if self.sample_step is not None:
            return self.window_distance or self.sample_step
        return self.table.sampling.query_step(minimum_length)

    def period(self, minimum_length: int) -> int:
        """Return the bases from one pair of a match to the next (`KmerSampling`)."""
        if self.sample_step is not None:
            return self.window_distance or self.sample_step
        return self.table.sampling.period(minimum_length)


def build_kmer_page(
    reference: Reference,
    page: Page,
    sampling: KmerSampling,
    scratch_bytes: int,
    stats: Stats,
    map_function: Callable[..., Iterable[object]] = map,
    tell: Callable[[float], None] = lambda share: None,
    with_bases_beside: bool = False,
) -> KmerPage:
    """Build the table of a page; `tell` receives the share that is done from any thread."""
    padded = reference.padded_codes
    with stats.stage("table_construction"):
        table = build_kmer_table(
            *(padded, page.begin, page.owned_end, sampling, map_function, scratch_bytes, tell),
            with_bases_beside,
        )
    return KmerPage(page, table, padded)
