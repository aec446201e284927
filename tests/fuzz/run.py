"""Fuzz a target: ``python -m fuzz.run TARGET --seconds N``, in the folder ``tests``.

With atheris (``pip install mummergpu[fuzz]``) what is tried next follows what the last inputs
have reached. Without it, mutations of the kept corpus are tried, which finds less. What fails
is written beside the new inputs, below ``.fuzz``. Each such input becomes an entry of the
corpus with the mending; ``--minimise`` keeps of all new inputs just those that reach more.
Options of libFuzzer may stand in place of ours.
"""

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from fuzz.corpus import CORPUS, TARGETS, kept_inputs, mutations, target_of

WORK = Path(__file__).resolve().parents[2] / ".fuzz"
LONGEST_INPUT = 6000
SEED_MUTATIONS = 1 << 62


def options_of(name, seconds, minimise):
    """Return the options of libFuzzer and the folders of inputs, of which it writes to the first.

    To minimise is to merge what was found into the corpus.
    """
    found, kept = WORK / name, CORPUS / name
    found.mkdir(parents=True, exist_ok=True)
    options = [f"-max_len={LONGEST_INPUT}", f"-artifact_prefix={WORK}/{name}-", "-timeout=60"]
    if minimise:
        return [*options, "-merge=1", str(kept), str(found)]
    return [*options, f"-max_total_time={seconds}", "-print_final_stats=1", str(found), str(kept)]


def fuzz_by_coverage(name, options):
    """Let atheris choose the inputs; does not return."""
    import atheris

    target = target_of(name)
    for number, example in enumerate(target.EXAMPLES):
        (WORK / name / f"example-{number}").write_bytes(example)
    target.instrument(atheris.instrument_func)
    # libFuzzer merges in processes of its own: a shell starts this command with other options.
    command = f"{sys.executable} -m fuzz.run {name}"
    atheris.Setup([command, *options], target.one_input)
    atheris.Fuzz()


def fuzz_by_mutation(name, seconds):
    """Try mutations of the corpus one after the other, as many as the time allows."""
    print("atheris is not installed (pip install mummergpu[fuzz]): trying mutations of the corpus")
    target, end, tried = target_of(name), time.monotonic() + seconds, 0
    for data in mutations(kept_inputs(name), SEED_MUTATIONS, time.time_ns()):
        if time.monotonic() > end:
            break
        try:
            target.one_input(data)
        except BaseException:
            WORK.mkdir(exist_ok=True)
            crash = WORK / f"{name}-crash"
            crash.write_bytes(data)
            print(f"after {tried} inputs: {crash}", file=sys.stderr)
            raise
        tried += 1
    print(f"{name}: {tried} inputs, nothing found")
    return 0


def main():
    """Read the command line, and fuzz."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzz.run", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--minimise", action="store_true")
    given, of_libfuzzer = parser.parse_known_args()
    if find_spec("atheris") is None:
        if given.minimise or of_libfuzzer:
            parser.error("this needs atheris (pip install mummergpu[fuzz])")
        return fuzz_by_mutation(given.target, given.seconds)
    ours = options_of(given.target, given.seconds, given.minimise)
    fuzz_by_coverage(given.target, of_libfuzzer or ours)
    return 0


if __name__ == "__main__":
    sys.exit(main())
