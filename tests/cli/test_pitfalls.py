"""Where matchers have gone wrong: borders of pages and records, long queries, many files.

The reference is random, so that the only matches are the ones that a query was cut from.
"""

import re
from io import BytesIO, TextIOWrapper
from random import Random

import pytest
from helpers.oracle import mummer_text, reverse_complement
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


def test_one_contig_is_one_line_in_every_mode(tmp_path):
    """100,000 bases that lie on six pages."""
    contig = PLAIN[70_000:170_000]
    for mode in ("-maxmatch", "-mumreference", "-mum"):
        words = (mode, "--page-size", str(PAGE), "--max-memory", "1")
        assert found_rows(tmp_path, PLAIN, [contig], *words) == [[(70_001, 1, 100_000)]]


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


def test_forty_query_files(tmp_path):
    """MUMmer takes at most 32."""
    record = PLAIN[:2000]
    (tmp_path / "r.fa").write_text(f">r0\n{record}\n")
    reads = [record[40 * number : 40 * number + 60] for number in range(40)]
    paths = [tmp_path / f"q{number}.fa" for number in range(40)]
    for number, (path, read) in enumerate(zip(paths, reads, strict=True)):
        path.write_text(f">q{number}\n{read}\n")
    found = text_of(tmp_path, "-b", "-l", "20", str(tmp_path / "r.fa"), *map(str, paths))
    assert found == mummer_text([record], reads, 20, strands="both")


@pytest.mark.parametrize("length", [1, 2, 20])
def test_ends_of_records(length, tmp_path):
    """First and last bases, and matches as long as a read, next to records that are shorter."""
    records = [PLAIN[:50], "A", "", PLAIN[:50], "NNN", PLAIN[50:70], "ACGTACGTACGTACGTACG"]
    parts = ((0, 50), (0, 20), (30, 50), (0, 19), (31, 50), (30, 70))
    reads = [PLAIN[begin:end] for begin, end in parts]
    reads += [PLAIN[50:70] + "ACGTACGTACGTACGTACG", "N" * 40, "A", ""]
    write_fasta(tmp_path / "r.fa", ((f"r{n}", text) for n, text in enumerate(records)))
    write_fasta(tmp_path / "q.fa", ((f"q{n}", text) for n, text in enumerate(reads)))
    files = str(tmp_path / "r.fa"), str(tmp_path / "q.fa")
    for mode in ("maxmatch", "mumreference", "mum"):
        expected = mummer_text(records, reads, length, mode, strands="both")
        for page_size in ("20", "33", "8M"):
            words = (f"-{mode}", "-b", "-l", str(length), "--page-size", page_size)
            assert text_of(tmp_path, *words, *files) == expected


def test_several_passes_over_standard_input(tmp_path, monkeypatch):
    """Every page alone in memory, and queries that can be read only once."""
    (tmp_path / "r.fa").write_text(f">r\n{PLAIN}\n")
    parts = [(begin, begin + 150) for begin in range(0, LENGTH - 150, 997)]
    text = "".join(f">q\n{PLAIN[begin:end]}\n" for begin, end in parts)
    words = ["-b", "-l", str(LEAST), str(tmp_path / "r.fa"), "-"]
    texts = []
    for setting in ("--max-memory 8G", "--max-memory 1", "--max-memory 1 --block-size 2k -t 3"):
        for search in ("tree", "kmer"):
            monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))
            given = [*words, "--page-size", str(PAGE), *setting.split(), "--search", search]
            assert main(["-q", *given, "-o", str(tmp_path / "out")]) == 0
            texts.append((tmp_path / "out").read_text())
    assert texts[0].count("\n") == 3 * len(parts)
    assert texts[1:] == [texts[0]] * 5


def test_quality_that_looks_like_headers(tmp_path):
    (tmp_path / "r.fa").write_text(f">r0\n{PLAIN[:400]}\n")
    reads = [PLAIN[start : start + 40] for start in (0, 100, 200)]
    qualities = [">" * 40, "@" * 40, "+" * 40]
    (tmp_path / "q.fq").write_text(
        "".join(
            f"@q{n} >@+\n{read[:20]}\n{read[20:]}\n+\n{quality[:20]}\n{quality[20:]}\n"
            for n, (read, quality) in enumerate(zip(reads, qualities, strict=True))
        )
    )
    found = text_of(tmp_path, "-l", "20", str(tmp_path / "r.fa"), str(tmp_path / "q.fq"))
    assert found == mummer_text([PLAIN[:400]], reads, 20)
