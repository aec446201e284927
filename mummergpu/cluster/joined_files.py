"""The files of a run on a cluster: workers prepare their rows, and the driver joins them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from mummergpu.cluster.packed_parts import PackedPart, PartJoiner
from mummergpu.errors import OutputError
from mummergpu.output.bytes.texts import Piece
from mummergpu.output.formats import FORMATS, RowKind
from mummergpu.output.open_sink import warn_of_names
from mummergpu.output.sink import ByteSink, OpenRequest, OutputContext, SeveralSinks, Sink
from mummergpu.output.targets import BGZF, OutputTarget
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.unfinished_file import parts_folder


class JoinedFiles:
    """The files, as the driver writes them.

    Attributes
    ----------
    begins : tuple of int
        The bytes of text that each file has before the first row.
    compressions : tuple of str or None
        How workers compress each file.
    folders : tuple of str or None
        The folders for parts beside the files; None where workers send what they have made.
    """

    def __init__(
        self,
        targets: Sequence[OutputTarget],
        files: Sequence[OutputFile],
        facts: OutputContext,
        stats: Stats,
        rows: RowKind,
        indexes: Sequence[OutputFile | None],
        stack: ExitStack,
    ) -> None:
        self._joiners: list[PartJoiner] = []
        self._sinks: list[Sink[Any, Any, Any]] = []
        compressions, folders = [], []
        for target, file, index in zip(
            targets, files, indexes or [None] * len(targets), strict=True
        ):
            joiner = PartJoiner(file, stats)
            opening = OpenRequest(target, facts, joiner.add, stats, index, is_raw=True)
            sink = FORMATS[target.format].open(opening, rows)
            stack.callback(sink.close)
            takes_bytes = isinstance(sink, ByteSink)
            has_folder = takes_bytes and file.is_file
            folders.append(_folder(target.path, stack) if has_folder else None)
            compressions.append(
                (BGZF if target.has_bgzf else target.compression) if takes_bytes else None
            )
            self._joiners.append(joiner)
            self._sinks.append(sink)
        self.begins = tuple(joiner.waiting_bytes for joiner in self._joiners)
        for joiner, target, sink in zip(self._joiners, targets, self._sinks, strict=True):
            opening = OpenRequest(target, facts, joiner.add, stats)
            joiner.begin(opening.compressor() if isinstance(sink, ByteSink) else None)
        self.compressions, self.folders = tuple(compressions), tuple(folders)
        warn_of_names(targets, facts)

    def write(self, packed: Sequence[PackedPart | list[Any]]) -> None:
        """Write what workers have made of a part."""
        for joiner, sink, own in zip(self._joiners, self._sinks, packed, strict=True):
            if isinstance(own, PackedPart):
                joiner.add_part(own)
                continue
            for prepared in own:
                sink.write(iter(prepared) if isinstance(prepared, _Pieces) else prepared)

    def finish(self) -> None:
        """Write what follows the last row."""
        for joiner, sink in zip(self._joiners, self._sinks, strict=True):
            sink.finish()
            joiner.finish()


class _Pieces(list[Any]):
    """What was an iterator on a worker."""


class PreparedFiles:
    """The same files on a worker, which prepares their rows."""

    def __init__(
        self, targets: Sequence[OutputTarget], facts: OutputContext, rows: RowKind
    ) -> None:
        stats = Stats()
        self._sinks = [
            FORMATS[target.format].open(
                OpenRequest(replace(target, path=os.devnull), facts, _drop, stats, is_raw=True),
                rows,
            )
            for target in targets
        ]
        self.sink: SeveralSinks[Any, Any] = SeveralSinks(self._sinks)

    def joined(self, prepared: Iterable[list[Any]]) -> list[Any]:
        """Return the bytes of each file as an array, or a list of what its sink has prepared."""
        found: list[Any] = [
            bytearray() if isinstance(sink, ByteSink) else [] for sink in self._sinks
        ]
        for of_block in prepared:
            for sink, whole, own in zip(self._sinks, found, of_block, strict=True):
                if isinstance(sink, ByteSink):
                    for piece in own:
                        whole += memoryview(piece)
                        sink.take_back(piece)
                else:
                    whole.append(_Pieces(own) if hasattr(own, "__next__") else own)
        return found

    def close(self) -> None:
        """Close the sinks."""
        self.sink.close()


def _drop(_piece: Piece) -> None:
    """Take what the driver writes."""


def _folder(path: str, stack: ExitStack) -> str:
    try:
        return stack.enter_context(parts_folder(path))
    except OSError as error:
        raise OutputError(f"no folder for its parts: {error.strerror}", path) from error
