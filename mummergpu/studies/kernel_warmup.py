"""Compile the kernels that runs on a GPU need, without that GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.nvrtc import known_architectures
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.sources import read_sources
from mummergpu.errors import OptionError, OutputError
from mummergpu.index.tree.policy import DEFAULT_POLICY, Policy
from mummergpu.matching.kmer.cuda_program import KMER_PROGRAM, SEED_PROGRAM
from mummergpu.matching.tree.cuda_program import tree_program
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.gathers import GATHER_PROGRAM
from mummergpu.studies.policy_choice import KNOWN_DEVICES, read_tuned

OPTION: Final = "--gpu"

_ARCHITECTURE: Final = re.compile("(?:sm|compute)_([0-9]+)")


@frozen
class KernelCounts:
    """How many programs a warm-up has compiled, and found as they had been kept before."""

    compiled: int
    found: int


def warm_kernels(architectures: Sequence[str], folder: Path, threads: int) -> KernelCounts:
    """Compile all usual programs for some architectures, and keep them.

    Parameters
    ----------
    architectures : sequence of str
        ``sm_90`` and the like for machine code, ``compute_90`` and the like for PTX.
    threads : int
        How many programs are compiled at the same time.

    Raises
    ------
    OptionError
        If NVRTC does not know an architecture.
    BackendError
        If there is no NVRTC.
    OutputError
        If the kernels cannot be kept.
    """
    known = known_architectures()
    for architecture in architectures:
        _refuse_unknown(architecture, known)
    trouble: list[str] = []
    # Nothing is removed: the first runs shall find all of it.
    cache = KernelCache(folder, trouble.append, maximum_bytes=1 << 62)
    sources = read_sources()

    def compile_one(work: tuple[ProgramSource, str]) -> None:
        cache.cubin(sources, *work)

    with ThreadPoolExecutor(threads) as executor:
        work = [(program, name) for name in architectures for program in usual_programs(name)]
        list(executor.map(compile_one, work))
    if trouble:
        raise OutputError(trouble[0], str(folder))
    return KernelCounts(cache.misses, cache.hits)


def usual_programs(architecture: str) -> Iterator[ProgramSource]:
    """Yield the programs that runs on an architecture need, if their options name no policy.

    They are the k-mer search, the tree search with each policy that may be chosen, in both formats
    of the nodes, and what ``sweep`` and ``tune`` measure a device with.
    """
    yield KMER_PROGRAM
    yield SEED_PROGRAM
    yield GATHER_PROGRAM
    known = (record for record in read_tuned(KNOWN_DEVICES) if record.architecture == architecture)
    codes = dict.fromkeys([DEFAULT_POLICY.code, *(record.policy for record in known)])
    policies = [Policy.from_code(code) for code in codes]
    # Policies that differ in the order of the nodes have the same program.
    yield from dict.fromkeys(
        tree_program(policy, wide, False) for policy in policies for wide in (False, True)
    )


def _refuse_unknown(architecture: str, known: Sequence[int]) -> None:
    match = _ARCHITECTURE.fullmatch(architecture)
    if match is None or int(match[1]) not in known:
        names = ", ".join(f"sm_{number}" for number in known)
        raise OptionError(OPTION, f"'{architecture}' is none of those that NVRTC knows: {names}")
