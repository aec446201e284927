"""What the processes that share the tests begin with, so that they do not compile the same code.

A process that needs code that no other has kept yet compiles it. So the first process begins with
the warm-up, which compiles all that the others use, and the second with tests that use hardly any
of it.
"""

from typing import TypeVar

WARM_UP = "cli/test_warmup.py"
MEANWHILE = (
    *("kernels/test_nvrtc.py", "unit/cuda/", "unit/drawing/", "unit/studies/", "unit/cli/"),
    *("unit/test_architecture.py", "kernels/test_host_kernels.py"),
)

Item = TypeVar("Item")


def in_order(items, processes, path_of):
    """Return the tests in an order in which each process has an equal run of them to begin with.

    Parameters
    ----------
    items : sequence
        The tests.
    processes : int
        How many processes share them.
    path_of : callable
        Returns the path of a test from the folder of all tests on.
    """
    first = [item for item in items if path_of(item).startswith(WARM_UP)]
    if processes < 2 or not first:
        return list(items)
    meanwhile = [
        item
        for start in MEANWHILE
        for item in items
        if path_of(item).startswith(start) and not path_of(item).startswith(WARM_UP)
    ]
    placed = {id(item) for item in first + meanwhile}
    others = [item for item in items if id(item) not in placed]
    share = max(len(items) // processes - len(first), 0)
    return [*first, *others[:share], *meanwhile, *others[share:]]
