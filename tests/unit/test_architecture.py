"""The rules of the house, read off the source: rooms, imports, printing, sizes.

A room is a folder of the package. `violations` reads a tree of modules and returns one line for
each broken rule; the tests below run it on the package, and on small trees in which each rule is
broken on purpose.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = "mummergpu"
SOURCE = Path(__file__).resolve().parents[2] / PACKAGE
KERNELS = SOURCE.parent / "kernels"

ROOMS = (
    *("__main__", "cli", "plot", "api", "studies", "cluster", "pipeline", "output", "drawing"),
    *("mapping", "hmm", "matching", "workload", "index", "viterbi", "input", "cuda", "sequence"),
    *("runtime", "errors", "version"),
)
"""A module imports only from its own room and from the rooms below it."""

INNER_ROOMS = {
    "input": (("blocks",), ("reference",), ("records",), ("bytes",)),
    "mapping": (("seeding", "alignments"), ("placing",), ("candidates", "genomes")),
    "matching": (("tree", "kmer"), ("backends",)),
    "output": (("sorting",), ("alignments", "genomes", "matches"), ("records",), ("bytes",)),
    "viterbi": (("tiles", "device"), ("whole",), ("recurrence",)),
}
"""Folders of a room, where there are several, floor by floor: one imports only from its own files
and from folders on floors below it."""

MOST_FLOORS = 11
"""The longest chain of rooms that import each other may not be longer."""

GPU_LIBRARIES = {"pycuda", "cuda", "cupy", "torch"}
GPU_LIBRARY_FILES = ("libcuda", "libnvrtc", "libcudart", "libnvcomp", "nvcuda")
"""How the names of shared libraries begin that are a GPU's, for those who load them by hand."""
GPU_ROOM = f"{PACKAGE}.cuda"
SLOW_TO_IMPORT = {
    *("numpy", "numba", "llvmlite", "pysam", "isal", "matplotlib", "jinja2", "scipy"),
    *("pyarrow", "pandas", "polars", "distributed", "dask"),
}
MAY_PRINT_AND_EXIT = {f"{PACKAGE}.__main__"}
"""Besides the modules of the command line."""
EXITS = {"sys.exit", "os._exit", "_exit", "exit", "quit", "SystemExit"}
START = f"{PACKAGE}.cli.main"
MAXIMUM_LINES = 700


@dataclass(frozen=True)
class Import:
    line: int
    name: str
    at_start: bool


class Module:
    """A module of the package: its name, its tree, its imports."""

    def __init__(self, path, package, modules):
        self.name = module_name(path, package)
        self.is_package = path.name == "__init__.py"
        self.text = path.read_text()
        self.tree = ast.parse(self.text)
        self._modules = modules
        self.imports = list(self._imports(self.tree, at_start=True))

    @property
    def room(self):
        """The room that the module is in; its own name where it is in none."""
        return room_of(self.name)

    def _imports(self, node, *, at_start):
        """Yield all imports, and whether importing the module carries them out."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(child.lineno, alias.name, at_start)
            elif isinstance(child, ast.ImportFrom):
                module = "." * child.level + (child.module or "")
                for alias in child.names:
                    inner = f"{module}.{alias.name}"
                    name = inner if inner in self._modules else module
                    yield Import(child.lineno, name, at_start)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                yield from self._imports(child, at_start=False)
            else:
                is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from self._imports(child, at_start=at_start and not is_function)


def module_name(path, package):
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(name):
    return name.split(".")[1] if "." in name else ""


def inner_room_of(name):
    """Return the folder inside its room that a module is in, or nothing."""
    parts = name.split(".")
    inner = parts[2] if len(parts) > 2 else ""
    return inner if any(inner in floor for floor in INNER_ROOMS.get(parts[1], ())) else ""


def inner_floor_of(room, inner):
    """Return the floor of a folder inside its room, counted from the top."""
    return next(number for number, floor in enumerate(INNER_ROOMS[room]) if inner in floor)


@cache
def read_modules(package):
    paths = sorted(package.rglob("*.py"))
    names = {module_name(path, package) for path in paths}
    modules = [Module(path, package, names) for path in paths]
    return {module.name: module for module in modules}


def violations(package):
    modules = read_modules(package)
    lines = []
    for module in modules.values():
        lines += room_violations(module, modules)
        lines += library_violations(module)
        lines += speech_violations(module)
        length = len(module.text.splitlines())
        if length > MAXIMUM_LINES:
            lines.append(f"{module.name}: {length} lines, more than {MAXIMUM_LINES}")
    lines += [*cycle_violations(modules), *start_violations(modules)]
    floors = floor_count(modules)
    if floors > MOST_FLOORS:
        lines.append(f"{PACKAGE}: {floors} floors, more than {MOST_FLOORS}")
    return lines


def room_violations(module, modules):
    if module.name == PACKAGE:
        return
    if module.room not in ROOMS:
        yield f"{module.name}: is in no room; give it one in ROOMS"
        return
    if module.is_package and module.text.strip():
        yield f"{module.name}: the file of a room that is imported with every module is not empty"
    for found in module.imports:
        if found.name not in modules or found.name == PACKAGE:
            continue
        room, target = module.room, room_of(found.name)
        if target in ROOMS and ROOMS.index(target) < ROOMS.index(room):
            yield f"{module.name}:{found.line}: {room} imports {found.name} of a room above it"
        inner, inner_target = inner_room_of(module.name), inner_room_of(found.name)
        if target == room and inner and inner_target and inner_target != inner:
            if inner_floor_of(room, inner_target) <= inner_floor_of(room, inner):
                yield f"{module.name}:{found.line}: {inner} imports {found.name} not below it"


def library_violations(module):
    inside = module.name == GPU_ROOM or module.name.startswith(GPU_ROOM + ".")
    for found in module.imports:
        if found.name.startswith("."):
            yield f"{module.name}:{found.line}: relative import of {found.name}"
        if found.name.split(".")[0] in GPU_LIBRARIES and not inside:
            yield f"{module.name}:{found.line}: {found.name} outside {GPU_ROOM}"
    if inside:
        return
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith(GPU_LIBRARY_FILES)
        ):
            yield f"{module.name}:{node.lineno}: {node.value} outside {GPU_ROOM}"


def speech_violations(module):
    if module.name in MAY_PRINT_AND_EXIT or module.room == "cli":
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            called = ast.unparse(node.exc)
        else:
            continue
        if called in EXITS or called == "print":
            yield f"{module.name}:{node.lineno}: {called} outside the command line"


def cycle_violations(modules):
    """Yield a line for each module that can be reached from itself."""
    targets = {
        name: {found.name for found in module.imports if found.name in modules}
        for name, module in modules.items()
    }
    for name in modules:
        if name in reachable(name, targets):
            yield f"{name}: part of an import cycle"


def reachable(start, targets):
    found = set()
    waiting = [start]
    while waiting:
        for target in targets[waiting.pop()] - found:
            found.add(target)
            waiting.append(target)
    return found


def floor_count(modules):
    """Return how many rooms the longest chain of imports between rooms has."""
    below = {
        room: {
            room_of(found.name)
            for module in modules.values()
            if module.room == room
            for found in module.imports
            if found.name in modules and room_of(found.name) in ROOMS
        }
        for room in ROOMS
    }
    floors = {}
    for room in reversed(ROOMS):
        floors[room] = 1 + max(
            (floors.get(target, 0) for target in below[room] - {room}), default=0
        )
    return max(floors.values())


def start_violations(modules):
    """Yield a line for each slow library that importing the command line imports too."""
    started = {
        name: {found.name for found in module.imports if found.at_start}
        | {name.rpartition(".")[0]} - {""}
        for name, module in modules.items()
    }
    inner = {name: names & modules.keys() for name, names in started.items()}
    if START not in modules:
        return
    for name in sorted({START} | reachable(START, inner)):
        for library in sorted({target.split(".")[0] for target in started[name]} & SLOW_TO_IMPORT):
            yield f"{name}: imports {library} when the command line starts"


def test_the_package_keeps_the_rules():
    assert violations(SOURCE) == []


def test_the_package_is_read_whole():
    modules = read_modules(SOURCE)
    assert f"{PACKAGE}.errors" in modules
    assert len(modules) == len(list(SOURCE.rglob("*.py")))
    assert any(found.name == f"{PACKAGE}.errors" for found in modules[START].imports)
    assert {room_of(name) for name in modules} - {""} == set(ROOMS)


def test_the_package_names_every_kernel():
    """A kernel that no module names is launched by tests alone."""
    kernel = re.compile(r"__global__ void\s+(?:__launch_bounds__\([^()]*\)\s+)?(\w+)\(")
    text = "".join(path.read_text() for path in KERNELS.rglob("*.cu*"))
    kernels = kernel.findall(text)
    assert len(kernels) == text.count("__global__") > 0
    named = {
        name for path in SOURCE.rglob("*.py") for name in re.findall(r'"(\w+)"', path.read_text())
    }
    assert sorted(set(kernels) - named) == []


def test_compiled_functions_call_no_library():
    """An image of machine code cannot: each run would import numba, and call its dispatcher."""
    called = {
        f"{module.name}:{call.lineno}: {ast.unparse(call.func)}"
        for module in read_modules(SOURCE).values()
        for function in module.tree.body
        if isinstance(function, ast.FunctionDef)
        and {ast.unparse(one) for one in function.decorator_list} & {"jit", "inline"}
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        if re.fullmatch(r"math\.\w+|np\.(exp|log|pow|sin|cos|tan).*", ast.unparse(call.func))
    }
    assert called == set()


SOUND = r"""
__init__.py | __version__ = '1'
errors.py | class Error(Exception): pass
runtime/__init__.py |
runtime/memory.py | from mummergpu.errors import Error
sequence/__init__.py |
sequence/codes.py | import numpy
index/__init__.py |
index/pages.py | from mummergpu.sequence import codes\nfrom mummergpu.runtime.memory import Error
cuda/__init__.py |
cuda/driver.py | import pycuda.driver\nLIBRARY = 'libcuda.so.1'
matching/__init__.py |
matching/tree/__init__.py |
matching/backends/__init__.py |
matching/backends/codes.py | from mummergpu.cuda import driver
cli/__init__.py |
cli/main.py | import mummergpu.errors\ndef main(): import numpy, mummergpu.index.pages; print(1)
cli/ends.py | import sys\ndef end(): sys.exit(0)
"""
"""The files of a package that keeps the rules, a line each."""

PLANTED = r"""
colours.py |
mummergpu.colours: is in no room

runtime/__init__.py | import os
mummergpu.runtime: the file of a room

runtime/memory.py | from mummergpu.sequence.codes import code
mummergpu.runtime.memory:1: runtime imports mummergpu.sequence.codes of a room above

runtime/memory.py | def late():\n    from mummergpu.sequence import codes
mummergpu.runtime.memory:2: runtime imports mummergpu.sequence.codes of a room above

index/tree/flatten.py | import mummergpu.cli.main
mummergpu.index.tree.flatten:1: index imports mummergpu.cli.main of a room above it

matching/backends/codes.py | from mummergpu.matching.tree import cuda
matching/tree/cuda.py |
mummergpu.matching.backends.codes:1: backends imports mummergpu.matching.tree.cuda

matching/kmer/__init__.py |
matching/kmer/cuda.py | from mummergpu.matching.tree import cuda
matching/tree/cuda.py |
mummergpu.matching.kmer.cuda:1: kmer imports mummergpu.matching.tree.cuda not below

matching/kmer/__init__.py |
matching/kmer/cuda.py |
matching/tree/cuda.py | def late():\n    import mummergpu.matching.kmer.cuda
mummergpu.matching.tree.cuda:2: tree imports mummergpu.matching.kmer.cuda not below

index/flatten.py | from mummergpu.index import order
index/order.py | from mummergpu.index.flatten import flatten
mummergpu.index.flatten: part of an import cycle

index/order.py | from . import flatten
mummergpu.index.order:1: relative import of .

matching/cpu.py | from cuda.bindings import driver
mummergpu.matching.cpu:1: cuda.bindings outside mummergpu.cuda

matching/cpu.py | def run():\n    import pycuda
mummergpu.matching.cpu:2: pycuda outside mummergpu.cuda

matching/cpu.py | import ctypes\nctypes.CDLL('libcuda.so.1')
mummergpu.matching.cpu:2: libcuda.so.1 outside mummergpu.cuda

cli/main.py | import pysam
mummergpu.cli.main: imports pysam when the command line starts

cli/main.py | from mummergpu.sequence import codes
mummergpu.sequence.codes: imports numpy when the command line starts

errors.py | print(1)
mummergpu.errors:1: print outside the command line

errors.py | import sys\ndef leave():\n    sys.exit(1)
mummergpu.errors:3: sys.exit outside the command line

errors.py | raise SystemExit
mummergpu.errors:1: SystemExit outside
"""
"""Files that break a rule, and how the line begins that tells so."""


def plant(folder, files):
    """Write a package that keeps the rules, with some files added or replaced, a line each."""
    package = folder / PACKAGE
    for line in (SOUND.strip() + "\n" + files).splitlines():
        name, _, text = line.partition(" |")
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.removeprefix(" ").replace("\\n", "\n") + "\n" * bool(text))
    return package


def test_a_sound_tree_has_no_violation(tmp_path):
    assert violations(plant(tmp_path, "")) == []


@pytest.mark.parametrize("case", PLANTED.strip().split("\n\n"))
def test_a_planted_violation_is_found(tmp_path, case):
    files, _, expected = case.rpartition("\n")
    assert any(line.startswith(expected) for line in violations(plant(tmp_path, files)))


def test_a_long_module_is_found(tmp_path):
    package = plant(tmp_path, "errors.py |" + r"\n" * 700)
    assert "mummergpu.errors: 701 lines, more than 700" in violations(package)


def test_imports_for_types_alone_cost_no_start(tmp_path):
    text = r"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy"
    assert violations(plant(tmp_path, f"cli/main.py | {text}")) == []
