"""How many threads of a kernel are resident at once, by the registers that each of them takes."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.program import BLOCK_THREADS

REGISTER_UNIT: Final = 8
"""The registers of a thread are allocated in multiples of this number."""


def occupancy(registers: int, max_threads: int, all_registers: int) -> float:
    """Return the resident threads of a multiprocessor, as a share of the most that it supports.

    The threads come in blocks of `BLOCK_THREADS`; the registers are of a thread, and of a
    multiprocessor.
    """
    taken = -(-max(registers, 1) // REGISTER_UNIT) * REGISTER_UNIT
    blocks = min(max_threads // BLOCK_THREADS, all_registers // (taken * BLOCK_THREADS))
    return blocks * BLOCK_THREADS / max_threads
