"""Unique matches from Python: by minimizers and by tables of k-mers they are the same."""

import random
from pathlib import Path

import numpy as np
import pytest
from helpers.genomes import changed
from helpers.loops import each
from helpers.sequences import random_bases, read_fasta, reverse_complement, write_fasta

import mummergpu
from mummergpu.api import engine
from mummergpu.api.engine import KeptMinimizers
from mummergpu.cli.main import main
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.kmer_plan import KmerCost
from mummergpu.index.options import IndexOptions, KmerOptions
from mummergpu.input.reference import Reference
from mummergpu.matching.kmer.unique import UniqueSearch
from mummergpu.matching.options import SearchOptions, Uniqueness
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.sequence.strand import Strand


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reference with repeats, and queries with parts of it, one of them reversed."""
    made = tmp_path_factory.mktemp("unique")
    some = random.Random(7)
    parts = [random_bases(some, size) for size in (300, 2500, 3000)]
    one = parts[1] + parts[0] + parts[2] + parts[0]
    write_fasta(made / "r.fa", {"one": one, "two": parts[0] + "AC" * 60})
    queries = {
        "changed": changed("".join(parts), some, 0.02),
        "turned": reverse_complement(parts[2][500:1500] + parts[0]),
        "twice": parts[1][100:400] + "AC" * 40 + parts[1][100:400],
        "none": random_bases(some, 200),
    }
    write_fasta(made / "q.fa", queries)
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture
def searched(monkeypatch):
    """The blocks that were searched by minimizers, by their numbers of queries."""
    found = []
    find = UniqueSearch.find

    def spied(self, block, *rest):
        found.append(block.query_count)
        return find(self, block, *rest)

    monkeypatch.setattr(UniqueSearch, "find", spied)
    return found


def expect_of_kmers(monkeypatch, seconds):
    """Let a search by k-mers be expected to take so long."""
    cost = KmerCost(0.0, seconds)
    monkeypatch.setattr(engine.kmer_plan, "expected_cost", lambda job, sampling: cost)


def total(index, **told):
    """The number of matches in all blocks of the file."""
    return sum(len(found) for found in index.stream("q.fa", **{"strands": "both", **told}))


KINDS = "mum both 20, mum forward 57, mum reverse 20, mumreference both 33, mumreference reverse 20"


@each("kind", KINDS.split(", "))
def test_minimizers_find_what_kmers_find(kind, searched, monkeypatch):
    index = mummergpu.Index.build("r.fa")
    named = list(read_fasta("q.fa").items())
    mode, strands, min_length = kind.split()
    given = {"min_length": int(min_length), "strands": strands, "mode": mode}
    given |= {"backend": "cpu", "threads": 2}
    found = []
    for seconds in (0.0, 1e9):
        searched.clear()
        expect_of_kmers(monkeypatch, seconds)
        of_memory = list(index.match(named, **given))
        of_files = [list(block) for block in index.stream("q.fa", **given)]
        aligned = list(index.align(named, **given))
        assert of_memory and aligned
        assert searched == ([4, 4, 4] if seconds else [])
        found.append((of_memory, of_files, aligned))
    assert found[0] == found[1]


@pytest.mark.parametrize("has_file", [False, True])
def test_a_table_is_built_once_and_serves_longer_matches(has_file, searched, monkeypatch):
    built = []
    plan = engine.MinimizerIndex.load_pages

    def spied(self, *rest):
        built.append(self.window)
        return plan(self, *rest)

    monkeypatch.setattr(engine.MinimizerIndex, "load_pages", spied)
    expect_of_kmers(monkeypatch, 1e9)
    index = mummergpu.Index.build("r.fa")
    if has_file:
        Path("r.mgi").unlink(missing_ok=True)
        index.save("r.mgi")
        index = mummergpu.Index.open("r.mgi")
    with index:
        for length in (20, 30, 20):
            assert total(index, min_length=length, mode="mum")
        assert built == [8] and searched == [4, 4, 4]
        # All matches, and those that are shorter than what the index was made for, need k-mers.
        assert total(index) and total(index, min_length=15, mode="mum")
        assert built == [8] and searched == [4, 4, 4]
        # A search that costs less than these minimizers, which are built already.
        expect_of_kmers(monkeypatch, 0.0)
        assert total(index, mode="mum")
        assert searched == [4, 4, 4]


def test_a_small_index_and_a_limit_of_memory_leave_no_room_for_minimizers(searched, monkeypatch):
    expect_of_kmers(monkeypatch, 1e9)
    monkeypatch.setattr("mummergpu.index.minimizer_index.NEGLIGIBLE_BYTES", 0)
    for index, is_searched in (
        (mummergpu.Index.build("r.fa", index_for="memory"), False),
        (mummergpu.Index.build("r.fa", max_memory=1), False),
        (mummergpu.Index.build("r.fa", max_memory=1 << 40), True),
    ):
        searched.clear()
        assert total(index, mode="mum", backend="cpu")
        assert bool(searched) == is_searched


def test_the_model_takes_minimizers_for_genomes_and_not_for_a_few_reads():
    """With the costs as they are: a table of minimizers has to pay."""
    bases = 100_000_000
    codes = np.random.default_rng(1).integers(0, 4, bases, dtype=np.uint8)
    one = np.array([bases], dtype=np.int64)
    reference = Reference("r.fa", codes, one - bases, one, (b"one",))
    both = (Strand.FORWARD, Strand.REVERSE)
    search = SearchOptions(20, both, Uniqueness.IN_REFERENCE)
    kmers = KmerIndex.plan(reference, KmerOptions(), 20, MemoryBudget(1 << 40))
    kept = KeptMinimizers(reference, IndexOptions(20, memory=1 << 40))
    assert kept.index_for(kmers, search, 2_000_000) is None
    assert kept.index_for(kmers, SearchOptions(20, both), 2 * bases) is None
    assert kept.index_for(kmers, search, 2 * bases) is not None
    # Once it is built, reads are looked up in it too.
    assert kept.index_for(kmers, search, 2_000_000) is not None


def test_the_command_lists_minimizers_beside_an_index_file_where_they_pay(
    searched, monkeypatch, capfd
):
    assert main(["index", "-q", "r.fa", "-o", "file.mgi"]) == 0
    for options in (["-mum", "-b"], ["-mumreference", "-r", "-l", "25"]):
        found = []
        for reference, seconds in (("r.fa", None), ("file.mgi", 0.0), ("file.mgi", 1e9)):
            searched.clear()
            with monkeypatch.context() as patched:
                if seconds is not None:
                    cost = KmerCost(0.0, seconds)
                    patched.setattr(KmerIndex, "expected_cost", lambda self, cost=cost: cost)
                assert main(["-C", "-q", reference, "q.fa", *options]) == 0
            found.append(capfd.readouterr().out)
            if seconds is not None:
                assert bool(searched) == (seconds > 0)
        assert found[0] == found[1] == found[2] != ""
    # What an index cannot find stays an error.
    with monkeypatch.context() as patched:
        patched.setattr(KmerIndex, "expected_cost", lambda self: KmerCost(0.0, 1e9))
        assert main(["-C", "-q", "file.mgi", "q.fa", "-mum", "-l", "3"]) == 2
