"""Wrong usage and wrong input: one line on standard error, the right code, no output file."""

import gzip
import os
import random
import re
import shlex

import pytest
from helpers.loops import each
from helpers.sequences import random_bases, write_fasta, write_fastq
from helpers.tables import table

from mummergpu.cli.main import MAIN_VERB, commands, main
from mummergpu.cli.removed_options import AUTO_POLICY, REMOVED_COMMANDS, REMOVED_OPTIONS
from mummergpu.pipeline import build_index
from mummergpu.pipeline import match as pipeline

REFERENCE = b">r\nACGTTGCATCGATCGGATCAAGCTTACGGATCCATTAG\n>s\nNNNN\n"
READS = b"@a\nACGTTGCATCGATCGGATCAAG\n+\nIIIIIIIIIIIIIIIIIIIIII\n"
RUBBISH = bytes(range(256)) * 40
ROWS = table(__file__)
INDEXES = {
    "kmer.mgi": "-l 12",
    "parts.mgi": "-l 12 --search kmer --page-size 900",
    "tree.mgi": "-l 12 --search tree",
    "pages.mgi": "-l 12 --page-size 800 --policy Tn",
    "wide.mgi": "-l 12 --page-size 800 --address-bits 32",
}
PROGRAM = """hmm m { alphabet [a, c, g, t]; startstate s; state n emits e; s -> n 1; n -> n 1;
  emission e = [0.1, 0.2, 0.3, 0.4]; } main() { print forward(new m()).score; }"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files that the rows of `refused.txt` name."""
    folder = tmp_path_factory.mktemp("refused")
    made = random.Random(8)
    bases = random_bases(made, 3000)
    write_fasta(folder / "r.fa", {"r": bases, "short": random_bases(made, 2047)})
    write_fasta(folder / "q.fa", {"a": bases[:900], "b": bases[1000:2500], "c": bases[7:90]})
    write_fasta(folder / "at.fa", {"@b": bases[300:400]})
    pairs = [(f"p{at}", bases[at : at + 100]) for at in range(0, 2000, 50)]
    for name, reads in (("1.fq", pairs), ("2.fq", pairs), ("q.fq", [("q", bases[:80])])):
        write_fastq(folder / name, reads)
    for name, words in INDEXES.items():
        words = ["index", "-q", *words.split(), str(folder / "r.fa"), "-o", str(folder / name)]
        assert main(words) == 0
    good = "q\t8\t0\t4\t+\tr\t9\t1\t5\t4\t4\t255\n"
    texts = {"none.fa": "", "bases.program": PROGRAM, "text.paf": "> q\n", "text.delta": "> q\n"}
    texts |= {"x.paf": good, "wrong.paf": good + good.replace("\t0\t4\t", "\t5\t9\t")}
    texts |= {"wrong.delta": "r q\nNUCMER\n>r q 9 8\n1 4 1 4 0 0\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "cut.paf.gz").write_bytes(gzip.compress(good.encode())[:-9])
    (folder / "empty").mkdir()
    return folder


def everything(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@each("words, code, message", ROWS)
def test_one_line_says_what_is_wrong(words, code, message, files, monkeypatch, capfd):
    """And nothing is left of the run."""
    monkeypatch.chdir(files)
    before = everything(files)
    assert message in "error: " + error_of(shlex.split(words), int(code), capfd)
    assert everything(files) == before


OPTIONS = [(verb, name) for verb, options in REMOVED_OPTIONS.items() for name in options]


@each("verb, name", OPTIONS)
def test_a_removed_option_names_what_to_use(verb, name, capfd):
    known = {spelling for option in commands.commands[verb].params for spelling in option.opts}
    assert name not in known
    # The option may stand behind the files, with a value or without one.
    value = f"{name}8" if len(name) == 2 else f"{name}=x"
    for words in (["a.fa", "b.fa", name], [name, "a.fa", "b.fa"], [value, "a.fa", "b.fa"]):
        error = error_of(words if verb == MAIN_VERB else [verb, *words], 2, capfd)
        assert f"{name} was removed: {REMOVED_OPTIONS[verb][name]}" in error


@each("verb", REMOVED_COMMANDS)
def test_a_removed_command_names_what_to_use(verb, capfd):
    assert verb not in commands.commands
    message = f"'{verb}' was removed: {REMOVED_COMMANDS[verb]}"
    assert message in error_of([verb, "a.fa", "b.fa"], 2, capfd)


@each("words", ["a.fa b.fa", "index a.fa -o a.mgi"])
def test_a_removed_value_names_what_to_use(words, capfd):
    assert AUTO_POLICY in error_of([*words.split(), "--policy", "auto"], 2, capfd)


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    """Runs each test in a folder of its own, with a good reference and good reads."""
    (tmp_path / "r.fa").write_bytes(REFERENCE)
    (tmp_path / "q.fq").write_bytes(READS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without_announcement(text):
    """Return standard error's text without the line that only a first run has."""
    return re.sub("(?m)^mummergpu: compiling.*\n", "", text)


def error_of(words, code, capfd):
    """Run the command; return what stands behind ``mummergpu: error: `` in its one line."""
    capfd.readouterr()
    assert main(words) == code
    out, err = capfd.readouterr()
    lines = without_announcement(err).splitlines()
    if "-v" in words and "-q" not in words:
        assert all(line.startswith("mummergpu: ") for line in lines)
        lines = [line for line in lines if "error" in line]
    assert (out, len(lines), err[-1:]) == ("", 1, "\n"), (out, err)
    assert lines[0].startswith("mummergpu: error: ")
    return lines[0].removeprefix("mummergpu: error: ")


def test_no_arguments_show_the_usage(capfd):
    assert main([]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("Usage: mummergpu [OPTIONS] REFERENCE QUERY...\n")


def refused(reference, reads, inside, capfd):
    (inside / "r.fa").write_bytes(reference)
    (inside / "q.fq").write_bytes(reads)
    message = error_of(["r.fa", "q.fq", "-l", "10", "-o", "out"], 1, capfd)
    assert sorted(os.listdir(inside)) == ["q.fq", "r.fa"]
    return message


GOOD = READS * 3
MILLION = b"@r\nACGTA\n+\nIIIII\n" * 1_000_000
PACKED = gzip.compress(MILLION, 1)


@pytest.mark.parametrize(
    ("reads", "place"),
    [
        pytest.param(RUBBISH, "q.fq:1", id="binary rubbish"),
        pytest.param(gzip.compress(RUBBISH), "q.fq:1", id="gzip of rubbish"),
        pytest.param(b"ACGT\nACGT\n", "q.fq:1", id="no header"),
        pytest.param(b"name,bases\nr,ACGT\n", "q.fq:1", id="a table"),
        pytest.param(GOOD + b"@b", "q.fq:13", id="record ends in its header"),
        pytest.param(GOOD + b"@b\nACG", "q.fq:14", id="record ends in its bases"),
        pytest.param(GOOD + b"@b\nACGT\n+", "q.fq:15", id="record ends at the plus"),
        pytest.param(GOOD + b"@b\nACGT\n+\n", "q.fq:1[56]", id="record without quality"),
        pytest.param(GOOD + b"@b\nACGT\n+\nII\n", "q.fq:16", id="quality too short"),
        pytest.param(GOOD + b"@b\nACGT\n+\nIIIII\n", "q.fq:16", id="quality too long"),
        pytest.param(GOOD + b"@b\nACGT\n+\nII\n@c\nAC\n+\nII\n", "q.fq:1[678]", id="in between"),
        pytest.param(gzip.compress(GOOD)[:-9], "q.fq", id="truncated gzip"),
        pytest.param(gzip.compress(GOOD)[:-4] + b"\0\0\0\0", "q.fq", id="wrong gzip length"),
        pytest.param(PACKED[:-10], "q.fq", id="truncated after a million"),
        pytest.param(PACKED + gzip.compress(GOOD)[:40] + RUBBISH, "q.fq", id="corrupt after that"),
        pytest.param(MILLION + b"@b\nACGT\n+\nII\n", "q.fq:4000004", id="short after a million"),
    ],
)
def test_wrong_reads_end_with_1(reads, place, inside, capfd):
    assert re.match(place + ": ", refused(REFERENCE, reads, inside, capfd))


@pytest.mark.parametrize(
    ("reference", "place"),
    [
        pytest.param(b"", "r.fa", id="empty file"),
        pytest.param(gzip.compress(b""), "r.fa", id="gzip of nothing"),
        pytest.param(RUBBISH, "r.fa:1", id="binary rubbish"),
        pytest.param(b"ACGT\n", "r.fa:1", id="no header"),
        pytest.param(READS, "r.fa", id="FASTQ"),
        pytest.param(b">r\n", "r.fa", id="no base"),
        pytest.param(gzip.compress(REFERENCE)[:-9], "r.fa", id="truncated gzip"),
    ],
)
def test_wrong_references_end_with_1(reference, place, inside, capfd):
    assert re.match(place + ": ", refused(reference, READS, inside, capfd))


def test_a_name_of_a_file_is_made_printable(capfd):
    told = error_of(["r.fa", "line\nbreak\x1b.fq", "-o", "out"], 1, capfd)
    assert told.startswith(r"line\nbreak\x1b.fq: ")


def test_an_older_output_survives_a_failure(inside, capfd):
    (inside / "out").write_text("old")
    (inside / "bad.fq").write_bytes(GOOD + b"@b")
    error_of(["r.fa", "q.fq", "bad.fq", "-o", "out"], 1, capfd)
    assert (inside / "out").read_text() == "old"


@pytest.mark.parametrize(
    "reads",
    [
        pytest.param(b">a\n>b\n\n>c\nACGT\n", id="empty records and a short one"),
        pytest.param(b">a\nNNNNNNNNNNNNNNNNNNNNNNNNN\n", id="only N"),
        pytest.param(b"@a\n\n+\n\n@b\nAC\n+\nII\n", id="empty FASTQ record"),
    ],
)
def test_reads_without_a_chance_are_legal(reads, inside, capfd):
    (inside / "q.fq").write_bytes(reads)
    assert main(["r.fa", "q.fq", "-L"]) == 0
    out, err = capfd.readouterr()
    assert without_announcement(err) == ""
    names = [line.split() for line in out.splitlines()]
    assert [name[:2] for name in names] == [[">", name[1]] for name in names]
    assert len(names) == len(re.findall(rb"(?m)^[>@]", reads))


@pytest.mark.parametrize("length", ["39", "100000"])
def test_length_beyond_every_match_is_legal(length, capfd):
    assert main(["r.fa", "q.fq", "-l", length]) == 0
    out, err = capfd.readouterr()
    assert (out, without_announcement(err)) == ("> a\n", "")


def failing(error):
    def fail(*_arguments):
        raise error

    return fail


SURPRISES = [
    (MemoryError(), "out of memory; fewer threads or smaller pages (see 'mummergpu index')"),
    (ZeroDivisionError("a\nb"), r"internal: ZeroDivisionError: a\nb"),
    (RuntimeError("can't start new thread"), "no thread can be started: a limit of memory or of"),
    (OSError(5, "Input/output error", "some.fa"), "some.fa: Input/output error"),
]


@pytest.mark.parametrize(("error", "line"), SURPRISES)
def test_surprises_are_one_line_too(error, line, monkeypatch, capfd):
    monkeypatch.setattr(pipeline, "run", failing(error))
    assert error_of(["r.fa", "q.fq"], 1, capfd).startswith(line)
    assert main(["-v", "r.fa", "q.fq"]) == 1
    assert ("Traceback" in capfd.readouterr().err) == line.startswith("internal")


def test_a_broken_pipe_has_no_traceback(monkeypatch, capfd):
    monkeypatch.setattr(pipeline, "run", failing(BrokenPipeError()))
    assert main(["-v", "r.fa", "q.fq"]) == 141
    assert "Traceback" not in capfd.readouterr().err


def test_internal_errors_have_a_traceback_with_verbose(monkeypatch, capfd):
    fail = failing(ZeroDivisionError("a reason"))
    monkeypatch.setattr(build_index, "make_index", fail)
    monkeypatch.setattr(pipeline, "run", fail)
    for words in ("-v r.fa q.fq", "-v index r.fa -o x"):
        assert main(words.split()) == 1
        err = capfd.readouterr().err
        assert err.count("Traceback (most recent call last):") == 1
        assert err.splitlines()[-1] == "mummergpu: error: internal: ZeroDivisionError: a reason"
