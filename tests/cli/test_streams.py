"""Standard streams, pipes and signals, from the first import on, in processes of their own."""

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
from helpers.children import child

from mummergpu.cli.exit_on_signal import ENDINGS
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


def line_of(number):
    return f"mummergpu: {ENDINGS[number]}\n".encode()


@pytest.mark.parametrize("number", ENDINGS)
def test_signals_end_a_busy_process_at_once(number, inside):
    # What has been started in the background of a shell inherits that SIGINT is ignored.
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    with process:
        assert process.stdout.readline() == b"busy\n"
        process.send_signal(number)
        # The work never ends by itself.
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, line_of(number))
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

        process.stdin.write(b">q\n" + READ + b"\n")
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    while not shown.endswith(b"\r\n"):
        shown += os.read(leader, 1000)
    os.close(leader)
    assert b"\rmummergpu: 0 reads done" in shown
    assert shown.split(b"\r")[-2].startswith(b"mummergpu: 1 read done: ")
    assert (inside / "out").read_bytes() == b"> q\n" + ROW


# The process says when its handlers stand; before that, Python's own decide.
ANNOUNCED = """
import os
from mummergpu.cli import exit_on_signal

install = exit_on_signal.end_at_signals

def install_and_tell():
    install()
    os.write(1, b"ready\\n")

exit_on_signal.end_at_signals = install_and_tell
from mummergpu.__main__ import run
run()
"""

DELAYS = {
    signal.SIGINT: (0, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100, 120, 150, 250, 400),
    signal.SIGTERM: (0, 20, 80, 250),
    signal.SIGHUP: (5, 40, 120, 400),
}
"""Milliseconds: from the first import to the middle of the work."""


def run_program(program, *words, ignored=()):
    def ignore():
        # A shell lets processes in the background ignore some signals, and they inherit that.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    return subprocess.check_output(
        [sys.executable, "-c", program, *words], text=True, preexec_fn=ignore
    )


@pytest.mark.parametrize("number", DELAYS)
def test_a_signal_at_any_moment_ends_in_one_line(number, tmp_path):
    for delay in DELAYS[number]:
        process = subprocess.Popen(
            [sys.executable, "-c", ANNOUNCED, "-q", "r.fa", "-", "-o", "out"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            # What is started in the background of a shell inherits that SIGINT is ignored.
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
        )
        with process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(delay / 1000)
            process.send_signal(number)
            ended = process.stderr.read(), process.wait(30)
            assert ended == (line_of(number), 128 + number), delay
        assert sorted(os.listdir(tmp_path)) == ["q.fa", "r.fa"]


def test_the_handlers_stand_before_anything_slow_is_imported():
    program = """
import sys
before = set(sys.modules)
import mummergpu.__main__
print(*sorted(set(sys.modules) - before))
from mummergpu.cli import exit_on_signal

def tell():
    print(*sorted(set(sys.modules) - before))
    raise SystemExit

exit_on_signal.end_at_signals = tell
mummergpu.__main__.run()
"""
    at_once, before_the_handlers = run_program(program).splitlines()
    assert at_once.split() == ["mummergpu", "mummergpu.__main__", "mummergpu.version"]
    names = ["__future__", "mummergpu", "mummergpu.__main__", "mummergpu.cli"]
    names += ["mummergpu.cli.exit_on_signal", "mummergpu.version"]
    assert before_the_handlers.split() == names


def test_an_interrupt_while_the_handlers_are_set_up_is_one_line():
    program = """
from mummergpu.cli import exit_on_signal

def interrupt():
    raise KeyboardInterrupt

exit_on_signal.end_at_signals = interrupt
from mummergpu.__main__ import run
run()
"""
    done = child("-c", program)
    assert (done.returncode, done.stderr) == (130, "mummergpu: interrupted\n")


def test_what_the_parent_ignores_stays_ignored():
    program = """
import signal
from mummergpu.cli.exit_on_signal import ENDINGS, end_at_signals

end_at_signals()
ignored = [one for one in ENDINGS if signal.getsignal(one) is signal.SIG_IGN]
print(*(signal.Signals(one).name for one in ignored))
"""
    for names in ("SIGINT SIGHUP", "SIGHUP"):
        ignored = [getattr(signal, name) for name in names.split()]
        assert run_program(program, ignored=ignored) == f"{names}\n"


AT_AN_IMPORT = """
import os, sys
sys.argv = ["mummergpu", "-q", "r.fa", "-", "-o", "out"]
number, signal_number = int(os.environ["AT"]), int(os.environ["SIGNAL"])
from mummergpu.__main__ import run
from mummergpu.cli import exit_on_signal

class Finder:
    def find_spec(self, name, path=None, target=None):
        global number
        number -= 1
        if number == 0:
            os.kill(os.getpid(), signal_number)

set_handlers = exit_on_signal.end_at_signals

def then_watch():
    set_handlers()
    sys.meta_path.insert(0, Finder())

exit_on_signal.end_at_signals = then_watch
run()
"""


@pytest.mark.parametrize("number", ENDINGS)
def test_a_signal_at_an_import_of_the_start_ends_in_one_line(number):
    """At the first imports behind the handlers, and at some later ones."""
    for at in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)[:: 1 if number == signal.SIGINT else 3]:
        done = subprocess.run(
            [sys.executable, "-c", AT_AN_IMPORT],
            env=os.environ | {"AT": f"{at}", "SIGNAL": f"{int(number)}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
        )
        assert (done.returncode, done.stderr) == (128 + number, line_of(number)), at


LIBRARY_THREADS = """
import os, sys, threading
os._exit = lambda code: None
sys.argv[1:] = ["--version"]
from mummergpu.__main__ import run
run()
import numpy
print(len(os.listdir("/proc/self/task")) - threading.active_count())
"""


def test_numpy_starts_no_threads_of_its_own(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert run_program(LIBRARY_THREADS).splitlines()[-1] == "0"


def test_a_number_of_threads_that_the_user_gives_numpy_stays(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    told = LIBRARY_THREADS + "print(os.environ['OPENBLAS_NUM_THREADS'])"
    assert run_program(told).splitlines()[-1] == "2"


@pytest.mark.parametrize(
    "words",
    [
        *("--version", "--help", "index --help", "map --help", "align --help", "hmmsearch --help"),
        "completion bash",
    ],
)
def test_nothing_heavy_is_imported_before_there_is_work(words):
    program = f"""
import sys
from mummergpu.cli.main import main
assert main({words.split()!r}) == 0
sys.exit(', '.join({{'numpy', 'numba', 'pysam', 'isal', 'llvmlite'}} & set(sys.modules)) or 0)
"""
    done = child("-c", program)
    assert (done.returncode, done.stderr) == (0, "")
