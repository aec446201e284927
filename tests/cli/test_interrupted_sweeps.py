"""Sweeps that are killed or interrupted, and go on; two at once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from helpers.browser import visit
from helpers.studies import planned_in, wanted
from helpers.sweep_command import ALL, error_of, swept

from mummergpu.cli.main import main
from mummergpu.studies.records import RUNS_FILE, SETUP_FILE

pytestmark = pytest.mark.usefixtures("inside_sweep_files")

ROOT = Path(__file__).resolve().parents[2]


class Sweeping:
    """A sweep in a process of its own, in the middle of its runs."""

    def __init__(self, folder, words, lines):
        command = [sys.executable, "-m", "mummergpu", "sweep", "-C", "-o", str(folder)]
        self.folder = folder
        self.process = subprocess.Popen(
            [*command, *words.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            # What is started in the background of a shell inherits that SIGINT is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        until = time.monotonic() + 120
        while self.count() < lines:
            assert self.process.poll() is None and time.monotonic() < until
            time.sleep(0.005)

    def count(self):
        path = self.folder / RUNS_FILE
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def end_by(self, number):
        """Send a signal; return the exit code and what was said."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


LONG = "r.fa q.fa -t 2 -q --runs 40 --repeat-control 60"


def test_a_sweep_that_was_killed_goes_on(tmp_path):
    lines = 1
    for _ in range(3):
        sweeping = Sweeping(tmp_path, LONG, lines)
        assert sweeping.end_by(signal.SIGKILL) == (-signal.SIGKILL, b"")
        # Some runs are made while a process looks at the file and sends the signal.
        lines = sweeping.count() + 20
    recorded = sweeping.count()
    assert 40 < recorded < 700
    before = (tmp_path / RUNS_FILE).read_bytes()
    sweep = swept(LONG, tmp_path)
    assert planned_in(tmp_path) == wanted(ALL, 40, 60)
    whole = before[: before.rindex(b"\n") + 1]
    assert (tmp_path / RUNS_FILE).read_bytes().startswith(whole)
    assert len({run.digest for run in sweep.runs}) == 1
    assert sorted(os.listdir(tmp_path)) == [RUNS_FILE, SETUP_FILE]


def test_a_sweep_that_went_on_is_reported(browser_binary, tmp_path):
    """From a reference and reads to a page in a browser, with a kill on the way."""
    folder = tmp_path / "study"
    words = "r.fa q.fa -t 2 -q --runs 6 --repeat-control 9"
    Sweeping(folder, words, 5).end_by(signal.SIGKILL)
    swept(words, folder)
    assert main(["report", "-q", str(folder)]) == 0
    seen = visit(browser_binary, folder / "report.html", tmp_path / "browser")
    assert (seen.requests, seen.console) == (set(), [])
    assert "medians of 6 runs of 16 layouts" in seen.document
    assert seen.document.count("data:image/svg+xml") > 5


def test_an_interrupt_is_one_line_and_loses_nothing(tmp_path):
    sweeping = Sweeping(tmp_path, LONG, 10)
    code, err = sweeping.end_by(signal.SIGINT)
    assert (code, err) == (130, b"mummergpu: interrupted\n")
    text = (tmp_path / RUNS_FILE).read_bytes()
    lines = text[: text.rindex(b"\n") + 1].splitlines()
    assert Counter(json.loads(line)["digest"] for line in lines).total() == len(lines) >= 10
    swept(LONG, tmp_path)
    assert planned_in(tmp_path) == wanted(ALL, 40, 60)


def test_two_sweeps_do_not_write_to_one_folder(tmp_path, capfd):
    sweeping = Sweeping(tmp_path, LONG.replace("40", "4000"), 3)
    try:
        told = error_of(f"-C -o {tmp_path} {LONG}", 1, capfd)
        assert told == f"{tmp_path / RUNS_FILE}: another sweep is writing to it"
        assert sweeping.process.poll() is None
    finally:
        sweeping.end_by(signal.SIGKILL)
