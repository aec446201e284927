"""Many values in one test: thousands of tests that take no time still take their overhead."""

import inspect
from functools import wraps

import pytest

MOST_TOLD = 20


def each(names, values):
    """Try a test with every value, and tell which have failed: ``pytest.mark.parametrize`` in one.

    The values share the test's fixtures, so this is for tests that leave them as they were.

    Parameters
    ----------
    names : str
        The parameters, with commas between them.
    values : collection
        Their values; tuples where there are several parameters.
    """
    parameters = [name.strip() for name in names.split(",")]

    def decorate(function):
        signature = inspect.signature(function)

        @wraps(function)
        def loop(**fixtures):
            failed = []
            first = None
            for value in values:
                row = dict(zip(parameters, value if len(parameters) > 1 else (value,), strict=True))
                try:
                    function(**fixtures, **row)
                except (Exception, pytest.fail.Exception) as error:
                    failed.append(", ".join(f"{name}={row[name]!r}" for name in parameters))
                    first = error if first is None else first
            if first is not None:
                told = "; ".join(failed[:MOST_TOLD]) + "; ..." * (len(failed) > MOST_TOLD)
                first.add_note(f"failed with {len(failed)} of {len(values)} values: {told}")
                raise first

        others = [each for name, each in signature.parameters.items() if name not in parameters]
        assert len(others) + len(parameters) == len(signature.parameters)
        loop.__signature__ = signature.replace(parameters=others)
        return loop

    return decorate
