"""Opens the aligner of whole sequences: the processor, or a device."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from mummergpu.errors import BackendError
from mummergpu.mapping.genomes.whole import OpenMatrix
from mummergpu.matching.options import DeviceOptions
from mummergpu.pipeline.context import RunContext
from mummergpu.runtime.memory import free_memory
from mummergpu.viterbi.recurrence.model import AlignmentMethod, Costs
from mummergpu.viterbi.whole.processor_matrix import LONGEST, RoundPlan

if TYPE_CHECKING:
    from mummergpu.cuda.device import Device, Program
    from mummergpu.matching.backends.cuda_streams import CudaStreamsBackend
    from mummergpu.runtime.stats import Stats


def open_matrix(
    method: AlignmentMethod,
    costs: Costs,
    device: DeviceOptions,
    context: RunContext,
    stack: ExitStack,
) -> OpenMatrix:
    """Return the aligner of whole sequences; one thread may use it at a time.

    ``auto`` takes a GPU if there is one. The stack closes a device.

    Raises
    ------
    BackendError
        If the requested backend is not available.
    """
    if device.backend != "cpu":
        try:
            return _on_own_device(method, costs, device, context, stack)
        except BackendError as error:
            if device.backend == "cuda":
                raise
            context.notice(f"no cuda backend: {error.message}")
    context.stats.set(backend="cpu")
    return _on_processor(method, costs, context)


@contextmanager
def matrix_beside(
    searching: CudaStreamsBackend[Any, Any] | None, costs: Costs, context: RunContext
) -> Iterator[OpenMatrix]:
    """Give the wave-front on the device that searches, or on the processor if none does."""
    method = AlignmentMethod.WAVEFRONT
    if searching is None:
        yield _on_processor(method, costs, context)
        return
    from mummergpu.viterbi.device.cuda_program import VITERBI_PROGRAM

    with ExitStack() as stack:
        device = searching.device
        stack.enter_context(device.current())
        program, memory = searching.program(VITERBI_PROGRAM), device.memory()[0]
        yield _on_device(method, costs, device, program, memory, context.stats, stack)


def _on_processor(method: AlignmentMethod, costs: Costs, context: RunContext) -> OpenMatrix:
    from mummergpu.viterbi.whole.processor_matrix import BLOCK_COLUMNS, BLOCK_ROWS, ProcessorMatrix

    matrix = ProcessorMatrix(costs, context.executor.map)

    def check(length: int, reference_length: int) -> str | None:
        plan = RoundPlan(length, reference_length, BLOCK_ROWS, BLOCK_COLUMNS)
        needed = matrix.matrix_bytes(plan)
        if method is AlignmentMethod.WAVEFRONT and needed > free_memory():
            return _too_large(plan, needed, "of memory", "--method streaming or tile")
        if method is AlignmentMethod.STREAMING and needed > free_temporary_bytes():
            folder = f"in '{tempfile.gettempdir()}'"
            return _too_large(plan, needed, folder, "--method tile, or another TMPDIR")
        return _too_long(plan)

    is_streamed = method is AlignmentMethod.STREAMING
    return OpenMatrix(matrix.align_streamed if is_streamed else matrix.align, check)


def free_temporary_bytes() -> int:
    """Return the free bytes in the folder of temporary files."""
    return shutil.disk_usage(tempfile.gettempdir()).free


def _on_own_device(
    method: AlignmentMethod,
    costs: Costs,
    options: DeviceOptions,
    context: RunContext,
    stack: ExitStack,
) -> OpenMatrix:
    from mummergpu.matching.open_cuda import open_device

    device, cache = open_device(options, stack, context.notice)
    stack.enter_context(device.current())
    stats = context.stats
    from mummergpu.cuda.kernel_cache import Programs
    from mummergpu.matching.backends.memory_plan import usable_memory
    from mummergpu.viterbi.device.cuda_program import VITERBI_PROGRAM

    with stats.stage("kernels_compiled"):
        program = Programs(device, cache).load(VITERBI_PROGRAM)
    memory = usable_memory(device.memory()[0], options.memory)
    stats.set(backend="cuda", device=device.name, device_library=device.library)
    return _on_device(method, costs, device, program, memory, stats, stack)


def _on_device(
    method: AlignmentMethod,
    costs: Costs,
    device: Device,
    program: Program,
    memory: int,
    stats: Stats,
    stack: ExitStack,
) -> OpenMatrix:
    from mummergpu.viterbi.device.device_matrix import (
        BLOCK_BYTES,
        BLOCK_COLUMNS,
        STRIP_ROWS,
        DeviceMatrix,
    )

    matrix = DeviceMatrix(device, program, costs, memory, stats)
    stack.callback(matrix.free)

    def check(length: int, reference_length: int) -> str | None:
        plan = RoundPlan(length, reference_length, STRIP_ROWS, BLOCK_COLUMNS)
        needed = int(plan.first_blocks[-1]) * BLOCK_BYTES
        if method is AlignmentMethod.WAVEFRONT and not matrix.has_room(plan):
            return _too_large(plan, needed, "of the GPU's memory", "--method streaming or tile")
        if method is AlignmentMethod.STREAMING and needed > free_memory():
            return _too_large(plan, needed, "of memory", "--method tile")
        return _too_long(plan)

    is_streamed = method is AlignmentMethod.STREAMING
    return OpenMatrix(matrix.align_streamed if is_streamed else matrix.align, check)


def _too_large(plan: RoundPlan, needed: int, where: str, remedy: str) -> str:
    return (
        f"a matrix of {plan.length:,} and {plan.reference_length:,} bases takes "
        f"{needed / 2**30:.1f} GiB {where}: use {remedy}"
    )


def _too_long(plan: RoundPlan) -> str | None:
    if max(plan.length, plan.reference_length) <= LONGEST:
        return None
    return (
        f"a matrix has at most {LONGEST:,} bases on each side, and these sequences have "
        f"{plan.length:,} and {plan.reference_length:,}: use --method tile"
    )
