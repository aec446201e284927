"""Comments as tags: what is written stays in its arrays."""

import numpy as np

from mummergpu.input.records import comments
from mummergpu.input.records.record_arrays import Spans
from mummergpu.input.records.tags import dropped_tags


def test_numbers_without_digits_are_not_noted_beyond_the_room():
    text = np.frombuffer(bytearray(b"r\tXB:B:f" + 60 * b","), dtype=np.uint8)
    lines = Spans(text, np.array([0, text.size], dtype=np.int64))
    names = Spans(np.empty_like(text), np.zeros(2, dtype=np.int64))
    tags = Spans(np.empty(4 * text.size + 8, dtype=np.uint8), np.zeros(2, dtype=np.int64))
    room = np.full((2 * text.size, 3), -7)
    spans = room[: text.size // 2 + 1]
    floats = comments._Floats(spans, np.zeros(1, dtype=np.int64))
    assert comments._split_lines(lines, dropped_tags(False), names, tags, floats) == 0
    assert (room[spans.shape[0] :] == -7).all()
