"""The rules of the house, read off the source: floors, imports, printing, sizes.

`violations` reads a tree of modules and returns one line for each broken rule; the tests
below run it on the package, and on small trees in which each rule is broken on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "mummergpu"
SOURCE = Path(__file__).resolve().parents[2] / PACKAGE

FLOORS = {
    9: [
        "__main__",
        "caches",
        "cli",
        "combinations",
        "commands",
        "imports",
        "index_command",
        "options",
    ],
    8: ["doctor", "indexing", "pipeline", "workload"],
    7: ["long_queries", "mems", "output", "planning", "progress", "query_stream", "spill"],
    6: ["backends", "index_file"],
    5: ["index", "sampled_index", "tree_building"],
    4: ["checksums", "tree", "kmer_table"],
    3: [
        "comparing",
        "settings",
        "reference",
        "reads",
        "inputs",
        "records",
        "spans",
        "fastx",
        "alignments",
    ],
    2: ["sequence"],
    1: ["index_format", "policy", "layout", "stats", "row_order", "ordered"],
    0: ["early_context", "errors", "compiled", "libraries"],
}
FLOOR_OF_ROOM = {room: floor for floor, rooms in FLOORS.items() for room in rooms}

GPU_LIBRARIES = {"pycuda", "cuda"}
GPU_ROOM = f"{PACKAGE}.backends.cuda"
SLOW_TO_IMPORT = {"numpy", "numba", "llvmlite", "pysam", "isal"}
MAY_PRINT_AND_EXIT = {f"{PACKAGE}.cli", f"{PACKAGE}.__main__"}
EXITS = {"sys.exit", "os._exit", "_exit", "exit", "quit", "SystemExit"}
MAXIMUM_LINES = 400


@dataclass(frozen=True)
class Import:
    line: int
    name: str
    at_start: bool


class Module:
    """A module of the package: its name, its tree, its imports."""

    def __init__(self, path: Path, package: Path, modules: set[str]) -> None:
        self.name = module_name(path, package)
        self.text = path.read_text()
        self.tree = ast.parse(self.text)
        self._modules = modules
        self.imports = list(self._imports(self.tree, at_start=True))

    @property
    def floor(self) -> int | None:
        if self.name == PACKAGE:
            return 0
        return FLOOR_OF_ROOM.get(self.name.split(".")[1])

    def _imports(self, node: ast.AST, *, at_start: bool) -> Iterator[Import]:
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


def module_name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_modules(package: Path) -> dict[str, Module]:
    paths = sorted(package.rglob("*.py"))
    names = {module_name(path, package) for path in paths}
    modules = [Module(path, package, names) for path in paths]
    return {module.name: module for module in modules}


def violations(package: Path) -> list[str]:
    modules = read_modules(package)
    lines = []
    for module in modules.values():
        lines += floor_violations(module, modules)
        lines += import_violations(module)
        lines += speech_violations(module)
        length = len(module.text.splitlines())
        if length > MAXIMUM_LINES:
            lines.append(f"{module.name}: {length} lines, more than {MAXIMUM_LINES}")
    return [*lines, *cycle_violations(modules), *start_violations(modules)]


def floor_violations(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    if module.floor is None:
        yield f"{module.name}: stands on no floor; give it one in FLOORS"
        return
    for found in module.imports:
        target = modules.get(found.name)
        if target is not None and target.floor is not None and target.floor > module.floor:
            yield (
                f"{module.name}:{found.line}: floor {module.floor} imports {found.name} "
                f"of floor {target.floor}"
            )


def import_violations(module: Module) -> Iterator[str]:
    inside = module.name == GPU_ROOM or module.name.startswith(GPU_ROOM + ".")
    for found in module.imports:
        if found.name.startswith("."):
            yield f"{module.name}:{found.line}: relative import of {found.name}"
        if found.name.split(".")[0] in GPU_LIBRARIES and not inside:
            yield f"{module.name}:{found.line}: {found.name} outside {GPU_ROOM}"


def speech_violations(module: Module) -> Iterator[str]:
    if module.name in MAY_PRINT_AND_EXIT:
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


def cycle_violations(modules: dict[str, Module]) -> Iterator[str]:
    """Yield a line for each module that can be reached from itself."""
    targets = {
        name: {found.name for found in module.imports if found.name in modules}
        for name, module in modules.items()
    }
    for name in modules:
        if name in reachable(name, targets):
            yield f"{name}: part of an import cycle"


def reachable(start: str, targets: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for target in targets[waiting.pop()] - found:
            found.add(target)
            waiting.append(target)
    return found


def start_violations(modules: dict[str, Module]) -> Iterator[str]:
    """Yield a line for each slow library that importing the command line imports too."""
    started = {
        name: {found.name for found in module.imports if found.at_start}
        | {name.rpartition(".")[0]} - {""}
        for name, module in modules.items()
    }
    inner = {name: names & modules.keys() for name, names in started.items()}
    if f"{PACKAGE}.cli" not in modules:
        return
    for name in sorted({f"{PACKAGE}.cli"} | reachable(f"{PACKAGE}.cli", inner)):
        for library in sorted({target.split(".")[0] for target in started[name]} & SLOW_TO_IMPORT):
            yield f"{name}: imports {library} when the command line starts"


def test_the_package_keeps_the_rules() -> None:
    assert violations(SOURCE) == []


def test_the_package_is_read_whole() -> None:
    modules = read_modules(SOURCE)
    assert f"{PACKAGE}.errors" in modules
    assert len(modules) == len(list(SOURCE.rglob("*.py")))
    assert any(found.name == f"{PACKAGE}.errors" for found in modules[f"{PACKAGE}.cli"].imports)


def plant(folder: Path, files: dict[str, str]) -> Path:
    """Write a package that keeps the rules, with some files added or replaced."""
    sound = {
        "__init__.py": "__version__ = '1'\n",
        "errors.py": "class Error(Exception):\n    pass\n",
        "policy.py": "from mummergpu.errors import Error\n",
        "sequence.py": "import numpy\n",
        "tree/__init__.py": "",
        "tree/order.py": "from mummergpu import sequence\nfrom mummergpu.policy import Error\n",
        "backends/cuda/__init__.py": "import pycuda.driver\n",
        "cli.py": "import sys\nfrom mummergpu import policy\n\ndef main():\n    import numpy\n"
        "    from mummergpu.tree import order\n    print(order)\n    sys.exit(0)\n",
    }
    package = folder / PACKAGE
    for name, text in (sound | files).items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


def test_a_sound_tree_has_no_violation(tmp_path: Path) -> None:
    assert violations(plant(tmp_path, {})) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"colours.py": ""}, "mummergpu.colours: stands on no floor"),
        (
            {"policy.py": "from mummergpu.sequence import code\n"},
            "mummergpu.policy:1: floor 1 imports mummergpu.sequence of floor 2",
        ),
        (
            {"policy.py": "def late():\n    from mummergpu import sequence\n"},
            "mummergpu.policy:2: floor 1 imports mummergpu.sequence of floor 2",
        ),
        (
            {"tree/flatten.py": "import mummergpu.cli\n"},
            "mummergpu.tree.flatten:1: floor 4 imports mummergpu.cli of floor 9",
        ),
        (
            {
                "tree/flatten.py": "from mummergpu.tree import order\n",
                "tree/order.py": "from mummergpu.tree.flatten import flatten\n",
            },
            "mummergpu.tree.flatten: part of an import cycle",
        ),
        (
            {"tree/order.py": "from . import flatten\n"},
            "mummergpu.tree.order:1: relative import of .",
        ),
        (
            {"backends/cpu.py": "from cuda.bindings import driver\n"},
            "mummergpu.backends.cpu:1: cuda.bindings outside mummergpu.backends.cuda",
        ),
        (
            {"backends/cpu.py": "def run():\n    import pycuda\n"},
            "mummergpu.backends.cpu:2: pycuda outside mummergpu.backends.cuda",
        ),
        (
            {"cli.py": "import pysam\n"},
            "mummergpu.cli: imports pysam when the command line starts",
        ),
        (
            {"cli.py": "from mummergpu import sequence\n"},
            "mummergpu.sequence: imports numpy when the command line starts",
        ),
        (
            {"cli.py": "import mummergpu.tree.order\n", "tree/__init__.py": "import numba\n"},
            "mummergpu.tree: imports numba when the command line starts",
        ),
        ({"errors.py": "print(1)\n"}, "mummergpu.errors:1: print outside the command line"),
        (
            {"errors.py": "import sys\n\ndef leave():\n    sys.exit(1)\n"},
            "mummergpu.errors:4: sys.exit outside the command line",
        ),
        ({"errors.py": "raise SystemExit\n"}, "mummergpu.errors:1: SystemExit outside"),
        ({"errors.py": "\n" * 401}, "mummergpu.errors: 401 lines, more than 400"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    assert any(line.startswith(expected) for line in violations(plant(tmp_path, files)))


def test_imports_for_types_alone_cost_no_start(tmp_path: Path) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\n"
    assert violations(plant(tmp_path, {"cli.py": text})) == []
