"""What the process does without, of all that numba would import."""

from __future__ import annotations

from collections.abc import MutableMapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

NOT_NEEDED: Final = ("scipy", "coverage", "yaml")
"""For linear algebra, to be measured by, and to read settings from the working folder."""

MASKED_ARRAYS: Final = "numpy.ma"


def leave_out_what_is_not_needed(modules: MutableMapping[str, Any], finders: list[Any]) -> None:
    """Make this process one without modules that nothing here asks for.

    Numba imports them where they are installed, and numpy's masked arrays to see that what it
    is given is none. Together that takes up to two tenths of a second.

    Parameters
    ----------
    modules : mutable mapping
        ``sys.modules``; numba must not have been imported yet. What has been imported already
        stays.
    finders : list
        ``sys.meta_path``.
    """
    for name in NOT_NEEDED:
        modules.setdefault(name, None)
    finders.insert(0, WithoutMaskedArrays())


class WithoutMaskedArrays(MetaPathFinder, Loader):
    """Finds numpy's module of masked arrays: nothing but their class, which has no instance."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return the specification of the one module that this is for."""
        return ModuleSpec(fullname, self) if fullname == MASKED_ARRAYS else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system to make an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its class."""
        vars(module)["MaskedArray"] = type("MaskedArray", (), {})
