"""What the processes that share the tests begin with, so that they do not compile the same code.

A process that needs code that no other has kept yet compiles it. So each of the first processes
begins with tests of rooms that the others do not begin with.
"""

STARTS = (
    (
        *("unit/mapping/", "cli/test_map", "unit/viterbi/", "cluster/", "unit/api/", "property/"),
        "unit/hmm/test_domain",
    ),
    ("unit/matching/", "unit/input/", "unit/index/", "parity/"),
)
"""For each process, the beginnings of the paths of its first tests."""


def in_order(items, processes, path_of):
    """Return tests in an order in which each process has an equal run of them to begin with.

    `path_of` returns the path of a test from the folder of all tests on.
    """
    if processes < 2:
        return list(items)
    starts = [[item for item in items if path_of(item).startswith(start)] for start in STARTS]
    placed = {id(item) for start in starts for item in start}
    others = [item for item in items if id(item) not in placed]
    share = max(len(items) // processes - len(starts[0]), 0)
    return [*starts[0], *others[:share], *starts[1], *others[share:]]
