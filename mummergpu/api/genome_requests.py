"""Arguments of the Python interface for aligning genomes, as the classes of options take them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypedDict

from mummergpu.mapping.genomes.options import ClusterOptions, GenomeOptions, costs_of_gaps
from mummergpu.matching.options import SearchOptions, Uniqueness
from mummergpu.pipeline.align_options import OF_MATCHES, refuse_options_of_matches
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import meaning
from mummergpu.viterbi.recurrence.model import AlignmentMethod


class AlignKeywords(TypedDict, total=False):
    """The types of the fields of `AlignRequest`."""

    min_cluster: int
    max_gap: int
    diagonal_difference: int
    diagonal_factor: float
    break_length: int
    gap_open: int | None
    gap_extend: int | None
    extend: bool
    simplify: bool
    method: str
    circular: str | Sequence[str]


@frozen
class AlignRequest:
    """What `mummergpu.align`, which describes it, and `Index.align` take alike."""

    min_cluster: int = 65
    max_gap: int = 90
    diagonal_difference: int = 5
    diagonal_factor: float = 0.12
    break_length: int = 200
    gap_open: int | None = None
    gap_extend: int | None = None
    extend: bool = True
    simplify: bool = True
    method: str = "tile"
    circular: str | Sequence[str] = ()

    def job(
        self, search: SearchOptions, has_length: bool, formats: Collection[str] = ()
    ) -> tuple[GenomeOptions, AlignmentMethod]:
        """Return how genomes are aligned; what is written decides on the usual costs of gaps."""
        genomes = GenomeOptions(
            ClusterOptions(
                *(self.min_cluster, self.max_gap, self.diagonal_difference, self.diagonal_factor)
            ),
            *(self.break_length, self.extend, self.simplify),
            costs_of_gaps(self.gap_open, self.gap_extend, formats),
            self.circular,
        )
        method = meaning("method", self.method, {known.value: known for known in AlignmentMethod})
        usual, given = vars(AlignRequest()), {**vars(self), "circular": genomes.circular}
        told = [name for name in OF_MATCHES if given.get(name) != usual.get(name)]
        told += ["min_length"] * has_length
        told += ["mode"] * (search.uniqueness is not Uniqueness.IN_REFERENCE)
        refuse_options_of_matches(method, told)
        return genomes, method
