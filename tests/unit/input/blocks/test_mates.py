"""The compiled functions for pairs: no byte beside those that they mean is touched."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.loops import each

from mummergpu.input.blocks.pairs import cut_suffixes, interleave
from mummergpu.input.records.byte_runs import STEP
from mummergpu.input.records.record_arrays import Spans


@each("size", [*range(2 * STEP + 3), 100, 150, 151])
def test_bases_of_mates_are_interleaved(size: int) -> None:
    random = np.random.default_rng(size)
    sizes = np.array([size, 0, 1, size])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    other_sizes = sizes[::-1] + 1
    other_offsets = np.concatenate(([0], np.cumsum(other_sizes)))
    first = random.integers(0, 200, offsets[-1], dtype=np.uint8)
    second = random.integers(0, 200, other_offsets[-1], dtype=np.uint8)
    begin = 7
    target = np.full(begin + first.size + second.size + 5, 255, dtype=np.uint8)
    made = np.empty(2 * sizes.size + 1, dtype=np.int64)
    interleave(Spans(first, offsets), Spans(second, other_offsets), Spans(target, made), begin)
    parts = []
    for pair in range(sizes.size):
        parts.append(first[offsets[pair] : offsets[pair + 1]])
        parts.append(second[other_offsets[pair] : other_offsets[pair + 1]])
    assert np.array_equal(made, np.concatenate(([0], np.cumsum([part.size for part in parts]))))
    assert np.array_equal(target[begin:-5], np.concatenate(parts))
    assert (target[:begin] == 255).all() and (target[-5:] == 255).all()


@pytest.mark.parametrize(
    "names, expected",
    [
        (["a/1", "b/2", "c"], ["a", "b", "c"]),
        (["abc", "d"], ["abc", "d"]),
        (["/1", "", "1", "/", "x/1"], ["", "", "1", "/", "x"]),
        (["a/1/2", "b//1", "c/3", "d/11"], ["a/1", "b/", "c/3", "d/11"]),
        ([], []),
    ],
)
def test_suffixes_are_cut(names: list[str], expected: list[str]) -> None:
    text = np.frombuffer(bytearray("".join(names).encode()), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, names)])
    end = cut_suffixes(Spans(text, offsets))
    assert text[:end].tobytes().decode() == "".join(expected)
    assert offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
