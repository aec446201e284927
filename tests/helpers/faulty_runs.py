"""Runs of which one call of the system fails, or at one of which the process is killed."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DRIVER = Path(__file__).resolve().parent.parent / "faults" / "driver.py"
ERRORS = (errno.ENOSPC, errno.EIO)
OLDER = b"what stood there before"


@dataclass(frozen=True)
class Outcome:
    """What came of a run; its status is less than 0 for a signal."""

    status: int
    out: str
    err: str
    calls: list[str]
    """The names of the calls about the folder, in their order."""
    hit: str
    """The call that failed, and its path; empty if the run was done before it came."""

    @property
    def failed_call(self):
        """The name of the call that failed."""
        return self.hit.partition(" ")[0]

    @property
    def path(self):
        """The file that the call was about; a nameless one has a number as its name."""
        return Path(self.hit.partition(" ")[2].removesuffix(" (deleted)"))


@dataclass(frozen=True)
class Task:
    """What a child does: the command line with arguments, or another task of the driver."""

    arguments: tuple[str, ...]
    name: str = "main"


class FaultyRuns:
    """A warm process and its folder, whose files the faults concern."""

    def __init__(self, library, folder):
        """Take what `faults.c` has been compiled to, and a folder with the inputs in it."""
        self.folder = folder
        self.outputs = folder / "out"
        self.temporary = folder / "tmp"
        self._warm = set()
        for made in (self.outputs, self.temporary):
            made.mkdir()
        environment = os.environ | {"LD_PRELOAD": str(library), "TMPDIR": str(self.temporary)}
        given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        words = [sys.executable, str(DRIVER)]
        self._process = subprocess.Popen(words, env=environment, cwd=folder, **given)

    def close(self):
        """End the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait() == 0

    def run(self, task, name="", call=0, error=errno.EIO, kill=False, halves=False):
        """Do a task in a child, in which the n-th call of a name fails, or is the last.

        With `halves`, reads and writes do half of what they are asked for.
        """
        if task not in self._warm:
            assert self._ask(task, warm=True) == {"status": 0, "threads": 1}
            self._warm.add(task)
            self.clear()
        fault = {"name": name, "call": call, "error": error, "kill": kill, "halves": halves}
        return Outcome(**self._ask(task, **fault))

    def each_failure(self, task, error, kill=False):
        """Do a task without a failure, then again and again, each time with another one.

        The caller has the outputs as they are to be before a run, and sees to that after each.
        The first run is one without a failure.
        """
        whole = self.run(task)
        assert whole.status == 0
        yield whole
        for name in sorted(set(whole.calls)):
            for call in range(1, whole.calls.count(name) + 1):
                outcome = self.run(task, name, call, error, kill)
                yield outcome
                if not outcome.hit:
                    break
                assert outcome.failed_call == name
                assert not kill or outcome.status == -signal.SIGKILL

    def each_kill(self, task):
        """As `each_failure`, with a process that is killed instead."""
        return self.each_failure(task, errno.EIO, kill=True)

    def clear(self, older=()):
        """Remove all outputs, and write older ones of some names."""
        shutil.rmtree(self.outputs)
        self.outputs.mkdir()
        for name in older:
            (self.outputs / name).write_bytes(OLDER)

    def contents(self):
        """Return the outputs by their names."""
        return {path.name: path.read_bytes() for path in self.outputs.iterdir()}

    def _ask(self, task, warm=False, **more):
        request = {"folder": str(self.folder), "task": task.name, "arguments": task.arguments}
        request |= {"warm": warm, **more}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process that forks the others has ended; standard error says why"
        return json.loads(line)


OPTIONAL = {"fallocate", "open_nameless"}
"""Calls that can fail without harm."""


def check_every_failure(runs, task, error, whole, older=(), first_look="r.fa"):
    """Let every call of a task fail; return the names of the calls.

    `whole` tells of each output whether it is complete, and `older` are those that exist before. A
    file is opened first to see whether it is an index; if that fails, it is not taken for one.
    """
    failed = set()
    nameless = harmless_closings = 0
    runs.clear(older)
    for outcome in runs.each_failure(task, error):
        contents = runs.contents()
        looking = (outcome.failed_call, outcome.path.name) == ("open_to_read", first_look)
        # Python closes a file that is mapped when the memory is let go.
        unmapping = outcome.failed_call == "close" and "mmap" in outcome.calls
        if outcome.status == 0:
            assert outcome.err == "" and contents.keys() == whole.keys()
            assert all(whole[name](content) for name, content in contents.items())
            if outcome.failed_call == "close" and outcome.path.parent != runs.folder:
                harmless_closings += 1
            else:
                assert looking or unmapping or outcome.failed_call in {"", *OPTIONAL}, outcome
        else:
            check_error(outcome, "" if looking else os.strerror(error), runs.folder)
            assert contents.keys() >= set(older)
            for name, content in contents.items():
                assert whole[name](content) or (name in older and content == OLDER), outcome
        if not outcome.hit:
            nameless = outcome.calls.count("open_nameless")
        assert os.listdir(runs.temporary) == []
        failed.add(outcome.failed_call)
        runs.clear(older)
    # Of temporary files at their end.
    assert harmless_closings == nameless
    return failed


def check_error(outcome, expected, folder):
    """Assert that a run has ended with one line, which names the file that failed."""
    start = "mummergpu: error: "
    # htslib says this, even if it is told to be silent.
    text = re.sub(r"^\[W::bam_hdr_read\] .*\n", "", outcome.err)
    assert (outcome.status, outcome.out) == (1, ""), outcome
    assert text.startswith(start) and text.endswith("\n"), outcome
    assert text.count("\n") == 1, outcome
    name, _, reason = text.removeprefix(start).removesuffix("\n").partition(": ")
    assert reason.removesuffix(" (see TMPDIR)").lower().endswith(expected.lower()), outcome
    told, path = folder / re.sub(r":\d+$", "", name), outcome.path
    if path.name.startswith(("#", ".mummergpu-")):
        assert path.parent in (told, told.parent), outcome
    else:
        assert path in (told, told.parent), outcome
