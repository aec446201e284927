"""A library in somebody else's process: it changes nothing there, and stops when told to."""

import os
import pickle
import random
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

import pytest
from helpers.children import printed_by
from helpers.sequences import random_bases, write_fasta

import mummergpu

MADE = random.Random(17)
BASES = random_bases(MADE, 5000)
READS = [(f"q{n}", BASES[n * 20 : n * 20 + 90]) for n in range(240)]

LOOK = """
import gc, logging, os, signal, sys, threading
def look():
    signals = {n: signal.getsignal(n) for n in signal.valid_signals()}
    logger = logging.getLogger("mummergpu")
    return {
        "signals": signals,
        "wakeup": (signal.set_wakeup_fd(-1)),
        "mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "environment": dict(os.environ),
        "native environment": open("/proc/self/environ", "rb").read(),
        "folder": os.getcwd(),
        "umask": (mask := os.umask(0), os.umask(mask)),
        "gc": (gc.get_threshold(), gc.isenabled(), gc.get_freeze_count(), len(gc.callbacks)),
        "recursion": sys.getrecursionlimit(),
        "switch interval": sys.getswitchinterval(),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.stdout, sys.stderr),
        "finders": list(sys.meta_path),
        "path": list(sys.path),
        "warnings": list(sys.modules["warnings"].filters) if "warnings" in sys.modules else None,
        "threads": [thread.name for thread in threading.enumerate()],
        "root log": (logging.root.level, list(logging.root.handlers)),
        "own log": (logger.level, list(logger.handlers), logger.propagate, logger.filters),
        "traces": (sys.gettrace(), sys.getprofile()),
    }
"""

WORK = """
import mummergpu
index = mummergpu.Index.build("r.fa", min_length=12)
found = len(index.match([("q", open("r.fa").read().split()[1][100:400])], threads=2))
for m in index.stream("q.fa", threads=2):
    found += len(m)
index.save("made.mgi")
with mummergpu.Index.open("made.mgi") as opened:
    opened.verify("r.fa")
    found += len(opened.match("ACGTACGTACGTTTGACA"))
try:
    mummergpu.match("r.fa", "missing.fa", "x.txt")
except mummergpu.MummergpuError:
    pass
found += mummergpu.match("r.fa", "q.fa", "x.txt", threads=2).matches
assert found > 300, found
"""

NEIGHBOURS = {
    "dask": "import dask; tasks = [dask.delayed(work)() for _ in range(4)]; dask.compute(*tasks)",
    "matplotlib": "import matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as plt; "
    "plt.plot(m.reference_start, m.query_start, '.'); plt.savefig('x.png')",
    "pandas": "assert m.to_pandas().groupby('reference', observed=True)['length'].max().max() > 50",
    "polars": "assert m.to_polars()['length'].max() > 50",
    "pyarrow": "import pyarrow.compute as pc; assert pc.max(m.to_arrow()['length']).as_py() > 50",
    "torch": "import torch; assert int(torch.from_numpy(m.length).max()) > 50",
    "scipy": "import scipy.stats; assert scipy.stats.describe(m.length).minmax[1] > 50",
    "numba": "import numba; assert numba.njit(lambda a: a.max())(m.length) > 50",
}


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_fasta("r.fa", {"r": BASES})
    write_fasta("q.fa", READS)


@pytest.fixture(scope="module")
def index():
    return mummergpu.Index.build([("r", BASES)], min_length=12)


@pytest.fixture
def many_reads():
    """A file of some hundred blocks."""
    Path("many.fa").write_text(Path("q.fa").read_text() * 300)
    return "many.fa"


def run_child(*programs):
    program = "\n".join(map(textwrap.dedent, programs))
    return printed_by("-c", program, env={"PYTHONPATH": os.pathsep.join(sys.path)}, timeout=500)


def test_a_process_is_afterwards_what_it_was_before():
    compare = """
        import warnings
        import numpy  # It has filters of warnings of its own.
        before = look()
        exec(WORK)
        del index, opened, m
        gc.collect()
        # The command does not wait for its last thread, which ends by itself.
        import time
        end = time.monotonic() + 20
        while threading.active_count() > 1 and time.monotonic() < end:
            time.sleep(0.01)
        after = look()
        for name in before:
            assert before[name] == after[name], (name, before[name], after[name])
        print("the same")
    """
    for _ in range(2):
        assert run_child(f"WORK = {WORK!r}", LOOK, compare) == "the same\n"


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_neighbours_work_in_the_same_process(first):
    work = """
        import mummergpu
        index = mummergpu.Index.build("r.fa", min_length=12)
        def work():
            return sum(map(len, index.stream("q.fa", threads=2)))
        (m,) = index.stream("q.fa")
        expected = work()
    """
    installed = [library for library in NEIGHBOURS if find_spec(library) is not None]
    lines = [f"import {library}" for library in installed if first] + [work]
    for library in installed:
        lines += [NEIGHBOURS[library], f"assert work() == expected == len(m), {library!r}"]
    assert run_child(*lines, "print('well')") == "well\n"


def test_the_log_goes_where_the_user_sends_it():
    program = """
        import logging
        import mummergpu
        open("none.fa", "w").close()
        mummergpu.match("r.fa", ["q.fa", "none.fa"], "x.txt")
    """
    quiet = """
        import logging, sys
        logging.getLogger("mummergpu").addHandler(logging.NullHandler())
    """
    assert run_child(quiet, program) == ""
    told = "import logging, sys\nlogging.basicConfig(stream=sys.stdout, level=logging.INFO)\n"
    lines = run_child(told, program).splitlines()
    assert "WARNING:mummergpu:none.fa: no reads" in lines
    assert any(line.startswith("INFO:") for line in lines)
    assert all(line.split(":")[1] == "mummergpu" for line in lines)


def test_a_stream_is_taken_up_and_closed_by_other_threads(index, many_reads):
    before = set(threading.enumerate())
    stream = index.stream(many_reads, threads=2)
    first = len(next(stream))
    with ThreadPoolExecutor(1) as pool:
        assert len(pool.submit(next, stream).result()) > 0 and first > 0
    with ThreadPoolExecutor(1) as pool:
        pool.submit(stream.close).result()
    assert set(threading.enumerate()) <= before
    assert list(stream) == []


def test_two_streams_take_turns(index, many_reads):
    before = set(threading.enumerate())
    streams = [index.stream(many_reads, threads=2) for _ in range(2)]
    found = [[], []]
    for blocks in zip_longest(*streams):
        for each, block in zip(found, blocks, strict=True):
            each += [] if block is None else block.length.tolist()
    assert found[0] == found[1] and len(found[0]) > 10_000
    assert set(threading.enumerate()) <= before


def test_an_interrupt_while_a_thread_starts_ends_the_thread(index, many_reads, monkeypatch):
    before = set(threading.enumerate())
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        if thread.name == "read":
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(index.stream(many_reads, threads=2))
    assert set(threading.enumerate()) <= before


def test_an_interrupt_leaves_no_thread_and_no_file():
    """The signal comes while the main thread waits for the working threads."""
    program = """
        import os, signal, sys, threading, time
        import mummergpu

        index = mummergpu.Index.build("r.fa", min_length=12)
        reads = [(str(n), open("r.fa").read().split()[1][:2000]) for n in range(3000)]
        with open("large.fa", "w") as file:
            file.writelines(f">{name}\\n{bases}\\n" for name, bases in reads)
        calls = {
            "match": lambda: index.match(reads, threads=2),
            "stream": lambda: list(index.stream("large.fa", threads=2)),
            "run": lambda: mummergpu.match("r.fa", "large.fa", "x.txt", threads=2),
            "build": lambda: [mummergpu.Index.build(reads, 12, threads=2) for _ in range(1000)],
        }
        expected = len(index.match(reads[:3]))
        names = {thread.name for thread in threading.enumerate()}
        handler = signal.getsignal(signal.SIGINT)
        def interrupt():
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)
        for name, call in calls.items():
            threading.Thread(target=interrupt, name="interrupt").start()
            try:
                for _ in range(1000):
                    call()
            except KeyboardInterrupt as error:
                del error
            else:
                sys.exit(f"{name} was not interrupted")
            end = time.monotonic() + 20
            while {thread.name for thread in threading.enumerate()} - names - {"interrupt"}:
                if time.monotonic() > end:
                    sys.exit(f"{name}: {threading.enumerate()}")
                time.sleep(0.01)
            assert signal.getsignal(signal.SIGINT) is handler
            assert len(index.match(reads[:3])) == expected
        print(sorted(os.listdir()))
    """
    left = eval(run_child(program))
    assert [name for name in left if name != "x.txt"] == ["large.fa", "q.fa", "r.fa"]


def test_errors_cross_processes_whole():
    """Pools send an exception to the parent as a pickle."""
    with pytest.raises(mummergpu.MummergpuError) as caught:
        mummergpu.Index.build("missing.fa")
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is type(caught.value) and str(copied) == str(caught.value)
