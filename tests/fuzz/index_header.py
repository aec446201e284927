"""Target: any bytes as an index file, and any text as its header.

It is refused in one line, or is a header whose sections lie in the file, one behind the other.
"""

import json
from dataclasses import asdict
from typing import Final

from fuzz.memory_file import file_of
from fuzz.visible import instrument_module
from mummergpu.errors import InputError
from mummergpu.index import format
from mummergpu.index.format import (
    ALIGNMENT,
    ITEM_BYTES,
    START_BYTES,
    IndexHeader,
    PageEntry,
    Section,
    read_header,
    start_of,
)

SECTION_BYTES: Final = 8 * ALIGNMENT
"""The room for sections in the files that are made around a header."""

_SECTIONS: Final = (Section("codes", "<u1", START_BYTES, 9, 1), Section("n", "<i8", 8192, 512, 2))
_HEADER: Final = IndexHeader(
    *("mummergpu 0.1.0", "ref.fa", "00ff", 1, 9, "kmer", 20, 1 << 20, 0, 13, 1, False, "", 0),
    pages=(PageEntry(0, 9, 9),),
    sections=_SECTIONS,
)
EXAMPLES: Final = (
    _HEADER.as_json(),
    start_of(_HEADER.as_json(), START_BYTES + SECTION_BYTES),
    start_of(b"{}", START_BYTES) + b"{}",
)


_ODD_VALUES: Final = (
    *(0, 1, -1, 4095, 4096, 8192, 12_288, 1 << 31, (1 << 63) - 1, 1 << 64, 1.0, 1e999, True, None),
    *("", "<u1", "<i8", "<u2", "\0", "\ud800", [], {}, [0], {"begin": 0}, [{}], [asdict(_HEADER)]),
)


def _edited(choices):
    """Return a header in which each two bytes have put an odd value, or none, in a place."""
    fields = asdict(_HEADER)
    for where, value in zip(choices[::2], choices[1::2], strict=False):
        holder = (fields, fields, *fields["pages"], *fields["sections"])[where % 5]
        names = sorted(holder)
        name = names[where // 5 % len(names)]
        if name in ("pages", "sections"):
            continue
        if value < len(_ODD_VALUES):
            holder[name] = _ODD_VALUES[value]
        elif value == 0xFF:
            del holder[name]
        else:
            holder[name] = value * ALIGNMENT // 16
    return json.dumps(fields).encode()


def instrument(function):
    """Show the branches of the module to a fuzzer."""
    instrument_module(format, function)


def _read(data):
    with file_of(data) as path, open(path, "rb", buffering=0) as file:
        try:
            return read_header(file, path)
        except InputError as error:
            assert "\n" not in str(error) and path in str(error)
            return None


def _check(header, end):
    """Hold a header to what is promised of it."""
    assert IndexHeader.from_json(header.as_json()) == header
    assert json.loads(header.as_json()) == json.loads(json.dumps(asdict(header)))
    behind = START_BYTES
    for section in header.sections:
        assert behind <= section.offset and section.offset % ALIGNMENT == 0, section
        assert section.dtype in ITEM_BYTES and section.count >= 0, section
        behind = section.offset + section.count * ITEM_BYTES[section.dtype]
    assert behind <= end, header.sections


def one_input(data):
    """Read any bytes as an index, as its header, and as changes of a right header."""
    header = _read(data)
    if header is not None:
        _check(header, len(data))
    for text in (data, _edited(data)):
        try:
            IndexHeader.from_json(text)
        except ValueError:
            pass
        for room in (0, SECTION_BYTES):
            end = START_BYTES + room
            header = _read(start_of(text, end).ljust(end, b"\0") + text)
            if header is not None:
                _check(header, end)
