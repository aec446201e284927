"""Numba's bounds checks, which `make bounds` asks for: code with them is kept beside other code."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from mummergpu.output.alignments.unmapped_fastq import write_reads
from mummergpu.output.bytes.texts import QueryColumns

one = np.array([0, 1], dtype=np.int64)
text = np.zeros(64, dtype=np.uint8)
arrays = [np.zeros(200, dtype=np.uint8) for _ in range(4)]
reads = QueryColumns(one, arrays[0], one)
# Memory behind the array is there, so that nothing but a check tells.
room = text[: int(sys.argv[1])]
try:
    print(write_reads(one[:1], reads, arrays[1], arrays[2], arrays[3], room))
except IndexError as error:
    print(error)
"""


def run(folder, room, checks):
    environment = os.environ | {"MUMMERGPU_CACHE_DIR": str(folder)}
    environment.pop("NUMBA_BOUNDSCHECK", None)
    if checks:
        environment["NUMBA_BOUNDSCHECK"] = "1"
    command = [sys.executable, "-c", PROGRAM, str(room)]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_code_with_bounds_checks_is_kept_by_itself(tmp_path):
    # Twice: what a process has compiled, and what it has kept.
    for _ in range(2):
        assert run(tmp_path, 9, checks=True) == "9\n"
        assert "out of bounds" in run(tmp_path, 8, checks=True)
        assert run(tmp_path, 8, checks=False) == "9\n"
