"""The words of the Python interface for aligning genomes, and what they mean."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mummergpu.api.requests import count_asked, meaning, number_asked, truth
from mummergpu.errors import OptionError
from mummergpu.mapping.genomes.options import ClusterOptions, GenomeOptions, costs_of_gaps
from mummergpu.matching.options import SearchOptions, Uniqueness
from mummergpu.output.formats import Rows, names_of
from mummergpu.output.genomes.sink import AlignmentFilter
from mummergpu.viterbi.methods import AlignmentMethod


class ClusterAsked(NamedTuple):
    """Which matches form a cluster, as for `mummergpu.align`."""

    min_cluster: int
    max_gap: int
    diagonal_difference: int
    diagonal_factor: float


def genome_options(
    cluster: ClusterAsked,
    break_length: int,
    gap_open: int | None,
    gap_extend: int | None,
    extend: bool,
    simplify: bool,
    formats: Collection[str] = (),
) -> GenomeOptions:
    """Return how genomes are aligned; what is written decides on the usual penalties of gaps."""
    clusters = ClusterOptions(
        count_asked("min_cluster", cluster.min_cluster),
        count_asked("max_gap", cluster.max_gap),
        count_asked("diagonal_difference", cluster.diagonal_difference),
        number_asked("diagonal_factor", cluster.diagonal_factor),
    )
    length = count_asked("break_length", break_length)
    if gap_open is not None:
        gap_open = count_asked("gap_open", gap_open)
    if gap_extend is not None:
        gap_extend = count_asked("gap_extend", gap_extend)
    costs = costs_of_gaps(gap_open, gap_extend, formats)
    is_extended, is_simple = truth("extend", extend), truth("simplify", simplify)
    return GenomeOptions(clusters, length, is_extended, is_simple, costs)


def alignment_method(
    name: str, genomes: GenomeOptions, search: SearchOptions, has_length: bool
) -> AlignmentMethod:
    """Return the method by which sequences are aligned.

    One that aligns whole sequences refuses options about matches that are not the default ones.
    """
    method = meaning("method", name, {known.value: known for known in AlignmentMethod})
    if method is AlignmentMethod.TILE:
        return method
    usual, clusters = GenomeOptions(), genomes.clusters
    for option, is_given in (
        ("min_length", has_length),
        ("mode", search.uniqueness is not Uniqueness.IN_REFERENCE),
        ("min_cluster", clusters.min_bases != usual.clusters.min_bases),
        ("max_gap", clusters.max_gap != usual.clusters.max_gap),
        ("diagonal_difference", clusters.diagonal_difference != usual.clusters.diagonal_difference),
        ("diagonal_factor", clusters.diagonal_factor != usual.clusters.diagonal_factor),
        ("break_length", genomes.break_length != usual.break_length),
        ("extend", genomes.extend != usual.extend),
    ):
        if is_given:
            raise OptionError(
                option, f"is about matches, and method={name!r} aligns whole sequences without any"
            )
    return method


def alignment_filter(
    one_to_one: bool, min_identity: float, word: str, min_alignment_length: int | None
) -> AlignmentFilter:
    """Return which alignments are written; `word` is how the length is called."""
    return AlignmentFilter(
        truth("one_to_one", one_to_one),
        number_asked("min_identity", min_identity, 1),
        0 if min_alignment_length is None else count_asked(word, min_alignment_length),
    )


def format_of_request(name: str | None) -> str | None:
    """Return the name of a format of genome alignments, if there is one, or None."""
    return (
        None
        if name is None
        else meaning("format", name, {known: known for known in names_of(Rows.GENOMES)})
    )
