"""Writes `ci.txt` and `night.txt`: the tests that are too dear for the quick tier, and for CI.

    pytest --all --junitxml durations.xml
    python tests/tiers/choose.py durations.xml

The cheapest functions of tests stay in the quick tier, as many as take so many seconds together;
the next ones are those of CI. Of a table whose cases take too long, the cheapest case stays.

A line of `ci.txt` that ends with "compiles" stays there: the test is cheap, but it and few others
need functions that take seconds to compile, as the quick tier does.
"""

import argparse
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).parent
COMPILES = " compiles"
HEAD = "# Tests that run {}; tests/tiers/choose.py makes this list of their durations.\n"

NEEDED_IN_CI = (
    "tests/cli/test_doors.py",
    "tests/cluster/test_map_on_workers.py::test_all_workers_write_what_one_machine_writes",
    "tests/kernels/test_host_kernels.py::test_each_pair_of_policies_and_formats_gives_the_matches_of_the_definition",
    "tests/kernels/test_nvrtc.py",
    "tests/parity/test_downstream.py::test_nucmer_gives_the_same_delta",
    "tests/parity/test_golden.py",
    "tests/property/test_mems.py::test_every_option_and_setting_gives_the_oracles_bytes",
    "tests/property/test_trees.py",
    "tests/unit/output/sorting/test_duplicates.py",
    "tests/unit/test_architecture.py",
)
"""What nothing else tests: it is in CI, however long it takes."""

NOT_QUICK = (
    "tests/cli/test_plot.py",
    "tests/cli/test_report_command.py",
    "tests/cli/test_wheel.py",
    "tests/faults/",
    "tests/kernels/test_cuda_backends.py",
    "tests/kernels/test_cuda_commands.py",
    "tests/kernels/test_hmm_kernels.py",
    "tests/kernels/test_kmer_kernels.py",
    "tests/kernels/test_output_kernels.py",
    "tests/kernels/test_study_device.py",
    "tests/kernels/test_whole_matrices.py",
    "tests/cli/test_profile_studies.py",
    "tests/unit/api/test_align.py::test_tables",
    "tests/unit/api/test_index.py::test_tables",
    "tests/unit/api/test_map.py::test_tables",
    "tests/unit/output/matches/test_arrow.py::test_polars_reads_it",
    "tests/unit/studies/test_report.py",
)
"""Kernels that are compiled for the host, a browser, archives that are built and installed, and
processes that are killed again and again: what they cost together is not seen in single tests.
The last ones need libraries that only `.[dev]` installs. They are in CI at the earliest."""

MOST_OF_A_CASE = 1.0
"""The seconds that the case of a table may take that stays behind."""


def durations_of(path):
    """Return the seconds of each case of each test."""
    durations = defaultdict(dict)
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name")
        function, bracket, rest = name.partition("[")
        test = case.get("classname").replace(".", "/") + f".py::{function}"
        durations[test][bracket + rest] = float(case.get("time"))
    return durations


def lists_of(durations, quick_seconds, ci_seconds, compiling=()):
    """Return the lines of the lists of CI and of the night, for tiers of so many seconds."""
    ci, night = [], []
    spent = {"quick": 0.0, "ci": 0.0}
    for test in sorted(durations, key=lambda test: sum(durations[test].values())):
        cost = sum(durations[test].values())
        is_quick = not test.startswith(NOT_QUICK) and test not in compiling
        is_needed = test.startswith(NEEDED_IN_CI)
        line = _line(test, durations[test])
        whole = test + COMPILES if test in compiling else test
        if is_quick and spent["quick"] + cost <= quick_seconds:
            spent["quick"] += cost
        elif is_needed or spent["ci"] + cost <= ci_seconds:
            spent["ci"] += 0 if is_needed else cost
            ci.append(line if is_quick else whole)
        else:
            night.append(line)
            if not is_quick:
                # The case that stays is one of CI.
                ci.append(whole)
    return sorted(ci), sorted(night)


def _line(test, cases):
    cheapest = min(cases, key=cases.get)
    return f"{test} but {cheapest}" if len(cases) > 1 and cases[cheapest] < MOST_OF_A_CASE else test


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("durations", help="what pytest --junitxml wrote")
    parser.add_argument("--quick", type=float, default=150, help="seconds of the quick tier")
    parser.add_argument("--ci", type=float, default=300, help="seconds that CI takes beyond it")
    given = parser.parse_args()
    lines = (FOLDER / "ci.txt").read_text().splitlines()
    compiling = {line.removesuffix(COMPILES) for line in lines if line.endswith(COMPILES)}
    lists = lists_of(durations_of(given.durations), given.quick, given.ci, compiling)
    for name, when, lines in zip(("ci", "night"), ("in CI", "at night"), lists, strict=True):
        text = HEAD.format(when) + "".join(f"{line}\n" for line in lines)
        (FOLDER / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    main()
