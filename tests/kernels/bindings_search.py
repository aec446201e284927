"""Search through NVIDIA's own bindings: their driver is played, its kernels run on the host.

A program of its own, as `bindings_calls.py` is; it is given the folder of compiled kernels. Ends
with 1 if the backends differ, or something is not given back.
"""

import sys
from pathlib import Path

from helpers.both_backends import differences, kmer_case, kmer_differences, random_case
from helpers.device_cases import wrong_columns, wrong_text
from helpers.host_device import HostCompiler
from helpers.played_driver import PlayedDriver
from helpers.text_cases import STYLES, TEXT_CASES

from mummergpu.cuda import cuda_device
from mummergpu.cuda.bindings_device import BindingsDevice
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.tree.policy import Policy


def main():
    # Threads run one after the other on the host: a block of several would wait for itself.
    cuda_device.BLOCK_THREADS = 1
    played = PlayedDriver()
    device = BindingsDevice(0)
    cache = HostCompiler(Path(sys.argv[1]))
    found = []
    # Each kind of memory and texture is read by one of these policies.
    for code in ("m", "QRTmrtn", "QT"):
        case = random_case(1, 1200, 40)
        found += differences(device, cache, case, [Policy.from_code(code)], wide=False)
    case = kmer_case(1, 12)
    found += kmer_differences(device, cache, case, [KmerSampling(3), KmerSampling(4, 3)])
    for text_case, style in zip(TEXT_CASES[:3], STYLES, strict=False):
        text = wrong_text(device, cache, text_case, style)
        found += filter(None, (text, wrong_columns(device, cache, text_case)))
    device.close()
    found += [f"{count} of {kind} are left" for kind, count in played.owned.items()]
    found += ["a context is left"] if played.contexts else []
    print("different:" if found else "the backends agree", *found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
