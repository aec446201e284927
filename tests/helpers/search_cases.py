"""References and queries that are awkward for the kernels, and what is to be found in them."""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from helpers.in_memory import block_of, reference_of
from helpers.oracle import brute_force_mems, reverse_complement
from mummergpu.index.pages import plan_pages
from mummergpu.index.tree_index import build_page
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand

STRANDS = (Strand.FORWARD, Strand.REVERSE)
ONE_PAGE = 1 << 20
ANY = 1 << 40
"""More rows than there can be."""

COLUMNS = ("offsets", "query_starts", "reference_starts", "lengths")


@dataclass(frozen=True)
class SearchCase:
    """A reference in pages, and queries."""

    name: str
    records: tuple[str, ...]
    queries: tuple[str, ...]
    minimum_length: int
    page_size: int = ONE_PAGE

    @property
    def page_plan(self):
        bases = sum(map(len, self.records)) + len(self.records) - 1
        return plan_pages(bases, self.page_size, self.minimum_length - 1)

    def pages(self, layout):
        reference = reference_of(self.records)
        stats = Stats()
        return [build_page(reference, page, layout, stats) for page in self.page_plan]

    def block(self):
        return block_of(self.queries)

    @cache  # noqa: B019 - cases live as long as the tests
    def expected(self, strand):
        """The MEMs of each query, by definition."""
        starts = reference_of(self.records).record_starts.tolist()
        return [
            [
                (place, starts[record] + start, length)
                for record, start, place, length in brute_force_mems(
                    list(self.records),
                    query if strand is Strand.FORWARD else reverse_complement(query),
                    self.minimum_length,
                )
            ]
            for query in self.queries
        ]


def find_on(backend, block, strand=Strand.FORWARD, max_rows=ANY):
    """The MEMs that a backend finds on one strand."""
    found = backend.find_mems(block, (strand,), max_rows)
    assert found is None or list(found) == [strand]
    return None if found is None else found[strand]


def rows_of(columns):
    """The rows of each query."""
    rows = list(zip(*(getattr(columns, name).tolist() for name in COLUMNS[1:]), strict=True))
    assert columns.offsets[0] == 0 and columns.offsets[-1] == len(rows)
    return [rows[begin:end] for begin, end in pairwise(columns.offsets.tolist())]


def difference(one, other):
    """Say where two sets of columns differ first, or None."""
    for name in COLUMNS:
        left, right = getattr(one, name), getattr(other, name)
        if left.shape != right.shape:
            return f"{name}: {left.size} and {right.size} numbers"
        if not np.array_equal(left, right):
            place = int(np.flatnonzero(left != right)[0])
            return f"{name}[{place}]: {left[place]} and {right[place]}"
    return None


def made_bases(random, count, letters, breaks=0):
    bases = random.choice(list(letters), count)
    bases[random.random(count) < breaks] = "N"
    return "".join(bases)


def made_queries(random, text, count, longest, letters="ACGT", errors=0.05):
    """Pieces of a text on both strands with errors in them, and some from nowhere."""
    queries = []
    for _ in range(count):
        length = int(random.integers(0, longest + 1))
        if random.random() < 0.2:
            queries.append(made_bases(random, length, letters))
            continue
        begin = int(random.integers(0, max(len(text) - length, 0) + 1))
        bases = list(text[begin : begin + length])
        for place in np.flatnonzero(random.random(len(bases)) < errors):
            bases[place] = random.choice([*letters, "N", "", "AC"])
        query = "".join(bases)
        queries.append(reverse_complement(query) if random.random() < 0.4 else query)
    return tuple(queries)


def random_case(seed):
    """A small genome of few letters, cut into one page, some, or many."""
    random = np.random.default_rng(seed)
    letters = "ACGT"[: 2 + seed % 3]
    record_count = (1, 4, 2)[seed % 3]
    records = tuple(
        made_bases(random, int(random.integers(0, 400 // record_count)), letters, 0.02)
        for _ in range(record_count)
    )
    if not any(set(record) & set("ACGT") for record in records):
        records = (*records, "ACCA")
    minimum_length = 1 + seed % 9
    page_size = (ONE_PAGE, 60, 150)[seed // 3 % 3]
    queries = made_queries(random, "N".join(records), 20, 60, letters)
    return SearchCase(f"random {seed}", records, queries, minimum_length, page_size)


def _awkward_cases():
    random = np.random.default_rng(20)
    record = made_bases(random, 400, "ACGT")
    records = (record[:120] + "N" + record[130:250], "", record[60:110], "NNN", record[250:])
    queries = (*made_queries(random, "N".join(records), 25, 80), "", record[:3], "N" * 30, record)
    copies = ("TGATTACA", "CGATTACA", "GATTACA") * 14
    satellite = list("ACGTA" * 30)
    satellite[40], satellite[83], satellite[120] = "T", "N", "C"
    tiny = record[:40] + "N" + record[10:60] + record[:20]
    return [
        SearchCase("several records", records, queries, 8),
        SearchCase("pages", records, queries, 8, 101),
        SearchCase("tiny pages", (tiny,), (tiny, record[:80], tiny[20:70]), 5, 9),
        SearchCase("pages of one start", ("ACGTACGTTGCAACGT",), ("TACGTTG", "ACGT"), 4, 4),
        SearchCase("over page ends", (record,), (record, record[33:390], record[90:130]), 20, 60),
        SearchCase("long chains of suffixes", copies, ("GATTACA", "CGATTACAT", "TTACA", "A"), 5),
        SearchCase("chains over pages", copies, ("GATTACA", "CGATTACAT", "TTACA"), 5, 130),
        SearchCase("a chain of single bases", ("AN" * 70,), ("A", "ANA", "CAC"), 1),
        SearchCase("homopolymers", ("A" * 100, "T" * 9), ("A" * 40, "A" * 120, "T" * 30), 5),
        SearchCase("homopolymers over pages", ("A" * 100,), ("A" * 40, "A" * 120), 5, 40),
        SearchCase("tandem repeats", ("ACT" * 40,), ("ACT" * 12, "CTA" * 45, "TACTG"), 6),
        SearchCase("satellites", ("".join(satellite),), ("ACGTA" * 12, "".join(satellite)), 7, 77),
        SearchCase("palindromes", ("ACCGGTACCGGT" + "GGATCC" * 6,), ("ACCGGT", "GGATCC" * 2), 4),
        SearchCase("single bases", (record[:60],), ("ACGTN", "", "N", "T", record[20:50]), 1),
        SearchCase("single bases, tiny pages", ("ACNGT",), ("ACGTN", "A"), 1, 1),
        SearchCase("queries without a base", (record[:30],), ("", "", ""), 3),
        SearchCase("no query long enough", (record[:30],), ("AC", "", "GTA"), 4),
        SearchCase("no query at all", (record[:30],), (), 4),
        SearchCase("nothing matches", ("A" * 60,), ("C" * 30, "G" * 70), 3, 33),
        SearchCase("one base", ("A",), ("A", "CAT", "T"), 1),
    ]


CASES = _awkward_cases() + [random_case(seed) for seed in range(9)]
