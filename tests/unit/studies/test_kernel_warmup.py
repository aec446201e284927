"""Kernels that are compiled for a GPU in advance."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from mummergpu.cuda.nvrtc import known_architectures
from mummergpu.errors import OptionError, OutputError
from mummergpu.studies import kernel_warmup
from mummergpu.studies.kernel_warmup import KernelCounts, usual_programs, warm_kernels

pytestmark = pytest.mark.usefixtures("nvrtc")


def first_two(architecture: str) -> list[object]:
    return list(usual_programs(architecture))[:2]


def test_usual_programs_are_of_both_searches_and_different() -> None:
    for architecture, least in (("sm_75", 4), ("sm_90", 6)):
        programs = list(usual_programs(architecture))
        names = {program.name for program in programs}
        assert len(set(programs)) == len(names) == len(programs) >= least
        assert {"kmer", "study-gathers", "tree-m", "tree-mW"} <= names


def test_kernels_are_compiled_once_and_can_be_read_by_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_warmup, "usual_programs", first_two)
    name = f"sm_{known_architectures()[-1]}"
    folder = tmp_path / "kernels"
    assert warm_kernels([name], folder, 2) == KernelCounts(compiled=2, found=0)
    assert warm_kernels([name], folder, 1) == KernelCounts(compiled=0, found=2)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}


@pytest.mark.parametrize("name", ["sm_1", "90", "sm_", "compute_1", "sm_90x", ""])
def test_an_architecture_that_nvrtc_does_not_know_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=rf"--gpu: '{name}' is none of .* sm_90"):
        warm_kernels([name], tmp_path, 1)


def test_kernels_that_cannot_be_kept_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_warmup, "usual_programs", lambda name: first_two(name)[1:])
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be kept in"):
        warm_kernels([f"sm_{known_architectures()[-1]}"], tmp_path / "file", 1)
