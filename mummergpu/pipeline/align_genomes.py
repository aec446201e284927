"""The job that aligns genomes: the main job finds the matches, and alignments are made of them."""

from __future__ import annotations

import os
from typing import Any, Final

from mummergpu.input.bytes.files import open_binary, reading
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.mapping.genomes.device_tiles import TileAligner
from mummergpu.matching.backends.interface import Backend
from mummergpu.output.genomes.delta import named_path
from mummergpu.output.sink import MatchSink
from mummergpu.pipeline import match
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.genome_outputs import open_genome_sink
from mummergpu.runtime.output_file import OutputFile
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.device.tile_set import AlignedTiles, TileSet
from mummergpu.viterbi.recurrence.model import AlignmentMethod, Costs

_HEAD_BYTES: Final = 1 << 16
"""The bytes that show how the lines of a file end."""

PART_OF_MEMORY: Final = 4
"""Tiles take at most this part of the memory that is free when they are aligned."""


def run(options: AlignOptions, context: RunContext) -> None:
    """Align all queries with the reference, and write the alignments.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """

    def open_sink(
        reference: Reference,
        files: list[OutputFile],
        backend: Backend[Any],
        context: RunContext,
    ) -> MatchSink[Any]:
        tiles = tiles_on_device(backend, options.genomes.costs, context)
        aligner = GenomeAligner(reference, options.genomes, tiles)
        return open_genome_sink(options, reference, files, aligner, context)

    if options.method is AlignmentMethod.TILE:
        match.run(options.anchors, context, open_sink)
    else:
        from mummergpu.pipeline.align_whole import run_whole

        run_whole(options, context)
    tell_of_delta(options, context)


def tell_of_delta(options: AlignOptions, context: RunContext) -> None:
    """Warn of files that programs which read a .delta cannot read again."""
    if all(target.format != "delta" for target in options.outputs):
        return
    for path in (options.reference_path, *options.query_paths):
        if fault := _fault_of_fasta(path):
            context.warn(
                f"the .delta names '{path}', {fault}: show-snps, dnadiff and mummerplot read such "
                "files again, and cannot read this one"
            )
        elif not os.path.isabs(named_path(path)):
            context.warn(
                f"the .delta names '{path}' as it is called from here, for a folder of its has a "
                "blank: show-snps, dnadiff and mummerplot find it only from this folder"
            )


def _fault_of_fasta(path: str) -> str:
    """Return why a file cannot be read again by programs that know nothing but FASTA."""
    if os.path.isfile(path):
        with reading(path), open_binary(path) as file:
            head = file.read(_HEAD_BYTES)
        if head.startswith(b">"):
            return "whose lines end with CR and LF" if b"\r" in head else ""
    return "which is not plain FASTA"


def tiles_on_device(backend: Backend[Any], costs: Costs, context: RunContext) -> TileAligner | None:
    """Return what aligns tiles on the device of a backend, None if it has no device of its own."""
    if backend.name != "cuda":
        return None
    from mummergpu.matching.backends.cuda_streams import CudaStreamsBackend

    if not isinstance(backend, CudaStreamsBackend):
        return None
    from mummergpu.cuda.device import DeviceMemoryError
    from mummergpu.viterbi.device.cuda_program import VITERBI_PROGRAM
    from mummergpu.viterbi.device.device_tiles import DeviceTiles

    def align(queries: CodeArray, reference: CodeArray, tiles: TileSet) -> AlignedTiles | None:
        device = backend.device
        with device.current():
            program = backend.program(VITERBI_PROGRAM)
            memory = device.memory()[0] // PART_OF_MEMORY
            aligner = DeviceTiles(device, program, costs, memory, context.stats)
            try:
                return aligner.align(queries, reference, tiles)
            except DeviceMemoryError as error:
                context.notice(
                    f"the processor aligns {tiles.count:,} tiles: no room on the GPU: {error}"
                )
                return None
            finally:
                aligner.free()

    return align
