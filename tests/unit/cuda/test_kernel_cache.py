"""Compiled kernels on disk: found again, checked, replaced, pruned, and never required."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from mummergpu.cuda import kernel_cache
from mummergpu.cuda import nvrtc as compilation
from mummergpu.cuda.kernel_cache import KernelCache, Programs, cache_key
from mummergpu.cuda.program import ProgramSource
from mummergpu.errors import BackendError
from mummergpu.runtime.compiled.store_entry import ABANDONED_SECONDS, pack

PLAIN = ProgramSource("plain", "engine/program.cu", (("FAST", 0),), (("FEW", 3),))
FAST = replace(PLAIN, name="fast", macros=(("FAST", 1),))
SOURCES = {"engine/program.cu": '#include "engine/a.cuh"\n', "engine/a.cuh": "int a;\n"}
HEADER_BYTES = len(pack(b"", b""))


class Compiler:
    """Compiles nothing, and counts how often it is asked."""

    def __init__(self, image_bytes=1000):
        self.calls = []
        self._image_bytes = image_bytes

    def __call__(self, sources, program, architecture):
        self.calls.append((program.name, architecture))
        start = f"{program.name} {architecture} {sources['engine/a.cuh']}".encode()
        return start.ljust(self._image_bytes, b"\0")


class Run:
    """A cache as one process has it, and what it was told."""

    def __init__(self, folder, maximum_bytes=1 << 20):
        self.notices = []
        self.compiler = Compiler()
        self.cache = KernelCache(folder, self.notices.append, maximum_bytes, lambda: (13, 0))

    def get(self, sources=SOURCES, program=PLAIN, architecture="sm_90"):
        return self.cache.cubin(sources, program, architecture, self.compiler)

    @property
    def counts(self):
        return self.cache.hits, self.cache.misses, self.cache.repaired


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "made" / "when needed"


def only_file(folder):
    (path,) = folder.iterdir()
    return path


def test_a_second_start_compiles_nothing(folder):
    first, second = Run(folder), Run(folder)
    image = first.get()
    assert first.counts == (0, 1, 0) and second.get() == image
    assert second.get() == image and second.counts == (2, 0, 0)
    assert second.compiler.calls == []
    # All may read it, as from a container's image, and nobody else may write it.
    assert only_file(folder).stat().st_mode & 0o777 == 0o644 and not first.notices + second.notices


def test_whatever_makes_a_difference_has_a_file_of_its_own(folder):
    run = Run(folder)
    images = {
        run.get(),
        run.get(program=FAST),
        run.get(architecture="sm_80"),
        run.get(SOURCES | {"engine/a.cuh": "int b;\n"}),
    }
    assert len(images) == run.cache.misses == len(list(folder.iterdir())) == 4


def test_the_key_holds_all_that_the_image_depends_on(monkeypatch):
    def key(sources=SOURCES, program=PLAIN, architecture="sm_90", version=(13, 0)):
        return cache_key(sources, program, architecture, version)

    entry, other = SOURCES
    keys = [
        key(),
        key({entry: SOURCES[entry], "engine/b.cuh": SOURCES[other]}),
        key({entry: SOURCES[other], other: SOURCES[entry]}),
        key(SOURCES | {"common/c.cuh": ""}),
        key(program=replace(PLAIN, entry=other)),
        key(program=replace(PLAIN, constants=(("FEW", 4),))),
        # The same characters, cut elsewhere.
        key({entry: "", "engine/ab": "c"}),
        key({entry: "", "engine/a": "bc"}),
        key({entry: "", "engine/a": "b", "engine/c": ""}),
        key(program=FAST),
        key(architecture="compute_90"),
        key(version=(13, 1)),
        key(version=(12, 9)),
    ]
    monkeypatch.setattr(kernel_cache, "CACHE_FORMAT", 4)
    keys.append(key())
    monkeypatch.setattr(kernel_cache, "CACHE_FORMAT", 3)
    monkeypatch.setattr(compilation, "OPTIONS", (*compilation.OPTIONS, "--use_fast_math"))
    keys.append(key())
    assert len(set(keys)) == len(keys) and {len(one) for one in keys} == {32}


def test_the_key_leaves_out_the_order_of_files_and_what_the_program_cannot_include():
    expected = cache_key(SOURCES, PLAIN, "sm_90", (13, 0))
    others = SOURCES | {"other/a.cuh": "int c;\n", "d.cuh": "int d;\n"}
    for same in (others, dict(reversed(SOURCES.items()))):
        assert cache_key(same, PLAIN, "sm_90", (13, 0)) == expected


DAMAGES = {
    "empty": lambda content: b"",
    "a header alone": lambda content: content[:HEADER_BYTES],
    "a bit of the image": lambda content: content[:500] + bytes([content[500] ^ 1]) + content[501:],
    "another file's content": lambda content: pack(b"an image", bytes(32)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_replaced(damage, folder):
    image = Run(folder).get()
    path = only_file(folder)
    sound = path.read_bytes()
    assert len(sound) == HEADER_BYTES + len(image)
    path.write_bytes(DAMAGES[damage](sound))
    run = Run(folder)
    assert run.get() == image and run.counts == (0, 1, 1)
    assert run.notices == [] and only_file(folder) == path
    assert path.read_bytes() == sound


def test_without_a_folder_everything_is_compiled():
    run = Run(None)
    assert run.get() == run.get() and run.counts == (0, 2, 0)
    assert run.notices == []


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path):
    (tmp_path / "file").touch()
    run = Run(tmp_path / "file" / "below")
    assert run.get() == Run(None).get()
    run.get(program=FAST)
    assert run.counts == (0, 2, 0)
    assert run.notices == [
        f"compiled kernels cannot be kept in {tmp_path}/file/below: Not a directory"
    ]


def test_what_a_read_only_folder_holds_is_still_of_use(folder, monkeypatch):
    Run(folder).get()

    def refuse(*_arguments):
        raise PermissionError(13, "Permission denied")

    # Root may write wherever it likes, so the refusal is played.
    monkeypatch.setattr(kernel_cache, "write_whole_file", refuse)
    monkeypatch.setattr(kernel_cache.os, "utime", refuse)
    run = Run(folder)
    run.get(program=FAST)
    run.get()
    run.get(program=FAST)
    assert run.counts == (1, 2, 0)
    assert run.notices == [f"compiled kernels cannot be kept in {folder}: Permission denied"]


def test_what_does_not_compile_is_not_kept(folder):
    def refuse(*_arguments):
        raise BackendError("cuda", "no")

    run = Run(folder)
    with pytest.raises(BackendError, match="no"):
        run.cache.cubin(SOURCES, PLAIN, "sm_90", refuse)
    assert not folder.exists() and run.get() == Run(None).get()


def age(path, seconds):
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def names(folder):
    return {path.name for path in folder.iterdir()}


def kept(folder):
    return {name for name in names(folder) if name.endswith(".kernel")}


def test_what_was_not_used_for_the_longest_time_goes_first(folder):
    room = 3 * (HEADER_BYTES + 1000)
    paths = {}
    for architecture in ("sm_75", "sm_80", "sm_86"):
        before = names(folder) if folder.exists() else set()
        Run(folder, room).get(architecture=architecture)
        (paths[architecture],) = names(folder) - before
    for seconds, architecture in ((300, "sm_75"), (200, "sm_80"), (100, "sm_86")):
        age(folder / paths[architecture], seconds)
    # Found again: the oldest becomes the youngest.
    assert Run(folder, room).get(architecture="sm_75")
    Run(folder, room).get(architecture="sm_90")
    assert len(names(folder)) == 3 and paths["sm_80"] not in names(folder)
    assert {paths["sm_75"], paths["sm_86"]} < names(folder)


def test_what_this_process_has_used_stays(folder):
    Run(folder).get(architecture="sm_80")
    age(only_file(folder), 1000)
    run = Run(folder, maximum_bytes=1)
    for architecture in ("sm_80", "sm_86", "sm_90"):
        run.get(architecture=architecture)
    assert len(kept(folder)) == 3
    Run(folder, maximum_bytes=1).get(architecture="sm_120")
    assert len(kept(folder)) == 1


def test_other_files_stay_and_abandoned_ones_go(folder):
    folder.mkdir(parents=True)
    old, new = ".mummergpu-1-00000000.part", ".mummergpu-2-00000000.part"
    for name in ("notes.txt", "download.part", old, new):
        (folder / name).write_bytes(bytes(5000))
        age(folder / name, 0 if name == new else ABANDONED_SECONDS + 60)
    Run(folder, maximum_bytes=1).get()
    assert old not in names(folder) and {"notes.txt", "download.part", new} < names(folder)
    assert len(kept(folder)) == 1


class Loader:
    """A device that loads nothing."""

    architecture = "sm_90"

    def load(self, cubin):
        return object()


def test_threads_load_each_program_once(folder, monkeypatch):
    monkeypatch.setattr(kernel_cache, "read_sources", lambda: SOURCES)
    run = Run(folder)
    played = Loader(), type("Cache", (), {"cubin": lambda _, *given: run.get(*given)})()
    programs = Programs(*played)
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: programs.load(PLAIN), range(8)))
    assert len(set(loaded)) == 1
    with ThreadPoolExecutor(2) as executor:
        programs.load_all([PLAIN, FAST], executor)
    assert programs.load(PLAIN) is loaded[0]
    programs.load(FAST)
    assert run.counts == (0, 2, 0)


WRITER = """
import sys
from pathlib import Path
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.program import ProgramSource

def compile(sources, program, architecture):
    return architecture.encode() * 50_000

def refuse(line):
    raise SystemExit(line)

program = ProgramSource("plain", "engine/program.cu")
for turn in range(60):
    # Room for two of five: every process removes what the others have made.
    cache = KernelCache(Path(sys.argv[1]), refuse, 600_000, lambda: (13, 0))
    for number in range(80, 85):
        image = cache.cubin({"engine/program.cu": ""}, program, f"sm_{number}", compile)
        assert image == f"sm_{number}".encode() * 50_000
    assert cache.repaired == 0
"""


def test_processes_share_a_folder(folder):
    command = [sys.executable, "-c", WRITER, str(folder)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
    assert kept(folder) == names(folder)


@pytest.mark.usefixtures("nvrtc")
def test_the_real_compiler_is_the_one_that_is_asked(folder):
    text = 'extern "C" __global__ void f(int *out) { out[0] = FAST; }\n'
    notices = []
    first, second = KernelCache(folder, notices.append), KernelCache(folder, notices.append)
    cubin = first.cubin({"engine/program.cu": text}, FAST, "sm_90")
    assert cubin.startswith(b"\x7fELF")
    assert second.cubin({"engine/program.cu": text}, FAST, "sm_90") == cubin
    assert (second.hits, second.misses, notices) == (1, 0, [])


def test_threads_compile_different_programs_side_by_side(folder):
    # Each compilation waits for the other: one after the other they would wait in vain.
    both = threading.Barrier(2)

    def compile(sources, program, architecture):
        both.wait(timeout=20)
        return program.name.encode()

    run = Run(folder)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: run.cache.cubin(SOURCES, one, "sm_90", compile), (PLAIN, FAST)))
    assert run.counts == (0, 2, 0) and run.get() == b"plain"
    assert run.get(program=FAST) == b"fast"
