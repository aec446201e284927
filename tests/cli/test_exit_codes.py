"""Wrong usage and wrong input: one line on standard error, the right code, no output file."""

import gzip
import os
import re

import pytest

from mummergpu.cli.main import main
from mummergpu.pipeline import build_index
from mummergpu.pipeline import match as pipeline

REFERENCE = b">r\nACGTTGCATCGATCGGATCAAGCTTACGGATCCATTAG\n>s\nNNNN\n"
READS = b"@a\nACGTTGCATCGATCGGATCAAG\n+\nIIIIIIIIIIIIIIIIIIIIII\n"
RUBBISH = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    """Runs each test in a folder of its own, with a good reference and good reads."""
    (tmp_path / "r.fa").write_bytes(REFERENCE)
    (tmp_path / "q.fq").write_bytes(READS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without_announcement(text):
    """Return standard error's text without the line that only a first run has."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("mummergpu: compiling "))


def error_of(words, code, capfd):
    """Run the command; return what stands behind ``mummergpu: error: `` in its one line."""
    assert main(words) == code
    err = without_announcement(capfd.readouterr().err)
    assert err.startswith("mummergpu: error: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.removeprefix("mummergpu: error: ").rstrip("\n")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("r.fa", "mummergpu"),
        ("match r.fa", "mummergpu"),
        ("r.fa q.fq --foo", "mummergpu"),
        ("plot", "mummergpu plot"),
        ("plot r.fa q.fq -o x.png --foo", "mummergpu plot"),
        ("index r.fa", "mummergpu index"),
    ],
)
def test_wrong_usage_refers_to_the_help_of_the_command(words, command, capfd):
    assert error_of(words.split(), 2, capfd).endswith(f" (see {command} --help)")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("r.fa", "Missing argument 'QUERY...'"),
        ("match", "Missing argument 'REFERENCE'"),
        ("workload", "Missing argument 'NAME'"),
        ("workload LMONO", "Missing option '-o' / '--output'"),
        ("-l 0 r.fa q.fq", "'0' is not a positive integer"),
        ("-l -3 r.fa q.fq", "'-3' is not a positive integer"),
        ("-l abc r.fa q.fq", "'abc' is not a positive integer"),
        ("-l 10abc r.fa q.fq", "'10abc' is not a positive integer"),
        ("-l 99999999999999999999 r.fa q.fq", "is not a positive integer"),
        ("r.fa q.fq -l", "'-l' requires an argument"),
        ("-t 0 r.fa q.fq", "'0' is not a positive integer"),
        ("-c r.fa q.fq", "-c requires -b or -r"),
        ("-b -r r.fa q.fq", "-b and -r exclude each other"),
        ("-mum -maxmatch r.fa q.fq", "-maxmatch and -mum exclude each other"),
        ("-mum -mumreference r.fa q.fq", "-mumreference and -mum exclude each other"),
        ("-mum -mumcand r.fa q.fq", "-mumreference and -mum exclude each other"),
        ("-maxmatch -mumcand r.fa q.fq", "-maxmatch and -mumreference exclude each other"),
        ("-v -q r.fa q.fq", "-v and -q exclude each other"),
        ("-C --backend cuda r.fa q.fq", "-C and --backend cuda exclude each other"),
        ("--backend tpu r.fa q.fq", "'tpu' is not one of"),
        ("-z r.fa q.fq", "No such option"),
        ("--maxmtach r.fa q.fq", "No such option"),
        ("-maxmach r.fa q.fq", "No such option '-maxmach'; did you mean -maxmatch?"),
        ("r.fa q.fq -out x", "No such option '-out'; did you mean --output?"),
        ("r.fa q.fq -no-progress", "'-no-progress'; did you mean --no-progress?"),
        ("r.fa q.fq -o=x", "-o takes its value without '='"),
        ("doctr", "'doctr' is neither a file nor a command; did you mean 'doctor'?"),
        ("-q indx r.fa -o x", "'indx' is neither a file nor a command; did you mean 'index'?"),
        ("help", "did you mean '--help'?"),
        ("--format sax r.fa q.fq", "Invalid value for '--format': 'sax' is not one of"),
        ("-b index r.fa -o x", "No such option"),
        ("index -info r.fa", "No such option '-info'; did you mean --info?"),
        ("--page-size 8Q r.fa q.fq", "'8Q' is not a size"),
        ("--device -1 r.fa q.fq", "'-1' is not the number of a GPU"),
        ("--device 0, r.fa q.fq", "'0,' is not the number of a GPU"),
        ("--device one r.fa q.fq", "'one' is not the number of a GPU"),
        ("--device 0,1 r.fa q.fq", "several GPUs, and a process uses one; --cluster local:N gives"),
        ("--device all r.fa q.fq", "'all' names several GPUs"),
        ("--page-size 0 r.fa q.fq", "'0' is not a size"),
        ("--page-size M r.fa q.fq", "'M' is not a size"),
        ("--page-size all r.fa q.fq", "'all' is not a size"),
        ("--page-size 2G r.fa q.fq", "--page-size: a page can have at most 1073741824 bases"),
        ("--address-bits 64 r.fa q.fq", "'64' is not one of"),
        ("--address-bits 24 --page-size 9M r.fa q.fq", "--address-bits: 24 allow pages of at most"),
        ("--policy Tx r.fa q.fq", "--policy: 'Tx' is not made of the letters QRTmrtn"),
        ("--policy TT r.fa q.fq", "--policy: a letter stands twice"),
        ("- -", "standard input ('-') can be read only once"),
        ("r.fa q.fq -o q.fq", "--output: 'q.fq' is also an input"),
        ("r.fa q.fq --stats ./r.fa", "--stats: './r.fa' is also an input"),
        ("r.fa q.fq -o x --stats ./x", "--stats: './x' is also another output"),
        ("r.fa q.fq --stats -", "--stats: '-' is also another output"),
        ("r.fa q.fq --multiqc x.json", "--multiqc: MultiQC finds a file if it is named SAMPLE_mqc"),
        ("r.fa q.fq --multiqc -", "SAMPLE_mqc.json, and not '-'"),
        ("r.fa q.fq --multiqc ./_mqc.json", "SAMPLE_mqc.json, and not './_mqc.json'"),
        (
            "r.fa q.fq --multiqc x_mqc.json --stats x_mqc.json",
            "'x_mqc.json' is also another output",
        ),
    ],
)
def test_wrong_usage_ends_with_2(words, message, inside, capfd):
    assert message in error_of(words.split(), 2, capfd)
    assert sorted(os.listdir(inside)) == ["q.fq", "r.fa"]
    assert (inside / "q.fq").read_bytes() == READS


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
        pytest.param(gzip.compress(MILLION, 1)[:-10], "q.fq", id="truncated after a million"),
        pytest.param(
            gzip.compress(MILLION, 1) + gzip.compress(GOOD)[:40] + RUBBISH,
            "q.fq",
            id="corrupt after a million",
        ),
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


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["missing.fa", "q.fq"], "missing.fa: "),
        (["r.fa", "missing.fq"], "missing.fq: "),
        (["r.fa", "q.fq", "missing.fq"], "missing.fq: "),
        ([".", "q.fq"], ".: "),
        (["r.fa", "."], ".: "),
        (["r.fa", "q.fq", "."], ".: "),
        (["r.fa", "line\nbreak\x1b.fq"], r"line\nbreak\x1b.fq: "),
    ],
)
def test_missing_files_and_folders_end_with_1(words, place, inside, capfd):
    assert error_of([*words, "-o", "out"], 1, capfd).startswith(place)
    assert sorted(os.listdir(inside)) == ["q.fq", "r.fa"]


@pytest.mark.parametrize(
    ("option", "path", "reason"),
    [
        ("-o", "missing/out", "cannot be opened for writing: No such file or directory"),
        ("-o", ".", "cannot be opened for writing: Is a directory"),
        ("-o", "/dev/full", "cannot be written: No space left on device"),
        (
            "--multiqc",
            "missing/x_mqc.json",
            "cannot be opened for writing: No such file or directory",
        ),
        ("--stats", "missing/out", "cannot be opened for writing: No such file or directory"),
        ("--stats", "/dev/full", "cannot be written: No space left on device"),
    ],
)
def test_outputs_that_fail_end_with_1(option, path, reason, capfd):
    words = ["r.fa", "q.fq", option, path]
    assert error_of(words, 1, capfd) == f"{path}: {reason}"


def test_an_older_output_survives_a_failure(inside, capfd):
    (inside / "out").write_text("old")
    (inside / "bad.fq").write_bytes(GOOD + b"@b")
    error_of(["r.fa", "q.fq", "bad.fq", "-o", "out"], 1, capfd)
    assert (inside / "out").read_text() == "old"


def test_unknown_workload_is_wrong_usage(capfd):
    assert "YEAST" in error_of(["workload", "YEAST", "-o", "w"], 2, capfd)


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


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            MemoryError(),
            "out of memory; fewer threads or smaller pages (see 'mummergpu index') need less",
        ),
        (ZeroDivisionError("a\nb"), r"internal: ZeroDivisionError: a\nb"),
        (
            RuntimeError("can't start new thread"),
            "no thread can be started: a limit of memory or of processes is reached (see ulimit)",
        ),
        (OSError(5, "Input/output error", "some.fa"), "some.fa: Input/output error"),
    ],
)
def test_surprises_are_one_line_too(error, line, monkeypatch, capfd):
    def fail(*_arguments):
        raise error

    monkeypatch.setattr(pipeline, "run", fail)
    assert error_of(["r.fa", "q.fq"], 1, capfd) == line


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("-v r.fa missing.fq", 1, "missing.fq: no such file or directory"),
        ("-v index missing.fa -o x", 1, "missing.fa: no such file or directory"),
        ("-v -l 0 r.fa q.fq", 2, "'0' is not a positive integer"),
        ("-v --policy Tx r.fa q.fq", 2, "--policy: 'Tx' is not made of the letters QRTmrtn"),
        ("-v r.fa q.fq -o missing/out", 1, "cannot be opened for writing"),
    ],
)
def test_what_users_can_cause_has_no_traceback(words, code, message, capfd):
    assert main(words.split()) == code
    lines = capfd.readouterr().err.splitlines()
    assert all(line.startswith("mummergpu: ") for line in lines)
    assert [message in line for line in lines if "error" in line] == [True]


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(5, "Input/output error", "some.fa"), BrokenPipeError()]
)
def test_what_the_machine_causes_has_no_traceback(error, monkeypatch, capfd):
    def fail(*_arguments):
        raise error

    monkeypatch.setattr(pipeline, "run", fail)
    assert main(["-v", "r.fa", "q.fq"]) in (1, 141)
    assert "Traceback" not in capfd.readouterr().err


def test_internal_errors_have_a_traceback_with_verbose(monkeypatch, capfd):
    def fail(*_arguments):
        raise ZeroDivisionError("a reason")

    monkeypatch.setattr(pipeline, "run", fail)
    monkeypatch.setattr(build_index, "make_index", fail)
    for words in (["-v", "r.fa", "q.fq"], ["-v", "index", "r.fa", "-o", "x"]):
        assert main(words) == 1
        err = capfd.readouterr().err
        assert err.count("Traceback (most recent call last):") == 1
        assert err.splitlines()[-1] == "mummergpu: error: internal: ZeroDivisionError: a reason"
