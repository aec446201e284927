"""NVRTC: what it is given, what it gives back, and what becomes of its complaints."""

import builtins
import pickle
import sys
from dataclasses import replace

import pytest

from mummergpu.cuda import nvrtc as compilation
from mummergpu.cuda.nvrtc import (
    CompilationError,
    choose_architecture,
    compile_program,
    compile_with_log,
    known_architectures,
    nvrtc_version,
)
from mummergpu.cuda.program import ProgramSource
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
    assert cubin.startswith(b"\x7fELF")
    assert b".text.first" in cubin
    assert cubin == compile_program(SOURCES, PLAIN, architecture)


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(("wide", "number"), [(False, b"314159"), (True, b"271828")])
def test_macros_choose_what_is_compiled(wide, number):
    made = compile_program(SOURCES, replace(PLAIN, macros=(("WIDE", int(wide)),)), "compute_80")
    assert b".target sm_80" in made
    assert number in made
    # The driver reads PTX up to its zero byte.
    assert made.endswith(b"\0")


@pytest.mark.usefixtures("nvrtc")
def test_profilers_find_the_lines_of_the_source():
    cubin = compile_program(SOURCES, PLAIN, "sm_90")
    assert b".debug_line" in cubin
    assert b"first.cu" in cubin


@pytest.mark.usefixtures("nvrtc")
def test_warnings_are_kept_and_stop_nothing():
    assert compile_with_log(SOURCES, PLAIN, "sm_90")[1] == ""
    image, log = compile_with_log(
        broken("__device__ int f() { int unused; return 1; }\n"), PLAIN, "sm_90"
    )
    assert "never referenced" in log
    assert image.startswith(b"\x7fELF")


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
    assert "\n" not in str(error)
    assert "common/deep.cuh(7)" in error.log
    assert "\0" not in error.log
    assert error.__notes__ == [error.log.rstrip()]
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
    assert nvrtc_version() >= (12, 0)
    assert {75, 80, 90} <= set(known_architectures())
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
