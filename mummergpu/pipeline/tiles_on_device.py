"""Aligns the tiles of genome alignments on the device that searches for their anchors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mummergpu.mapping.genomes.device_tiles import TileAligner
from mummergpu.matching.backends.interface import Backend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.device.tile_set import AlignedTiles, TileSet
from mummergpu.viterbi.recurrence.model import Costs

PART_OF_MEMORY: Final = 4
"""Tiles take at most this part of the memory that is free when they are aligned."""


def tiles_on_device(
    backend: Backend[Any], costs: Costs, stats: Stats, notice: Callable[[str], None]
) -> TileAligner | None:
    """Return what aligns tiles on the device of a backend.

    Parameters
    ----------
    backend : Backend
        The backend of the run.
    costs : Costs
        The scores.
    stats : Stats
        Collects the times of the kernels.
    notice : callable
        Receives a message if the device has no room for tiles.

    Returns
    -------
    callable or None
        None if the backend has no device of its own.
    """
    if backend.name != "cuda":
        return None
    from mummergpu.matching.backends.streaming import StreamingBackend

    if not isinstance(backend, StreamingBackend):
        return None
    from mummergpu.cuda.device import DeviceMemoryError
    from mummergpu.viterbi.device.cuda_program import VITERBI_PROGRAM
    from mummergpu.viterbi.device.device_tiles import DeviceTiles

    def align(queries: CodeArray, reference: CodeArray, tiles: TileSet) -> AlignedTiles | None:
        device = backend.device
        with device.current():
            program = backend.program(VITERBI_PROGRAM)
            memory = device.memory()[0] // PART_OF_MEMORY
            aligner = DeviceTiles(device, program, costs, memory, stats)
            try:
                return aligner.align(queries, reference, tiles)
            except DeviceMemoryError as error:
                notice(f"the processor aligns {tiles.count:,} tiles: no room on the GPU: {error}")
                return None
            finally:
                aligner.free()

    return align
