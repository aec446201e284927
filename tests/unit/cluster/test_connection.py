"""The connection to a cluster."""

import subprocess
import sys

import pytest

SILENT = """
import logging, sys
from mummergpu.cluster import connection
assert "distributed" not in sys.modules
connection._silence()
import distributed
sys.exit(logging.getLogger("distributed.client").isEnabledFor(logging.ERROR))
"""


def test_errors_of_dask_are_told_in_one_line():
    """Dask's log has a traceback where a scheduler ends; its import sets what the log tells."""
    pytest.importorskip("distributed")
    subprocess.run([sys.executable, "-c", SILENT], check=True)
