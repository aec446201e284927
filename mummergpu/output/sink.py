"""The output of matches: any thread makes the text, one thread writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mummergpu.input.queries import QueryBlock
from mummergpu.matching.block_text import BlockText
from mummergpu.matching.columns import MemColumns
from mummergpu.output.mummer import MummerFormatter
from mummergpu.output.number_text import TextArray
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand


class TextSink:
    """Turns the matches of blocks into MUMmer's text, and writes it.

    Parameters
    ----------
    formatter : MummerFormatter
        Makes the text.
    output : OutputFile
        Receives the text.
    stats : Stats
        Collects the number of matches, the bytes and the times.
    most_rows : int
        The text of a block with more matches than this is made only while it is written, so
        that memory never holds all of it.
    """

    def __init__(
        self, formatter: MummerFormatter, output: OutputFile, stats: Stats, most_rows: int
    ) -> None:
        self._formatter = formatter
        self._output = output
        self._stats = stats
        self._most_rows = most_rows

    def prepare(self, block: QueryBlock, mems: Mapping[Strand, MemColumns]) -> Iterator[TextArray]:
        """Return the text of a block's matches; any thread may call this.

        Parameters
        ----------
        block : QueryBlock
            The queries.
        mems : mapping of Strand to MemColumns
            The matches of the queries, on each strand that was searched.

        Returns
        -------
        iterator of ndarray, dtype=uint8
            The pieces of text, for `write`.
        """
        matches = sum(columns.count for columns in mems.values())
        self._stats.add(matches=matches)
        text = self._formatter.format_block(block, mems)
        if matches > self._most_rows:
            return text
        with self._stats.stage("format"):
            return iter(list(text))

    def prepare_text(self, text: BlockText) -> Iterator[TextArray]:
        """Return text that a backend has made; any thread may call this."""
        self._stats.add(matches=text.count)
        return iter(text.pieces)

    def write(self, text: Iterator[TextArray]) -> None:
        """Write the prepared text; one thread calls this, block after block."""
        for piece in text:
            with self._stats.stage("results_to_disk"):
                self._output.write(piece)
            self._stats.add_bytes(output=piece.size)
            self._formatter.take_back(piece)
