"""Arguments of the Python interface for aligning genomes, as the classes of options take them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mummergpu.mapping.genomes.options import ClusterOptions, GenomeOptions, costs_of_gaps
from mummergpu.matching.options import SearchOptions, Uniqueness
from mummergpu.pipeline.align_options import refuse_options_of_matches
from mummergpu.runtime.option_values import meaning
from mummergpu.viterbi.methods import AlignmentMethod


def genome_options(
    clusters: ClusterOptions,
    break_length: int,
    gap_open: int | None,
    gap_extend: int | None,
    extend: bool,
    simplify: bool,
    formats: Collection[str] = (),
    circular: str | Sequence[str] = (),
) -> GenomeOptions:
    """Return how genomes are aligned; what is written decides on the usual penalties of gaps."""
    costs = costs_of_gaps(gap_open, gap_extend, formats)
    return GenomeOptions(clusters, break_length, extend, simplify, costs, circular)


def alignment_method(
    name: str, genomes: GenomeOptions, search: SearchOptions, has_length: bool
) -> AlignmentMethod:
    """Return the method by which sequences are aligned, with options that suit it."""
    method = meaning("method", name, {known.value: known for known in AlignmentMethod})
    usual, told = _about_matches(GenomeOptions()), _about_matches(genomes)
    others = [option for option, value in told.items() if value != usual[option]]
    others += ["min_length"] * has_length
    others += ["mode"] * (search.uniqueness is not Uniqueness.IN_REFERENCE)
    refuse_options_of_matches(method, others)
    return method


def _about_matches(genomes: GenomeOptions) -> dict[str, Any]:
    clusters = genomes.clusters
    return {
        "min_cluster": clusters.min_bases,
        "max_gap": clusters.max_gap,
        "diagonal_difference": clusters.diagonal_difference,
        "diagonal_factor": clusters.diagonal_factor,
        "break_length": genomes.break_length,
        "extend": genomes.extend,
        "circular": genomes.circular,
    }
