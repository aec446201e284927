"""What tests need beside this package: without it they are skipped.

Where ``MUMMERGPU_REQUIRE_``, and the name of the requirement, is set to 1, they fail instead.
"""

import os
import shutil

import pytest

OF_MUMMER = ("nucmer", "show-coords", "show-snps", "delta-filter", "dnadiff")
"""Programs that come with ``mummer``."""


def do_without(reason, requirement):
    """Skip the test, or fail it where that is asked for; without a requirement it never is."""
    if requirement is not None and os.environ.get(f"MUMMERGPU_REQUIRE_{requirement}") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def program_of(name, requirement=None, source=None):
    """Return the path of a program.

    Its requirement is its own name, and its source the Debian package of that name, unless others
    are given.
    """
    path = shutil.which(name)
    if path is None:
        package = "mummer" if name in OF_MUMMER else name
        source = source or f"Debian: apt-get install {package}"
        do_without(f"{name} is not installed ({source})", requirement or package.upper())
    return path
