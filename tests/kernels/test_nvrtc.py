"""Every program that a policy can ask for compiles, for old and new devices, and spills nothing."""

import ast
import re
from itertools import product
from pathlib import Path

import pytest
from helpers.hidden_models import profile
from helpers.pairwise import pairwise_programs

from mummergpu.cuda import nvrtc as compilation
from mummergpu.cuda import stream_worker as launches
from mummergpu.cuda.nvrtc import compile_with_log
from mummergpu.cuda.program import CONSTANTS_HEADER, read_sources
from mummergpu.hmm import device_filters, device_work, tile_filter
from mummergpu.hmm.filter_programs import (
    MAX_WORD_REGISTERS,
    SEQUENCE_PROGRAM,
    RowShape,
    byte_program,
    byte_shape,
    word_program,
    word_shape,
)
from mummergpu.hmm.filter_variants import (
    BASIC,
    PAPERS_BEST,
    RowPolicy,
    ThreadPolicy,
    thread_program,
)
from mummergpu.hmm.language import device as chains
from mummergpu.hmm.language import device_pieces as chain_pieces
from mummergpu.hmm.language.chain import chain_of
from mummergpu.hmm.language.cuda_text import (
    SHARES_PROGRAM,
    DeviceKind,
    Keeps,
    chain_program,
    paths_program,
    wide_program,
)
from mummergpu.index.tree.policy import Policy
from mummergpu.mapping.seeding import device_candidates
from mummergpu.mapping.seeding.device_candidates import MAPPING_PROGRAM
from mummergpu.matching.backends import stream_searcher as searching
from mummergpu.matching.kmer import cuda as kmer_tables
from mummergpu.matching.kmer import cuda_consumers
from mummergpu.matching.kmer import cuda_search as kmer_search
from mummergpu.matching.kmer.cuda_program import KMER_PROGRAM, SEED_PROGRAM
from mummergpu.matching.tree import cuda as tree_search
from mummergpu.matching.tree.cuda import KERNELS
from mummergpu.matching.tree.cuda_program import tree_program
from mummergpu.output.bytes import device_compression
from mummergpu.output.bytes.device_compression import BGZF_PROGRAM
from mummergpu.studies import gathers
from mummergpu.studies.gathers import GATHER_PROGRAM
from mummergpu.studies.profiles import device_scores
from mummergpu.viterbi.device.cuda_program import VITERBI_PROGRAM

ARCHITECTURES = ("sm_75", "sm_90")
"""The oldest and the newest, between which programs differ little."""

LAYOUTS = ("none", "m", "r", "t", "mr", "mt", "rt", "mrt")

pytestmark = pytest.mark.usefixtures("nvrtc")


@pytest.fixture(autouse=True)
def told_by_the_assembler(monkeypatch):
    """Has what each kernel needs among the compiler's messages."""
    monkeypatch.setattr(compilation, "OPTIONS", (*compilation.OPTIONS, "--ptxas-options=-v"))


CHAIN = chain_of(profile(9))
TILE_PROGRAM = thread_program(ThreadPolicy.from_code("t1hsrrs"), 270)
CHAIN_KINDS = [
    *(
        DeviceKind(True, double, pieces=pieces)
        for double in (False, True)
        for pieces in (False, True)
    ),
    *(DeviceKind(False, pieces=pieces) for pieces in (False, True)),
    *(DeviceKind(False, False, Keeps.TRACES, pieces) for pieces in (False, True)),
    *(DeviceKind(True, True, keeps) for keeps in (Keeps.COLUMNS, Keeps.SHARES)),
]
TREE_PROGRAM = tree_program(Policy(), wide=False, profile=False)
PROGRAMS = [
    pytest.param(TREE_PROGRAM, id="tree"),
    pytest.param(KMER_PROGRAM, id="kmer"),
    pytest.param(SEED_PROGRAM, id="kmer_seeds"),
    pytest.param(GATHER_PROGRAM, id="study"),
    pytest.param(MAPPING_PROGRAM, id="mapping"),
    pytest.param(VITERBI_PROGRAM, id="viterbi"),
    pytest.param(BGZF_PROGRAM, id="bgzf"),
    pytest.param(SEQUENCE_PROGRAM, id="hmm-sequences"),
    pytest.param(byte_program(byte_shape(400)).source, id="hmm-bytes"),
    pytest.param(word_program(word_shape(400)).source, id="hmm-words"),
    pytest.param(thread_program(BASIC, 270), id="hmm-threads"),
    pytest.param(TILE_PROGRAM, id="hmm-tiles"),
    *(
        pytest.param(chain_program(CHAIN.shape, kind), id=kind.name("chain"))
        for kind in CHAIN_KINDS
    ),
    *(
        pytest.param(wide_program(kind), id=kind.name("wide-chain"))
        for kind in CHAIN_KINDS
        if (kind.double or not kind.sums) and not kind.pieces
    ),
    *(pytest.param(paths_program(bits), id=f"paths-{bits}") for bits in (8, 16, 64)),
    pytest.param(SHARES_PROGRAM, id="shares"),
]


def kernels_launched(*modules):
    """The kernels that a backend names when it launches them."""
    names = set()
    for module in modules:
        assert module.__file__ is not None
        for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in ("launch", "launch_on", "_launch_on_warps", "_scores"):
                    found = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                    names |= {value for value in found if isinstance(value, str)}
    return names


KERNEL = r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(([^)]*)\)'


def kernels_written(program):
    """The kernels that the files of a program define."""
    files = program.files(read_sources())
    texts = [files[name] for name in files_included(program)]
    return {name for text in texts for name, _ in re.findall(KERNEL, text)}


def files_included(program):
    """The files that a program's entry includes, and those that these include."""
    files = program.files(read_sources())
    found, waiting = {program.entry}, [program.entry]
    while waiting:
        included = set(re.findall(r'^#include "(.*)"$', files[waiting.pop()], re.MULTILINE))
        waiting += included - found
        found |= included
    return found


def check_program(program, architecture, kernels=None):
    """Without `kernels`, the program has all of its source."""
    image, log = compile_with_log(read_sources(), program, architecture)
    assert image.startswith(b"\x7fELF")
    lines = [line for line in log.splitlines() if line.strip()]
    others = [line for line in lines if not re.match(r"ptxas (info  |      )  ?[:.]", line)]
    assert others == [], "the compiler warns"
    needs = re.findall(
        r"Function properties for (\w+)\n.*?(\d+) bytes stack frame, "
        r"(\d+) bytes spill stores, (\d+) bytes spill loads",
        log,
    )
    assert {kernel for kernel, *_ in needs} == (kernels or kernels_written(program))
    for kernel, *numbers in needs:
        assert numbers == ["0", "0", "0"], f"{kernel} uses local memory: {numbers}"
        assert f".text.{kernel}".encode() in image


@pytest.mark.parametrize(("architecture", "choice"), pairwise_programs(ARCHITECTURES))
def test_each_pair_of_policies_and_formats_compiles(architecture, choice):
    check_program(tree_program(*choice, False), architecture)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wide", [False, True], ids=["paper", "wide"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_policies_of_a_layout_compile(architecture, wide, layout):
    """For the newest device each set of textures; for the others none of them and all."""
    letters = set(layout.replace("none", ""))
    every = product((False, True), repeat=3)
    for textures in every if architecture == ARCHITECTURES[-1] else ((False,) * 3, (True,) * 3):
        policy = Policy(*textures, "m" in letters, "r" in letters, "t" in letters)
        check_program(tree_program(policy, wide, False), architecture)


@pytest.mark.parametrize(
    "code", ["m", *(pytest.param(code, marks=pytest.mark.slow) for code in ("none", "QRTmrt"))]
)
@pytest.mark.parametrize("wide", [False, True], ids=["paper", "wide"])
def test_programs_that_count_node_visits_compile(wide, code):
    check_program(tree_program(Policy.from_code(code), wide, True), "sm_90")


PLAIN = (KMER_PROGRAM, SEED_PROGRAM, GATHER_PROGRAM, MAPPING_PROGRAM, VITERBI_PROGRAM, BGZF_PROGRAM)


@pytest.mark.parametrize(
    ("architecture", "program"),
    [
        # By day every other program is compiled for the oldest device, the rest for the newest.
        pytest.param(name, one, marks=pytest.mark.slow if (old + number) % 2 else ())
        for old, name in enumerate(ARCHITECTURES)
        for number, one in enumerate(PLAIN)
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_programs_without_variants_compile(architecture, program):
    check_program(program, architecture)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_filters_of_profiles_compile(architecture):
    check_program(SEQUENCE_PROGRAM, architecture)
    shapes = [(8, 1), (16, 13), (32, 10), (32, 59)]
    if architecture == "sm_90":
        # Of some such rows older devices keep up to three words in local memory.
        shapes += [(8, 25), (16, 29)]
    for lanes, registers in shapes:
        check_program(byte_program(RowShape(lanes, registers)).source, architecture)
    # From 34 words a lane on, the registers of older devices do not suffice.
    for registers in (1, 7, 14, 22, 33 if architecture == "sm_75" else 34):
        check_program(word_program(RowShape(32, registers)).source, architecture)


def warp_program(code, nodes):
    return RowPolicy.from_code(code).program(nodes, 48 << 10).source


@pytest.mark.parametrize("architecture", [pytest.param("sm_75", marks=pytest.mark.slow), "sm_90"])
def test_the_policies_of_filters_compile(architecture):
    """Private rows lie in local memory, as a study wants them; nothing else does."""
    for code in ("g1crggg", "c8hscss", "p2cicst"):
        program = thread_program(ThreadPolicy.from_code(code), 270)
        check_program(program, architecture, {device_scores.ROWS})
    # Older devices compute pairs of 16 bits in several steps, with more registers.
    for code in ("t1hsrrs", "t1crsrt", "t1hscrg") if architecture == "sm_90" else ():
        program = thread_program(ThreadPolicy.from_code(code), 270)
        check_program(program, architecture, {tile_filter.KERNEL})
    for code in ("Srcs32", "Sscc8", "Mstc16", "Mrcc32", "Vrcs16", "Vstc32"):
        check_program(warp_program(code, 100), architecture)
    check_program(warp_program("Sbcs32", 1000), architecture, {"find_cells"})
    for program in (thread_program(PAPERS_BEST, 270), warp_program("Vltc32", 1000)):
        _, log = compile_with_log(read_sources(), program, architecture)
        assert "warning" not in log
        assert re.search(r"[1-9]\d* bytes stack frame, 0 bytes spill", log)


@pytest.mark.slow
def test_the_filters_of_profiles_of_all_sizes_compile():
    for nodes in range(1, 3777, 16):
        check_program(byte_program(byte_shape(nodes)).source, "sm_90")
    # The last two keep some words in local memory.
    for registers in range(1, MAX_WORD_REGISTERS - 1):
        check_program(word_program(RowShape(32, registers)).source, "sm_90")


def test_the_backends_launch_what_there_is_and_all_of_it():
    for_trees = kernels_launched(tree_search, searching, launches)
    assert for_trees == kernels_written(TREE_PROGRAM) and set(KERNELS) <= for_trees
    for_tables = kernels_launched(kmer_tables, kmer_search, cuda_consumers, searching, launches)
    assert for_tables == kernels_written(SEED_PROGRAM)
    for_seeds = {"choose_query_seeds", "count_query_kmers", "place_query_kmers"}
    assert for_tables - for_seeds == kernels_written(KMER_PROGRAM)
    assert set(kmer_tables.KERNELS) <= for_tables
    assert kernels_launched(device_candidates, launches) == kernels_written(MAPPING_PROGRAM)
    assert kernels_launched(device_compression) == kernels_written(BGZF_PROGRAM)
    for_profiles = kernels_launched(device_filters, device_work)
    rows = (byte_program(byte_shape(1)).source, word_program(word_shape(1)).source)
    assert for_profiles == set().union(*map(kernels_written, (SEQUENCE_PROGRAM, *rows)))
    assert {device_scores.ROWS, tile_filter.KERNEL} == kernels_written(TILE_PROGRAM)
    assert set(device_scores.GROUPS.values()) <= for_profiles
    for_chains = kernels_launched(chains, chain_pieces)
    kind = DeviceKind(False)
    programs = (
        chain_program(CHAIN.shape, kind),
        wide_program(kind),
        paths_program(8),
        SHARES_PROGRAM,
    )
    assert for_chains == set().union(*map(kernels_written, programs))
    for_gathers = kernels_launched(gathers) | set(gathers.DEVICE_KERNELS.values())
    assert for_gathers == kernels_written(GATHER_PROGRAM)


def test_every_file_is_included_by_a_program():
    programs = [program.values[0] for program in PROGRAMS]
    included = {name for program in programs for name in files_included(program)}
    assert included == {*read_sources(), CONSTANTS_HEADER}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_constant_is_used_by_a_kernel(program):
    """And none is defined a second time."""
    files = program.files(read_sources())
    text = "\n".join(files[name] for name in files_included(program) - {CONSTANTS_HEADER})
    code = re.sub(r"//.*", "", text)
    for name, _ in program.constants:
        assert re.search(rf"\b{name}\b", code), f"no kernel uses {name}"
        assert not re.search(rf"\b(constexpr \w+|define) {name}\b", code), f"{name} twice"


def test_every_kernel_says_what_it_is_given_and_how_it_is_launched():
    """A comment before it names its parameters, or the kernel that has the same."""
    for name, text in read_sources().items():
        for found in re.finditer(KERNEL, text):
            kernel, parameters = found.groups()
            before = text[: found.start()].rstrip("\n").splitlines()
            comment = []
            while before and before[-1].startswith("//"):
                comment.append(before.pop())
            told = "\n".join(reversed(comment))
            names = {part.split()[-1].lstrip("*&") for part in parameters.split(",")}
            assert re.search(r"Grid: .*Shared memory: ", told, re.DOTALL) or "launch, is as" in told
            same = re.search(r"(as it is given it|is as for `\w+`|as for `\w+`)", told)
            missing = {one for one in names if not re.search(rf"\b{one}\b", told)}
            assert not missing or same, f"{name}: {kernel} does not explain {missing}"
