"""A small run of every kernel, for `compute-sanitizer --tool ... python tests/gpu/small_run.py`.

Ends with 1 if the backends differ.
"""

from __future__ import annotations

import sys

from helpers.both_backends import differences, kmer_case, kmer_differences, random_case

from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.pycuda_device import PycudaDevice
from mummergpu.index.tree.policy import Policy

POLICIES = [Policy.from_code(code) for code in ("m", "none", "Tn", "QRTmrtn", "Tt")]


def main() -> int:
    device = PycudaDevice(0)
    cache = KernelCache(None, print)
    found = []
    for wide in (False, True):
        for seed in (0, 1):
            case = random_case(seed, 1200, 40)
            found += differences(device, cache, case, POLICIES[: 5 if seed else 2], wide)
    # Steps of one base, of a few, of more than a word; lists for one thread, and for many.
    for seed, minimum_length in ((0, 4), (1, 12), (2, 60)):
        case = kmer_case(seed, minimum_length)
        found += kmer_differences(device, cache, case, (3, 2 + minimum_length // 10, None))
    device.close()
    print("different:" if found else "the backends agree", *found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
