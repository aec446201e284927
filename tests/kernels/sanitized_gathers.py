"""Run the kernels that measure gathers under the sanitizers, on small tables of many sizes.

A program of its own, as `sanitized_search.py` is; it is given a folder. With ``--short`` the table
is one record shorter than the kernels are told.
"""

import sys
from pathlib import Path

from helpers.host_device import SANITIZERS, UNOPTIMISED, HostCompiler, HostDevice

from mummergpu.studies.gathers import DEVICE_KERNELS, RECORD_BYTES, device_gathers


class ShortDevice(HostDevice):
    """Gives less memory than it is asked for."""

    def allocate(self, size):
        return super().allocate(size if size < RECORD_BYTES else size - RECORD_BYTES)


def main():
    compiler = HostCompiler(Path(sys.argv[1]), (*SANITIZERS, UNOPTIMISED))
    if "--short" in sys.argv:
        device_gathers(ShortDevice(), compiler, 40 * RECORD_BYTES, 1)
        print("nobody minds")
        return 0
    for size in (0, 1, 31, 32, 33, 64, 100, 1000, 12_345, 1 << 16):
        device = HostDevice()
        assert set(device_gathers(device, compiler, size, 1)) == set(DEVICE_KERNELS)
        assert not device.buffers and not device.streams
    print("all inside")
    return 0


if __name__ == "__main__":
    sys.exit(main())
