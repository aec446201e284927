"""What the kernels are compiled for, and the source that is compiled."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from mummergpu.cuda import sources
from mummergpu.cuda.sources import read_sources, source_folder
from mummergpu.errors import BackendError
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.matching.tree.cuda_macros import Specialisation

NONE = Specialisation.of(Policy(), wide=False, profile=False)


def test_the_order_of_nodes_makes_no_difference() -> None:
    reordered = Specialisation.of(Policy(node_reordering=True), wide=False, profile=False)
    assert reordered == NONE
    assert "node_reordering" not in {field.name for field in fields(Specialisation)}


@pytest.mark.parametrize("flag", [flag for flag in LETTERS if flag != "node_reordering"])
def test_each_policy_is_one_macro(flag: str) -> None:
    made = Specialisation.of(Policy(**{flag: True}), wide=False, profile=False)
    assert made == replace(NONE, **{flag: True})
    assert made.name == LETTERS[flag]
    changed = set(made.definitions()) - set(NONE.definitions())
    assert changed == {f"-D{flag.upper()}=1"}


def test_every_macro_is_always_defined() -> None:
    assert NONE.definitions() == [
        "-DQUERY_TEXTURE=0",
        "-DREFERENCE_TEXTURE=0",
        "-DTREE_TEXTURE=0",
        "-DMERGED_TREE=0",
        "-DTWO_DIMENSIONAL_REFERENCE=0",
        "-DTWO_DIMENSIONAL_TREE=0",
        "-DWIDE=0",
        "-DPROFILE=0",
        "-DSAMPLED=0",
    ]
    every = Specialisation(*[True] * len(fields(Specialisation)))
    assert [text.replace("=1", "=0") for text in every.definitions()] == NONE.definitions()


def test_names_tell_specialisations_apart() -> None:
    assert NONE.name == "none"
    assert Specialisation.of(Policy.from_code("Tmnrt"), wide=True, profile=False).name == "TmrtW"
    assert Specialisation.of(Policy.from_code("n"), wide=False, profile=True).name == "P"
    count = len(fields(Specialisation))
    made = [
        Specialisation(*[bool(number >> bit & 1) for bit in range(count)])
        for number in range(1 << count)
    ]
    assert len({one.name for one in made}) == len(made) == 512


def test_sources_are_the_kernels_files_alone(tmp_path: Path) -> None:
    for name in ("program.cu", "a.cuh", "README.md", "program.cubin"):
        (tmp_path / name).write_text(f"// {name} \u00e9\n", encoding="utf-8")
    assert list(read_sources(tmp_path).items()) == [
        ("a.cuh", "// a.cuh \u00e9\n"),
        ("program.cu", "// program.cu \u00e9\n"),
    ]


def test_a_checkout_reads_the_sources_beside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mummergpu").mkdir()
    monkeypatch.setattr(sources.mummergpu, "__file__", str(tmp_path / "mummergpu" / "x.py"))
    assert source_folder() == tmp_path / "kernels"


def test_the_package_reads_the_sources_of_this_checkout() -> None:
    folder = Path(__file__).resolve().parents[4] / "kernels"
    texts = {path.name: path.read_text("utf-8") for path in folder.glob("*.cu*")}
    assert read_sources() == texts


def test_an_installed_package_reads_its_own_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mummergpu" / "kernels").mkdir(parents=True)
    monkeypatch.setattr(sources.mummergpu, "__file__", str(tmp_path / "mummergpu" / "x.py"))
    assert source_folder() == tmp_path / "mummergpu" / "kernels"


def test_sources_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"cannot be read: .*/none: No such file"):
        read_sources(tmp_path / "none")
    (tmp_path / "a.cuh").touch()
    with pytest.raises(BackendError, match=r"not complete: no program\.cu in "):
        read_sources(tmp_path)
