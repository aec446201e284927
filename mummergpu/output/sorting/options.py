"""What is done with the alignments of a whole file before it is written."""

from __future__ import annotations

from typing import Final

from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import keep_values, positive, truth

DEFAULT_MEMORY: Final = 4 << 30
"""About the memory that records may take before they are written to temporary files."""


@frozen
class SortOptions:
    """What is done with the alignments of a whole file before it is written.

    Attributes
    ----------
    by_coordinate : bool
        Whether to sort them by their places; equal ones stay in the order of the reads.
    mark_duplicates : bool
        Whether to flag duplicates (`duplicates.DuplicateFinder`).
    memory_bytes : int
        About the memory that records may take before they are written to temporary files.
    folder : str or None
        The folder for temporary files; None for that of the system.
    threads : int
        The number of threads that join and compress records.
    """

    by_coordinate: bool = True
    mark_duplicates: bool = False
    memory_bytes: int = DEFAULT_MEMORY
    folder: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        sort, marks = (
            truth("sort", self.by_coordinate),
            truth("mark_duplicates", self.mark_duplicates),
        )
        keep_values(self, by_coordinate=sort, mark_duplicates=marks)
        keep_values(self, threads=positive("threads", self.threads))

    @property
    def if_any(self) -> SortOptions | None:
        """These options; None if they ask for nothing."""
        return self if self.by_coordinate or self.mark_duplicates else None
