"""Says which Python and which libraries the compiled code is for: those that compiled it."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

from mummergpu.version import __version__

LIBRARIES = ("numba", "llvmlite", "numpy")
"""With another version of one of them, none of the code would be used."""


class VersionsHook(MetadataHookInterface):
    """Asks for the versions of all libraries that the code depends on."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add what is dynamic in `pyproject.toml`."""
        versions = {"mummergpu": __version__, **{name: version(name) for name in LIBRARIES}}
        metadata["version"] = __version__
        metadata["dependencies"] = [f"{name}=={number}" for name, number in versions.items()]


class CodeHook(BuildHookInterface[Any]):
    """Packs the code, which no file of the sources names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, and say which machines and which Python they are for."""
        found = sorted(Path(self.root, "mummergpu_code").rglob("*.code"))
        if not found:
            raise FileNotFoundError("mummergpu_code/ has no code: run 'mummergpu warmup' first")
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        # As numba's own wheels: the code calls nothing of the system by name.
        build_data["tag"] = f"{python}-{python}-manylinux_2_17_{platform.machine()}"
        build_data["pure_python"] = False
        build_data["artifacts"] = ["*.code"]
