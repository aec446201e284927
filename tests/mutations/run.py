"""Puts the faults of `faults.toml` into a copy of the tree, one by one, and runs their tests.

A fault that a test does not notice is an error: the program then ends with 1. It takes two hours of
a processor at most, and is for the night::

    .venv/bin/python tests/mutations/run.py [WORDS OF A NAME]... [--seconds 7200]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutations.faults import ROOT, faults

MOST_SECONDS = 7200
MOST_SECONDS_OF_FAULT = 900
ALL_PASSED, SOME_FAILED = 0, 1
"""What pytest returns; it has other numbers if it could not run the tests."""


def copy_tree(folder):
    """Copy what git has of the tree, and what is new in it."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def run_tests(root, nodes):
    """Run tests in a tree; return pytest's number and what it wrote."""
    cache = root.parent / "cache"
    environment = os.environ | {"PYTHONPATH": str(root), "MUMMERGPU_CACHE_DIR": str(cache)}
    words = [sys.executable, "-m", "pytest", "-q", "-n0", "-x", "--all", "--timeout=0", *nodes]
    try:
        done = subprocess.run(
            words,
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MOST_SECONDS_OF_FAULT,
        )
    except subprocess.TimeoutExpired:
        return None, f"no end after {MOST_SECONDS_OF_FAULT} seconds"
    return done.returncode, done.stdout


def unnoticed(root, fault):
    """Say which test does not notice a fault, or None."""
    sound = fault.put_into(root)
    try:
        for node in fault.nodes(root):
            code, text = run_tests(root, [node])
            if code == ALL_PASSED:
                return f"{node} passes, or is skipped: {text.splitlines()[-1]}"
            if code != SOME_FAILED:
                return f"{node} could not be run:\n{text[-2000:]}"
    finally:
        (root / fault.file).write_text(sound)
    return None


def try_all(root, chosen, seconds):
    """Try faults until the time is up; return what is wrong with which."""
    begin = time.monotonic()
    wrong = []
    nodes = sorted({node for fault in chosen for node in fault.nodes(root)})
    code, text = run_tests(root, nodes)
    if code != ALL_PASSED:
        return [f"without a fault:\n{text[-4000:]}"]
    for number, fault in enumerate(chosen, 1):
        before = time.monotonic()
        if before - begin > seconds:
            return [*wrong, f"{len(chosen) - number + 1} faults were not tried: no time is left"]
        problem = unnoticed(root, fault)
        took = time.monotonic() - before
        told = "noticed" if problem is None else "NOT NOTICED"
        print(f"{number:3} of {len(chosen)} {took:5.0f} s  {told}: {fault.name}", flush=True)
        if problem is not None:
            wrong.append(f"{fault.name} ({fault.file}): {problem}")
    return wrong


def main():
    """Try the faults whose names have one of the given words; all without any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="try only the faults with such words in the name")
    parser.add_argument("--seconds", type=int, default=MOST_SECONDS, help="the time for all")
    given = parser.parse_args()
    chosen = [
        fault
        for fault in faults()
        if not given.words or any(word in fault.name for word in given.words)
    ]
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        root = Path(folder) / "tree"
        copy_tree(root)
        wrong = try_all(root, chosen, given.seconds)
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
