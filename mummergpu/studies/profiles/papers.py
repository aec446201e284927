"""The figures of the papers that first measured the policies of profile filters.

S. Ferraz, N. Moreano, Evaluating Optimization Strategies for HMMer Acceleration on GPU, ICPADS 2013
(a GeForce GTX 460); H. Jiang, N. Ganesan, Y.-D. Yao, CUDAMPF, BMC Bioinformatics 17, 2016 (K40).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.hmm.thread_filter_variants import ThreadPolicy
from mummergpu.studies.profiles.policies import LADDER


class PaperRow(NamedTuple):
    """A row of a table of the paper, with our policy of the same kind."""

    table: str
    name: str
    seconds: float
    policy: str


def _basic(**letters: str) -> str:
    return ThreadPolicy(**letters).code


_LADDER_SECONDS: Final = (220.85, 10.60, 11.94, 8.04, 10.40, 5.20, 5.17, 4.36)

PAPER_ROWS: Final = (
    PaperRow("III", "scores in global memory (basic)", 144.13, _basic()),
    PaperRow("III", "coalesced", 20.43, _basic(scores="c")),
    PaperRow("III", "coalesced and padded", 18.10, _basic(scores="p")),
    PaperRow("III", "in private memory", 6.70, _basic(scores="l")),
    PaperRow("IV", "transitions in global memory (basic)", 144.13, _basic()),
    PaperRow("IV", "regular ones in constant memory", 143.40, _basic(steps="c")),
    PaperRow("IV", "regular ones in shared memory", 142.54, _basic(steps="s")),
    PaperRow("IV", "special ones in shared memory", 140.99, _basic(special="s")),
    *(
        PaperRow("V", name, seconds, policy.code)
        for (name, policy), seconds in zip(LADDER, _LADDER_SECONDS, strict=True)
    ),
)
"""The paper's optimisations: 1 private scores, 2 the loop unrolled 8 times, 3 scheduled by hand, 4
sequences interleaved and sorted, 5 special transitions in shared memory, 6 regular ones in constant
memory. Special transitions copied for each thread, its other row of Table IV (140.44 s), are no
policy here."""

CUDAMPF_GCUPS: Final = {"S": 440.0, "M": 277.0, "V": 14.3}
"""The most that CUDAMPF reached, by filter."""
