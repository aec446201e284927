"""Files for targets that open a path: in memory, so that millions of them cost no disk."""

import os
from contextlib import contextmanager


@contextmanager
def file_of(data):
    """Give the path of a file that holds some bytes."""
    number = os.memfd_create("fuzz")
    try:
        os.write(number, data)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)


@contextmanager
def pipe_of(data):
    """Give the path of a pipe from which some bytes come; no more than a pipe takes at once."""
    outward, inward = os.pipe()
    try:
        os.set_blocking(inward, False)
        written = os.write(inward, data) if data else 0
        assert written == len(data), "too much for a pipe"
        os.close(inward)
        inward = -1
        yield f"/proc/self/fd/{outward}"
    finally:
        os.close(outward)
        if inward >= 0:
            os.close(inward)
