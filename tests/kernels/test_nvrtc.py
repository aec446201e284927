"""Every program that a policy can ask for compiles, for old and new devices, and spills nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest
from helpers.pairwise import name_of, pairwise_policies

from mummergpu.cuda import launcher as launches
from mummergpu.cuda import nvrtc as compilation
from mummergpu.cuda.nvrtc import compile_with_log
from mummergpu.cuda.sources import read_sources
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends import stream_searcher as searching
from mummergpu.matching.kmer import cuda as sampled
from mummergpu.matching.tree import cuda_search as search
from mummergpu.matching.tree.cuda import KERNELS
from mummergpu.matching.tree.cuda_macros import Specialisation

ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
LAYOUTS = ("none", "m", "r", "t", "mr", "mt", "rt", "mrt")

pytestmark = pytest.mark.usefixtures("nvrtc")


@pytest.fixture(autouse=True)
def told_by_the_assembler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has what each kernel needs among the compiler's messages."""
    monkeypatch.setattr(compilation, "OPTIONS", (*compilation.OPTIONS, "--ptxas-options=-v"))
    yield


FILES_OF_SAMPLED = {"long_lists.cu", "offsets.cu", "planes.cu", "sampled.cu"}
FILES_OF_TREES = {"match.cu", "offsets.cu", "order.cu", "print.cu", "queries.cu"}


def kernels_launched(*modules: ModuleType) -> set[str]:
    """The kernels that a backend names when it launches them."""
    names = set()
    for module in modules:
        assert module.__file__ is not None
        for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in ("launch", "launch_on"):
                    found = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                    names |= {value for value in found if isinstance(value, str)}
    return names


def kernels_written(files: set[str]) -> set[str]:
    """The kernels that some of the sources define."""
    pattern = r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\('
    sources = read_sources()
    return {name for file in files for name in re.findall(pattern, sources[file])}


def check_program(specialisation: Specialisation, architecture: str) -> None:
    compiled = compile_with_log(read_sources(), specialisation, architecture)
    assert compiled.image.startswith(b"\x7fELF")
    lines = [line for line in compiled.log.splitlines() if line.strip()]
    others = [line for line in lines if not re.match(r"ptxas (info  |      )  ?[:.]", line)]
    assert others == [], "the compiler warns"
    needs = re.findall(
        r"Function properties for (\w+)\n.*?(\d+) bytes stack frame, "
        r"(\d+) bytes spill stores, (\d+) bytes spill loads",
        compiled.log,
    )
    files = FILES_OF_SAMPLED if specialisation.sampled else FILES_OF_TREES
    assert {kernel for kernel, *_ in needs} == kernels_written(files)
    for kernel, *numbers in needs:
        assert numbers == ["0", "0", "0"], f"{kernel} uses local memory: {numbers}"
        assert f".text.{kernel}".encode() in compiled.image


@pytest.mark.parametrize("choice", pairwise_policies(), ids=name_of)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_pair_of_policies_and_formats_compiles(
    architecture: str, choice: tuple[Policy, bool]
) -> None:
    check_program(Specialisation.of(*choice, False), architecture)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wide", [False, True], ids=["paper", "wide"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_policies_of_a_layout_compile(architecture: str, wide: bool, layout: str) -> None:
    """For the newest device each set of textures; for the others none of them and all."""
    letters = set(layout.replace("none", ""))
    every = product((False, True), repeat=3)
    for textures in every if architecture == ARCHITECTURES[-1] else ((False,) * 3, (True,) * 3):
        policy = Policy(*textures, "m" in letters, "r" in letters, "t" in letters)
        check_program(Specialisation.of(policy, wide, False), architecture)


@pytest.mark.parametrize("code", ["none", "m", "QRTmrt"])
@pytest.mark.parametrize("wide", [False, True], ids=["paper", "wide"])
def test_programs_that_count_node_visits_compile(wide: bool, code: str) -> None:
    check_program(Specialisation.of(Policy.from_code(code), wide, True), "sm_90")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_sampled_search_compiles(architecture: str) -> None:
    check_program(Specialisation.of_sampled_search(), architecture)


def test_the_backends_launch_what_there_is_and_all_of_it() -> None:
    for_trees = kernels_launched(search, launches)
    assert for_trees == kernels_written(FILES_OF_TREES)
    assert set(KERNELS) <= for_trees
    for_tables = kernels_launched(sampled, searching, launches)
    assert for_tables == kernels_written(FILES_OF_SAMPLED)
    assert set(sampled.KERNELS) <= for_tables


def test_every_file_with_kernels_belongs_to_a_search() -> None:
    files = {name for name, text in read_sources().items() if "__global__" in text}
    assert files == FILES_OF_SAMPLED | FILES_OF_TREES
