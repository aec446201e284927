"""Choose between the processor and a GPU before either is opened."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

from mummergpu.index.kmer_plan import (
    DEVICE_COSTS,
    THREADS_BESIDE_DEVICE,
    KmerJob,
    choose_sampling,
    expected_cost,
    most_table_bytes,
)
from mummergpu.index.options import KmerOptions
from mummergpu.pipeline.options import MatchOptions
from mummergpu.pipeline.query_volume import estimate_query_bases

DEVICE_START_SECONDS: Final = 0.35
"""The time in which a GPU becomes ready, and in which its context is taken apart."""


def choose_backend(options: MatchOptions, has_index: bool, query_bases: int | None) -> str:
    """Return the backend to open: ``auto`` is decided by what the search is expected to cost.

    Parameters
    ----------
    options : MatchOptions
        The files and options of the run.
    has_index : bool
        Whether the reference is an index file.
    query_bases : int or None
        About how many bases the queries have, on all strands that are searched; None if unknown.

    Returns
    -------
    str
        The backend that the options name, or ``cpu`` in place of ``auto`` if a k-mer search by the
        processor would be done before a GPU has started and searched.

    Notes
    -----
    Where the size of the queries is unknown, or the search is of trees, ``auto`` stays: the GPU is
    taken if there is one.
    """
    asked = options.device.backend
    if asked != "auto" or not isinstance(options.index.kind, KmerOptions):
        return asked
    bases = estimate_query_bases([options.reference_path]) or 0
    if has_index:
        # The codes of the reference take a byte a base, and the table takes some more.
        bases = os.stat(options.reference_path).st_size // 4
    if bases == 0 or query_bases is None:
        return asked
    job = KmerJob(bases, options.index.minimum_length, query_bases, is_kept=has_index)
    most_bytes = most_table_bytes(bases)
    by_processor = expected_cost(job, choose_sampling(job, most_bytes))
    job = replace(job, is_kept=False)
    by_device = expected_cost(job, choose_sampling(job, most_bytes, DEVICE_COSTS), DEVICE_COSTS)
    processor_seconds = by_processor.seconds / options.threads
    device_seconds = DEVICE_START_SECONDS + by_device.search / THREADS_BESIDE_DEVICE
    if not has_index:
        device_seconds += by_device.table / options.threads
    return "cpu" if processor_seconds < device_seconds else asked
