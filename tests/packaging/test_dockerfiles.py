"""The recipes of containers."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mummergpu.cli.main import commands

SOURCE = Path(__file__).resolve().parents[2]
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
