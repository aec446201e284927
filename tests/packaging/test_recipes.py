"""Recipes of containers, conda, nf-core and Snakemake: they agree with the package, and run."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pysam
import pytest

import mummergpu
from mummergpu import __version__
from mummergpu.cli.main import commands
from mummergpu.runtime.cache_dir import CACHE_VARIABLE, cache_folder

SOURCE = Path(__file__).resolve().parents[2]
PACKAGING = SOURCE / "packaging"
MODULES = PACKAGING / "nf-core" / "mummergpu"
WRAPPERS = PACKAGING / "snakemake"
VERBS = ("match", "map", "align")

NAMES_OF_CONDA = {"isal": "python-isal"}

REFERENCE = ">r\nACGGTCATTGCAAGGCCTTATTGACCAGT\n"
READS = "@q\nCATTGCAAGGCC\n+\nIIIIIIIIIIII\n"
ROWS = "> q\n       6         1        12\n"
OUTPUTS = {
    "match": {"sample.txt", "sample.json"},
    "map": {"sample.bam", "sample.bam.bai", "sample.stats.json", "sample_mqc.json"},
    "align": {"sample.paf", "sample.stats.json"},
}
"""The files of each module of nf-core."""


@pytest.fixture(scope="module")
def recipe(yaml):
    """The recipe of conda, as conda-build reads it."""
    jinja = pytest.importorskip("jinja2")
    text = (PACKAGING / "bioconda" / "meta.yaml").read_text()
    pin = {"pin_subpackage": lambda name, max_pin: f"{name} of {max_pin}"}
    return yaml.safe_load(jinja.Template(text).render(PYTHON="python", **pin))


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((SOURCE / "pyproject.toml").read_text())


def as_conda_writes(requirement):
    match = re.fullmatch(r"([\w-]+)(.*)", requirement)
    assert match is not None
    return f"{NAMES_OF_CONDA.get(match[1], match[1])} {match[2]}"


def test_the_conda_package_is_that_of_the_project(recipe, project):
    facts = project["project"]
    assert recipe["package"] == {"name": facts["name"], "version": __version__}
    assert recipe["about"]["license"] == facts["license"]
    assert recipe["about"]["home"] == facts["urls"]["Homepage"]
    assert (PACKAGING / "bioconda" / recipe["source"]["path"]).resolve() == SOURCE
    (script,) = (f"{name} = {target}" for name, target in facts["scripts"].items())
    assert recipe["build"]["entry_points"] == [script]
    assert (SOURCE / recipe["about"]["license_file"]).exists()


def test_the_conda_package_requires_what_the_project_does(recipe, project):
    python = f"python {project['project']['requires-python']}"
    wanted = [python, *map(as_conda_writes, project["project"]["dependencies"])]
    assert sorted(recipe["requirements"]["run"]) == sorted(wanted)
    (build,) = map(as_conda_writes, project["build-system"]["requires"])
    assert {python, build} <= set(recipe["requirements"]["host"])


def test_the_tests_of_the_conda_package_work(recipe, path_with_command, tmp_path):
    environment = {**os.environ, "PATH": path_with_command}
    done = [line for line in recipe["test"]["commands"] if line.startswith("mummergpu")]
    assert len(done) == 6
    for line in done:
        subprocess.run(line, shell=True, check=True, env=environment, cwd=tmp_path)
    assert (tmp_path / "matches.txt").stat().st_size > 1000
    assert (tmp_path / "mapped.bam.bai").exists()
    assert (tmp_path / "aligned.paf").stat().st_size > 50


@pytest.mark.parametrize("verb", VERBS)
def test_all_recipes_name_the_version_of_the_package(yaml, verb):
    environment = yaml.safe_load((MODULES / verb / "environment.yml").read_text())
    assert environment["dependencies"] == [f"bioconda::mummergpu={__version__}"]
    environment = yaml.safe_load((WRAPPERS / verb / "environment.yaml").read_text())
    assert environment["dependencies"] == [f"mummergpu ={__version__}"]
    containers = re.findall(r"mummergpu:([\w.]+)--", (MODULES / verb / "main.nf").read_text())
    assert containers == [__version__, __version__]


def block(verb, name):
    """Return the shell's part of a block of an nf-core module, as Nextflow writes it."""
    text = (MODULES / verb / "main.nf").read_text()
    match = re.search(
        rf'^    {name}:\n(?:    def [^\n]*\n)*    """\n(.*?)    """', text, re.M | re.S
    )
    assert match is not None
    values = {
        "args": {"match": "-l 8 -C", "map": "--sort", "align": "-l 12 -c 20"}[verb],
        "task.cpus": "2",
        "prefix": "sample",
        "suffix": "paf",
        "reference": "r.fa",
        "reads": "q.fq",
        "queries": "q.fq",
        "query": "q.fq",
    }
    for variable, value in re.findall(r'^    def (\w+) = "(.*)"$', text, re.M):
        # Groovy writes one backslash for two.
        filled = value.replace("${prefix}", "sample").replace("${meta.id}", "one")
        values[variable] = filled.replace("\\\\", "\\")
    shell = match[1].replace("\\\\\n", "\\\n")
    for variable in values:
        shell = shell.replace(f"${{{variable}}}", values[variable])
        shell = re.sub(rf"\${re.escape(variable)}\b", lambda _, v=variable: values[v], shell)
    assert "$" not in shell
    return shell


def run_block(verb, name, path, folder):
    """Run a block of a module; its outputs, and no other files, are there afterwards."""
    inputs = {"r.fa": REFERENCE, "q.fq": READS}
    if verb != "match":
        bases = "".join(random.Random(1).choices("ACGT", k=400))
        inputs = {"r.fa": f">r\n{bases}\n", "q.fq": f"@q\n{bases[50:200]}\n+\n{'I' * 150}\n"}
    for file, text in inputs.items():
        (folder / file).write_text(text)
    environment = {**os.environ, "PATH": path}
    command = ["bash", "-euo", "pipefail", "-c", block(verb, name)]
    subprocess.run(command, check=True, env=environment, cwd=folder)
    made = {path.name for path in folder.iterdir()} - set(inputs)
    plots = {one for one in made if "_mqc." in one and one != "sample_mqc.json"}
    assert made - plots == OUTPUTS[verb]
    text = (MODULES / verb / "main.nf").read_text()
    shown = re.findall(r'path\("(.*?)"\)', text.partition("output:")[2])
    patterns = [
        first + middle + last
        for first, group, last in (
            re.match(r"([^{]*)(?:\{(.*)\})?(.*)", one).groups() for one in shown
        )
        for middle in (group or "").split(",")
    ]
    assert {one for one in made if any(fnmatch(one, pattern) for pattern in patterns)} == made


@pytest.mark.parametrize("verb", VERBS)
def test_the_stubs_of_the_nf_core_modules_make_their_outputs(verb, path_with_command, tmp_path):
    run_block(verb, "stub", path_with_command, tmp_path)
    for file in OUTPUTS[verb]:
        assert (tmp_path / file).read_bytes() == b""


def test_the_nf_core_module_finds_matches(path_with_command, tmp_path):
    run_block("match", "script", path_with_command, tmp_path)
    assert (tmp_path / "sample.txt").read_text() == ROWS
    assert json.loads((tmp_path / "sample.json").read_text())["counts"]["matches"] == 1


def test_the_nf_core_module_maps_reads(path_with_command, tmp_path):
    run_block("map", "script", path_with_command, tmp_path)
    with pysam.AlignmentFile(tmp_path / "sample.bam") as file:
        (row,) = file.fetch("r", 40, 60)
        assert (row.reference_start, row.cigarstring) == (50, "150M")
        assert file.header["RG"] == [{"ID": "sample", "SM": "one", "PL": "ILLUMINA"}]
    stats = json.loads((tmp_path / "sample.stats.json").read_text())
    assert stats["mapping"]["mapped"] == 1


def test_the_nf_core_module_aligns_genomes(path_with_command, tmp_path):
    run_block("align", "script", path_with_command, tmp_path)
    (line,) = (tmp_path / "sample.paf").read_text().splitlines()
    assert line.split("\t")[7:11] == ["50", "200", "150", "150"]


def test_the_tests_of_the_nf_core_modules_look_at_their_channels():
    for verb in VERBS:
        text = (MODULES / verb / "tests" / "main.nf.test").read_text()
        process = f"MUMMERGPU_{verb.upper()}"
        assert f'process "{process}"' in text and f'tag "mummergpu/{verb}"' in text
        emitted = re.findall(r"emit: (\w+)", (MODULES / verb / "main.nf").read_text())
        assert set(re.findall(r"process\.out\.(?!findAll)(\w+)", text)) <= set(emitted)
        config = (MODULES / verb / "tests" / "nextflow.config").read_text()
        assert f"withName: {process} {{" in config
        assert text.count("{") == text.count("}") and 'options "-stub"' in text


@pytest.mark.parametrize("verb", VERBS)
def test_the_nf_core_module_tells_the_version(verb, path_with_command):
    (line,) = re.findall(r'eval\("(.*?)"\)', (MODULES / verb / "main.nf").read_text())
    environment = {**os.environ, "PATH": path_with_command}
    assert (
        subprocess.check_output(line, shell=True, env=environment, text=True) == f"{__version__}\n"
    )


@pytest.mark.parametrize("verb", VERBS)
def test_the_nf_core_module_describes_its_channels(yaml, verb):
    text = (MODULES / verb / "main.nf").read_text()
    described = yaml.safe_load((MODULES / verb / "meta.yml").read_text())
    assert described["name"].upper() in re.findall(r"^process (\w+) {", text, re.M)
    parts = re.search(r"input:\n(.*?)\n\n    output:\n(.*?)\n\n", text, re.S)
    assert parts is not None
    inputs = [re.findall(r"(?:val|path)\((\w+)\)", line) for line in parts[1].splitlines()]
    assert [[next(iter(one)) for one in channel] for channel in described["input"]] == inputs
    outputs = {}
    for line in parts[2].splitlines():
        found = re.findall(r"""(?:val|path|eval)\((?:"(.*?)"|'(.*?)'|(\w+))\)""", line)
        outputs[line.rpartition("emit: ")[2].partition(",")[0].strip()] = [
            "".join(names) for names in found
        ]
    told = {
        name: [next(iter(one)) for one in channel[0]]
        for name, channel in described["output"].items()
    }
    assert told == outputs
    assert described["topics"]["versions"] == described["output"]["versions_mummergpu"]


def run_workflow(verb, snakemake, path, work):
    """Run the workflow that tests a wrapper; return its folder."""
    wrapper = work / "wrapper folder"
    shutil.copytree(WRAPPERS / verb, wrapper)
    folder = wrapper / "test"
    environment = {**os.environ, "PATH": path, "HOME": str(work)}
    # What has been compiled is not compiled in each new home.
    if (kept := cache_folder(os.environ)) is not None:
        environment[CACHE_VARIABLE] = str(kept)
    # Snakemake's jobs are to find the libraries of its own Python.
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [snakemake, "--cores", "2"], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_snakemake_wrapper_of_map_is_used_by_a_workflow(snakemake, path_with_command, tmp_path):
    folder = run_workflow("map", snakemake, path_with_command, tmp_path)
    with pysam.AlignmentFile(folder / "pairs.bam") as file:
        rows = list(file.fetch())
        assert file.header["RG"] == [{"ID": "a", "SM": "b"}]
    assert [row.reference_start for row in rows] == [100, 300, 700, 700, 900, 900, 1900, 2100]
    assert sum(row.is_duplicate for row in rows) == 2
    assert json.loads((folder / "pairs.json").read_text())["mapping"]["mapped"] == 8
    assert (folder / "pairs_mqc.json").stat().st_size > 0
    lines = (folder / "single reads.sam").read_text().splitlines()
    assert sum(not line.startswith("@") for line in lines) == 4


def test_the_snakemake_wrapper_of_align_is_used_by_a_workflow(
    snakemake, path_with_command, tmp_path
):
    folder = run_workflow("align", snakemake, path_with_command, tmp_path)
    (line,) = (folder / "genomes.paf").read_text().splitlines()
    assert line.split("\t")[:4] == ["copy", "2395", "0", "2395"] and "cs:Z:" in line
    assert json.loads((folder / "genomes.json").read_text())["counts"]["queries"] == 1
    rows = [
        line.split("\t")
        for line in (folder / "some genomes.vcf").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert sorted(len(row[4]) - len(row[3]) for row in rows) == [-10, 5]


def test_the_snakemake_wrapper_is_used_by_a_workflow(snakemake, path_with_command, tmp_path):
    folder = run_workflow("match", snakemake, path_with_command, tmp_path)
    rows = (folder / "matches.txt").read_text().splitlines()
    assert rows.count("> first1") == rows.count("> second2 Reverse") == 1
    assert "  plasmid          101         1        60" in rows
    assert json.loads((folder / "matches.json").read_text())["counts"]["queries"] == 5
    rows = (folder / "unique matches.txt").read_text().splitlines()
    assert rows[:2] == ["> first1", "  chromosome        31         1        60"]


@pytest.mark.parametrize("verb", VERBS)
def test_the_snakemake_wrapper_says_what_it_takes(yaml, verb):
    described = yaml.safe_load((WRAPPERS / verb / "meta.yaml").read_text())
    text = (WRAPPERS / verb / "wrapper.py").read_text()
    for kind in ("input", "output", "params"):
        named = {next(iter(one)) for one in described[kind]}
        used = re.findall(rf"snakemake\.{kind}\.(?:get\(\"(\w+)|(?!get)(\w+))", text)
        assert {"".join(pair) for pair in used} == named
    options = {option for one in commands.commands[verb].params for option in one.opts}
    assert set(re.findall(r"(--[a-z]+) ", text)) <= options


RECIPES = sorted((SOURCE / "packaging").glob("Dockerfile.*"))

each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)


def instructions(recipe):
    """Return the instructions of a recipe, each with all of its lines."""
    text = re.sub(r"^\s*#.*\n", "", recipe.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines if line]


def test_there_is_a_recipe_for_each_backend():
    assert [path.name for path in RECIPES] == ["Dockerfile.cpu", "Dockerfile.cuda"]


@each_recipe
def test_hadolint_finds_nothing(recipe, hadolint):
    done = subprocess.run([hadolint, str(recipe)], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@each_recipe
def test_what_is_copied_is_enough_to_build_the_package(recipe, tmp_path):
    """And is no more than the checkout has."""
    context = tmp_path / "context"
    context.mkdir()
    copied = [words.split() for name, words in instructions(recipe) if name == "COPY"]
    for *sources, target in copied:
        for source in sources:
            path = SOURCE / source
            if path.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(path, context / target, ignore=ignored)
            else:
                (context / target).parent.mkdir(exist_ok=True)
                shutil.copy(path, context / target)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"]
    flags = ["--no-deps", "--no-build-isolation", "--no-index"]
    wheels = []
    for number, folder in enumerate((context, SOURCE)):
        place = tmp_path / str(number)
        subprocess.run([*pip, *flags, "-w", place, folder], check=True, capture_output=True)
        with zipfile.ZipFile(next(place.glob("*.whl"))) as archive:
            wheels.append(set(archive.namelist()))
    assert wheels[0] == wheels[1]


@each_recipe
def test_code_is_compiled_into_a_folder_of_the_image(recipe):
    found = instructions(recipe)
    names = [f"{name} {words}" for name, words in found]
    (kept,) = (place for place, line in enumerate(names) if "ENV MUMMERGPU_CACHE_DIR=/opt" in line)
    (warmed,) = (place for place, line in enumerate(names) if "mummergpu warmup" in line)
    assert kept < warmed
    options = {option for one in commands.commands["warmup"].params for option in one.opts}
    assert set(re.findall(r" (--\w+)", names[warmed])) <= options
    # It belongs to root, so that every user may run it. Others may keep kernels beside it at most.
    assert not any(name == "USER" for name, _ in found)
    assert not any("chown" in line for line in names)
    assert all("chmod 1777" in line for line in names if "chmod" in line)


@each_recipe
def test_a_workflow_can_run_its_own_shell(recipe):
    assert not any(name == "ENTRYPOINT" for name, _ in instructions(recipe))


ROOT = Path(__file__).resolve().parents[2]


def test_the_citation_is_of_this_version_and_address():
    text = (ROOT / "CITATION.cff").read_text()
    fields = dict(re.findall(r"(?m)^([a-z-]+): (\S.*)$", text))
    assert fields["version"] == mummergpu.__version__
    project = (ROOT / "pyproject.toml").read_text()
    assert f'Source = "{fields["repository-code"]}"' in project
    assert f'license = "{fields["license"]}"' in project
