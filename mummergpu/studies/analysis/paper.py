"""What the MUMmerGPU 2.0 paper printed: its figures in words, and its tables.

C. Trapnell and M. C. Schatz, Optimizing data intensive GPGPU computations for DNA sequence
alignment, Parallel Computing 35 (2009), 429-440. Its figures have no numbers at their bars; the
values below stand in its text and tables, and no value was read off a bar.
"""

from __future__ import annotations

from typing import Final

from mummergpu.runtime.frozen import frozen
from mummergpu.studies.analysis.timings import KERNELS, TOTAL

DEVICE: Final = "GeForce 8800 GTX"
WORKLOAD: Final = "HSILL"
"""The workload of all its figures."""

FIRST_VERSION_CODE: Final = "RTrtn"
"""The layout of MUMmerGPU 1.0 (section 3)."""

DEFAULT_CODE: Final = "Tn"
"""The default of MUMmerGPU 2.0 (section 4.8)."""


@frozen
class Finding:
    """A value that the paper printed about the effect of one policy.

    Attributes
    ----------
    stage : str
        The stage, in the words of a sweep's records. What the paper calls the total computation
        time is the kernels' here: the copies of the trees take longer than them on today's
        devices, and would hide what the paper speaks of.
    average : float or None
        The mean change of the time in percent, None if the paper gives none.
    least, most : float or None
        The range of the changes in percent, None if the paper gives none.
    place : str
        The section, and the figure if there is one.
    """

    letter: str
    stage: str
    average: float | None
    least: float | None
    most: float | None
    words: str
    place: str


FINDINGS: Final = (
    Finding("r", KERNELS, 0.4, None, None, "slower by an insignificant 0.4% on average", "4.1"),
    Finding("Q", "print", 6.6, None, None, "slower by 6.6% on average", "4.2"),
    Finding(
        "Q",
        "match",
        3.0,
        None,
        None,
        "slower by 3% on average; faster without the tree texture, but for two exceptions",
        "4.2, Figure 4",
    ),
    Finding("R", "match", None, -12.0, 35.0, "from -12% to +35%", "4.3, Figure 5"),
    Finding("R", "print", None, None, None, "essentially the same times", "4.3"),
    Finding("T", "print", -8.0, None, None, "faster by 8% on average", "4.4"),
    Finding("T", "match", -11.0, None, None, "faster by 11% on average", "4.4, Figure 6"),
    Finding(
        "t",
        KERNELS,
        15.0,
        None,
        None,
        "slower by 15% on average, in every configuration; "
        "the print kernel of some by 52%, where its occupancy falls",
        "4.5, Figure 7",
    ),
    Finding(
        "n",
        KERNELS,
        -5.0,
        -11.0,
        -1.0,
        "faster by 5% on average, in every configuration by 1% to 11% (HSILL); "
        "slower as a rule for the other workloads",
        "4.6, 4.8, Figure 8",
    ),
    Finding("m", "print", 6.0, None, None, "slower by 6% on average", "4.7, Figure 9"),
    Finding("m", "match", None, None, None, "less dramatic than for the print kernel", "4.7"),
)


@frozen
class PaperFigure:
    """A figure of the paper that shows the effect of one policy on every layout.

    Attributes
    ----------
    words : str
        What the paper says below it.
    """

    number: int
    letter: str
    stage: str
    title: str
    words: str

    @property
    def finding(self) -> Finding:
        """The printed values of this figure."""
        return next(one for one in FINDINGS if (one.letter, one.stage) == (self.letter, self.stage))


FIGURES: Final = (
    PaperFigure(
        4,
        "Q",
        "match",
        "query texture, match kernel",
        "generally improves the runtime, except when there is cache competition from the tree "
        "texture",
    ),
    PaperFigure(
        5,
        "R",
        "match",
        "reference texture, match kernel",
        "configurations only benefit when the tree is not also in texture memory",
    ),
    PaperFigure(
        6,
        "T",
        "match",
        "tree texture, match kernel",
        "not universally beneficial, presumably due to cache competition in some configurations",
    ),
    PaperFigure(
        7,
        "t",
        KERNELS,
        "two-dimensional tree, all kernels",
        "universally slows overall computation time",
    ),
    PaperFigure(
        8,
        "n",
        KERNELS,
        "tree reordering, all kernels",
        "improves running time for all configurations, not only for those with the tree in a "
        "texture",
    ),
    PaperFigure(
        9,
        "m",
        "print",
        "merged tree, print kernel",
        "the register footprint depends on merged arrays; 16 registers raise the occupancy to 66%",
    ),
)


@frozen
class PaperWorkload:
    """A row of Table 1; lengths are in bases."""

    name: str
    reference_bases: int
    minimum_length: int
    read_type: str
    read_count: int


TABLE_1: Final = (
    PaperWorkload("HSILL", 16_000_000, 14, "Illumina (29 bp)", 500_000),
    PaperWorkload("CBRIGG", 13_000_000, 100, "Sanger (~700 bp)", 500_000),
    PaperWorkload("LMONO", 2_944_528, 20, "454 (~120 bp)", 1_000_000),
    PaperWorkload("SSUIS", 2_007_491, 10, "Illumina (36 bp)", 1_000_000),
)


@frozen
class PaperTimes:
    """A row of Table 2: milliseconds of MUMmerGPU 1.0 and 2.0.

    Attributes
    ----------
    first_match, first_print : int
        The times of version 1.0, whose print procedure ran on the processor.
    second_match, second_print : int
        The times of version 2.0 in its default layout.
    """

    workload: str
    first_match: int
    first_print: int
    second_match: int
    second_print: int

    @property
    def speedup(self) -> float:
        """How many times as fast version 2.0 is, match and print together."""
        return (self.first_match + self.first_print) / (self.second_match + self.second_print)


TABLE_2: Final = (
    PaperTimes("HSILL", 677, 56_911, 540, 14_379),
    PaperTimes("LMONO", 6_822, 6_518, 5_693, 4_268),
    PaperTimes("CBRIGG", 26_419, 9_977, 22_066, 4_640),
    PaperTimes("SSUIS", 1_180, 26_265, 968, 9_383),
)

STAGES_OF_PAPER: Final = ("match", "print", KERNELS, TOTAL)
"""The stages for which the report compares policies."""
