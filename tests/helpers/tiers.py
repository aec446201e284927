"""The lists of tests that the quick tier leaves out, which `tiers/choose.py` makes of durations."""

KEPT = " but "
"""Stands in a line before the case of a table that stays in the quick tier."""

COMPILES = " compiles"
"""Ends a line of a test that the quick tier leaves out for the code that few others need."""


def listed(path):
    """Return the tests of a list, with the case that each leaves to the quick tier, or None."""
    lines = path.read_text().splitlines()
    named = (line.removesuffix(COMPILES) for line in lines if not line.startswith("#"))
    parted = (line.partition(KEPT) for line in named)
    return {test: case or None for test, _, case in parted}


def is_in(name, tests):
    """Return whether a test with this name, as pytest writes it, is one of `listed` tests."""
    test, _, case = name.partition("[")
    return test in tests and "[" + case != tests[test]
