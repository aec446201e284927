"""Where matchers have gone wrong: borders of pages and records, long queries, many files.

The reference is random, so that the only matches are the ones that a query was cut from.
"""

import re
from random import Random

import pytest
from helpers.oracle import reverse_complement
from helpers.sequences import random_bases, write_fasta

from mummergpu.cli.main import main
from mummergpu.index.pages import plan_pages

LENGTH = 300_000
LEAST = 30
PAGE = 20_000
BORDERS = [(page.begin, page.end) for page in plan_pages(LENGTH, PAGE, LEAST - 1)]
OTHER = str.maketrans("ACGT", "CGTA")


PLAIN = random_bases(Random(1), LENGTH)


def broken_at_borders():
    """Return the reference with runs of N that begin, end and lie at borders of pages."""
    letters = list(PLAIN)
    for number, (begin, end) in enumerate(BORDERS):
        runs = [(end - 5, end), (end, end + 7), (end - 3, end + 4), (begin, begin + 1)]
        first, last = (min(place, LENGTH) for place in runs[number % 4])
        letters[first:last] = "N" * (last - first)
    return "".join(letters)


BROKEN = broken_at_borders()


def rows_of_part(reference, begin, end):
    """Return what a query cut from the reference must match: all between its Ns, once."""
    return [
        (begin + run.start() + 1, run.start() + 1, len(run.group()))
        for run in re.finditer("[ACGT]+", reference[begin:end])
        if len(run.group()) >= LEAST
    ]


def text_of(folder, *words):
    """Return what both searches write, for pages with trees and for parts with tables."""
    texts = []
    for search in ("tree", "kmer"):
        assert main(["-q", "--search", search, *words, "-o", str(folder / "out")]) == 0
        texts.append((folder / "out").read_text())
    assert texts[0] == texts[1]
    return texts[0]


def found_rows(folder, reference, reads, *words):
    """Return the rows of each header."""
    write_fasta(folder / "r.fa", {"r": reference})
    write_fasta(folder / "q.fa", (("q", read) for read in reads))
    files = [str(folder / name) for name in ("r.fa", "q.fa")]
    blocks = text_of(folder, "-l", str(LEAST), *words, *files).split(">")[1:]
    return [[tuple(map(int, row.split())) for row in text.splitlines()[1:]] for text in blocks]


@pytest.mark.parametrize("reference", [PLAIN, BROKEN], ids=["plain", "N at borders"])
def test_borders_of_pages(reference, tmp_path):
    """A match is one line, wherever it begins or ends, and however many pages it covers."""
    parts = []
    for begin, end in BORDERS:
        parts += [(begin, end), (begin, begin + LEAST), (end - LEAST, end)]
        for shift in (-LEAST, -LEAST + 1, -LEAST // 2, -1, 0, 1):
            parts.append((begin + shift, begin + shift + LEAST))
            parts.append((end + shift, end + shift + 2 * LEAST))
        parts += [(begin - 1, end + 1), (begin + 1, end - 1), (begin - 100, end + 100)]
    parts += [(0, LENGTH), (50_000, 150_000), (1, LENGTH - 1), (0, LEAST), (LENGTH - LEAST, LENGTH)]
    parts = [(begin, end) for begin, end in parts if 0 <= begin < end <= LENGTH]
    reads = [reference[begin:end] for begin, end in parts]
    expected = [rows_of_part(reference, *part) for part in parts]
    assert sum(map(len, expected)) > len(BORDERS)
    for page_size in (PAGE, 8_000_000):
        page = str(page_size)
        assert found_rows(tmp_path, reference, reads, "--page-size", page) == expected
        turned = [reverse_complement(read) for read in reads]
        assert found_rows(tmp_path, reference, turned, "-r", "--page-size", page) == expected


def test_matches_that_touch_both_ends_of_a_page(tmp_path):
    """Flanked by other bases, so that they end just there, and not before the border."""
    reads = [PLAIN[begin:end] for begin, end in BORDERS]
    changed = [
        PLAIN[begin - 1 : begin].translate(OTHER) + read + PLAIN[end : end + 1].translate(OTHER)
        for read, (begin, end) in zip(reads, BORDERS, strict=True)
    ]
    shifts = [min(begin, 1) for begin, _ in BORDERS]
    pairs = zip(shifts, BORDERS, strict=True)
    expected = [[(begin + 1, 1 + shift, end - begin)] for shift, (begin, end) in pairs]
    for memory in ("1", "8G"):
        words = ("--page-size", str(PAGE), "--max-memory", memory)
        assert found_rows(tmp_path, PLAIN, changed, *words) == expected


def test_repeats_on_different_pages_are_not_unique(tmp_path):
    repeat = random_bases(Random(2), 500)
    reference = PLAIN[:30_000] + repeat + PLAIN[30_000:90_001] + repeat + PLAIN[90_001:100_000]
    read = reference[29_900:30_600]
    once, twice = (29_901, 1, 700), (90_502, 101, 500)
    words = ("--page-size", str(PAGE))
    assert found_rows(tmp_path, reference, [read], *words) == [[once, twice]]
    assert found_rows(tmp_path, reference, [read], *words, "-mumreference") == [[once]]
    assert found_rows(tmp_path, reference, [repeat], *words, "-mumreference") == [[]]
    # Twice in the query: unique in the reference only.
    double = read[:90] + "N" + read[:90]
    rows = [(29_901, 1, 90), (29_901, 92, 90)]
    assert found_rows(tmp_path, reference, [double], *words, "-mumreference") == [rows]
    assert found_rows(tmp_path, reference, [double], *words, "-mum") == [[]]
