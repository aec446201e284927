"""How many random records a GPU reads in a second, each named by the one before it.

    python benchmarks/gpu_gathers.py [--mebibytes 16,48,256,1024,8192]

Needs a CUDA device and `mummergpu[cuda]`. It is the ceiling of a search that goes from node to
node: records of 32 bytes in one table (`merged`), their halves in two (`split`), or one half of
each alone (`half`).
"""

from __future__ import annotations

import argparse

from devices import open_device

from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.studies.gathers import device_gathers


def gather_rates(table_bytes: int, runs: int) -> dict[str, float]:
    """Return records a second for a table of about so many bytes; medians of runs."""
    device = open_device(0)
    try:
        return device_gathers(device, KernelCache(None, print), table_bytes, runs)
    finally:
        device.close()


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
