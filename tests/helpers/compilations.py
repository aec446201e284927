"""Counts for how many types of arguments a function has been compiled."""


def compilation_count(function):
    """The number of types with which this process has called a compiled function.

    Code that an earlier process has kept is called without numba, which has then no signature.
    """
    return len(function.signatures) + len(getattr(function, "_images", ()))
