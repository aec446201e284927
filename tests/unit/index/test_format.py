"""The start and the header of an index file: read as written, refused when anything differs."""

import os
import struct
from dataclasses import replace

import pytest

from mummergpu.errors import InputError
from mummergpu.index.format import (
    ALIGNMENT,
    FORMAT_VERSION,
    MAGIC,
    START_BYTES,
    IndexHeader,
    PageEntry,
    Section,
    is_index,
    read_header,
    start_of,
)

USED_BYTES = 72
"""Of the start: magic, byte order, version, three sizes, and a hash."""

HEADER = IndexHeader(
    program="mummergpu 1",
    reference_path="caf\udce9/ref.fa",
    digest="00ff",
    records=2,
    bases=10,
    search="tree",
    minimum_length=20,
    page_size=8,
    search_length=3,
    kmer_length=0,
    reference_step=0,
    is_picked=False,
    policy="m",
    address_bits=24,
    pages=(PageEntry(0, 8, 6, 12, 7), PageEntry(6, 11, 11, 9, 5)),
    sections=(
        Section("reference", "<u1", ALIGNMENT, 100, 1),
        Section("0.nodes", "<u4", 2 * ALIGNMENT, 25, 2),
    ),
)
END = 2 * ALIGNMENT + 100


def file_of(header, folder):
    """Write a file with a header and nothing in its sections."""
    text = header if isinstance(header, bytes) else header.as_json()
    path = folder / "one.mgi"
    path.write_bytes(start_of(text, END).ljust(END, b"\0") + text)
    return path


def header_of(path):
    with open(path, "rb", buffering=0) as file:
        return read_header(file, str(path))


def refused(path):
    """Return why a file is refused; the message begins with its name."""
    with pytest.raises(InputError) as caught:
        header_of(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


@pytest.fixture
def whole(tmp_path):
    return file_of(HEADER, tmp_path)


def test_a_header_is_read_as_it_was_written(whole):
    assert header_of(whole) == HEADER
    assert is_index(str(whole))
    assert len(start_of(b"", START_BYTES)) == START_BYTES


def test_every_bit_of_the_start_counts(whole):
    data = whole.read_bytes()
    assert data[USED_BYTES:START_BYTES] == bytes(START_BYTES - USED_BYTES)
    for bit in range(8 * USED_BYTES):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        whole.write_bytes(changed)
        refused(whole)


def test_every_byte_of_the_header_counts(whole):
    data = whole.read_bytes()
    for at in range(END, len(data)):
        whole.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert refused(whole) == "the header of the index is damaged"


@pytest.mark.parametrize(
    ("offset", "field", "message"),
    [
        (0, b">ref\nACG", "not an index of mummergpu"),
        (4, b"\n\x1a\n\0", "the index has been changed, as by a transfer as text"),
        (8, struct.pack(">I", 0x01020304), "the index is of a machine of the other byte order"),
        (8, bytes(4), "the header of the index is damaged"),
        (
            12,
            struct.pack("<I", FORMAT_VERSION - 1),
            f"the index has format version {FORMAT_VERSION - 1}, and this program reads version "
            f"{FORMAT_VERSION}; make it anew with 'mummergpu index'",
        ),
        (16, struct.pack("<Q", 1 << 40), "the index is truncated: it has "),
        (16, struct.pack("<Q", 4096), "the index is damaged: it has "),
        (24, struct.pack("<Q", 1 << 63), "the header of the index is damaged"),
        (32, struct.pack("<Q", 1 << 40), "the header of the index is damaged"),
        (40, bytes(32), "the header of the index is damaged"),
    ],
)
def test_what_is_wrong_with_the_start_is_told(whole, offset, field, message):
    data = whole.read_bytes()
    whole.write_bytes(data[:offset] + field + data[offset + len(field) :])
    assert refused(whole).startswith(message)


@pytest.mark.parametrize("size", [8, 11, 12, 40, 71, 72, 4095, 4096, END - 1, END, END + 5, -1])
def test_a_truncated_file_is_refused(whole, size):
    whole.write_bytes(whole.read_bytes()[:size])
    assert refused(whole).startswith("the index is truncated: it has ")
    assert is_index(str(whole))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_what_has_no_magic_is_no_index(whole, size):
    whole.write_bytes(MAGIC[:size])
    assert refused(whole) == "not an index of mummergpu"
    assert not is_index(str(whole))


def test_a_longer_file_is_refused(whole):
    whole.write_bytes(whole.read_bytes() + b"\0")
    assert refused(whole).startswith("the index is damaged: it has ")


def test_other_files_are_no_index(tmp_path):
    (tmp_path / "r.fa").write_bytes(b">r\nACGT\n")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "r.fa", tmp_path / "none", tmp_path, pipe, "-", "a\0b", os.devnull):
        assert not is_index(str(path))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b"{}",
        b"\xff",
        HEADER.as_json().replace(b'"records"', b'"record"'),
        HEADER.as_json().replace(b'"records":2', b'"records":"2"'),
        HEADER.as_json().replace(b'"records":2', b'"records":true'),
        HEADER.as_json().replace(b'"records":2', b'"records":-2'),
        HEADER.as_json().replace(b'"records":2', b'"records":2,"more":1'),
        HEADER.as_json().replace(b'"search":"tree"', b'"search":5'),
        HEADER.as_json().replace(b'"end":8', b'"end":8.0'),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(text, tmp_path):
    message = refused(file_of(text, tmp_path))
    assert message.startswith("the header of the index makes no sense (not a header: ")


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "<f8"},
        {"dtype": "|O"},
        {"offset": ALIGNMENT},
        {"offset": 2 * ALIGNMENT + 4},
        {"offset": 3 * ALIGNMENT},
        {"count": 26},
        {"count": 1 << 62},
    ],
)
def test_sections_stay_inside_their_part_of_the_file(changes, tmp_path):
    sections = (HEADER.sections[0], replace(HEADER.sections[1], **changes))
    message = refused(file_of(replace(HEADER, sections=sections), tmp_path))
    assert message.startswith("the header of the index makes no sense (")
