"""What a program is made of, and what NVRTC makes of it."""

import builtins
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mummergpu.cuda import nvrtc as compilation
from mummergpu.cuda import program as cuda_program
from mummergpu.cuda.nvrtc import (
    CompilationError,
    choose_architecture,
    compile_program,
    compile_with_log,
    known_architectures,
    nvrtc_version,
)
from mummergpu.cuda.program import (
    BLOCK_THREADS,
    CONSTANTS_HEADER,
    COUNTS_PER_THREAD,
    WARP_LANES,
    ProgramSource,
    read_sources,
    source_folder,
)
from mummergpu.errors import BackendError, MummergpuError

PLAIN = ProgramSource("plain", "engine/program.cu", (("WIDE", 0),))
SOURCES = {
    "engine/program.cu": '#include "engine/first.cu"\n',
    "engine/first.cu": '#include "common/deep.cuh"\n'
    'extern "C" __global__ void first(int *out) { out[0] = number<WIDE>(); }\n',
    "common/deep.cuh": "#pragma once\n"
    "template <bool wide> __device__ int number() {\n"
    "    if constexpr (wide) return 271828;\n"
    "    else return 314159;\n"
    "}\n",
}


@pytest.fixture
def forgotten():
    """Lets a test see NVRTC loaded for the first time, and others after it again."""
    compilation._nvrtc.cache_clear()
    yield
    compilation._nvrtc.cache_clear()


def broken(text):
    return SOURCES | {"common/deep.cuh": SOURCES["common/deep.cuh"] + text}


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_a_cubin_is_machine_code_for_its_architecture(architecture):
    cubin = compile_program(SOURCES, PLAIN, architecture)
    assert cubin.startswith(b"\x7fELF") and b".text.first" in cubin
    assert cubin == compile_program(SOURCES, PLAIN, architecture)


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(("wide", "number"), [(False, b"314159"), (True, b"271828")])
def test_macros_choose_what_is_compiled(wide, number):
    made = compile_program(SOURCES, replace(PLAIN, macros=(("WIDE", int(wide)),)), "compute_80")
    assert b".target sm_80" in made and number in made
    # The driver reads PTX up to its zero byte.
    assert made.endswith(b"\0")


@pytest.mark.usefixtures("nvrtc")
def test_profilers_find_the_lines_of_the_source():
    cubin = compile_program(SOURCES, PLAIN, "sm_90")
    assert b".debug_line" in cubin and b"first.cu" in cubin


@pytest.mark.usefixtures("nvrtc")
def test_warnings_are_kept_and_stop_nothing():
    assert compile_with_log(SOURCES, PLAIN, "sm_90")[1] == ""
    image, log = compile_with_log(
        broken("__device__ int f() { int unused; return 1; }\n"), PLAIN, "sm_90"
    )
    assert "never referenced" in log and image.startswith(b"\x7fELF")


@pytest.mark.usefixtures("nvrtc")
def test_an_error_names_the_place_and_holds_the_log():
    with pytest.raises(CompilationError) as caught:
        compile_program(
            broken("int f() { return nothing; }\nint g() { return 1 }\n"), PLAIN, "sm_90"
        )
    error = caught.value
    assert isinstance(error, MummergpuError)
    assert str(error).startswith(
        "backend 'cuda': the kernels 'plain' do not compile for sm_90: common/deep.cuh(6): error:"
    )
    assert "\n" not in str(error) and "common/deep.cuh(7)" in error.log
    assert "\0" not in error.log and error.__notes__ == [error.log.rstrip()]
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.log) == (str(error), error.log)


@pytest.mark.usefixtures("nvrtc")
def test_a_missing_header_is_an_error():
    sources = {name: text for name, text in SOURCES.items() if name != "common/deep.cuh"}
    with pytest.raises(CompilationError, match=r'engine/first\.cu\(1\).*"?common/deep\.cuh"?'):
        compile_program(sources, PLAIN, "sm_90")


@pytest.mark.usefixtures("nvrtc")
def test_an_unknown_architecture_is_an_error():
    with pytest.raises(CompilationError, match=r"for sm_20: .*architecture"):
        compile_program(SOURCES, PLAIN, "sm_20")


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("text", ["", "int f() { return nothing; }\n"])
def test_programs_are_destroyed(text, monkeypatch):
    module = compilation._nvrtc()
    destroyed = []
    destroy = module.nvrtcDestroyProgram
    monkeypatch.setattr(
        module, "nvrtcDestroyProgram", lambda program: destroyed.append(destroy(program))
    )
    try:
        compile_program(broken(text), PLAIN, "sm_90")
    except CompilationError:
        assert text
    assert destroyed == [(module.nvrtcResult.NVRTC_SUCCESS,)]


@pytest.mark.usefixtures("nvrtc")
def test_nvrtc_knows_the_architectures_of_the_tests():
    assert nvrtc_version() >= (12, 0) and {75, 80, 90} <= set(known_architectures())
    assert choose_architecture((9, 0)) == "sm_90"


@pytest.mark.parametrize(
    ("capability", "known", "expected"),
    [
        pytest.param((9, 0), [75, 80, 90], "sm_90", id="known"),
        pytest.param((8, 7), [75, 80, 87, 90], "sm_87", id="known, on a chip"),
        pytest.param((8, 9), [75, 80, 86, 90], "sm_86", id="nearest below"),
        pytest.param((8, 9), [75, 80, 86, 87, 90], "sm_86", id="not from a system on a chip"),
        pytest.param((8, 7), [75, 80, 86, 90], "compute_86", id="not for a system on a chip"),
        pytest.param((11, 0), [75, 87, 90, 100], "compute_100", id="of no known family"),
        pytest.param((13, 0), [75, 90, 121], "compute_121", id="newer than all"),
        pytest.param((10, 1), [101, 100, 90], "sm_101", id="in any order"),
    ],
)
def test_a_device_gets_what_it_can_run(capability, known, expected):
    assert choose_architecture(capability, known) == expected


@pytest.mark.parametrize("known", [[75, 80], []])
def test_a_device_that_is_too_old_is_told_so(known):
    with pytest.raises(BackendError, match=r"compute capability 7\.0; an older one may: pip"):
        choose_architecture((7, 0), known)


@pytest.mark.usefixtures("forgotten")
def test_missing_bindings_are_named_with_what_installs_them(monkeypatch):
    real = builtins.__import__

    def without_cuda(name, *arguments):
        if name.split(".")[0] == "cuda":
            raise ModuleNotFoundError("No module named 'cuda'", name="cuda")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_cuda)
    with pytest.raises(
        BackendError, match=r"cuda-bindings .*pip install 'mummergpu\[cuda-wheels\]'"
    ):
        compile_program(SOURCES, PLAIN, "sm_90")


@pytest.mark.usefixtures("forgotten")
def test_a_missing_library_is_named_with_what_installs_it(monkeypatch):
    class Bindings:
        class nvrtc:  # noqa: N801
            @staticmethod
            def nvrtcVersion():  # noqa: N802
                raise RuntimeError("libnvrtc.so.13 is not found\nsearched: here, there")

    monkeypatch.setitem(sys.modules, "cuda.bindings", Bindings)
    with pytest.raises(BackendError) as caught:
        nvrtc_version()
    assert caught.value.message == (
        "NVRTC cannot be loaded (libnvrtc.so.13 is not found); pip install 'mummergpu[cuda-wheels]'"
    )


PROGRAM = ProgramSource(
    "plain", "engine/program.cu", (("FAST", 1), ("WIDE", 0)), (("FEW", 3), ("MANY", 1 << 32))
)


def test_macros_are_options_of_the_compiler():
    assert PROGRAM.definitions() == ["-DFAST=1", "-DWIDE=0"]


def test_constants_are_a_header():
    assert PROGRAM.constants_header().splitlines()[1:] == [
        "#pragma once",
        f"constexpr unsigned int BLOCK_THREADS = {BLOCK_THREADS}u;",
        f"constexpr unsigned int WARP_LANES = {WARP_LANES}u;",
        f"constexpr unsigned int COUNTS_PER_THREAD = {COUNTS_PER_THREAD}u;",
        "constexpr unsigned int FEW = 3u;",
        "constexpr unsigned long long MANY = 4294967296ull;",
    ]


def test_what_is_generated_follows_the_constants():
    program = replace(PROGRAM, generated="struct Plain {};\n")
    assert program.constants_header() == PROGRAM.constants_header() + "struct Plain {};\n"


def test_a_program_is_made_of_its_own_files_and_the_common_ones():
    sources = {name: name for name in ("common/a", "engine/b", "engine/program.cu", "other/c", "d")}
    assert PROGRAM.files(sources) == {
        "common/a": "common/a",
        "engine/b": "engine/b",
        "engine/program.cu": "engine/program.cu",
        CONSTANTS_HEADER: PROGRAM.constants_header(),
    }


def test_an_entry_that_is_missing_is_named():
    with pytest.raises(BackendError, match=r"not complete: no engine/program\.cu"):
        PROGRAM.files({"common/a": ""})


def test_sources_are_the_kernels_files_alone(tmp_path):
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    for name in ("tree/program.cu", "a.cuh", "tree/deep/b.cu", "README.md", "tree/p.cubin"):
        (tmp_path / name).write_text(f"// {name} \u00e9\n", encoding="utf-8")
    assert list(read_sources(tmp_path).items()) == [
        ("a.cuh", "// a.cuh \u00e9\n"),
        ("tree/deep/b.cu", "// tree/deep/b.cu \u00e9\n"),
        ("tree/program.cu", "// tree/program.cu \u00e9\n"),
    ]


def test_a_checkout_reads_the_sources_beside_the_package(tmp_path, monkeypatch):
    (tmp_path / "mummergpu").mkdir()
    monkeypatch.setattr(cuda_program, "__file__", str(tmp_path / "mummergpu" / "cuda" / "x.py"))
    assert source_folder() == tmp_path / "kernels"


def test_the_package_reads_the_sources_of_this_checkout():
    folder = Path(__file__).resolve().parents[3] / "kernels"
    paths = list(folder.rglob("*.cu*"))
    texts = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}
    assert read_sources() == texts
    folders = {"bgzf", "chains", "common", "hmm", "kmer", "mapping", "study", "tree", "viterbi"}
    assert {name.partition("/")[0] for name in texts} == folders


def test_an_installed_package_reads_its_own_sources(tmp_path, monkeypatch):
    (tmp_path / "mummergpu" / "kernels").mkdir(parents=True)
    monkeypatch.setattr(cuda_program, "__file__", str(tmp_path / "mummergpu" / "cuda" / "x.py"))
    assert source_folder() == tmp_path / "mummergpu" / "kernels"


def test_sources_that_are_missing_are_named(tmp_path):
    with pytest.raises(BackendError, match=r"cannot be read: .*/none: No such file"):
        read_sources(tmp_path / "none")
