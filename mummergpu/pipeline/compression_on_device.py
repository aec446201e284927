"""Compresses output on the device that searches."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from mummergpu.errors import OptionError
from mummergpu.matching.backends.interface import Backend
from mummergpu.output.bytes.compression import Compressor
from mummergpu.runtime.stats import Stats


def compressor_on_device(backend: Backend[Any], stats: Stats, stack: ExitStack) -> Compressor:
    """Return what compresses into blocks of bgzf on the device of a backend.

    Parameters
    ----------
    backend : Backend
        The backend of the run.
    stats : Stats
        Collects the times of the kernels, and the bytes moved.
    stack : contextlib.ExitStack
        Frees the memory on the device; the backend must be closed later.

    Returns
    -------
    Compressor
        Of several devices, the first one compresses.

    Raises
    ------
    OptionError
        If the backend has no device.
    LibraryError
        If nvCOMP is not installed, or does not work.
    BackendError
        If the device has too little memory.
    """
    if backend.name != "cuda":
        raise OptionError("--gpu-compression", f"needs a GPU, and the backend is '{backend.name}'")
    from mummergpu.cuda.nvcomp import load_nvcomp
    from mummergpu.matching.backends.several_devices import SeveralDevices
    from mummergpu.matching.backends.streaming import StreamingBackend
    from mummergpu.output.bytes.device_compression import BGZF_PROGRAM, DeviceBgzfCompressor

    deflater = load_nvcomp()
    one = backend.first if isinstance(backend, SeveralDevices) else backend
    assert isinstance(one, StreamingBackend)
    with one.device.current():
        program = one.program(BGZF_PROGRAM)
    compressor = DeviceBgzfCompressor(one.device, program, deflater, stats)
    stack.callback(compressor.close)
    return compressor
