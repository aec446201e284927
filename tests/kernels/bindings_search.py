"""Search through NVIDIA's own bindings: their driver is played, its kernels run on the host.

A program of its own, as `bindings_calls.py` is; it is given the folder of compiled kernels. Ends
with 1 if the backends differ, or something is not given back.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

from helpers.both_backends import differences, kmer_case, kmer_differences, random_case
from helpers.device_columns import columns_of_device, columns_of_host, difference, on_host
from helpers.host_device import HostCompiler
from helpers.text_cases import STYLES, TEXT_CASES, text_of_device

from mummergpu.cuda import bindings_device
from mummergpu.cuda.bindings_device import BindingsDevice
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.tree.policy import Policy
from mummergpu.output.matches.mummer import MummerFormatter

KINDS = ("memory", "pinned", "streams", "events", "modules", "textures", "arrays")


def main() -> int:
    # Threads run one after the other on the host: a block of several would wait for itself.
    bindings_device.BLOCK_THREADS = 1  # type: ignore[misc]
    played = ctypes.CDLL("libcuda.so.1")
    played.play_without_log()
    device = BindingsDevice(0)
    cache: Any = HostCompiler(Path(sys.argv[1]))
    found = []
    # Each kind of memory and texture is read by one of these policies.
    for code in ("m", "QRTmrtn", "QT"):
        case = random_case(1, 1200, 40)
        found += differences(device, cache, case, [Policy.from_code(code)], wide=False)
    case = kmer_case(1, 12)
    found += kmer_differences(device, cache, case, [KmerSampling(3), KmerSampling(4, 3)])
    for number, text_case in enumerate(TEXT_CASES[:3]):
        formatter = MummerFormatter(text_case.reference, STYLES[number])
        text = text_of_device(device, cache, formatter, text_case.block, text_case.columns)
        if text != text_case.text(STYLES[number]):
            found.append(f"the text of {text_case.name}")
        columns = columns_of_device(device, cache, text_case)
        if difference(on_host(columns), columns_of_host(text_case)):
            found.append(f"the columns of {text_case.name}")
        del columns
    device.close()
    left = {kind: played.play_owned(kind.encode()) for kind in KINDS}
    found += [f"{count} of {kind} are left" for kind, count in left.items() if count]
    if played.play_retained(0) or played.play_contexts():
        found.append("a context is left")
    print("different:" if found else "the backends agree", *found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
