"""Every format has one function that opens it."""

from __future__ import annotations

from mummergpu.output.open_sink import BLOCK_FORMATS, SINKS
from mummergpu.output.targets import FORMATS


def test_every_format_is_opened_in_one_way() -> None:
    assert sorted([*BLOCK_FORMATS, *SINKS]) == sorted(FORMATS)
