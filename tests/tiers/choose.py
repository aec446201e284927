"""Writes `ci.txt`: the tests that the quick tier leaves to CI, because they take long.

    pytest --ci --junitxml durations.xml
    python tests/tiers/choose.py durations.xml --seconds 150

The cheapest functions of tests stay in the quick tier, as many as take so many seconds together. Of
a table whose cases are too many, the cheapest case stays.
"""

import argparse
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).with_name("ci.txt")
HEAD = """\
# Tests that CI runs, and that the quick tier leaves out; tests/tiers/choose.py makes this list.
"""


def durations_of(path):
    """Return the seconds of each case of each test."""
    durations = defaultdict(dict)
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name")
        function, bracket, rest = name.partition("[")
        test = case.get("classname").replace(".", "/") + f".py::{function}"
        durations[test][bracket + rest] = float(case.get("time"))
    return durations


def lines_of_ci(durations, seconds):
    """Return the lines of the list that leave the quick tier at most so many seconds."""
    costs = sorted((sum(cases.values()), test) for test, cases in durations.items())
    spent, lines = 0.0, []
    for cost, test in costs:
        if spent + cost <= seconds:
            spent += cost
            continue
        cheapest = min(durations[test], key=durations[test].get)
        keeps_one = len(durations[test]) > 1 and durations[test][cheapest] < costs_limit(costs)
        lines.append(f"{test} but {cheapest}" if keeps_one else test)
    return sorted(lines)


def costs_limit(costs):
    """Return how long a case may take that stays for its table: as the dearest tenth of tests."""
    return costs[len(costs) * 9 // 10][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("durations", help="what pytest --junitxml wrote")
    parser.add_argument("--seconds", type=float, default=150, help="of the quick tier")
    given = parser.parse_args()
    lines = lines_of_ci(durations_of(given.durations), given.seconds)
    LIST.write_text(HEAD + "".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
