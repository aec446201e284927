"""What is not imported, and that a warm start needs no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mummergpu.cli.imports import NOT_NEEDED, leave_out_what_is_not_needed

COMPILER = {"numba.np.arrayobj", "numba.np.linalg", "numba.cpython.unicode"}
TREES = {
    "mummergpu.index.tree.ukkonen",
    "mummergpu.index.tree.build",
    "mummergpu.matching.tree.cpu_match",
}
OTHERS = {"scipy.linalg", "coverage.control", "yaml.loader", "numpy.ma.core"}

PROGRAM = """
import os, sys
from mummergpu.cli import main as cli
sys.argv = ["mummergpu", "-C", "-b", "-l", "4", "-o", os.devnull, *sys.argv[1:]]
os._exit = lambda code: print(code, *sys.modules)
cli.run()
"""


def test_what_has_been_imported_stays() -> None:
    modules: dict[str, Any] = {"yaml": "kept"}
    finders: list[Any] = []
    leave_out_what_is_not_needed(modules, finders)
    assert modules == {"scipy": None, "coverage": None, "yaml": "kept"}
    assert set(modules) == set(NOT_NEEDED)
    assert [finder.find_spec("numpy.linalg", None) for finder in finders] == [None]


def test_masked_arrays_are_a_class_without_instances() -> None:
    program = (
        "import sys\n"
        "from mummergpu.cli.imports import leave_out_what_is_not_needed\n"
        "leave_out_what_is_not_needed(sys.modules, sys.meta_path)\n"
        "import numpy as np\n"
        "print(isinstance(np.zeros(1), np.ma.MaskedArray), 'numpy.ma.core' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == ["False", "False"]
    assert hasattr(np.ma, "masked_equal"), "this process has its own"


@pytest.mark.parametrize(
    ("search", "absent"), [("sampled", COMPILER | TREES), ("tree", {"numba.np.linalg"})]
)
def test_a_warm_start_imports_what_it_needs_only(
    tmp_path: Path, search: str, absent: set[str]
) -> None:
    """Numba's own cache would import its compiler before it looks for kept code.

    Some of what trees need has its home among what is compiled, and comes with it.
    """
    text = tmp_path / "text.fa"
    text.write_text(">t\nACGGTCATTGCA\n")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "--search", search, str(text), str(text)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    code, *modules = done.stdout.split()
    assert code == "0" and {"numba", "mummergpu.pipeline.match", "numpy.ma"} <= set(modules)
    assert not (absent | OTHERS) & set(modules)
