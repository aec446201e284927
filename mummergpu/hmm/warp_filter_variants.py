"""SSV, MSV and Viterbi with lanes for a sequence, by the choices of CUDAMPF.

H. Jiang, N. Ganesan, Y.-D. Yao, CUDAMPF: a multi-tiered parallel framework for accelerating protein
sequence search in HMMER on CUDA-enabled GPU, BMC Bioinformatics 17, 2016. The kernels are those of
searches; see ``kernels/hmm/rows.cuh``.
"""

from __future__ import annotations

from itertools import product
from typing import Final

from mummergpu.cuda.program import WARP_LANES
from mummergpu.errors import OptionError
from mummergpu.hmm.filter_programs import (
    MAX_WORD_REGISTERS,
    RowProgram,
    RowShape,
    RowVariant,
    byte_program,
    word_program,
)
from mummergpu.runtime.frozen import frozen

FILTERS: Final = "SMV"
"""SSV, MSV, Viterbi."""

LANE_COUNTS: Final = (8, 16, 32)

MAX_BYTE_REGISTERS: Final = 64
"""The row of SSV or MSV of more registers does not fit those of a thread."""


@frozen
class RowPolicy:
    """How a filter with a group of lanes for a sequence works.

    Attributes
    ----------
    filter : str
        ``S`` for SSV, ``M`` for MSV, ``V`` for Viterbi.
    scores, rows, tables : str
        As in `RowVariant`.
    lanes : int
        For a sequence: 8, 16 or 32.
    """

    filter: str = "V"
    scores: str = "r"
    rows: str = "c"
    tables: str = "s"
    lanes: int = WARP_LANES

    @classmethod
    def from_code(cls, code: str) -> RowPolicy:
        """Return the policy of a code such as ``Vrcs32``; raise `OptionError` if it is none."""
        found = next((one for one in every_row_policy() if one.code == code), None)
        if found is None:
            raise OptionError("policy", f"'{code}' is no policy of rows, such as 'Vrcs32'")
        return found

    @property
    def code(self) -> str:
        """The letters of all choices, and the lanes."""
        return f"{self.filter}{self.scores}{self.rows}{self.tables}{self.lanes}"

    def row(self, nodes: int) -> RowShape:
        """Return the shape of a profile's row."""
        registers = -(-nodes // (2 * self.lanes))
        return RowShape(self.lanes, registers if self.rows == "c" else -(-registers // 4) * 4)

    def program(self, nodes: int, shared_bytes: int) -> RowProgram | None:
        """Return the program for a profile; None if it does not fit the memory of a block."""
        row, variant = self.row(nodes), RowVariant(self.scores, self.rows, self.tables)
        most = MAX_WORD_REGISTERS if self.filter == "V" else MAX_BYTE_REGISTERS
        program_of = word_program if self.filter == "V" else byte_program
        found = program_of(row, variant, shared_bytes)
        fits = found.shape.shared_bytes <= shared_bytes
        return found if fits and (self.scores != "r" or row.registers <= most) else None


def every_row_policy() -> list[RowPolicy]:
    """Return all policies: registers cannot hold a row whose length is not compiled."""
    every = (RowPolicy(*one) for one in product(FILTERS, "rsl", "ct", "sc", LANE_COUNTS))
    return [one for one in every if one.scores != "r" or one.rows == "c"]
