"""Index files that were damaged: a search of one gives rows or one line, and always ends."""

import gc
import json
import os
import random
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers.damage import damages, write_damaged
from helpers.sequences import random_bases

from mummergpu.cli.main import main
from mummergpu.index.format import read_header

INDEXES = {
    "kmer": "--search kmer",
    "kmer_pages": "--search kmer --page-size 900",
    "tree": "--search tree",
    "tree_pages": "--page-size 800 --policy Tn",
    "wide_tree": "--page-size 800 --address-bits 32",
}
SECONDS = 20
"""No search of these files takes a tenth of a second; one that takes so long has no end."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with an index of each kind, and reads that are in its reference."""
    folder = tmp_path_factory.mktemp("damaged")
    some = random.Random(8)
    repeat = random_bases(some, 70)
    records = [random_bases(some, 900) + repeat for _ in range(3)]
    records[1] = records[1][:300] + "N" * 40 + records[1][300:]
    reads = [record[start : start + 150] for record in records for start in (0, 250, 480, 850)]
    for name, texts in (("r.fa", records), ("q.fa", reads + records)):
        (folder / name).write_text("".join(f">{n}\n{text}\n" for n, text in enumerate(texts)))
    for name, words in INDEXES.items():
        command = ["index", str(folder / "r.fa"), "-o", str(folder / name), "-q", "-l", "12"]
        assert main([*command, *words.split()]) == 0
    return folder


@pytest.fixture
def no_collector():
    """Release only what no reference holds, as while a long search runs."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def endings_of(made, kind, seed, count):
    """Search damaged copies of an index in another process; return how each search ended."""
    command = [sys.executable, "-m", "helpers.damage", kind, "q.fa"]
    ended = subprocess.run(
        [*command, str(seed), str(count), str(SECONDS)],
        cwd=made,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    # The last line is that of the case, where a search has ended the process.
    assert ended.returncode == 0, (lines[-1:], ended.stderr)
    assert len(lines) == 2 * count
    return lines[1::2]


def check_endings(made, kind, seed, count):
    endings = endings_of(made, kind, seed, count)
    for ending in endings:
        if ending["code"] == 0:
            assert ending["error"] == ""
            continue
        assert ending["code"] == 1
        assert ending["error"].startswith("mummergpu: error: ")
        assert ": the index is damaged: its " in ending["error"]
        assert ending["error"].count("\n") == 1
    assert {ending["code"] for ending in endings} == {0, 1}


@pytest.mark.parametrize("kind", INDEXES)
def test_a_search_of_a_damaged_index_ends(made, kind):
    check_endings(made, kind, 1, 40)


def search(index, queries, address_space):
    """Search an index in another process; return its exit code, output and errors."""

    def limit():
        if address_space is not None:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    command = [sys.executable, "-m", "mummergpu", "-C", "-q", "-t", "1", "-l", "20"]
    ended = subprocess.run(
        [*command, str(index), str(queries)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=limit,
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_a_damaged_index_is_an_error_where_addresses_are_limited(made, tmp_path):
    index, damaged, queries = made / "wide_tree", tmp_path / "damaged", made / "q.fa"
    few = 16 << 30
    whole = search(index, queries, None)
    assert whole[0] == 0
    assert len(whole[1].splitlines()) > 20
    assert search(index, queries, few) == whole
    with open(index, "rb", buffering=0) as file:
        sections = read_header(file, str(index)).sections
    trees = min(section.offset for section in sections if section.name.endswith(".nodes"))
    in_trees = [damage for damage in damages(index, 3, 8) if damage.offset >= trees]
    assert in_trees
    for damage in in_trees:
        write_damaged(index.read_bytes(), damage, damaged)
        code, output, errors = search(damaged, queries, few)
        assert (code, output) == (1, "")
        assert errors.startswith(f"mummergpu: error: {damaged}: the index is damaged")


@pytest.mark.usefixtures("no_collector")
def test_no_search_keeps_an_index(made, tmp_path):
    """Otherwise a process that searches some hundred of them has no addresses left."""
    index, damaged = made / "wide_tree", tmp_path / "damaged"
    node = next(d for d in damages(index, 2, 400) if len(d.data) == 4096)
    write_damaged(index.read_bytes(), node, damaged)
    common = ["-C", "-q", "-t", "2", "-l", "20", "-o", str(tmp_path / "out")]
    before = set(threading.enumerate())
    assert main([*common, str(index), str(made / "q.fa")]) == 0
    assert main([*common, str(damaged), str(made / "q.fa")]) == 1
    # A failed search does not wait for its threads, nor any search for the one that loads a file.
    for thread in set(threading.enumerate()) - before:
        thread.join(SECONDS)
    maps = Path("/proc/self/maps").read_text()
    assert str(index) not in maps
    assert str(damaged) not in maps


@pytest.mark.slow
@pytest.mark.parametrize("kind", INDEXES)
def test_many_searches_of_damaged_indexes_end(made, kind):
    check_endings(made, kind, 2, 1500)
