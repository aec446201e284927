"""The first moments of a process: signals while modules are imported, and what is imported."""

import os
import signal
import subprocess
import sys
import time

import pytest

from mummergpu.cli.exit_on_signal import ENDINGS

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

DELAYS = (0, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100, 120, 150, 250, 400)
"""Milliseconds: from the first import to the middle of the work."""


def run(program, *words, ignored=()):
    def ignore():
        # A shell lets processes in the background ignore some signals, and they inherit that.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    return subprocess.check_output(
        [sys.executable, "-c", program, *words], text=True, preexec_fn=ignore
    )


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (signal.SIGINT, b"mummergpu: interrupted\n"),
        (signal.SIGTERM, b"mummergpu: terminated\n"),
        (signal.SIGHUP, b"mummergpu: terminal closed\n"),
    ],
)
def test_a_signal_at_any_moment_ends_in_one_line(number, line, tmp_path):
    (tmp_path / "r.fa").write_bytes(b">r\nACGTTGCATCGATCGGATCAAGCTTACG\n")
    for delay in DELAYS:
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
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            time.sleep(delay / 1000)
            process.send_signal(number)
            assert process.stderr is not None
            assert (process.stderr.read(), process.wait(30)) == (line, 128 + number), delay
        assert [path.name for path in tmp_path.iterdir()] == ["r.fa"]


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
    at_once, before_the_handlers = run(program).splitlines()
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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"mummergpu: interrupted\n")


def test_what_the_parent_ignores_stays_ignored():
    program = """
import signal
from mummergpu.cli.exit_on_signal import ENDINGS, end_at_signals

end_at_signals()
ignored = [one for one in ENDINGS if signal.getsignal(one) is signal.SIG_IGN]
print(*(signal.Signals(one).name for one in ignored))
"""
    assert run(program, ignored=(signal.SIGINT, signal.SIGHUP)).split() == ["SIGINT", "SIGHUP"]
    assert run(program, ignored=(signal.SIGHUP,)).split() == ["SIGHUP"]


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_an_import_of_the_start_ends_in_one_line(number, tmp_path):
    """At the first imports behind the handlers, and at some later ones."""
    (tmp_path / "r.fa").write_bytes(b">r\nACGTTGCATCGATCGGATCAAGCTTACG\n")
    for at in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89):
        done = subprocess.run(
            [sys.executable, "-c", AT_AN_IMPORT],
            cwd=tmp_path,
            env=os.environ | {"AT": f"{at}", "SIGNAL": f"{int(number)}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
        )
        line = f"mummergpu: {ENDINGS[number]}\n".encode()
        assert (done.returncode, done.stderr) == (128 + number, line), at


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
    assert run(LIBRARY_THREADS).splitlines()[-1] == "0"


def test_a_number_of_threads_that_the_user_gives_numpy_stays(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    told = LIBRARY_THREADS + "print(os.environ['OPENBLAS_NUM_THREADS'])"
    assert run(told).splitlines()[-1] == "2"


@pytest.mark.parametrize(
    "words",
    [
        *("--version", "--help", "index --help", "map --help", "align --help", "hmmsearch --help"),
        "completion bash",
    ],
)
def test_nothing_heavy_is_imported_before_there_is_work(words):
    program = (
        "import sys\n"
        "from mummergpu.cli.main import main\n"
        f"assert main({words.split()!r}) == 0\n"
        "heavy = {'numpy', 'numba', 'pysam', 'isal', 'llvmlite'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
