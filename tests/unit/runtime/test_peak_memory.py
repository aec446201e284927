"""The peak of memory in the units of different systems."""

import subprocess
import sys

PROGRAM = """
import builtins, sys
from types import SimpleNamespace
sys.platform = sys.argv[1]
from mummergpu.runtime import stats

def refuse(*_arguments):
    raise FileNotFoundError

builtins.open = refuse
stats.resource.getrusage = lambda _: SimpleNamespace(ru_maxrss=3_000_000)
print(stats.peak_memory())
"""


def peak(system):
    return int(subprocess.check_output([sys.executable, "-c", PROGRAM, system]))


def test_macos_tells_bytes_and_other_systems_tell_kibibytes():
    assert peak("darwin") == 3_000_000
    assert peak("freebsd14") == 3_000_000 * 1024
