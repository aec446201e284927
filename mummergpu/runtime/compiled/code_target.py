"""The processors that code is compiled for: this machine's own, or all that have some features.

Code for this machine's own processor is the fastest, and may run nowhere else. Generic code runs on
every processor that has the features of a target here. `mummergpu warmup --generic` makes it for
a container, which does not know the machines that it will run on.
"""

from __future__ import annotations

import platform
import sys
from typing import Final

from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.processors import first_processor

_X86_64: Final = frozenset({"x86_64"})
_ARM64: Final = frozenset({"arm64", "aarch64"})
_FLAGS_OF_V2: Final = frozenset(
    {b"pni", b"ssse3", b"sse4_1", b"sse4_2", b"popcnt", b"cx16", b"lahf_lm"}
)
_FLAGS_OF_V3: Final = _FLAGS_OF_V2 | {
    *(b"avx", b"avx2", b"bmi1", b"bmi2", b"f16c", b"fma", b"abm", b"movbe", b"xsave"),
}


@frozen
class GenericTarget:
    """A set of features that many processors have.

    Attributes
    ----------
    name : str
        The name for users.
    cpu : str
        What LLVM calls the plainest processor with these features.
    machines : frozenset of str
        What Python calls the machines that may have them.
    flags : frozenset of bytes
        What Linux calls the features that not every such machine has.
    """

    name: str
    cpu: str
    machines: frozenset[str]
    flags: frozenset[bytes]

    @property
    def has_avx(self) -> bool:
        """Whether its code may have instructions of AVX."""
        return b"avx" in self.flags


GENERIC_TARGETS: Final = (
    GenericTarget("x86-64-v3", "x86-64-v3", _X86_64, _FLAGS_OF_V3),
    GenericTarget("x86-64-v2", "x86-64-v2", _X86_64, _FLAGS_OF_V2),
    GenericTarget("arm64", "generic", _ARM64, frozenset()),
)
"""All generic targets; of those that a machine can run, the best comes first."""

_chosen: list[GenericTarget | None] = []


def compile_for(target: GenericTarget | None) -> None:
    """Have this process compile for one target, and use no other code.

    Parameters
    ----------
    target : GenericTarget or None
        One of `runnable_targets`, because this process also runs the code; None for this machine's
        own processor.

    Raises
    ------
    RuntimeError
        If numba has been imported already: it may have chosen this machine's own processor.
    """
    if target is not None and "numba" in sys.modules:
        raise RuntimeError("numba has been imported before the target was chosen")
    _chosen[:] = [target]


def chosen_target() -> GenericTarget | None:
    """Return the target of `compile_for`; None if this machine's own processor is the target."""
    return _chosen[0] if _chosen else None


def accepted_targets() -> tuple[GenericTarget, ...]:
    """Return the generic targets whose code is used where that for the chosen one is missing.

    There are none after a call of `compile_for`.
    """
    return () if _chosen else runnable_targets()


def runnable_targets() -> tuple[GenericTarget, ...]:
    """Return the generic targets whose code this machine can run, the best first.

    There are none if the system does not tell what its processors can do.
    """
    machine = platform.machine()
    related = [target for target in GENERIC_TARGETS if machine in target.machines]
    if all(not target.flags for target in related):
        return tuple(related)
    try:
        flags = frozenset(first_processor()[b"flags"].split())
    except (OSError, ValueError, KeyError):
        return ()
    return tuple(target for target in related if target.flags <= flags)
