"""Find every maximal exact match of sequencing reads in a reference genome.

The command line is in `mummergpu.cli`. Start reading at `mummergpu.pipeline.match`, which
follows a block of queries through all steps of a search.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import `mummergpu.plot` when it is first used."""
    if name == "plot":
        from importlib import import_module

        return import_module("mummergpu.plot")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
