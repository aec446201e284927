"""The choice between threads and warps for the Viterbi filter."""

from __future__ import annotations

from pathlib import Path

import pytest

from mummergpu.errors import InputError, OptionError
from mummergpu.hmm.filter_schemes import (
    FilterChoice,
    FilterScheme,
    known_schemes,
    read_schemes,
    schemes_text,
)
from mummergpu.hmm.thread_filter import ThreadPolicy

OWN = FilterScheme("a GPU", "sm_80", 100, 5000, "t1hrrrs")
H200 = "NVIDIA H200", "sm_90"


def test_long_profiles_and_few_sequences_get_warps() -> None:
    (known, *_) = known_schemes()
    tiles = ThreadPolicy.from_code(known.policy)
    choice = FilterChoice()
    assert choice.tiles_for(*H200, known.max_nodes, known.min_sequences) == tiles
    assert choice.tiles_for(*H200, known.max_nodes + 1, known.min_sequences) is None
    assert choice.tiles_for(*H200, known.max_nodes, known.min_sequences - 1) is None
    # What was measured for the architecture stands for another device of it.
    assert choice.tiles_for("another", "sm_90", 1, known.min_sequences) == tiles
    assert choice.tiles_for("another", "sm_80", 1, known.min_sequences) is None


def test_what_was_tuned_goes_before_what_is_known() -> None:
    choice = FilterChoice(schemes=(OWN, FilterScheme(*H200, 1, 1, "t8hrrrs")))
    assert choice.tiles_for("a GPU", "sm_80", 100, 5000) == ThreadPolicy.from_code("t1hrrrs")
    assert choice.tiles_for(*H200, 20, 10**9) is None


def test_the_user_decides() -> None:
    assert FilterChoice("warp").tiles_for(*H200, 1, 10**9) is None
    assert FilterChoice("t4crrrs").tiles_for(*H200, 900, 1) == ThreadPolicy.from_code("t4crrrs")


@pytest.mark.parametrize("code", ["g1crggg", "t1hsrrs", "t1hrcrs", "Vrcs32", "all", ""])
def test_policies_of_studies_are_none_of_searches(code: str) -> None:
    with pytest.raises(OptionError, match="polic"):
        FilterChoice(code)


def test_schemes_are_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "filters.json"
    assert read_schemes(path) == []
    path.write_text(schemes_text([OWN], "here"))
    assert read_schemes(path) == [OWN]
    for text in ("", "[]", '{"schemes": [{}]}', path.read_text().replace("t1hrrrs", "t1hsrrs")):
        path.write_text(text)
        with pytest.raises(InputError, match="remove it"):
            read_schemes(path)
