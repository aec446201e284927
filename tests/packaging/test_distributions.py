"""The archives of a release: built, checked and installed; wheels with compiled code."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from mummergpu.runtime.compiled.levels import machine_levels

SOURCE = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from pathlib import Path
from mummergpu.cuda.program import read_sources
from mummergpu.matching.kmer.cuda_program import KMER_PROGRAM
from mummergpu.pipeline import match
from mummergpu.workload.declaration import load_declaration, workload_names
print(*sorted(workload_names()), *(load_declaration(name).name for name in workload_names()))
print(*KMER_PROGRAM.files(read_sources()))
print(*(one.__file__ for one in list(sys.modules.values()) if getattr(one, "__file__", None)))
"""


def run(*command, folder):
    """Run a command that knows nothing of the checkout; return what it prints."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MUMMER"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(build_tools, tmp_path_factory):
    """A folder with the source archive, and the wheel that was made from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "-o", folder, SOURCE, folder=folder)
    return folder


@pytest.fixture(scope="module")
def installed(archives, tmp_path_factory):
    """The programs of a new environment in which the source archive was installed.

    The libraries it depends on are lent by the environment of the tests. There is no network.
    """
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    paths = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    lent = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "lent.pth").write_text("\n".join(lent) + "\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    python = folder / "venv" / "bin" / "python"
    (source,) = archives.glob("mummergpu-*.tar.gz")
    flags = ["--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed"]
    run(*pip, "--python", python, "install", *flags, source, folder=folder)
    return folder / "venv" / "bin"


def test_an_index_will_show_what_the_archives_say(archives):
    files = sorted(archives.iterdir())
    assert [path.name.partition("-")[0] for path in files] == ["mummergpu", "mummergpu"]
    told = run(sys.executable, "-m", "twine", "check", "--strict", *files, folder=archives)
    assert told.count("PASSED") == 2


def test_the_source_archive_holds_what_a_packager_needs(archives):
    (path,) = archives.glob("mummergpu-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml"):
        assert name in names
    for pattern in ("packaging/**/*", "tests/**/*.py", "kernels/**/*.cu*", "workloads/*.toml"):
        files = [one for one in SOURCE.glob(pattern) if one.is_file() and one.suffix != ".pyc"]
        wanted = {str(one.relative_to(SOURCE)) for one in files}
        assert wanted and wanted <= names
    assert not any("__pycache__" in name for name in names)


def test_the_source_archive_is_enough_to_install_from(installed, tmp_path):
    names, kernels, files = run(installed / "python", "-c", PROGRAM, folder=tmp_path).splitlines()
    assert {"LMONO", "HSILL", "HSYNTH", "GENOMES"} <= set(names.split())
    assert "kmer/program.cu" in kernels.split()
    loaded = [Path(name) for name in files.split()]
    assert not any(path.is_relative_to(SOURCE / "mummergpu") for path in loaded)
    inside = [path.relative_to(installed.parent) for path in loaded
              if path.is_relative_to(installed.parent)]  # fmt: skip
    assert sum("mummergpu" in path.parts for path in inside) > 50


def test_the_installed_command_does_its_work(installed, tmp_path):
    (tmp_path / "r.fa").write_text(f">r\n{'ACGGTCATTGCAAGGCCTTA' * 20}\n")
    program = installed / "mummergpu"
    run(program, "workload", "HSYNTH", "--scale", "0.00002", "--reference", "r.fa", "-o", "made",
        folder=tmp_path)  # fmt: skip
    rows = run(program, "made/reference.fa", "made/reads.fq", "-l", "14", "-C", folder=tmp_path)
    assert rows.count("> HSYNTH") == 10
    assert any(not row.startswith(">") for row in rows.splitlines())


NEEDED = ("pyproject.toml", "README.md", "LICENSE", "mummergpu", "kernels", "workloads")

needs_images = pytest.mark.skipif(not machine_levels(), reason="there are no images here")


COMPILED = """
import sys
import numpy as np
from mummergpu.runtime.compiled.store import on_cache_trouble
from mummergpu.runtime.jit import on_first_compilation
from mummergpu.sequence.codes import longest_of, write_reverse_complements
on_cache_trouble(lambda line: print(line, file=sys.stderr))
on_first_compilation(lambda: print("compiling", file=sys.stderr))
codes, offsets, result = np.arange(4, dtype=np.uint8), np.array([0, 1, 4]), np.empty(4, np.uint8)
write_reverse_complements(codes, offsets, result)
print(*result, longest_of(offsets))
"""
RESULT = "3 0 1 2 3\n"


def call_with(site, cache):
    """Call two compiled functions with the package of a folder.

    Return what they compute, what is said, and how many images are kept then.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA"))}
    environment["MUMMERGPU_CACHE_DIR"] = str(cache)
    environment["PYTHONPATH"] = os.pathsep.join([str(site), *filter(None, sys.path)])
    words = [sys.executable, "-P", "-c", COMPILED]
    done = subprocess.run(words, cwd=site, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, len(list(cache.rglob("*.code")))


@pytest.fixture(scope="module")
def context(build_tools, tmp_path_factory):
    """A folder with what a wheel is made of, and images of two functions."""
    folder = tmp_path_factory.mktemp("context")
    for name in (*NEEDED, "packaging/wheel_images.py"):
        target = folder / name
        if (SOURCE / name).is_dir():
            shutil.copytree(SOURCE / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(SOURCE / name, target)
    assert call_with(folder, folder / "build" / "images") == (RESULT, "compiling\n", 2)
    return folder


@pytest.fixture(scope="module")
def wheel_site(context, tmp_path_factory):
    """The folder in which a wheel with these images is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder)]
    done = subprocess.run([*build, str(context)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("mummergpu-*-py3-none-manylinux_2_17_x86_64.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


@needs_images
def test_a_first_run_compiles_nothing(wheel_site, tmp_path):
    assert call_with(wheel_site, tmp_path / "cache") == (RESULT, "", 0)


@needs_images
def test_damaged_code_is_compiled_again(wheel_site, tmp_path):
    site = shutil.copytree(wheel_site, tmp_path / "site")
    for path in site.rglob("*.code"):
        path.write_bytes(path.read_bytes()[:-1])
    result, said, count = call_with(site, tmp_path / "cache")
    assert (result, count) == (RESULT, 2)
    assert said.count("compiled code is damaged in") == 1


@needs_images
@pytest.mark.parametrize(
    ("changed", "count"), [("runtime/compiled/linker.py", 2), ("errors.py", 0)]
)
def test_code_of_other_sources_is_ignored(changed, count, wheel_site, tmp_path):
    site = shutil.copytree(wheel_site, tmp_path / "site")
    with (site / "mummergpu" / changed).open("a") as file:
        file.write("# changed\n")
    said = "compiling\n" if count else ""
    assert call_with(site, tmp_path / "cache") == (RESULT, said, count)
