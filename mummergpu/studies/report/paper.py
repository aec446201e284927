"""The results printed in the MUMmerGPU 2.0 paper: its figures in words, and its tables.

C. Trapnell and M. C. Schatz, Optimizing data intensive GPGPU computations for DNA sequence
alignment, Parallel Computing 35 (2009), 429-440. The bars of its figures have no numbers; the
values below stand in its text and tables, and no value was read off a bar.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.studies.report.timings import KERNELS, TOTAL

DEVICE: Final = "GeForce 8800 GTX"
WORKLOAD: Final = "HSILL"
"""The workload of all its figures."""

FIRST_VERSION_CODE: Final = "RTrtn"
"""The layout of MUMmerGPU 1.0 (section 3)."""

DEFAULT_CODE: Final = "Tn"
"""The default of MUMmerGPU 2.0 (section 4.8)."""

STAGES_OF_PAPER: Final = ("match", "print", KERNELS, TOTAL)
"""The stages for which the report compares policies."""


class Finding(NamedTuple):
    """The effect of one policy as the paper printed it, in percent; None where it gives no number.

    The paper's total computation time is compared with the kernels here: on today's devices the
    copies of the trees take longer than the kernels, and would hide the effects of the paper.
    """

    letter: str
    stage: str
    average: float | None
    least: float | None
    most: float | None
    place: str
    words: str


FINDINGS: Final = (
    Finding("r", KERNELS, 0.4, None, None, "4.1", "slower by an insignificant 0.4% on average"),
    Finding("Q", "print", 6.6, None, None, "4.2", "slower by 6.6% on average"),
    Finding(
        *("Q", "match", 3.0, None, None, "4.2, Figure 4"),
        "slower by 3% on average; faster without the tree texture, but for two exceptions",
    ),
    Finding("R", "match", None, -12.0, 35.0, "4.3, Figure 5", "from -12% to +35%"),
    Finding("R", "print", None, None, None, "4.3", "essentially the same times"),
    Finding("T", "print", -8.0, None, None, "4.4", "faster by 8% on average"),
    Finding("T", "match", -11.0, None, None, "4.4, Figure 6", "faster by 11% on average"),
    Finding(
        *("t", KERNELS, 15.0, None, None, "4.5, Figure 7"),
        "slower by 15% on average, in every configuration; "
        "the print kernel of some by 52%, where its occupancy falls",
    ),
    Finding(
        *("n", KERNELS, -5.0, -11.0, -1.0, "4.6, 4.8, Figure 8"),
        "faster by 5% on average, in every configuration by 1% to 11% (HSILL); "
        "slower as a rule for the other workloads",
    ),
    Finding("m", "print", 6.0, None, None, "4.7, Figure 9", "slower by 6% on average"),
    Finding("m", "match", None, None, None, "4.7", "less dramatic than for the print kernel"),
)


class PaperFigure(NamedTuple):
    """A figure of the effect of one policy on every layout, and its caption in the paper."""

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
        *(4, "Q", "match", "query texture, match kernel"),
        "generally improves the runtime, except when there is cache competition from the tree "
        "texture",
    ),
    PaperFigure(
        *(5, "R", "match", "reference texture, match kernel"),
        "configurations only benefit when the tree is not also in texture memory",
    ),
    PaperFigure(
        *(6, "T", "match", "tree texture, match kernel"),
        "not universally beneficial, presumably due to cache competition in some configurations",
    ),
    PaperFigure(
        *(7, "t", KERNELS, "two-dimensional tree, all kernels"),
        "universally slows overall computation time",
    ),
    PaperFigure(
        *(8, "n", KERNELS, "tree reordering, all kernels"),
        "improves running time for all configurations, not only for those with the tree in a "
        "texture",
    ),
    PaperFigure(
        *(9, "m", "print", "merged tree, print kernel"),
        "the register footprint depends on merged arrays; 16 registers raise the occupancy to 66%",
    ),
)


class PaperWorkload(NamedTuple):
    """A row of Table 1; lengths are in bases."""

    name: str
    reference_bases: int
    min_match_length: int
    reads: str
    read_count: int


TABLE_1: Final = (
    PaperWorkload("HSILL", 16_000_000, 14, "Illumina (29 bp)", 500_000),
    PaperWorkload("CBRIGG", 13_000_000, 100, "Sanger (~700 bp)", 500_000),
    PaperWorkload("LMONO", 2_944_528, 20, "454 (~120 bp)", 1_000_000),
    PaperWorkload("SSUIS", 2_007_491, 10, "Illumina (36 bp)", 1_000_000),
)


class PaperTimes(NamedTuple):
    """A row of Table 2: milliseconds of MUMmerGPU 1.0, which printed on the processor, and 2.0."""

    workload: str
    first_match: int
    first_print: int
    second_match: int
    second_print: int

    @property
    def speedup(self) -> float:
        """The speed-up of version 2.0, match and print together."""
        return (self.first_match + self.first_print) / (self.second_match + self.second_print)


TABLE_2: Final = (
    PaperTimes("HSILL", 677, 56_911, 540, 14_379),
    PaperTimes("LMONO", 6_822, 6_518, 5_693, 4_268),
    PaperTimes("CBRIGG", 26_419, 9_977, 22_066, 4_640),
    PaperTimes("SSUIS", 1_180, 26_265, 968, 9_383),
)
