"""How many random records a GPU reads in a second, each named by the one before it.

    python benchmarks/gpu_gathers.py [--mebibytes 16,48,256,1024,8192]

Needs a CUDA device and `mummergpu[cuda]`. It is the ceiling of a search that goes from node to
node: records of 32 bytes in one table (`merged_32`), their halves in two (`split_16_and_16`),
or one half of each alone (`half_16`).
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import numpy as np
from cuda.bindings import nvrtc

from mummergpu.cuda.pycuda_device import BLOCK_THREADS, PycudaDevice

SOURCE = Path(__file__).with_name("gathers.cu")
KERNELS = ("merged_32", "split_16_and_16", "half_16")
RECORD_BYTES = 32
GATHERS = 512


def compiled_for(architecture: str) -> bytes:
    text = SOURCE.read_bytes()
    error, program = nvrtc.nvrtcCreateProgram(text, SOURCE.name.encode(), 0, [], [])
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS, error
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    cubin = b" " * size
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin


def gather_rates(table_bytes: int, runs: int) -> dict[str, float]:
    """Return records a second for a table of about so many bytes; medians of runs."""
    device = PycudaDevice(0)
    records = table_bytes // RECORD_BYTES
    threads = device.resident_blocks * BLOCK_THREADS
    rates = {}
    with device.current():
        program = device.load(compiled_for(device.architecture))
        stream = device.new_stream()
        table = device.allocate(records * RECORD_BYTES)
        result = device.allocate(4)
        words = records * RECORD_BYTES // 4
        stream.launch(program, "fill", device.resident_blocks, (table.address, words))
        for kernel in KERNELS:
            arguments = (table.address, np.uint32(records), np.uint32(GATHERS), result.address)
            times = []
            for turn in range(runs + 1):
                before = stream.mark()
                stream.launch(program, kernel, device.resident_blocks, arguments)
                behind = stream.mark()
                stream.synchronize()
                if turn:
                    times.append(behind.milliseconds_since(before))
            rates[kernel] = threads * GATHERS / statistics.median(times) * 1000
        table.free()
        result.free()
        stream.free()
    device.close()
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mebibytes", default="16,48,256,1024,8192")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    for size in map(int, arguments.mebibytes.split(",")):
        rates = gather_rates(size << 20, arguments.runs)
        print(size, "MiB", {name: f"{rate / 1e9:.1f} G/s" for name, rate in rates.items()})


if __name__ == "__main__":
    main()
