"""What the runs of a study search, and the hash that tells whether it is the same."""

import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.search_cases import CASES
from helpers.sequences import random_bases
from helpers.studies import data_of

from mummergpu.errors import InputError, OptionError
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.sequence.strand import Strand
from mummergpu.studies.data_set import make_data_set, read_data_set

FORWARD = (Strand.FORWARD,)
CASE = CASES[0]
QUERIES = ("ACGTACGT", "", "TTGACA", "N", "GATTACA", "AC")


def digest_of(queries, parts=1):
    return data_of(replace(CASE, queries=queries), parts).query_digest()


@pytest.fixture
def files(tmp_path):
    some = random.Random(2)
    bases = random_bases(some, 500)
    (tmp_path / "r.fa").write_text(f">one\n{bases[:300]}\n>two\n{bases[300:]}\n")
    reads = [bases[start : start + 30 + start % 50] for start in range(0, 400, 9)]
    (tmp_path / "q.fa").write_text("".join(f">q{n}\n{read}\n" for n, read in enumerate(reads)))
    (tmp_path / "renamed.fa").write_text("".join(f">other {read}\n{read}\n" for read in reads))
    (tmp_path / "empty.fa").write_text("")
    (tmp_path / "protein.fa").write_text(">p\nMKVLEERRWQPFHLIKAMKVLEERRWQPFHLIK\n")
    return tmp_path


def read(files, *queries, block_size=1 << 20, **more):
    paths = [str(files / name) for name in queries]
    return read_data_set("x", str(files / "r.fa"), paths, block_size, 20, FORWARD, **more)  # type: ignore[arg-type]


def test_the_hash_does_not_depend_on_blocks():
    assert len({digest_of(QUERIES, parts) for parts in range(1, 7)}) == 1


def test_the_hash_does_not_depend_on_the_size_of_blocks_nor_on_names(files):
    sizes = [1, 50, 333, 1 << 20]
    read_so = [read(files, "q.fa", block_size=size) for size in sizes]
    assert len({len(data.blocks) for data in read_so}) == 4
    assert {data.query_digest() for data in read_so} == {read(files, "renamed.fa").query_digest()}
    assert {data.query_count for data in read_so} == {45}
    assert len({data.query_bases for data in read_so}) == 1


def test_the_hash_changes_with_every_base_border_and_order():
    seen = {digest_of(QUERIES)}
    count = 1
    for number, query in enumerate(QUERIES):
        for place in range(len(query)):
            for base in set("ACGTN") - {query[place]}:
                changed = query[:place] + base + query[place + 1 :]
                seen.add(digest_of((*QUERIES[:number], changed, *QUERIES[number + 1 :])))
                count += 1
    joined = "".join(QUERIES)
    borders = np.cumsum([len(query) for query in QUERIES])
    for number in range(len(QUERIES) - 1):
        for place in set(range(len(joined) + 1)) - {borders[number]}:
            ends = sorted([*np.delete(borders, number), place])
            pieces = tuple(joined[a:b] for a, b in zip([0, *ends], ends, strict=False))
            if pieces != QUERIES:
                seen.add(digest_of(pieces))
    assert digest_of(QUERIES[::-1]) not in seen
    assert digest_of(QUERIES[:-1]) not in seen
    assert digest_of((*QUERIES, "")) not in seen
    assert digest_of(("", *QUERIES)) not in seen
    # Different borders give different hashes, and so do different bases.
    assert len(seen) > count + 50


def test_figures_of_the_queries():
    data = data_of(replace(CASE, queries=QUERIES), 3)
    assert (len(data.blocks), data.query_count, data.query_bases) == (3, 6, 24)
    assert data.median_query_length == 4
    assert [block.query_count for block in data.blocks] == [2, 2, 2]


def test_files_are_read(files):
    data = read(files, "q.fa", "renamed.fa")
    assert data.query_count == 90
    assert data.reference.record_lengths.tolist() == [300, 200]
    assert (data.name, data.minimum_length, data.strands) == ("x", 20, FORWARD)


def test_no_queries_is_an_error(files):
    with pytest.raises(InputError, match="has no queries to measure with") as caught:
        read(files, "empty.fa")
    assert caught.value.path == str(files / "empty.fa")


def test_rules_are_kept(files):
    with pytest.raises(InputError, match=r"empty\.fa"):
        read(files, "q.fa", "empty.fa", rules=QueryRules(no_empty=True))
    with pytest.raises(InputError, match=r"protein\.fa"):
        read(files, "protein.fa")
    assert read(files, "protein.fa", rules=QueryRules(any_letters=True)).query_count == 1
    proteins = [str(files / "protein.fa")] * 2
    with pytest.raises(InputError, match=r"protein\.fa"):
        read_data_set("x", proteins[0], [str(files / "q.fa")], 100, 20, FORWARD)
    rules = QueryRules(any_letters=True)
    assert read_data_set("x", proteins[0], proteins[:1], 100, 20, FORWARD, rules).query_count == 1


def test_a_workload_is_made_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data = make_data_set("SSUIS", 0.0005, None, 1 << 20, None, FORWARD)
    assert list(tmp_path.iterdir()) == []
    assert (data.name, data.minimum_length) == ("SSUIS", 10)
    assert data.reference.base_count > 2_000_000
    assert data.query_count == 500
    again = make_data_set("SSUIS", 0.0005, None, 1 << 14, 31, (Strand.REVERSE,))
    assert again.query_digest() == data.query_digest()
    assert (again.minimum_length, again.strands) == (31, (Strand.REVERSE,))
    assert len(again.blocks) > len(data.blocks)
    other = make_data_set("SSUIS", 0.0005, 5, 1 << 20, None, FORWARD)
    assert other.query_digest() != data.query_digest()


@pytest.mark.parametrize(("name", "scale"), [("NOSUCH", 1.0), ("LMONO", 0.0), ("LMONO", -1.0)])
def test_what_is_no_workload_is_an_error(name, scale):
    with pytest.raises(OptionError):
        make_data_set(name, scale, None, 1 << 20, None, FORWARD)
