"""The command ``index``, and index files in the place of references, whole and damaged."""

import gc
import gzip
import json
import os
import random
import re
import resource
import threading
from pathlib import Path

import pytest
from helpers.children import COMMAND, child
from helpers.damage import damages, write_damaged
from helpers.sequences import random_bases, reverse_complement, write_fasta
from helpers.tables import table

from mummergpu.cli.main import main
from mummergpu.index.format import FORMAT_VERSION, read_header

INDEXES = {
    "kmer.mgi": "-l 12",
    "parts.mgi": "-l 12 --search kmer --page-size 900",
    "tree.mgi": "-l 12 --search tree",
    "pages.mgi": "-l 12 --page-size 800 --policy Tn",
    "wide.mgi": "-l 12 --page-size 800 --address-bits 32 -t 1",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a reference of several records, reads of it, and indexes of all kinds."""
    folder = tmp_path_factory.mktemp("made")
    some = random.Random(8)
    repeat = random_bases(some, 70)
    records = [random_bases(some, 900) + repeat for _ in range(3)]
    records[1] = records[1][:300] + "N" * 40 + records[1][300:]
    reads = [record[start : start + 150] for record in records for start in (0, 250, 480, 850)]
    reads += [reverse_complement(read) for read in reads[::2]] + ["", "N" * 30, records[0]]
    lines = f">one\n{records[0]}\n>two of them\n{records[1]}\n>empty\n>three\n{records[2]}\n"
    (folder / "r.fa").write_text(lines)
    write_fasta(folder / "q.fa", ((f"q{n}", read) for n, read in enumerate(reads)))
    for name, words in INDEXES.items():
        command = ["index", str(folder / "r.fa"), "-o", str(folder / name), "-q", *words.split()]
        assert main(command) == 0
    return folder


@pytest.fixture(autouse=True)
def inside(made, monkeypatch):
    monkeypatch.chdir(made)


def output_of(words, capfd):
    capfd.readouterr()
    assert main(words.split()) == 0
    return capfd.readouterr().out


def error_of(words, code, capfd):
    capfd.readouterr()
    assert main(words.split()) == code
    return capfd.readouterr().err.partition("mummergpu: error: ")[2].rstrip("\n")


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("words", ["-l 12", "-b -l 20", "-b -l 31 -c -s -L", "-r -l 60 -mum -F"])
def test_an_index_stands_in_for_its_reference(name, words, capfd):
    expected = output_of(f"-C -q {words} r.fa q.fa", capfd)
    assert expected.count("\n") > 20
    assert output_of(f"-C -q {words} {name} q.fa", capfd) == expected


@pytest.mark.parametrize("name", ["tree.mgi", "pages.mgi"])
def test_trees_serve_shorter_matches_too(name, capfd):
    expected = output_of("-C -q -b -l 7 r.fa q.fa", capfd)
    assert output_of(f"-C -q -b -l 7 {name} q.fa", capfd) == expected


@pytest.mark.parametrize("name", ["parts.mgi", "pages.mgi"])
def test_pages_that_do_not_fit_are_searched_in_groups(name, capfd):
    expected = output_of("-C -q -b -l 15 r.fa q.fa", capfd)
    assert output_of(f"-C -q -b -l 15 --max-memory 1 {name} q.fa", capfd) == expected


def test_an_index_is_known_by_its_content(made, tmp_path, capfd):
    odd = tmp_path / "genome.fa"
    odd.write_bytes((made / "kmer.mgi").read_bytes())
    expected = output_of("-C -q r.fa q.fa", capfd)
    assert output_of(f"-C -q {odd} q.fa", capfd) == expected


@pytest.mark.parametrize("words", table(__file__, "options of the index"))
def test_options_may_say_what_the_index_has(words, capfd):
    assert output_of(f"-C -q {words} q.fa", capfd) == output_of("-C -q r.fa q.fa", capfd)


def test_info_tells_what_tables_are_there(made, capfd):
    text = output_of("index --info parts.mgi", capfd).replace(" length", "-length")
    lines = text.replace("format version", "format-version").splitlines()
    told = dict(line.split(maxsplit=1) for line in lines)
    size = os.path.getsize("parts.mgi")
    assert told["file"] == "parts.mgi"
    assert told["format-version"].startswith(f"{FORMAT_VERSION}, written by mummergpu ")
    assert told["bytes"] == f"{size:,}, {size / 2950:.2f} a base"
    assert told["reference"] == str(made / "r.fa")
    assert (told["records"], told["bases"]) == ("4", "2,950")
    assert len(told["digest"]) == 64
    assert told["search"] == "kmer"
    assert told["least-length"] == "12, which it was made for"
    assert told["pages"] == "4 of at most 900 bases"
    assert told["k-mers"].endswith(" and more")
    assert "policy" not in told


def test_info_tells_what_trees_are_there(capfd):
    told = output_of("index --info pages.mgi", capfd).splitlines()
    assert [line.split()[-1] for line in told if line.startswith("policy")] == ["Tn"]
    assert [line.split()[-2] for line in told if line.startswith("overlap")] == ["11"]
    assert [line.split()[-1] for line in told if line.startswith("address bits")] == ["24"]
    assert not [line for line in told if "k-mer" in line]


def test_check_reads_all(made, tmp_path, capfd):
    assert output_of("index --check wide.mgi", capfd) == "wide.mgi is as it was written\n"
    told = output_of("index --info --check wide.mgi", capfd)
    assert told.startswith("file ") and told.endswith("is as it was written\n")
    damaged = tmp_path / "damaged.mgi"
    data = bytearray((made / "parts.mgi").read_bytes())
    data[-len(data) // 3] ^= 1
    damaged.write_bytes(data)
    message = error_of(f"index --check {damaged}", 1, capfd)
    assert message.startswith(f"{damaged}: the index is damaged in its sections ")


COMMON_KEYS = set(
    "file format_version program bytes reference digest bases search minimum_length kmer_length"
    " reference_step is_picked page_count page_size overlap policy address_bits node_count"
    " record_count records".split()
)


def test_info_as_json_tells_records(made, capfd):
    told = json.loads(output_of("index --info --json parts.mgi", capfd))
    assert set(told) == COMMON_KEYS
    lengths = {"one": 970, "two": 1010, "empty": 0, "three": 970}
    assert told["records"] == [
        {"name": name, "length": length, "is_circular": False} for name, length in lengths.items()
    ]
    assert (told["file"], told["bytes"]) == ("parts.mgi", os.path.getsize("parts.mgi"))
    assert (told["reference"], told["record_count"]) == (str(made / "r.fa"), 4)
    assert (told["bases"], told["search"], told["minimum_length"]) == (2950, "kmer", 12)
    assert (told["page_count"], told["page_size"]) == (4, 900)
    assert told["format_version"] == FORMAT_VERSION
    lines = output_of("index --info parts.mgi", capfd)
    assert told["digest"] in lines and told["program"] in lines
    length, step = told["kmer_length"], told["reference_step"]
    assert f"of {length} bases, at every {step} bases; for -l {length + step - 1} and more" in lines
    for name in ("overlap", "policy", "address_bits", "node_count"):
        assert told[name] is None


def test_info_as_json_tells_trees(capfd):
    told = json.loads(output_of("index --info --json wide.mgi", capfd))
    assert set(told) == COMMON_KEYS
    assert (told["search"], told["kmer_length"], told["overlap"]) == ("tree", None, 11)
    assert (told["policy"], told["address_bits"]) == ("m", 32)
    assert f"{told['node_count']:,}" in output_of("index --info wide.mgi", capfd)


def test_names_that_are_no_text_are_json(tmp_path, capfd):
    (tmp_path / "r.fa").write_bytes(b'>caf\xc3\xa9\nACGTACGTACGTACGT\n>\xff"\nACGT\n')
    output_of(f"index -q {tmp_path}/r.fa -o {tmp_path}/r.mgi -l 12", capfd)
    told = output_of(f"index --info --json {tmp_path}/r.mgi", capfd)
    assert told.isascii() and told.count("\n") == 1
    names = [record["name"] for record in json.loads(told)["records"]]
    assert names == ["caf\u00e9", '\udcff"']


def test_check_compares_with_a_reference(made, tmp_path, capfd):
    packed = tmp_path / "r.fa.gz"
    # All names are in lower case, and whether bases are makes no difference.
    packed.write_bytes(gzip.compress((made / "r.fa").read_bytes().lower()))
    for path in ("r.fa", packed):
        told = output_of(f"index --check pages.mgi {path}", capfd)
        assert told == f"pages.mgi is as it was written, and is of {path}\n"
    info = output_of("index --info --check pages.mgi r.fa", capfd)
    assert info.startswith("file ") and info.endswith(", and is of r.fa\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (">empty\n", "", "the index has 4 records, and the file 3"),
        (">two of", ">2 of", "record 2 is 'two' in the index, and '2' in the file"),
        ("N" * 40, "N" * 39, "record 'two' has 1,010 bases in the index, and 1,009 in the file"),
        (">empty\n", ">empty\nACGT\n", "record 'empty' has 0 bases in the index, and 4 in the"),
        ("N" * 40, "N" * 39 + "A", "record 'two' differs from its base 340 on"),
    ],
)
def test_check_names_the_first_difference(old, new, message, made, tmp_path, capfd):
    other = tmp_path / "other.fa"
    text = (made / "r.fa").read_text()
    assert text.count(old) == 1
    other.write_text(text.replace(old, new))
    error = error_of(f"index --check parts.mgi {other}", 1, capfd)
    assert error.startswith(f"parts.mgi: the index is not of '{other}': {message}")


@pytest.mark.parametrize("name", ["parts.mgi", "wide.mgi"])
def test_a_run_verifies_an_index_first(name, made, tmp_path, capfd):
    expected = output_of(f"-C -q -l 12 {name} q.fa", capfd)
    assert output_of(f"-C -q --verify -l 12 {name} q.fa", capfd) == expected
    damaged = tmp_path / "damaged.mgi"
    data = bytearray((made / name).read_bytes())
    # The last section, in a place that no search of no queries comes to.
    data[-len(data) // 3] ^= 1
    damaged.write_bytes(data)
    (tmp_path / "n.fa").write_text(">n\nNNNNNNNNNNNNNNNN\n")
    assert output_of(f"-C -q -l 12 {damaged} {tmp_path}/n.fa", capfd) == "> n\n"
    words = f"-C -q --verify -l 12 {damaged} {tmp_path}/n.fa -o {tmp_path}/out"
    message = error_of(words, 1, capfd)
    assert message.startswith(f"{damaged}: the index is damaged in its sections ")
    assert not (tmp_path / "out").exists()


def test_a_damaged_index_ends_a_run(made, tmp_path):
    short = tmp_path / "short.mgi"
    short.write_bytes((made / "tree.mgi").read_bytes()[:5000])
    output = tmp_path / "out"
    assert main(["-C", "-q", "-o", str(output), str(short), "q.fa"]) == 1
    assert not output.exists()


def test_an_index_can_be_made_of_standard_input_and_gzip(made, tmp_path, capfd):
    packed = tmp_path / "r.fa.gz"
    packed.write_bytes(gzip.compress((made / "r.fa").read_bytes()))
    output_of(f"index -v {packed} -o {tmp_path}/gz.mgi -l 12", capfd)
    texts = [output_of(f"index --info {path}", capfd) for path in (tmp_path / "gz.mgi", "kmer.mgi")]
    digests = [re.findall("digest .*", text) for text in texts]
    assert digests[0] == digests[1] != []


SECONDS = 20
"""No search of these files takes a tenth of a second; one that takes so long has no end."""


@pytest.fixture
def no_collector():
    """Release only what no reference holds, as while a long search runs."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def endings_of(made, kind, seed, count):
    """Search damaged copies of an index in another process; return how each search ended."""
    words = ("-m", "helpers.damage", kind, "q.fa", seed, count, SECONDS)
    ended = child(*words, cwd=made, env={"PYTHONPATH": str(Path(__file__).parents[1])})
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

    words = (*COMMAND, *"-C -q -t 1 -l 20".split(), index, queries)
    ended = child(*words, env={"OPENBLAS_NUM_THREADS": "1"}, preexec_fn=limit)
    return ended.returncode, ended.stdout, ended.stderr


def test_a_damaged_index_is_an_error_where_addresses_are_limited(made, tmp_path):
    index, damaged, queries = made / "wide.mgi", tmp_path / "damaged", made / "q.fa"
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
    index, damaged = made / "wide.mgi", tmp_path / "damaged"
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
