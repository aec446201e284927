"""Files of the hits of profiles: HMMER's tables and alignments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from mummergpu.hmm.hit_lists import HitList
from mummergpu.output.sink import Emit
from mummergpu.version import __version__

ALIGNMENT: Final = "alignment"
PARQUET: Final = "parquet"


class HitSink(ABC):
    """Receives the hits of all queries, query by query."""

    @abstractmethod
    def write(self, hits: HitList) -> None:
        """Write the hits of the next query."""

    def finish(self) -> None:
        """Write what follows the last query."""
        return None


class TableSink(HitSink):
    """Writes one of HMMER's tables (`hit_lists.TABLES`).

    Parameters
    ----------
    kind : str
        Which table.
    emit : callable
        Receives the bytes.
    program, command : str
        What has made the table, for its last lines.
    """

    def __init__(self, kind: str, emit: Emit, program: str, command: str) -> None:
        self._kind = kind
        self._emit = emit
        self._tail = (
            f"#\n# Program:         {program}\n# Version:         mummergpu {__version__}\n"
            f"# Option settings: {' '.join(command.split())}\n# [ok]\n"
        )
        self._has_head = False

    def write(self, hits: HitList) -> None:
        """Write the rows of a query; the columns are as wide as HMMER makes them for it."""
        text = hits.table(self._kind, header=not self._has_head)
        self._has_head = True
        if text:
            self._emit(text)

    def finish(self) -> None:
        """Write who has made the table."""
        self._emit(self._tail.encode())


class AlignmentSink(HitSink):
    """Writes the included domains of each profile as an alignment in Stockholm."""

    def __init__(self, emit: Emit, program: str, wraps: bool, warn: Callable[[str], None]) -> None:
        self._emit = emit
        self._warn = warn
        self._wraps = wraps
        self._program = f"{program} (mummergpu {__version__})"

    def write(self, hits: HitList) -> None:
        """Write the alignment of a profile, if any domain is included."""
        if text := hits.alignment(self._program, self._wraps, self._warn):
            self._emit(text)
