"""Find every maximal exact match of sequencing reads in a reference genome.

The command line is in `mummergpu.cli`. Start reading at `mummergpu.pipeline.match`, which
follows a block of queries through all steps of a search.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
"""What type checkers take for true; the module `typing` would have to be imported."""

if TYPE_CHECKING:
    from mummergpu import plot as plot


def __getattr__(name: str) -> object:
    """Import `mummergpu.plot` when it is first used."""
    if name == "plot":
        from importlib import import_module

        return import_module("mummergpu.plot")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
