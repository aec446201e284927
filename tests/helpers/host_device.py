"""A device for tests: host memory, and the kernels' own source compiled for the host.

Threads run one after the other, so a kernel may be given fewer threads than it has items.
Memory can be limited, and everything that is not given back is known.
"""

import ctypes
import hashlib
import os
import struct
import threading
import weakref
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from helpers.host_libraries import library_of
from mummergpu.cuda.device import DeviceMemoryError, KernelResources
from mummergpu.cuda.program import CONSTANTS_HEADER

HERE = Path(__file__).resolve().parents[1] / "kernels"
KERNELS = HERE.parents[1] / "kernels"
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
UNOPTIMISED = "-O0"
"""For what takes longer to compile than to run."""
BARRIER_KERNELS = {
    *("sum_tiles", "scan_tile_sums", "scan_tiles", "sort_long_candidates"),
    *("count_frequent_kmer_mems", "write_frequent_kmer_mems", "sort_long_query_mems"),
    "sort_long_reads",
}
ALIGNMENT = 256
POISON = 0xA5


def key_of(program):
    """A name for files; tests compile programs of one name with other constants too."""
    return f"{program.name}-{hashlib.sha256(repr(program).encode()).hexdigest()[:12]}"


def options_for_host(program):
    """What a compiler is told of a program, but for the folders of `folders_for_host`."""
    engine = program.entry.partition("/")[0].upper()
    return [
        *("-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"),
        *program.definitions(),
        *(f"-D{engine}_ENGINE", f'-DPROGRAM_ENTRY="{program.entry}"'),
    ]


def folders_for_host(program, folder):
    """Where a compiler finds a program, its constants, and CUDA's stand-in."""
    constants = folder / f"constants-{key_of(program)}"
    constants.mkdir(exist_ok=True)
    header = constants / CONSTANTS_HEADER
    # Others may write, and read, the same file at the same time.
    unfinished = header.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    unfinished.write_text(program.constants_header())
    os.replace(unfinished, header)
    return [KERNELS, constants, HERE]


def compile_for_host(program, folder, extra=()):
    """Compile the kernels into a shared library, unless the folder has it."""
    options = ["-O1", "-g1", *extra, *options_for_host(program)]
    name = f"kernels-{program.name}"
    include = folders_for_host(program, folder)
    return library_of(folder, name, HERE / "host_program.cpp", include, options)


_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]


class HostBuffer:
    """Memory that begins at a multiple of `ALIGNMENT`, poisoned.

    It comes from the C library, and ends where it was asked to end: a sanitizer that stands
    in for the library sees the first byte behind it.
    """

    def __init__(self, device, size):
        self._device = device
        address = ctypes.c_void_p()
        failed = _libc.posix_memalign(
            ctypes.byref(address), ctypes.c_size_t(ALIGNMENT), ctypes.c_size_t(size)
        )
        if failed or address.value is None:
            raise MemoryError
        self.address = address.value
        self.size = size
        ctypes.memset(self.address, POISON, size)

    def free(self):
        self._device.give_back(self)
        _libc.free(self.address)


class HostExportedMemory(HostBuffer):
    """Memory that is given back when nothing refers to it, which libraries on the host can read."""

    device_number = 0

    def __init__(self, device, size):
        super().__init__(device, size)
        self._finalizer = weakref.finalize(self, _give_back, device, self.address, size)

    def copy_out(self, array):
        assert array.flags.c_contiguous and array.nbytes <= self.size
        ctypes.memmove(array.ctypes.data, self.address, array.nbytes)

    def free(self):
        self._finalizer()


def _give_back(device, address, size):
    device.shared.remove((address, size))
    ctypes.memset(address, POISON, size)
    _libc.free(address)


class HostTextureDescription(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("width", ctypes.c_size_t),
        ("rows", ctypes.c_size_t),
        ("texel_bytes", ctypes.c_size_t),
    ]


class HostTexture:
    def __init__(self, device, address, width, rows, texel_bytes):
        self._device = device
        self._description = HostTextureDescription(address, width, rows, texel_bytes)
        self.kept = None
        self.handle = ctypes.addressof(self._description)
        self.size = 0

    def free(self):
        self._device.textures.remove(self)


class HostMark:
    def milliseconds_since(self, earlier):
        assert isinstance(earlier, HostMark)
        return 1.0

    def wait(self):
        pass


class HostProgram:
    def __init__(self, library):
        self._library = ctypes.CDLL(str(library))

    def run(self, kernel, blocks, threads, arguments):
        codes = "".join("I" if isinstance(value, np.uint32) else "Q" for value in arguments)
        packed = struct.pack(codes, *(int(value) for value in arguments))
        found = self._library.launch_kernel(
            kernel.encode(), blocks, threads, packed, ctypes.c_size_t(len(packed))
        )
        assert found == 0, f"there is no kernel {kernel}"

    def resources(self, kernel, shape=None):
        return KernelResources(1, 0, 0, 1.0)

    def symbol(self, name):
        return ctypes.addressof(ctypes.c_char.in_dll(self._library, name))


class HostStream:
    handle = 0

    def __init__(self, device):
        self._device = device

    def copy_in(self, address, array):
        assert array.flags.c_contiguous
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def copy_out(self, array, address):
        assert array.flags.c_contiguous
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy_on_device(self, to, address, size):
        ctypes.memmove(to, address, size)

    def fill_zero(self, address, size):
        ctypes.memset(address, 0, size)

    def launch(self, program, kernel, blocks, arguments, shape=None):
        assert isinstance(program, HostProgram)
        assert shape is None or shape.shared_bytes <= self._device.shared_bytes
        assert blocks > 0
        threads = self._device.block_threads
        assert threads == 1 or kernel not in BARRIER_KERNELS
        self._device.launches.append(kernel)
        program.run(kernel, blocks, threads, arguments)

    def mark(self):
        return HostMark()

    def synchronize(self):
        pass

    def sleep_until_done(self):
        pass

    def free(self):
        self._device.streams.remove(self)


class HostDevice:
    """The device; `memory_bytes` limits its linear memory."""

    library = "host"
    name = "host"
    architecture = "sm_90"

    def __init__(self, memory_bytes=1 << 30, resident_blocks=3):
        self.block_threads = 1
        self.shared_bytes = 227 << 10
        self.resident_blocks = resident_blocks
        self.memory_bytes = memory_bytes
        self.buffers = []
        self.shared = []
        self.textures = []
        self.streams = []
        self.launches = []
        self.refusals = 0
        self.closed = False

    @contextmanager
    def current(self):
        yield

    @property
    def used(self):
        return sum(size for _, size in self.shared) + sum(buffer.size for buffer in self.buffers)

    def memory(self):
        return self.memory_bytes - self.used, self.memory_bytes

    def _make_room(self, size):
        if self.used + size > self.memory_bytes:
            self.refusals += 1
            raise DeviceMemoryError(f"{size} bytes")

    def allocate(self, size):
        self._make_room(size)
        buffer = HostBuffer(self, size)
        self.buffers.append(buffer)
        return buffer

    def allocate_exported(self, size):
        self._make_room(size)
        memory = HostExportedMemory(self, size)
        self.shared.append((memory.address, size))
        return memory

    def give_back(self, buffer):
        self.buffers.remove(buffer)

    def pinned(self, count, dtype):
        return np.full(count * np.dtype(dtype).itemsize, POISON, dtype=np.uint8).view(dtype)

    def new_stream(self):
        stream = HostStream(self)
        self.streams.append(stream)
        return stream

    def load(self, cubin):
        return HostProgram(Path(os.fsdecode(cubin)))

    def linear_texture(self, address, texels, texel_bytes):
        return self._texture(address, texels, 1, texel_bytes)

    def array_texture(self, data, width, texel_bytes):
        kept = data.copy()
        rows = data.nbytes // (width * texel_bytes)
        texture = self._texture(kept.ctypes.data, width, rows, texel_bytes)
        texture.kept = kept
        return texture

    def _texture(self, address, width, rows, texel_bytes):
        texture = HostTexture(self, address, width, rows, texel_bytes)
        self.textures.append(texture)
        return texture

    def close(self):
        self.closed = True


class HostCompiler:
    """Stands in for the cache of kernels: gives the path of a library as the "cubin"."""

    hits = 0
    misses = 0
    repaired = 0

    def __init__(self, folder, extra=()):
        self._folder = folder
        self._extra = extra
        self._libraries = {}

    def cubin(self, sources, program, architecture):
        if program not in self._libraries:
            self._libraries[program] = compile_for_host(program, self._folder, self._extra)
        return os.fsencode(self._libraries[program])


def everything_given_back(device):
    """Tell whether nothing is left of what was taken from a device."""
    left = [*device.buffers, *device.textures, *device.streams]
    return not left and device.closed
