"""The notebooks of the documentation run from beginning to end, and are kept without output."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))

SHOW = """
import sys
def show(value):
    if value is not None:
        print(repr(value))
"""


def cells_of(name):
    found = json.loads((FOLDER / name).read_text())["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def source_of(cell):
    return "".join(cell["source"])


def program_of(name):
    """Return a notebook as a program that prints the value of the last line of each cell."""
    lines = [SHOW]
    for cell in cells_of(name):
        source = source_of(cell)
        *_, last = ast.parse(source).body
        if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
            kept = source.splitlines()[: last.lineno - 1]
            lines += [*kept, f"show({ast.unparse(last)})"]
        else:
            lines.append(source)
    return "\n".join(lines)


def test_there_are_notebooks():
    assert "quickstart.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_without_output(name):
    for cell in cells_of(name):
        assert cell["outputs"] == [] and cell["execution_count"] is None
    lines = [line for cell in cells_of(name) for line in source_of(cell).splitlines()]
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_cells_of_a_notebook_run(name, tmp_path):
    for library in ("matplotlib", "pandas"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", program_of(name)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
    if name == "quickstart.ipynb":
        assert "matches of 1 query\n  strain:" in done.stdout
        *_, covered, stats, error = done.stdout.splitlines()
        # What was lost, and little more.
        assert 5000 <= int(covered) < 6000
        assert ast.literal_eval(stats)[2] == "cpu" and "'!' is not" in error


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_in_jupyter(name, tmp_path):
    for library in ("matplotlib", "pandas", "nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    path = os.pathsep.join(sys.path)
    program = f"""
import nbclient, nbformat
notebook = nbformat.read({str(FOLDER / name)!r}, as_version=4)
nbformat.validate(notebook)
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print("executed")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stdout == "executed\n", done.stderr
