"""What the section on one run that mapped reads says about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import BLUE
from mummergpu.runtime.words import counted
from mummergpu.studies.analysis.run_stats import InsertSizeCounts, MappingCounts
from mummergpu.studies.report.blocks import Block, Drawing, Paragraph, Table
from mummergpu.studies.report.style import drawn, new_figure
from mummergpu.studies.report.words import ABSENT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DEVIATIONS_SHOWN: Final = 6
"""The figure of insert sizes ends so many standard deviations above the mean."""


def mapping_blocks(found: MappingCounts, name: str) -> list[Block]:
    """Return what is told about the reads of a run that mapped them."""
    blocks: list[Block] = [Paragraph(_words(found)), _reads_table(found)]
    if found.mapped:
        blocks.append(_qualities_drawing(found.mapping_qualities, f"{name}-qualities"))
    if found.insert_size.mean is not None:
        blocks.append(_sizes_drawing(found.insert_size, f"{name}-insert-sizes"))
    return blocks


def _words(found: MappingCounts) -> str:
    text = f"Of {counted(found.reads, 'read')}, {found.mapped:,} "
    text += f"({_share(found.mapped, found.reads)}) are mapped."
    sizes = found.insert_size
    if sizes.mean is not None and sizes.standard_deviation is not None:
        text += (
            f" The insert size of {counted(sizes.pairs, 'proper pair')} is {sizes.mean:,.1f} bases "
            f"in the mean, with a standard deviation of {sizes.standard_deviation:,.1f}."
        )
    return text


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else ABSENT


def _reads_table(found: MappingCounts) -> Table:
    numbers = (
        ("mapped", found.mapped, found.reads),
        ("with a mate", found.paired, found.reads),
        ("in proper pairs", found.properly_paired, found.paired),
        ("mapped as their mates are", found.mapped_with_mate, found.paired),
        ("mapped, and their mates are not", found.singletons, found.paired),
        ("with the mate on another record", found.mate_on_other_record, found.paired),
    )
    rows = [("all", f"{found.reads:,}", ABSENT)]
    rows += [(name, f"{number:,}", _share(number, whole)) for name, number, whole in numbers]
    rows += [
        ("secondary alignments besides", f"{found.secondary:,}", ABSENT),
        ("supplementary alignments besides", f"{found.supplementary:,}", ABSENT),
    ]
    columns = ("reads", "number", "share (of pairs: of reads with a mate)")
    return Table("What became of the reads.", columns, tuple(rows))


def _qualities_drawing(counts: Sequence[int], name: str) -> Drawing:
    caption = (
        "The mapping qualities of the mapped reads: how many reads have each. The axis of the "
        "numbers is logarithmic."
    )
    alternative = f"A histogram of mapping qualities from 0 to {len(counts) - 1}"
    return drawn(
        name, caption, alternative, lambda: _draw(counts, 0, "mapping quality", "reads", log=True)
    )


def _sizes_drawing(sizes: InsertSizeCounts, name: str) -> Drawing:
    assert sizes.mean is not None and sizes.standard_deviation is not None
    far = _DEVIATIONS_SHOWN * sizes.standard_deviation + 1
    first = max(0, int(sizes.mean - far))
    counts = sizes.counts[first : int(sizes.mean + far) + 1]
    others = sizes.pairs - sum(counts)
    caption = f"The insert sizes of {sizes.pairs:,} proper pairs: how many have each."
    if others:
        caption += f" {others:,} are outside of the figure."
    alternative = f"A histogram of insert sizes from {first:,} bases on"
    return drawn(
        name, caption, alternative, lambda: _draw(counts, first, "insert size (bases)", "pairs")
    )


def _draw(counts: Sequence[int], first: int, what: str, unit: str, log: bool = False) -> Figure:
    figure = new_figure(2.6)
    axes = figure.subplots()
    edges = [first + place - 0.5 for place in range(len(counts) + 1)]
    baseline = 0.0
    if log:
        axes.set_yscale("log")
        baseline = 0.5
    axes.stairs(counts, edges, baseline=baseline, fill=True, color=BLUE)
    axes.set_ylim(bottom=baseline)
    axes.set_xlabel(what)
    axes.set_ylabel(unit)
    axes.grid(axis="y")
    return figure
