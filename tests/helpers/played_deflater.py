"""A library that deflates as nvCOMP does, on the host's device: it calls zlib."""

import ctypes
import zlib

import numpy as np

from mummergpu.cuda.nvcomp import Nvcomp
from mummergpu.errors import BackendError


def deflated(text):
    packed = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packed.compress(text) + packed.flush()


class PlayedDeflater(Nvcomp):
    """Has no library: `deflate_one` makes what a piece becomes, and a state other than 0."""

    def __init__(self, deflate_one=deflated, state=0):
        self.deflate_one = deflate_one
        self.state = state
        self.counts = []
        self.refuses = False

    def max_bytes(self, piece_bytes):
        return 2 * piece_bytes + 12

    def workspace_bytes(self, count, piece_bytes):
        return count * 100

    def deflate(self, stream, work):
        if self.refuses:
            raise BackendError("cuda", "nvCOMP answers with status 10")
        self.counts.append(work.count)
        texts, sizes, outputs = (
            numbers_at(address, work.count) for address in (work.texts, work.sizes, work.outputs)
        )
        assert max(sizes) <= work.piece_bytes and all(output % 8 == 0 for output in outputs)
        ctypes.memset(work.workspace, 0x5A, work.workspace_bytes)
        found = [
            self.deflate_one(ctypes.string_at(text, size))
            for text, size in zip(texts, sizes, strict=True)
        ]
        for output, piece in zip(outputs, found, strict=True):
            assert len(piece) <= self.max_bytes(work.piece_bytes)
            ctypes.memmove(output, piece, len(piece))
        packed_sizes = np.array([len(piece) for piece in found], dtype=np.uint64)
        ctypes.memmove(work.output_sizes, packed_sizes.ctypes.data, packed_sizes.nbytes)
        states = np.full(work.count, self.state, dtype=np.int32)
        ctypes.memmove(work.states, states.ctypes.data, states.nbytes)


def numbers_at(address, count):
    data = ctypes.string_at(address, 8 * count)
    return [int(number) for number in np.frombuffer(data, dtype=np.uint64)]
