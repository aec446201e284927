"""The filters of profiles on the processor, HMMER's own and ours: seconds by the threads.

HMMER's come from the library in pyhmmer's wheel. A compiled loop calls them, which sets the length
of each protein as HMMER's pipeline does; each thread has a profile and a matrix of its own.
HMMER's MSV is what its pipeline calls: SSV first, and MSV itself where SSV cannot tell.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.studies.profiles.data import processor_scores

POINTER, INTEGER = ctypes.c_void_p, ctypes.c_int
ADDRESS = ctypes.c_size_t
"""A pointer, as compiled loops pass it."""

FILTERS = {"S": "SSV", "M": "MSV", "V": "Viterbi"}
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "p7_bg_Create": (POINTER, POINTER),
    "p7_profile_Create": (POINTER, INTEGER, POINTER),
    "p7_oprofile_Create": (POINTER, INTEGER, POINTER),
    "p7_omx_Create": (POINTER, INTEGER, INTEGER, INTEGER),
    "p7_gmx_Create": (POINTER, INTEGER, INTEGER),
    "p7_hmmfile_Open": (INTEGER, ctypes.c_char_p, ctypes.c_char_p, POINTER, ctypes.c_char_p),
    "p7_hmmfile_Read": (INTEGER, POINTER, POINTER, POINTER),
    "p7_ProfileConfig": (INTEGER, POINTER, POINTER, POINTER, INTEGER, INTEGER),
    "p7_oprofile_Convert": (INTEGER, POINTER, POINTER),
    "p7_oprofile_ReconfigLength": (INTEGER, ADDRESS, INTEGER),
    "p7_ReconfigLength": (INTEGER, ADDRESS, INTEGER),
    "p7_SSVFilter": (INTEGER, ADDRESS, INTEGER, ADDRESS, ADDRESS),
    **{
        f"p7_{name}": (INTEGER, ADDRESS, INTEGER, ADDRESS, ADDRESS, ADDRESS)
        for name in ("MSVFilter", "ViterbiFilter", "GViterbi")
    },
}
_LOCAL = 1
"""HMMER's word for alignments that are local and may be several, ``p7_LOCAL``."""


@cache
def library() -> ctypes.CDLL:
    """Return HMMER's library; end the benchmark if this pyhmmer has none."""
    import pyhmmer

    folder = Path(pyhmmer.__file__).parent.parent / "pyhmmer.libs"
    if not (folder / "liblibhmmer.so").is_file():
        raise SystemExit("this pyhmmer has no library of HMMER beside it")
    ctypes.CDLL(str(folder / "liblibeasel.so"), mode=ctypes.RTLD_GLOBAL)
    loaded = ctypes.CDLL(str(folder / "liblibhmmer.so"))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


@cache
def loop_of(kind: str) -> Callable[..., None]:
    """Return a compiled loop over proteins: ``S``, ``M``, ``V`` or ``G``, Viterbi without SIMD."""
    from numba import njit

    hmmer = library()
    names = {"S": "SSVFilter", "M": "MSVFilter", "V": "ViterbiFilter", "G": "GViterbi"}
    compare = getattr(hmmer, f"p7_{names[kind]}")
    set_length = hmmer.p7_ReconfigLength if kind == "G" else hmmer.p7_oprofile_ReconfigLength
    if kind == "S":

        @njit(nogil=True)
        def scan(begins, lengths, profile, matrix, score):  # type: ignore[no-untyped-def]
            for number in range(lengths.size):
                set_length(profile, np.int32(lengths[number]))
                compare(begins[number], np.int32(lengths[number]), profile, score)

    else:

        @njit(nogil=True)
        def scan(begins, lengths, profile, matrix, score):  # type: ignore[no-untyped-def]
            for number in range(lengths.size):
                set_length(profile, np.int32(lengths[number]))
                compare(begins[number], np.int32(lengths[number]), profile, matrix, score)

    return scan  # type: ignore[no-any-return]


class HmmerFilters:
    """HMMER's filters for a profile; what they need lives as long as the process."""

    def __init__(self, profile: Profile, threads: int, longest: int) -> None:
        hmmer, path = library(), "one.hmm"
        file, alphabet, hmm = POINTER(), POINTER(), POINTER()
        with TemporaryDirectory() as folder:
            path = f"{folder}/{path}"
            with open(path, "wb") as output:
                profile.hmm.write(output, binary=True)
            error = ctypes.create_string_buffer(512)
            opened = hmmer.p7_hmmfile_Open(path.encode(), None, ctypes.byref(file), error)
            read = hmmer.p7_hmmfile_Read(file, ctypes.byref(alphabet), ctypes.byref(hmm))
        assert opened == read == 0, error.value
        nodes, background = profile.nodes, hmmer.p7_bg_Create(alphabet)
        self._generic, self._striped = [], []
        for _ in range(threads):
            generic = hmmer.p7_profile_Create(nodes, alphabet)
            striped = hmmer.p7_oprofile_Create(nodes, alphabet)
            assert hmmer.p7_ProfileConfig(hmm, background, generic, 400, _LOCAL) == 0
            assert hmmer.p7_oprofile_Convert(generic, striped) == 0
            self._generic.append((generic, hmmer.p7_gmx_Create(nodes, longest)))
            self._striped.append((striped, hmmer.p7_omx_Create(nodes, 0, longest)))

    def seconds(self, kind: str, block: ProteinBlock, threads: int) -> float:
        """Return the seconds for all proteins of a block."""
        sizes, scan = np.diff(block.offsets), loop_of(kind)
        # A sentinel is before, between and after the proteins.
        digital = np.insert(block.codes, block.offsets, 255)
        begins = (digital.ctypes.data + block.offsets[:-1] + np.arange(sizes.size)).astype(
            np.uint64
        )
        scores = np.zeros(threads * 16, dtype=np.float32)
        own = self._generic if kind == "G" else self._striped
        # Turn by turn, so that threads have as many long proteins.
        parts = [np.arange(first, sizes.size, threads) for first in range(threads)]

        def work(number: int) -> None:
            chosen, score = parts[number], scores.ctypes.data + 64 * number
            scan(begins[chosen], sizes[chosen], *own[number], score)

        scan(begins[:0], sizes[:0], *own[0], scores.ctypes.data)
        return wall_seconds(work, threads)


def our_seconds(one: ProfileFilter, kind: str, block: ProteinBlock, threads: int) -> float:
    """Return the seconds of our filter for all proteins of a block."""
    work = processor_scores(one, kind)
    count = block.offsets.size - 1
    borders = np.linspace(0, count, 4 * threads + 1).astype(int) if threads > 1 else [0, count]
    parts = [(int(first), int(end)) for first, end in pairwise(borders) if first < end]
    work(block, (0, 1))
    return wall_seconds(lambda number: work(block, parts[number]), threads, len(parts))


def wall_seconds(work: Callable[[int], object], threads: int, tasks: int | None = None) -> float:
    """Return the seconds that threads need for tasks, each by its number."""
    with ThreadPoolExecutor(threads) as executor:
        list(executor.map(abs, range(threads)))
        begin = time.perf_counter()
        list(executor.map(work, range(threads if tasks is None else tasks)))
        return time.perf_counter() - begin


def shortened(block: ProteinBlock, residues: float) -> ProteinBlock:
    """Return the first proteins of a block, of about so many residues, at least one."""
    count = max(1, int(np.searchsorted(block.offsets, residues)) - 1)
    offsets = block.offsets[: count + 1]
    return ProteinBlock(block.codes[: offsets[-1]], offsets)
