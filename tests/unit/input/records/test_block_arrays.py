"""The arrays of blocks: they become longer, or come from memory that is used again."""

import gc

import numpy as np
import pytest

from mummergpu.input.records.block_arrays import BlockArrays, NoRoomError, RecycledMemory
from mummergpu.input.records.byte_runs import STEP
from mummergpu.sequence.codes import MARGIN


def address(arrays):
    found = arrays.offsets.__array_interface__["data"][0]
    return found


def test_arrays_become_longer_and_keep_their_content():
    arrays = BlockArrays(10, 2, 5)
    arrays.padded[:10] = 3
    arrays.offsets[:] = 7
    arrays.make_room(1000, 50, 200)
    assert arrays.padded.size >= MARGIN + 1000 + STEP and arrays.names.size >= 200 + STEP
    assert arrays.offsets.size >= 51 and arrays.name_offsets.size >= 51
    assert (arrays.padded[:10] == 3).all() and (arrays.offsets[:3] == 7).all()
    arrays.give_back(10, 2, 5)
    assert arrays.padded.size == 10 + 2 * MARGIN
    assert arrays.names.size == 5 and arrays.offsets.size == 3
    assert (arrays.padded[:10] == 3).all()


def test_recycled_arrays_have_the_room_that_was_asked_for():
    memory = RecycledMemory(100, 10, 30)
    arrays = memory.new_arrays()
    arrays.make_room(100, 10, 30)
    for too_much in ((101, 10, 30), (100, 11, 30), (100, 10, 31)):
        with pytest.raises(NoRoomError):
            arrays.make_room(*too_much)
    arrays.give_back(1, 1, 1)
    arrays.make_room(100, 10, 30)
    parts = (arrays.padded, arrays.offsets, arrays.names, arrays.name_offsets)
    for number, part in enumerate(parts):
        part[:] = number
    assert all((part == number).all() for number, part in enumerate(parts))
    assert arrays.offsets.dtype == arrays.name_offsets.dtype == np.int64


def test_memory_is_used_again_as_soon_as_no_view_is_left():
    memory = RecycledMemory(100, 10, 30)
    gc.disable()
    try:
        arrays = memory.new_arrays()
        place = address(arrays)
        view = arrays.padded[3:9][1:2].view(np.int8)
        del arrays
        other = memory.new_arrays()
        assert address(other) != place
        del view
        again = memory.new_arrays()
        assert address(again) == place
        assert address(memory.new_arrays()) != place
    finally:
        gc.enable()
