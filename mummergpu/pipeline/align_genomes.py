"""The job that aligns genomes: the main job finds the matches, and alignments are made of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mummergpu.input.bytes.files import open_binary, reading
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.matching.backends.interface import Backend
from mummergpu.output.matches.sink import MatchSink
from mummergpu.pipeline import match
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.pipeline.genome_outputs import open_genome_sink
from mummergpu.pipeline.tiles_on_device import tiles_on_device
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import NullProgress
from mummergpu.runtime.stats import Stats
from mummergpu.viterbi.methods import AlignmentMethod


def run(
    options: AlignOptions,
    stats: Stats,
    progress: NullProgress,
    notice: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Align all queries with the reference, and write the alignments.

    Parameters
    ----------
    options : AlignOptions
        The files and options of the run.
    stats : Stats
        Collects counts, bytes and times.
    progress : Progress or NullProgress
        Shows how many pages and queries are done.
    notice : callable
        Receives progress messages, shown with -v.
    warn : callable
        Receives warnings; any thread may call it.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """

    def open_sink(
        reference: Reference,
        files: list[OutputFile],
        executor: ThreadPoolExecutor,
        backend: Backend[Any],
    ) -> MatchSink[Any]:
        tiles = tiles_on_device(backend, options.genomes.costs, stats, notice)
        aligner = GenomeAligner(reference, options.genomes, tiles)
        return open_genome_sink(options, reference, files, aligner, executor, stats)

    if options.method is AlignmentMethod.TILE:
        match.run(options.anchors, stats, progress, notice, warn, open_sink)
    else:
        from mummergpu.pipeline.align_whole import run_whole

        run_whole(options, stats, progress, notice, warn)
    if any(target.format == "delta" for target in options.targets):
        for path in (options.anchors.reference_path, *options.anchors.query_paths):
            if not _is_plain_fasta(path):
                warn(
                    f"the .delta names '{path}', which is not plain FASTA: show-snps, dnadiff and "
                    "mummerplot read such files again, and cannot read this one"
                )


def _is_plain_fasta(path: str) -> bool:
    """Return whether a file can be read again, by programs that know nothing but FASTA."""
    if not os.path.isfile(path):
        return False
    with reading(path), open_binary(path) as file:
        return file.read(1) == b">"
