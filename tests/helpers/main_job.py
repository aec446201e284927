"""The main job on made references and queries, under any setting."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import inf
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from helpers.options import match_options
from helpers.sequences import write_numbered
from mummergpu.index import kmer_index, kmer_order, minimizer_index
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.kmer import cpu as sampled
from mummergpu.matching.kmer import unique
from mummergpu.matching.options import Uniqueness
from mummergpu.matching.tree import cpu as trees
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.match import run
from mummergpu.sequence.picked_kmers import MAX_BASES
from mummergpu.sequence.strand import Strand

STRANDS = {
    "forward": (Strand.FORWARD,),
    "reverse": (Strand.REVERSE,),
    "both": (Strand.FORWARD, Strand.REVERSE),
}
EVERYTHING: dict[str, Any] = {"strands": "both", "four_columns": True}


@dataclass(frozen=True)
class Setting:
    """What must not change a byte of the output."""

    policy: str = "Tmn"
    page_size: int = 1 << 23
    threads: int = 1
    block_size: int = 1 << 20
    memory: int | None = None
    piece_bases: int = trees.SIZES.piece_bases
    max_rows: int = trees.SIZES.max_rows
    address_bits: int | None = None
    search: str = "tree"
    kmer_length: int | None = None
    reference_step: int = 1
    is_picked: bool = False
    longest_ascending: int = kmer_order.MAX_UNSORTED_OCCURRENCES
    minimizer_lengths: tuple[int, ...] = minimizer_index.KMER_LENGTHS
    task_bases: int = unique.TASK_BASES


def found_text(folder, records, reads, minimum_length, setting, **told):
    """Return what the main job writes."""
    told["strands"] = STRANDS[told.get("strands", "forward")]
    told["uniqueness"] = Uniqueness(told.get("uniqueness", "maxmatch"))
    options = match_options(
        str(write_numbered(folder / "reference.fa", "r", records)),
        (str(write_numbered(folder / "queries.fa", "q", reads)),),
        str(folder / "found.txt"),
        minimum_length=minimum_length,
        threads=setting.threads,
        backend="cpu",
        search=setting.search,
        page_size=setting.page_size,
        address_bits=setting.address_bits,
        policy=Policy.from_code(setting.policy),
        block_size=setting.block_size,
        memory=setting.memory,
        **told,
    )
    sizes = replace(
        sampled.SIZES if setting.search == "kmer" else trees.SIZES,
        piece_bases=setting.piece_bases,
        long_query=2 * setting.piece_bases,
        batch_bases=4 * setting.piece_bases,
        max_rows=setting.max_rows,
    )
    kmer_length = min(minimum_length, setting.kmer_length or 2)
    step = min(setting.reference_step, minimum_length - kmer_length + 1)
    is_picked = setting.is_picked and kmer_length + step - 1 <= MAX_BASES
    sampling = KmerSampling(kmer_length, step, is_picked)
    lengths = (1 << 20,) if setting.kmer_length else setting.minimizer_lengths
    with (
        patch.object(sampled if setting.search == "kmer" else trees, "SIZES", sizes),
        patch.object(kmer_order, "MAX_UNSORTED_OCCURRENCES", setting.longest_ascending),
        # Where it is said which k-mers a table lists, there is such a table.
        patch.object(minimizer_index, "KMER_LENGTHS", lengths),
        patch.object(minimizer_index, "MIN_WINDOW", 1),
        patch.object(minimizer_index, "kmer_seconds", lambda job: inf),
        patch.object(unique, "TASK_BASES", setting.task_bases),
        patch.object(kmer_index, "choose_sampling", lambda job, *_: sampling)
        if setting.kmer_length
        else nullcontext(),
    ):
        run(options, RunContext(options.threads))
    return (folder / "found.txt").read_text()


output_options = st.fixed_dictionaries(
    {
        "strands": st.sampled_from(sorted(STRANDS)),
        "uniqueness": st.sampled_from([member.value for member in Uniqueness]),
        "forward_coordinates": st.booleans(),
        "four_columns": st.booleans(),
        "show_query_lengths": st.booleans(),
        "show_sequences": st.booleans(),
    }
)
