"""Standard streams, pipes and signals, in processes of their own."""

import json
import os
import platform
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mummergpu.cli.main import main
from mummergpu.index.tree.policy import DEFAULT_POLICY

COMMAND = [sys.executable, "-m", "mummergpu"]
READ = b"ACGTTGCATCGATCGGATCAAGCTTACG"
ROW = b"       1         1        28\n"


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    (tmp_path / "r.fa").write_bytes(b">r\n" + READ + b"\n")
    (tmp_path / "q.fa").write_bytes(b">q\n" + READ + b"\n")
    root = Path(__file__).resolve().parent.parent.parent
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words, **streams):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run([*COMMAND, *words], timeout=120, **streams)


def shell(line):
    command = line.replace("mummergpu", " ".join(COMMAND))
    return subprocess.run(["bash", "-c", command], capture_output=True, timeout=120)


def test_matches_are_all_that_standard_output_gets():
    done = run("r.fa", "q.fa", "-v")
    assert (done.returncode, done.stdout) == (0, b"> q\n" + ROW)
    assert all(line.startswith(b"mummergpu: ") for line in done.stderr.splitlines())
    assert b"end_to_end" in done.stderr


def test_quiet_is_quiet():
    done = run("r.fa", "q.fa", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"> q\n" + ROW, b"")


@pytest.mark.parametrize("files", [["r.fa", "-"], ["-", "q.fa"]])
def test_either_file_may_be_standard_input(files, inside):
    text = (inside / ("q.fa" if files[1] == "-" else "r.fa")).read_bytes()
    done = run(*files, input=text)
    assert (done.returncode, done.stdout) == (0, b"> q\n" + ROW)


@pytest.mark.parametrize(
    ("words", "search", "stages"),
    [
        ([], "kmer", ["table_construction", "kmer_kernel"]),
        (["--search", "kmer"], "kmer", ["table_construction", "kmer_kernel"]),
        (
            ["--search", "tree"],
            "tree",
            ["tree_construction", "tree_reorder", "tree_flatten", "match_kernel"],
        ),
        (["--policy", "rt"], "tree", ["tree_construction", "match_kernel", "print_kernel"]),
    ],
    ids=["auto", "kmer", "tree", "a policy"],
)
def test_statistics_tell_stages_and_counts(words, search, stages, inside):
    given = ["r.fa", "q.fa", "-b", "-C", *words, "--stats", "stats.json"]
    assert main(given) == 0
    report = json.loads((inside / "stats.json").read_text())
    assert report["schema_version"] == 3
    settings = report["settings"]
    assert settings["command"] == "mummergpu " + " ".join(given)
    assert (settings["search"], settings["backend"]) == (search, "cpu")
    assert (settings["mode"], settings["host"]) == ("maxmatch", platform.node())
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", settings["date"])
    used = set(report["stages"])
    for stage in ("ref_from_disk", "queries_from_disk", *stages, "format", "end_to_end"):
        assert stage in used
        assert report["stages"][stage]["peak_memory_bytes"] > 0
    of_trees = {name for name in used if name.startswith(("tree_", "match_", "print_"))}
    of_tables = {name for name in used if name.startswith(("table_", "kmer_"))}
    counts = report["counts"]
    assert (counts["matches"], counts["queries"], counts["pages"]) == (1, 1, 1)
    assert (counts["queries_with_match"], counts["bases_covered"]) == (1, len(READ))
    assert report["match_lengths"] == [{"first": 28, "last": 28, "matches": 1}]
    assert [file["path"] for file in report["files"]] == ["q.fa"]
    assert [one["matches"] for one in report["strands"]] == [1, 0]
    if search == "tree":
        assert of_trees and not of_tables
        assert settings["policy"] == (words[1] if "--policy" in words else DEFAULT_POLICY.code)
        assert settings["address_bits"] == 24 and settings["page_size"] == 8 << 20
        # A leaf for each suffix, and the root at least.
        assert counts["tree_nodes"] > counts["tree_leaves"] == len(READ)
        assert report["bytes"]["trees"] > 0 and "tables" not in report["bytes"]
    else:
        assert of_tables and not of_trees
        assert 1 <= settings["kmer_length"] <= 20
        assert "policy" not in settings and "tree_nodes" not in counts
        assert report["bytes"]["tables"] > 0 and "trees" not in report["bytes"]


def test_closed_pipe_ends_quietly(inside):
    (inside / "q.fa").write_bytes(b">q\n" + READ + b"\n" + (b">x\n" + READ + b"\n") * 200_000)
    done = shell("set -o pipefail; mummergpu -q r.fa q.fa | head -n 1")
    assert (done.stdout, done.stderr) == (b"> q\n", b"")
    assert done.returncode == 128 + signal.SIGPIPE


def test_closed_pipe_of_the_help_is_quiet():
    done = shell("mummergpu --help | true")
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("redirection", "reason"),
    [(">&-", b"Bad file descriptor"), ("> /dev/full", b"No space left on device")],
)
@pytest.mark.parametrize("words", ["-q r.fa q.fa", "--version", "--help"])
def test_lost_standard_output_is_an_error(redirection, reason, words):
    done = shell(f"mummergpu {words} {redirection}")
    assert done.returncode == 1
    assert done.stderr.startswith(b"mummergpu: error: ")
    assert reason in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_closed_standard_output_is_no_place_for_files(inside):
    """A file that is opened must not become descriptor 1, nor get the matches."""
    before = {path.name: path.read_bytes() for path in inside.iterdir()}
    assert shell("mummergpu r.fa q.fa >&-").returncode == 1
    assert {path.name: path.read_bytes() for path in inside.iterdir()} == before


def test_closed_standard_input_and_error_do_not_matter(inside):
    done = shell("mummergpu r.fa q.fa <&- 2>&-")
    assert (done.returncode, done.stdout) == (0, b"> q\n" + ROW)
    done = shell("mummergpu -q r.fa - <&-")
    assert done.returncode == 1
    assert done.stderr.startswith(b"mummergpu: error: -: ")


# A main job whose main thread sits in compiled code that no handler of Python's can leave,
# with an output half written.
BUSY = """
import os, sys, numpy, numba
from mummergpu.cli import main as cli
from mummergpu.pipeline import match as pipeline
from mummergpu.runtime.output_file import OutputFile

@numba.njit(nogil=True)
def spin(flag):
    while flag[0] == 0:
        flag[1] += 1

def run(options, *others):
    flag = numpy.ones(2, dtype=numpy.int64)
    spin(flag)
    flag[0] = 0
    with OutputFile(options.outputs[0].path) as output:
        output.write(b"half")
        assert len(os.listdir()) == 3
        print("busy", flush=True)
        spin(flag)

pipeline.run = run
sys.exit(cli.main(["-q", "r.fa", "q.fa", "-o", "out"]))
"""


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (signal.SIGINT, b"mummergpu: interrupted\n"),
        (signal.SIGTERM, b"mummergpu: terminated\n"),
        (signal.SIGHUP, b"mummergpu: terminal closed\n"),
    ],
)
def test_signals_end_a_busy_process_at_once(number, line, inside):
    # What has been started in the background of a shell inherits that SIGINT is ignored.
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"busy\n"
        process.send_signal(number)
        # The work never ends by itself.
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, line)
    assert sorted(os.listdir(inside)) == ["q.fa", "r.fa"]


def has_an_output_in(folder, process):
    """Tell whether a process has opened another file there than sequences."""
    opened = []
    for descriptor in os.listdir(f"/proc/{process}/fd"):
        with suppress(FileNotFoundError):
            opened.append(os.readlink(f"/proc/{process}/fd/{descriptor}"))
    return any(name.startswith(f"{folder}/") and not name.endswith(".fa") for name in opened)


def test_interrupt_while_waiting_for_input(inside):
    with subprocess.Popen(
        [*COMMAND, "r.fa", "-", "-o", "out"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not has_an_output_in(inside, process.pid):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        err = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert err.endswith(b"mummergpu: interrupted\n")
    assert sorted(os.listdir(inside)) == ["q.fa", "r.fa"]


def test_ignored_signal_stays_ignored(inside):
    """As under ``nohup``."""
    process = subprocess.Popen(
        [*COMMAND, "r.fa", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    with process:
        assert process.stdin is not None
        process.stdin.write(b">q\n")
        process.stdin.flush()
        time.sleep(0.5)
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(READ + b"\n", timeout=60)
    assert (process.returncode, out) == (0, b"> q\n" + ROW)


def test_progress_appears_on_a_terminal(inside):
    """A run that waits for its reads for more than two seconds shows what stands so far."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "r.fa", "-", "-o", "out"], stdin=subprocess.PIPE, stderr=follower
    ) as process:
        os.close(follower)
        shown = b""
        while b"reads done" not in shown:
            shown += os.read(leader, 1000)
        assert process.stdin is not None
        process.stdin.write(b">q\n" + READ + b"\n")
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    while not shown.endswith(b"\r\n"):
        shown += os.read(leader, 1000)
    os.close(leader)
    assert b"\rmummergpu: 0 reads done" in shown
    assert shown.split(b"\r")[-2].startswith(b"mummergpu: 1 read done: ")
    assert (inside / "out").read_bytes() == b"> q\n" + ROW
