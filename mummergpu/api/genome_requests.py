"""The words of the Python interface for aligning genomes, and what they mean."""

from __future__ import annotations

from collections.abc import Collection

from mummergpu.api.requests import count_asked, meaning, number_asked, truth
from mummergpu.errors import OptionError
from mummergpu.mapping.genomes.options import ClusterOptions, GenomeOptions, costs_of_gaps
from mummergpu.matching.options import SearchOptions, Uniqueness
from mummergpu.output.genomes.targets import GENOME_FORMATS
from mummergpu.pipeline.align_options import AlignmentFilter
from mummergpu.viterbi.methods import AlignmentMethod


def genome_options(
    min_cluster: int,
    max_gap: int,
    diagonal_difference: int,
    diagonal_factor: float,
    break_length: int,
    gap_open: int | None,
    gap_extend: int | None,
    extend: bool,
    simplify: bool,
    formats: Collection[str] = (),
) -> GenomeOptions:
    """Return how genomes are aligned.

    Parameters
    ----------
    min_cluster, max_gap, diagonal_difference, diagonal_factor
        Which matches form a cluster, as for `mummergpu.align`.
    break_length : int
        For how many bases an extension goes on without getting better.
    gap_open, gap_extend : int or None
        The penalties of a gap and of each of its bases; None for the usual ones.
    extend : bool
        Whether alignments are extended beyond clusters at all.
    simplify : bool
        Whether alignments that lie inside another one are left out.
    formats : collection of str
        What is written, on which the usual penalties of gaps depend.

    Returns
    -------
    GenomeOptions
        The typed options.

    Raises
    ------
    OptionError
        If a number is not one, negative, or too large.
    """
    clusters = ClusterOptions(
        count_asked("min_cluster", min_cluster),
        count_asked("max_gap", max_gap),
        count_asked("diagonal_difference", diagonal_difference),
        number_asked("diagonal_factor", diagonal_factor),
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

    Parameters
    ----------
    name : str
        ``tile``, ``wavefront`` or ``streaming``.
    genomes : GenomeOptions
        How genomes are aligned.
    search : SearchOptions
        Which matches alignments begin with.
    has_length : bool
        Whether the length of these matches was asked for.

    Raises
    ------
    OptionError
        If there is no such method; or it aligns whole sequences, and an option about matches is not
        what it is by default.
    """
    method = meaning("method", name, {known.value: known for known in AlignmentMethod})
    if method is AlignmentMethod.TILE:
        return method
    usual, clusters = GenomeOptions(), genomes.clusters
    for option, is_given in (
        ("min_length", has_length),
        ("mode", search.uniqueness is not Uniqueness.IN_REFERENCE),
        ("min_cluster", clusters.least_bases != usual.clusters.least_bases),
        ("max_gap", clusters.most_gap != usual.clusters.most_gap),
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


def alignment_filter(one_to_one: bool, min_identity: float, min_aligned: int) -> AlignmentFilter:
    """Return which alignments are written.

    Parameters
    ----------
    one_to_one : bool
        Only those that map each base to its best place.
    min_identity : float
        The least share of equal columns, between 0 and 1.
    min_aligned : int
        The fewest bases of the reference and of the query.

    Raises
    ------
    OptionError
        If a number is not one, or out of its range.
    """
    return AlignmentFilter(
        truth("one_to_one", one_to_one),
        number_asked("min_identity", min_identity, 1),
        count_asked("min_aligned", min_aligned),
    )


def format_of_request(name: str | None) -> str | None:
    """Return the name of a format of genome alignments, if there is one, or None."""
    return (
        None
        if name is None
        else meaning("format", name, {known: known for known in GENOME_FORMATS})
    )
