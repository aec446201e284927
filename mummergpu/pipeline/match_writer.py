"""What happens to the matches of a block: they are filtered, counted, and go to the outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.matching.backends.interface import BlockText, RowFormat
from mummergpu.matching.filter import keep_unique
from mummergpu.matching.options import Uniqueness
from mummergpu.output.sink import MatchSink
from mummergpu.pipeline.options import MatchOptions
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems, match_count

if TYPE_CHECKING:
    from mummergpu.matching.summary import MatchSummary


class MatchWriter:
    """Passes the matches of blocks on; any thread prepares them, one thread writes them."""

    def __init__(
        self, options: MatchOptions, reference: Reference, sink: MatchSink[Any], stats: Stats
    ) -> None:
        self._uniqueness = options.search.uniqueness
        self._sink = sink
        self._stats = stats
        self._summary = _new_summary(options, reference, stats)

    def row_format(self, group_count: int) -> RowFormat | None:
        """Return the format of text that a backend may make, None if columns are needed.

        Filters need columns, and so does a merge of the matches on several groups.
        """
        if self._uniqueness is not Uniqueness.ALL or group_count > 1:
            return None
        return self._sink.row_format(with_columns=self._summary is not None)

    def prepare(self, block: QueryBlock, mems: BlockMems) -> Any:
        """Prepare the matches of a block for `write`; any thread may call this."""
        mems = filter_mems(mems, self._uniqueness, self._stats)
        self._stats.add(matches=match_count(mems))
        if self._summary is not None:
            self._summary.add(block, mems)
        return self._sink.prepare(block, mems)

    def prepare_text(self, block: QueryBlock, text: BlockText) -> Any:
        """Prepare text that a backend has made; any thread may call this."""
        self._stats.add(matches=text.count)
        if self._summary is not None:
            self._summary.add(block, text.mems)
        return self._sink.prepare_text(text)

    def write(self, prepared: Any) -> None:
        """Write prepared matches; one thread calls this, block after block."""
        self._sink.write(prepared)

    def finish(self) -> None:
        """Write what follows the last block, and report the summary."""
        self._sink.finish()
        if self._summary is not None:
            self._summary.report()


def summary_bytes(options: MatchOptions, reference: Reference) -> int:
    """Return the memory of the summary of the matches, if the options ask for one."""
    if not options.summary:
        return 0
    from mummergpu.matching import summary

    return summary.summary_bytes(reference.codes.size)


def filter_mems(mems: BlockMems, uniqueness: Uniqueness, stats: Stats) -> BlockMems:
    """Return the matches that are as unique as the user asks."""
    if uniqueness is Uniqueness.ALL:
        return mems
    with stats.stage("coords_to_buffers"):
        in_query = uniqueness is Uniqueness.IN_BOTH
        return {strand: keep_unique(columns, in_query) for strand, columns in mems.items()}


def _new_summary(options: MatchOptions, reference: Reference, stats: Stats) -> MatchSummary | None:
    if not options.summary:
        return None
    from mummergpu.matching.summary import MatchSummary

    strands = options.search.strands
    return MatchSummary(reference.codes.size, options.query_paths, strands, stats)
