"""The tests of the tier of CI: `tiers/ci.txt`, which `tiers/choose.py` makes of durations."""

KEPT = " but "
"""Stands in a line before the case of a table that the quick tier keeps."""


def listed_for_ci(path):
    """Return the tests of a list, with the case that each leaves to the quick tier, or None."""
    lines = path.read_text().splitlines()
    parted = (line.partition(KEPT) for line in lines if line and not line.startswith("#"))
    return {test: case or None for test, _, case in parted}


def is_of_ci(name, of_ci):
    """Tell whether a test with this name, as pytest writes it, is one of `listed_for_ci`."""
    test, _, case = name.partition("[")
    return test in of_ci and "[" + case != of_ci[test]
