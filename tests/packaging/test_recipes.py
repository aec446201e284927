"""The recipes of conda, nf-core and Snakemake: they agree with the package, and they run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mummergpu import __version__
from mummergpu.cli.main import commands

SOURCE = Path(__file__).resolve().parents[2]
PACKAGING = SOURCE / "packaging"
MODULE = PACKAGING / "nf-core" / "mummergpu" / "match"

NAMES_OF_CONDA = {"isal": "python-isal"}

REFERENCE = ">r\nACGGTCATTGCAAGGCCTTATTGACCAGT\n"
READS = "@q\nCATTGCAAGGCC\n+\nIIIIIIIIIIII\n"
ROWS = "> q\n       6         1        12\n"


@pytest.fixture(scope="module")
def recipe(yaml: Any) -> Any:
    """The recipe of conda, as conda-build reads it."""
    jinja = pytest.importorskip("jinja2")
    text = (PACKAGING / "bioconda" / "meta.yaml").read_text()
    pin = {"pin_subpackage": lambda name, max_pin: f"{name} of {max_pin}"}
    return yaml.safe_load(jinja.Template(text).render(PYTHON="python", **pin))


@pytest.fixture(scope="module")
def project() -> Any:
    return tomllib.loads((SOURCE / "pyproject.toml").read_text())


def as_conda_writes(requirement: str) -> str:
    match = re.fullmatch(r"([\w-]+)(.*)", requirement)
    assert match is not None
    return f"{NAMES_OF_CONDA.get(match[1], match[1])} {match[2]}"


def test_the_conda_package_is_that_of_the_project(recipe: Any, project: Any) -> None:
    facts = project["project"]
    assert recipe["package"] == {"name": facts["name"], "version": __version__}
    assert recipe["about"]["license"] == facts["license"]
    assert recipe["about"]["home"] == facts["urls"]["Homepage"]
    assert (PACKAGING / "bioconda" / recipe["source"]["path"]).resolve() == SOURCE
    (script,) = (f"{name} = {target}" for name, target in facts["scripts"].items())
    assert recipe["build"]["entry_points"] == [script]
    assert (SOURCE / recipe["about"]["license_file"]).exists()


def test_the_conda_package_requires_what_the_project_does(recipe: Any, project: Any) -> None:
    python = f"python {project['project']['requires-python']}"
    wanted = [python, *map(as_conda_writes, project["project"]["dependencies"])]
    assert sorted(recipe["requirements"]["run"]) == sorted(wanted)
    (build,) = map(as_conda_writes, project["build-system"]["requires"])
    assert {python, build} <= set(recipe["requirements"]["host"])


def test_the_tests_of_the_conda_package_work(
    recipe: Any, path_with_command: str, tmp_path: Path
) -> None:
    environment = {**os.environ, "PATH": path_with_command}
    done = [line for line in recipe["test"]["commands"] if line.startswith("mummergpu")]
    assert len(done) == 4
    for line in done:
        subprocess.run(line, shell=True, check=True, env=environment, cwd=tmp_path)
    assert (tmp_path / "matches.txt").stat().st_size > 1000


def test_all_recipes_name_the_version_of_the_package(yaml: Any) -> None:
    environment = yaml.safe_load((MODULE / "environment.yml").read_text())
    assert environment["dependencies"] == [f"bioconda::mummergpu={__version__}"]
    environment = yaml.safe_load((PACKAGING / "snakemake" / "environment.yaml").read_text())
    assert environment["dependencies"] == [f"mummergpu ={__version__}"]
    containers = re.findall(r"mummergpu:([\w.]+)--", (MODULE / "main.nf").read_text())
    assert containers == [__version__, __version__]


def block(name: str) -> str:
    """Return the shell's part of a block of the nf-core module, as Nextflow writes it."""
    text = (MODULE / "main.nf").read_text()
    match = re.search(
        rf'^    {name}:\n(?:    def [^\n]*\n)*    """\n(.*?)    """', text, re.M | re.S
    )
    assert match is not None
    values = {
        "args": "-l 8 -C",
        "task.cpus": "2",
        "prefix": "sample",
        "reference": "r.fa",
        "queries": "q.fq",
    }
    shell = match[1].replace("\\\\\n", "\\\n")
    for variable in values:
        shell = shell.replace(f"${{{variable}}}", values[variable])
        shell = re.sub(rf"\${re.escape(variable)}\b", values[variable], shell)
    assert "$" not in shell
    return shell


@pytest.mark.parametrize(("name", "expected"), [("script", ROWS), ("stub", "")])
def test_the_commands_of_the_nf_core_module_make_its_outputs(
    name: str, expected: str, path_with_command: str, tmp_path: Path
) -> None:
    (tmp_path / "r.fa").write_text(REFERENCE)
    (tmp_path / "q.fq").write_text(READS)
    environment = {**os.environ, "PATH": path_with_command}
    command = ["bash", "-euo", "pipefail", "-c", block(name)]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    assert (tmp_path / "sample.txt").read_text() == expected
    stats = (tmp_path / "sample.json").read_text()
    assert not stats if name == "stub" else json.loads(stats)["counts"]["matches"] == 1


def test_the_nf_core_module_tells_the_version(path_with_command: str) -> None:
    (line,) = re.findall(r'eval\("(.*?)"\)', (MODULE / "main.nf").read_text())
    environment = {**os.environ, "PATH": path_with_command}
    assert (
        subprocess.check_output(line, shell=True, env=environment, text=True) == f"{__version__}\n"
    )


def test_the_nf_core_module_describes_its_channels(yaml: Any) -> None:
    text = (MODULE / "main.nf").read_text()
    described = yaml.safe_load((MODULE / "meta.yml").read_text())
    assert described["name"].upper() in re.findall(r"^process (\w+) {", text, re.M)
    parts = re.search(r"input:\n(.*?)\n\n    output:\n(.*?)\n\n", text, re.S)
    assert parts is not None
    inputs = [re.findall(r"(?:val|path)\((\w+)\)", line) for line in parts[1].splitlines()]
    assert [[next(iter(one)) for one in channel] for channel in described["input"]] == inputs
    outputs = {}
    for line in parts[2].splitlines():
        found = re.findall(r"""(?:val|path|eval)\((?:"(.*?)"|'(.*?)'|(\w+))\)""", line)
        outputs[line.rpartition("emit: ")[2].strip()] = ["".join(names) for names in found]
    told = {
        name: [next(iter(one)) for one in channel[0]]
        for name, channel in described["output"].items()
    }
    assert told == outputs
    assert described["topics"]["versions"] == described["output"]["versions_mummergpu"]


def test_the_snakemake_wrapper_is_used_by_a_workflow(
    snakemake: str, path_with_command: str, tmp_path: Path
) -> None:
    wrapper = tmp_path / "wrapper folder"
    shutil.copytree(PACKAGING / "snakemake", wrapper)
    folder = wrapper / "test"
    environment = {**os.environ, "PATH": path_with_command, "HOME": str(tmp_path)}
    # Snakemake's jobs are to find the libraries of its own Python.
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [snakemake, "--cores", "2"], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = (folder / "matches.txt").read_text().splitlines()
    assert rows.count("> first1") == rows.count("> second2 Reverse") == 1
    assert "  plasmid          101         1        60" in rows
    assert json.loads((folder / "matches.json").read_text())["counts"]["queries"] == 5
    rows = (folder / "unique matches.txt").read_text().splitlines()
    assert rows[:2] == ["> first1", "  chromosome        31         1        60"]


def test_the_snakemake_wrapper_says_what_it_takes(yaml: Any) -> None:
    described = yaml.safe_load((PACKAGING / "snakemake" / "meta.yaml").read_text())
    text = (PACKAGING / "snakemake" / "wrapper.py").read_text()
    for kind in ("input", "output", "params"):
        named = {next(iter(one)) for one in described[kind]}
        used = re.findall(rf"snakemake\.{kind}\.(?:get\(\"(\w+)|(?!get)(\w+))", text)
        assert {"".join(pair) for pair in used} == named
    options = {option for one in commands.commands["match"].params for option in one.opts}
    assert set(re.findall(r"(--[a-z]+) ", text)) <= options
