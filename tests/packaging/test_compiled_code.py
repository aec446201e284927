"""The package of compiled code: a first run with it compiles nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
RECIPE = SOURCE / "packaging" / "compiled-code"
PACKAGE = "mummergpu_code"


def match(folder: Path, cache: Path, *paths: Path) -> tuple[str, str, int]:
    """Run a search; return its rows, what it says, and how many files of code are kept then."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA"))}
    environment["MUMMERGPU_CACHE_DIR"] = str(cache)
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, paths), *filter(None, sys.path)])
    words = [sys.executable, "-m", "mummergpu", "r.fa", "q.fa", "-l", "14", "-C", "-v"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, len(list(cache.rglob("*.code")))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a genome, reads, and the code and rows of a first search."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "r.fa").write_text(f">r\n{'ACGGTCATTGCAAGGCCTTA' * 20}\n")
    (folder / "q.fa").write_text(">q\nGGTCATTGCAAGGCCTTAACGGTCA\n")
    rows, said, count = match(folder, folder / PACKAGE)
    assert rows.count("\n") > 3 and "compiled code" not in said and count > 3
    (folder / "rows.txt").write_text(rows)
    return folder


@pytest.fixture(scope="module")
def installed(build_tools: None, compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a wheel of that code is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(RECIPE, folder / "recipe", ignore=shutil.ignore_patterns("processor*"))
    shutil.copytree(compiled / PACKAGE, folder / "recipe" / PACKAGE, dirs_exist_ok=True)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder)]
    done = subprocess.run([*build, str(folder / "recipe")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("mummergpu_code-*.whl")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{python}-{python}-manylinux" in wheel.name
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(wheel)], check=True)
    (told,) = (folder / "site").glob("*.dist-info/METADATA")
    for name in ("mummergpu", "numba", "llvmlite", "numpy"):
        assert f"\nRequires-Dist: {name}==" in told.read_text()
    return folder / "site"


def test_a_first_run_with_the_package_compiles_nothing(
    installed: Path, compiled: Path, tmp_path: Path
) -> None:
    rows, said, count = match(compiled, tmp_path / "cache", installed)
    assert rows == (compiled / "rows.txt").read_text()
    assert "compiled code" not in said and count == 0


def test_damaged_code_is_compiled_again(installed: Path, compiled: Path, tmp_path: Path) -> None:
    site = shutil.copytree(installed, tmp_path / "site")
    damaged = list(site.rglob("*.code"))
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1])
    rows, said, count = match(compiled, tmp_path / "cache", site)
    assert rows == (compiled / "rows.txt").read_text()
    assert said.count("compiled code is damaged in") == 1
    assert count == len(damaged)


def test_code_of_other_sources_is_ignored(installed: Path, compiled: Path, tmp_path: Path) -> None:
    site = shutil.copytree(installed, tmp_path / "site")
    for generation in site.glob(f"{PACKAGE}/processor*/*"):
        generation.rename(generation.with_name("0" * 32))
    rows, said, count = match(compiled, tmp_path / "cache", site)
    assert rows == (compiled / "rows.txt").read_text()
    assert "compiled code" not in said and count > 3
