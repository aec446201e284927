"""The wheel: built, installed in a new environment, and run from there."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from mummergpu.version import __version__

SOURCE = Path(__file__).resolve().parents[2]


def run(*command, folder):
    """Run a command that knows nothing of the checkout; return what it prints."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    settings = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(list(map(str, command)), **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"]
    run(*pip, "--no-deps", "--no-build-isolation", "-w", folder, SOURCE, folder=folder)
    (built,) = folder.glob("mummergpu-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The programs of a new environment that holds the wheel.

    The libraries it depends on are lent by the environment of the tests, behind its own.
    """
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    paths = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    packages = sysconfig.get_path("purelib", "venv", vars=paths)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    python = folder / "venv" / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-deps", wheel, folder=folder)
    (Path(packages) / "lent.pth").write_text(sysconfig.get_path("platlib") + "\n")
    return folder / "venv" / "bin"


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def kernel_files():
    folder = SOURCE / "kernels"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.cu*"))


def test_the_wheel_holds_the_package_its_data_and_the_licence(wheel):
    names = contents(wheel)
    for path in (SOURCE / "mummergpu").rglob("*.py"):
        assert path.relative_to(SOURCE).as_posix() in names
    # It tells type checkers that the package's annotations are meant for its users as well.
    assert "mummergpu/py.typed" in names
    for path in (SOURCE / "workloads").glob("*.toml"):
        assert f"mummergpu/workloads/{path.name}" in names
    kernels = kernel_files()
    assert {"tree/program.cu", "kmer/program.cu"} <= set(kernels)
    assert {f"mummergpu/kernels/{name}" for name in kernels} <= names
    assert "mummergpu/studies/templates/report.html.j2" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)


def test_the_wheel_says_where_the_project_lives(wheel):
    (metadata,) = (name for name in contents(wheel) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        lines = archive.read(metadata).decode().splitlines()
    urls = [line.removeprefix("Project-URL: ") for line in lines if line.startswith("Project-URL")]
    assert {url.partition(",")[0] for url in urls} == {"Homepage", "Source", "Issues", "Changelog"}
    assert all(", https://github.com/mummergpu/mummergpu" in url for url in urls)


def test_the_source_archive_makes_the_same_wheel(wheel, tmp_path):
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, folder=SOURCE)
    (archive,) = tmp_path.glob("mummergpu-*.tar.gz")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"]
    folder = tmp_path / "from the archive"
    run(*pip, "--no-deps", "--no-build-isolation", "-w", folder, archive, folder=tmp_path)
    (built,) = folder.glob("mummergpu-*.whl")
    assert contents(built) == contents(wheel)


def test_the_installed_package_is_the_one_that_runs(installed, tmp_path):
    program = "import mummergpu; print(mummergpu.__file__)"
    where = run(installed / "python", "-c", program, folder=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    version = run(installed / "mummergpu", "--version", folder=tmp_path)
    assert version.split() == ["mummergpu", __version__]


def test_the_installed_package_compiles_its_own_kernels(installed, tmp_path):
    program = (
        "from mummergpu.cuda.program import read_sources, source_folder\n"
        "print(source_folder(), *read_sources())\n"
    )
    where, *names = run(installed / "python", "-c", program, folder=tmp_path).split()
    assert Path(where).is_relative_to(installed.parent)
    assert names == kernel_files()


def test_the_installed_command_looks_at_the_machine(installed, tmp_path):
    lines = run(installed / "mummergpu", "doctor", folder=tmp_path).splitlines()
    (own,) = (line for line in lines if line.startswith("mummergpu "))
    assert own.split()[1].rstrip(",") == __version__
    assert lines[-1].startswith("backend ")


# The archive of the sources is installed and tried in the same way by day (tests/packaging).
@pytest.mark.slow
def test_the_installed_command_makes_a_workload_and_matches_it(installed, tmp_path):
    program = installed / "mummergpu"
    reference = tmp_path / "small.fa"
    run(program, "workload", "LMONO", "-o", "made", "--scale", "0.0001", folder=tmp_path)
    text = (tmp_path / "made" / "reference.fa").read_text()
    reference.write_text(text[:20_000])
    options = ["--reference", reference, "--scale", "0.0001"]
    run(program, "workload", "LMONO", "-o", "example", *options, folder=tmp_path)
    files = ("example/reference.fa", "example/reads.fq")
    rows = run(program, *files, "-l", "20", folder=tmp_path).splitlines()
    assert sum(row.startswith("> LMONO.") for row in rows) == 100
    matches = [row.split() for row in rows if not row.startswith(">")]
    assert len(matches) >= 40
    assert all(int(length) >= 20 for _, _, length in matches)
