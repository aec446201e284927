"""Adds the images of compiled functions that `make wheel` has made to a wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ImagesHook(BuildHookInterface[Any]):
    """With images, the wheel is for x86-64, and for every version of Python."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, which no file of the sources names."""
        images = Path(self.root, "build", "images", "processor")
        if version == "standard" and images.is_dir():
            for path in images.glob("*/*.code"):
                place = path.relative_to(images).as_posix()
                build_data["force_include"][str(path)] = f"mummergpu/images/{place}"
            # Images call nothing but functions that each C library has.
            build_data["tag"] = "py3-none-manylinux_2_17_x86_64"
            build_data["pure_python"] = False
