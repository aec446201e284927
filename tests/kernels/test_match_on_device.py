"""`Index.match_on_device` on a machine whose GPU is the host's: what `Index.match` returns."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from helpers.device_columns import difference, taken
from helpers.host_device import everything_given_back
from helpers.oracle import reverse_complement
from helpers.played_machine import BARE

import mummergpu
from mummergpu.api.engine import Engine
from mummergpu.api.requests import device_options
from mummergpu.cli.main import main
from mummergpu.errors import BackendError, InputError, OptionError
from mummergpu.matching.kmer.cuda import LONG_QUERY

COLUMNS = ("query", "reference", "query_start", "reference_start", "length", "reverse", "offsets")
FILES = [Path("q.fa"), Path("one.fa"), Path("long.fa")]


def records_of(*paths):
    found = []
    for path in paths:
        for record in path.read_text().split(">")[1:]:
            name, _, bases = record.partition("\n")
            found.append((name, bases.replace("\n", "")))
    return found


def assert_equal(found, expected):
    """On the device, copied to the host, and taken over by another library."""
    host = found.to_host()
    wanted = {name: getattr(expected, name) for name in COLUMNS}
    assert difference({name: getattr(host, name) for name in COLUMNS}, wanted) is None
    columns = {name: taken(getattr(found, name)) for name in COLUMNS}
    assert difference(columns, wanted) is None
    for one in (found, host):
        assert one.query_names == expected.query_names
        assert one.query_lengths.tolist() == expected.query_lengths.tolist()
        assert one.reference_names == expected.reference_names
        assert one.reference_lengths.tolist() == expected.reference_lengths.tolist()
        assert len(one) == len(expected)
    assert repr(host) == repr(expected)


@pytest.fixture
def index(machine):
    return mummergpu.Index.build("r.fa", min_length=12)


@pytest.mark.parametrize("strands", ["both", "forward", "reverse"])
def test_sequences_in_memory(index, machine, strands):
    queries = records_of(Path("q.fa"))
    found = index.match_on_device(queries, strands=strands)
    expected = index.match(queries, strands=strands, backend="cpu")
    assert len(expected) > 10
    assert_equal(found, expected)
    assert repr(found).endswith(f"{len(expected):,} matches of {len(queries)} queries>")
    assert index.match_on_device(queries[0][1], strands="both").query_names == ["query"]


def test_files(index, machine, tmp_path):
    """Also long queries, which are searched whole."""
    expected = index.match(records_of(*FILES), backend="cpu", strands="both")
    found = index.match_on_device(FILES, threads=2, strands="both")
    assert_equal(found, expected)
    assert_equal(
        index.match_on_device(FILES[0], strands="both"),
        index.match(records_of(FILES[0]), backend="cpu", strands="both"),
    )
    # The host still has all that the formats need.
    for name in ("x.paf", "x.sam", "x.txt"):
        found.to_host().write(str(tmp_path / name))
        expected.write(str(tmp_path / f"expected.{name}"))
        assert (tmp_path / name).read_text() == (tmp_path / f"expected.{name}").read_text()


def test_a_query_that_others_cut_is_searched_whole(machine):
    reference = "".join(np.random.default_rng(3).choice(list("ACGT"), 90_000))
    query = reference[20_000:] + "N" + reverse_complement(reference) + reference[:500] * 3
    index = mummergpu.Index.build([("r", reference)], min_length=30)
    queries = [("short", reference[:99]), ("long", query), ("other", query[-700:])]
    assert len(query) > LONG_QUERY
    expected = index.match(queries, backend="cpu", strands="both")
    assert expected.length.max() == 90_000 and set(expected.reverse.tolist()) == {False, True}
    assert_equal(index.match_on_device(queries, strands="both"), expected)


@pytest.mark.parametrize("bases", [1, 300])
def test_blocks_of_any_size(index, machine, monkeypatch, bases):
    queries = records_of(Path("q.fa"))
    expected = index.match(queries, backend="cpu", strands="both")
    monkeypatch.setattr(Engine, "block_bases", lambda *given: bases)
    for given in (queries, Path("q.fa")):
        assert_equal(index.match_on_device(given, strands="both"), expected)
        assert machine.devices[0].launches.count("write_row_offsets") > 10
        machine.devices[0].launches.clear()


@pytest.mark.parametrize("queries", [[], [("none", "")], [("a", ""), ("b", "ACG")]])
def test_nothing_to_find(index, queries):
    found = index.match_on_device(queries, strands="both")
    assert_equal(found, index.match(queries, backend="cpu", strands="both"))
    assert found.offsets.to_host().tolist() == [0] * (len(queries) + 1)
    assert found.length.__cuda_array_interface__["data"] == (0, False)


def test_matches_outlive_the_index(machine):
    with mummergpu.Index.build("r.fa", min_length=12) as index:
        expected = index.match(records_of(Path("q.fa")), backend="cpu", strands="both")
        found = index.match_on_device(Path("q.fa"), strands="both")
    (device,) = machine.devices
    assert everything_given_back(device) and len(device.shared) == len(COLUMNS)
    assert_equal(found, expected)
    starts = taken(found.reference_start)
    del found
    assert len(device.shared) == 1 and starts.tolist() == expected.reference_start.tolist()
    del starts
    assert not device.shared


def test_what_others_write_is_kept(index):
    found = index.match_on_device(Path("q.fa"), strands="both")
    taken(found.length)[:] = 7
    assert set(found.to_host().length.tolist()) == {7}


def test_one_table_serves_every_search(machine):
    queries = records_of(Path("q.fa"))
    for words in (("auto", "cuda"), ("cuda", "auto")):
        index = mummergpu.Index.build("r.fa", min_length=12)
        for word in words:
            index._engine.block_bases(device_options(word, 1), 12)
            assert len(index.match(queries, backend=word, strands="both")) == len(
                index.match_on_device(queries, strands="both")
            )
    assert machine.numbers == [0, 0]


def test_several_threads(index, machine):
    queries = records_of(Path("q.fa"))
    expected = index.match(queries, backend="cpu", strands="both")
    before = set(threading.enumerate())
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(
            lambda _: index.match_on_device(queries, threads=1, strands="both"), range(8)
        ):
            assert_equal(found, expected)
    del found
    gc.collect()
    assert not machine.devices[0].shared
    index.match_on_device(FILES, threads=3, strands="both")
    assert set(threading.enumerate()) <= before


def test_pairs(index, tmp_path):
    """In memory and in files, with the names of mates; a read without a mate is an error."""
    records = [(f"p{number // 2}", bases) for number, (_, bases) in enumerate(records_of(FILES[0]))]
    mates = records[: len(records) // 2 * 2]
    expected = index.match(mates, pair=True, backend="cpu", strands="both")
    assert expected.query_names[:2] == ["p0/1", "p0/2"]
    assert_equal(index.match_on_device(mates, pair=True, strands="both"), expected)
    files = [tmp_path / name for name in ("1.fa", "2.fa")]
    for start, file in enumerate(files):
        file.write_text("".join(f">{name}\n{bases}\n" for name, bases in mates[start::2]))
    assert_equal(index.match_on_device(files, pair=True, strands="both"), expected)
    with pytest.raises(InputError, match="the last read has no mate"):
        index.match_on_device(mates[:3], pair=True, strands="both")
    with pytest.raises(OptionError, match="two files for each set of pairs"):
        index.match_on_device([*files, files[0]], pair=True, strands="both")


def test_an_index_file(index, tmp_path):
    index.save(tmp_path / "r.mgi")
    opened = mummergpu.Index.open(tmp_path / "r.mgi")
    for length in (12, 15):
        found = opened.match_on_device(Path("q.fa"), min_length=length, strands="both")
        assert_equal(
            found, index.match(records_of(Path("q.fa")), length, backend="cpu", strands="both")
        )


def test_what_it_refuses(index, machine, tmp_path, monkeypatch):
    for mode in ("mum", "mumreference"):
        with pytest.raises(OptionError, match=f"^mode: '{mode}' is filtered on the host"):
            index.match_on_device("ACGT", mode=mode, strands="both")
    for given, error, text in (
        ({"strands": "no"}, OptionError, "strands"),
        ({"min_length": 3}, OptionError, "this index finds matches of"),
        ({"queries": "EFIL" * 9}, InputError, "<memory>"),
        ({"queries": Path("missing.fa")}, InputError, "missing.fa"),
        ({"queries": [Path("q.fa"), Path("missing.fa")]}, InputError, "missing.fa"),
    ):
        with pytest.raises(error, match=text):
            index.match_on_device(**{"queries": "ACGT", **given})
    assert not any(device.shared for device in machine.devices)
    assert len(index.match_on_device(Path("q.fa"), strands="both")) > 0
    index.close()
    with pytest.raises(OptionError, match="the index is closed"):
        index.match_on_device("ACGT", strands="both")
    machine.looks(BARE)
    with pytest.raises(BackendError, match="no NVIDIA driver"):
        mummergpu.Index.build("r.fa", min_length=12).match_on_device("ACGT", strands="both")


def test_trees_are_refused(machine, tmp_path):
    trees = str(tmp_path / "trees.mgi")
    assert main(("index", "r.fa", "-o", trees, "-l", "12", "--search", "tree", "-q")) == 0
    with pytest.raises(OptionError, match="suffix trees, and only tables of k-mers"):
        mummergpu.Index.open(trees).match_on_device("ACGT", strands="both")
    assert not machine.devices


def test_parts_and_groups_are_refused(machine, tmp_path):
    parts = str(tmp_path / "parts.mgi")
    words = f"index r.fa -o {parts} -l 12 --search kmer --page-size 2k -q"
    assert main(words.split()) == 0
    with mummergpu.Index.open(parts) as index:
        with pytest.raises(OptionError, match=r"is in \d parts.*'match' and 'stream' find these"):
            index.match_on_device("ACGT", strands="both")
        assert len(index.match(records_of(Path("q.fa")), backend="cuda", strands="both")) > 0
    with mummergpu.Index.open(parts, max_memory=1) as index:
        with pytest.raises(OptionError, match=r"searched in \d+ steps.*larger max_memory"):
            index.match_on_device("ACGT", strands="both")


def test_records_that_do_not_fit_are_refused(machine):
    def prepare(device):
        device.refuse = lambda number, size: size == 6 * 8

    machine.prepare = prepare
    index = mummergpu.Index.build("r.fa", min_length=12)
    assert index.lengths.size == 6
    with pytest.raises(BackendError, match="the places of the records do not fit"):
        index.match_on_device("ACGT" * 9, strands="both")
    assert machine.devices[0].refusals == 1


def test_columns_that_do_not_fit_are_refused(machine):
    def prepare(device):
        def before_launch(kernel):
            if kernel == "write_kmer_mems":
                device.refuse = lambda number, size: len(device.shared) > 3

        device.before_launch = before_launch

    machine.prepare = prepare
    index = mummergpu.Index.build("r.fa", min_length=12)
    expected = len(index.match(records_of(Path("q.fa")), backend="cpu", strands="both"))
    text = f"the columns of {expected} matches do not fit the device's memory.*fewer queries"
    with pytest.raises(BackendError, match=text):
        index.match_on_device(Path("q.fa"), strands="both")
    assert not machine.devices[0].shared
