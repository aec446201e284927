"""A wheel with images of compiled functions: a first run compiles nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mummergpu.runtime.compiled.levels import machine_levels

SOURCE = Path(__file__).resolve().parents[2]
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "mummergpu", "kernels", "workloads")

pytestmark = pytest.mark.skipif(not machine_levels(), reason="there are no images here")


def match(site, cache):
    """Run a search with the package of a folder.

    Return its rows, what it says, and how many images are kept then.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA"))}
    environment["MUMMERGPU_CACHE_DIR"] = str(cache)
    environment["PYTHONPATH"] = os.pathsep.join([str(site), *filter(None, sys.path)])
    words = [sys.executable, "-P", "-m", "mummergpu", "r.fa", "q.fa", "-l", "14", "-C", "-v"]
    (site / "r.fa").write_text(f">r\n{'ACGGTCATTGCAAGGCCTTA' * 20}\n")
    (site / "q.fa").write_text(">q\nGGTCATTGCAAGGCCTTAACGGTCA\n")
    done = subprocess.run(words, cwd=site, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, len(list(cache.rglob("*.code")))


@pytest.fixture(scope="module")
def context(build_tools, tmp_path_factory):
    """A folder with what a wheel is made of, and images of a search."""
    folder = tmp_path_factory.mktemp("context")
    for name in (*NEEDED, "packaging/wheel_images.py"):
        target = folder / name
        if (SOURCE / name).is_dir():
            shutil.copytree(SOURCE / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(SOURCE / name, target)
    rows, said, count = match(folder, folder / "build" / "images")
    assert rows.count("\n") > 3 and "compiled code" not in said and count > 3
    (folder / "rows.txt").write_text(rows)
    return folder


@pytest.fixture(scope="module")
def installed(context, tmp_path_factory):
    """The folder in which a wheel with these images is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder)]
    done = subprocess.run([*build, str(context)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("mummergpu-*-py3-none-manylinux_2_17_x86_64.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


def test_a_first_run_compiles_nothing(installed, context, tmp_path):
    rows, said, count = match(installed, tmp_path / "cache")
    assert rows == (context / "rows.txt").read_text()
    assert "compiling" not in said and "compiled code" not in said and count == 0


def test_damaged_code_is_compiled_again(installed, context, tmp_path):
    site = shutil.copytree(installed, tmp_path / "site")
    damaged = list(site.rglob("*.code"))
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1])
    rows, said, count = match(site, tmp_path / "cache")
    assert rows == (context / "rows.txt").read_text()
    assert said.count("compiled code is damaged in") == 1
    assert count == len(damaged)


def test_code_of_other_sources_is_ignored(installed, context, tmp_path):
    site = shutil.copytree(installed, tmp_path / "site")
    with (site / "mummergpu" / "errors.py").open("a") as file:
        file.write("# changed\n")
    rows, said, count = match(site, tmp_path / "cache")
    assert rows == (context / "rows.txt").read_text()
    assert "compiled code" not in said and count > 3
