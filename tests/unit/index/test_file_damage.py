"""Damage to index files is told, of the header, sections, and parts that do not fit; verified."""

import os
import random
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.index_files import SAMPLED, SAMPLED_PAGES, TREE_PAGES, WIDE_PAGES, index_of
from helpers.index_pages import load_pages
from helpers.options import build_options
from helpers.sequences import random_bases, write_fasta

from mummergpu.cli.main import main
from mummergpu.errors import InputError
from mummergpu.index import format, verification
from mummergpu.index.file import RECORD_SECTIONS, IndexFile
from mummergpu.index.tree.policy import Policy
from mummergpu.index.verification import first_difference, verify
from mummergpu.input.reference import read_reference
from mummergpu.pipeline.build_index import make_index
from mummergpu.pipeline.context import RunContext

USED_BYTES = 72
"""Of the start: magic, byte order, version, three sizes, and a hash."""

HEADER = format.IndexHeader(
    *("mummergpu 1", "caf\udce9/ref.fa", "00ff", 2, 10, "tree", 20, 8, 3, 0, 0, False, "m", 24),
    pages=(format.PageEntry(0, 8, 6, 12, 7), format.PageEntry(6, 11, 11, 9, 5)),
    sections=(
        format.Section("reference", "<u1", format.ALIGNMENT, 100, 1),
        format.Section("0.nodes", "<u4", 2 * format.ALIGNMENT, 25, 2),
    ),
)
END = 2 * format.ALIGNMENT + 100


def file_of(header, folder):
    """Write a file with a header and nothing in its sections."""
    text = header if isinstance(header, bytes) else header.as_json()
    path = folder / "one.mgi"
    path.write_bytes(format.start_of(text, END).ljust(END, b"\0") + text)
    return path


def header_of(path):
    with open(path, "rb", buffering=0) as file:
        return format.read_header(file, str(path))


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
    assert header_of(whole) == HEADER and format.is_index(str(whole))
    assert len(format.start_of(b"", format.START_BYTES)) == format.START_BYTES


def test_every_bit_of_the_start_counts(whole):
    data = whole.read_bytes()
    assert data[USED_BYTES : format.START_BYTES] == bytes(format.START_BYTES - USED_BYTES)
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
            struct.pack("<I", format.FORMAT_VERSION - 1),
            f"the index has format version {format.FORMAT_VERSION - 1}, and this program reads "
            f"version {format.FORMAT_VERSION}; make it anew with 'mummergpu index'",
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
    assert format.is_index(str(whole))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_what_has_no_magic_is_no_index(whole, size):
    whole.write_bytes(format.MAGIC[:size])
    assert refused(whole) == "not an index of mummergpu" and not format.is_index(str(whole))


def test_a_longer_file_is_refused(whole):
    whole.write_bytes(whole.read_bytes() + b"\0")
    assert refused(whole).startswith("the index is damaged: it has ")


def test_other_files_are_no_index(tmp_path):
    (tmp_path / "r.fa").write_bytes(b">r\nACGT\n")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "r.fa", tmp_path / "none", tmp_path, pipe, "-", "a\0b", os.devnull):
        assert not format.is_index(str(path))


def changed(old, new):
    assert old in HEADER.as_json()
    return HEADER.as_json().replace(old, new)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"[]", b"{", b"{}", b"\xff"),
        changed(b'"records"', b'"record"'),
        changed(b'"records":2', b'"records":"2"'),
        changed(b'"records":2', b'"records":true'),
        changed(b'"records":2', b'"records":-2'),
        changed(b'"records":2', b'"records":2,"more":1'),
        changed(b'"search":"tree"', b'"search":5'),
        changed(b'"end":8', b'"end":8.0'),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(text, tmp_path):
    message = refused(file_of(text, tmp_path))
    assert message.startswith("the header of the index makes no sense (not a header: ")


ODD_SECTIONS = {
    "dtype": ("<f8", "|O"),
    "offset": (format.ALIGNMENT, 2 * format.ALIGNMENT + 4, 3 * format.ALIGNMENT),
    "count": (26, 1 << 62),
}


@pytest.mark.parametrize("name", ODD_SECTIONS)
def test_sections_stay_inside_their_part_of_the_file(name, tmp_path):
    for value in ODD_SECTIONS[name]:
        message = refused(file_of(with_section("0.nodes", **{name: value})(HEADER), tmp_path))
        assert message.startswith("the header of the index makes no sense (")


@pytest.mark.parametrize("told", [SAMPLED_PAGES, TREE_PAGES, WIDE_PAGES])
def test_damage_in_each_section_is_found(told, fasta, tmp_path):
    path = index_of(fasta, tmp_path, **told)
    data = path.read_bytes()
    for section in IndexFile(str(path)).header.sections:
        if section.count == 0:
            continue
        at = section.offset + section.byte_count // 2
        path.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
        if section.name in RECORD_SECTIONS:
            with pytest.raises(InputError, match=f"damaged: its section '{section.name}'"):
                IndexFile(str(path))
        else:
            assert IndexFile(str(path)).damaged_sections() == [section.name]


def rewritten(path, change=lambda header: header, contents=None):
    """Make a file as another program would: with checksums of what is in it; return its path."""
    data, header = bytearray(Path(path).read_bytes()), IndexFile(str(path)).header
    end = len(data) - len(header.as_json())
    for name, content in (contents or {}).items():
        (begin,) = (section.offset for section in header.sections if section.name == name)
        data[begin : begin + content.nbytes] = content.tobytes()
        header = with_section(name, checksum=format.checksum_of(content))(header)
    text = change(header).as_json()
    data[: format.START_BYTES] = format.start_of(text, end)
    Path(f"{path}.changed").write_bytes(bytes(data[:end]) + text)
    return f"{path}.changed"


def without(name):
    def change(header):
        kept = tuple(section for section in header.sections if section.name != name)
        assert len(kept) == len(header.sections) - 1
        return replace(header, sections=kept)

    return change


def with_section(name, **changes):
    def change(header):
        sections = (
            replace(section, **changes) if section.name == name else section
            for section in header.sections
        )
        return replace(header, sections=tuple(sections))

    return change


def with_page(number, **changes):
    def change(header):
        pages = list(header.pages)
        pages[number] = replace(pages[number], **changes)
        return replace(header, pages=tuple(pages))

    return change


def with_fields(**changes):
    return lambda header: replace(header, **changes)


OF_BOTH = [
    *(without(name) for name in (*RECORD_SECTIONS, "reference")),
    with_fields(search="other"),
    with_fields(pages=()),
    with_fields(records=5),
    with_fields(bases=77),
    with_fields(pages=(format.PageEntry(0, 10, 10, 2, 1),)),
    with_page(0, begin=1),
    with_page(0, owned_end=10),
    with_page(1, end=1 << 40),
    with_page(1, begin=3),
    with_section("reference", count=100),
    with_section("reference", count=10, dtype="<u4"),
]
OF_TABLES = [
    without("1.positions"),
    without("0.offsets"),
    *(with_fields(kmer_length=length) for length in (0, 2, 16)),
    *(with_fields(reference_step=step) for step in (0, (1 << 20) + 1)),
    with_fields(reference_step=31, is_picked=True),
    *(with_section(name, count=5) for name in ("1.positions", "0.offsets")),
]
OF_TREES = [
    without("1.nodes"),
    without("0.children"),
    with_fields(kmer_length=11),
    with_fields(reference_step=1),
    with_fields(search_length=0),
    with_fields(policy="x"),
    with_fields(address_bits=32),
    *(with_page(1, node_count=count) for count in (3, 1 << 40)),
    with_page(1, leaf_count=1 << 40),
    *(with_section(f"1.{name}", count=16) for name in ("nodes", "children", "reference")),
]


@pytest.mark.parametrize(
    ("told", "changes"),
    [(SAMPLED_PAGES, OF_BOTH + OF_TABLES), (TREE_PAGES, OF_BOTH + OF_TREES)],
    ids=["kmer", "tree"],
)
def test_parts_that_do_not_fit_each_other_are_refused(told, changes, fasta, tmp_path):
    sound = index_of(fasta, tmp_path, **told)
    for change in changes:
        with pytest.raises(InputError, match=r"\.changed: the "):
            load_pages(IndexFile(rewritten(sound, change)))
    assert IndexFile(rewritten(sound, with_fields(program="another"))).header.program == "another"


def test_circular_records_that_are_not_those_of_the_tables_are_refused(tmp_path):
    write_fasta(tmp_path / "c.fa", {"a": "ACGGTCA" * 400, "b": "CATTG" * 500, "c": "ACGTC"})
    path = tmp_path / "c.mgi"
    options = build_options(str(tmp_path / "c.fa"), str(path), search="kmer")
    make_index(replace(options, circular=("a", "b")), RunContext())
    index = IndexFile(str(path))
    assert index.circular.tolist() == [0, 1] and index.original.names == (b"a", b"b", b"c")
    for wrong in ([0], [1, 0], [1, 1], [0, 2], [0, 3], [-1, 0], []):
        numbers = np.array(wrong, dtype=np.int64)
        change = with_section("circular", count=numbers.size)
        with pytest.raises(InputError, match="its records cannot be"):
            IndexFile(rewritten(path, change, {"circular": numbers}))


def written_at(path, name, at, content):
    """Write over a part of a section, from its beginning or end on."""
    section = {one.name: one for one in IndexFile(str(path)).header.sections}[name]
    begin = section.offset + (at if at >= 0 else section.byte_count + at)
    data = path.read_bytes()
    path.write_bytes(data[:begin] + content + data[begin + len(content) :])


def test_offsets_end_where_positions_do(fasta, tmp_path):
    path = index_of(fasta, tmp_path, **SAMPLED)
    written_at(path, "0.offsets", -4, b"\xff\xff\xff\x7f")
    index = IndexFile(str(path))
    with pytest.raises(InputError, match="its table of page 0 cannot be"):
        load_pages(index)


def test_the_margins_are_breaks(fasta, tmp_path):
    path = index_of(fasta, tmp_path, **SAMPLED)
    sound = path.read_bytes()
    for at in (0, -1):
        path.write_bytes(sound)
        written_at(path, "reference", at, b"\0")
        with pytest.raises(InputError, match="its margins of the reference cannot be"):
            IndexFile(str(path))


@pytest.fixture
def reference(tmp_path):
    path = tmp_path / "r.fa"
    path.write_text(">a\nACGTTGCATTGACCAGTA\n>b\nGGCATTACGANN\n>c\nTTGACA\n")
    return read_reference(str(path))


@pytest.fixture
def index(reference, tmp_path, monkeypatch):
    monkeypatch.setattr("mummergpu.index.kmer_index.MIN_BASES_WITH_BESIDE", 0)
    path = str(tmp_path / "r.mgi")
    make_index(build_options(reference.path, path, search="kmer", minimum_length=5), RunContext())
    return IndexFile(path)


def test_each_damaged_section_is_named(index):
    data = bytearray(Path(index.path).read_bytes())
    for section in index.header.sections:
        data[section.offset] ^= section.name in ("0.order", "0.bases_beside")
    Path(index.path).write_bytes(data)
    with pytest.raises(InputError, match=r"in its sections 0\.order, 0\.bases_beside$"):
        verify(IndexFile(index.path))


def test_the_digest_is_compared(index):
    index.header = replace(index.header, digest="0" * 64)
    with pytest.raises(InputError, match="not of the reference that it names"):
        verify(index)


def with_changed(reference, *places, **fields):
    codes = reference.codes.copy()
    codes[[*places]] ^= 1
    return replace(reference, codes=codes, **fields)


def test_the_first_base_that_differs_is_found_in_pieces(reference, monkeypatch):
    monkeypatch.setattr(verification, "PIECE_BYTES", 4)
    for places, expected in [
        ((0, 25), "record 'a' differs from its base 1 on"),
        ((17, 25), "record 'a' differs from its base 18 on"),
        ((-1,), "record 'c' differs from its base 6 on"),
    ]:
        assert first_difference(reference, with_changed(reference, *places)) == expected


def test_records_are_compared_in_their_order(reference):
    changed = with_changed(reference, 20, names=(b"a", b"b", b"x\xff"))
    assert first_difference(reference, changed).startswith("record 'b' differs from its base 2 ")
    changed = with_changed(reference, 20, names=(b"x\xff", b"b", b"c"))
    told = "record 1 is 'a' in the index, and 'x\\xff' in the file"
    assert first_difference(reference, changed) == told


MADE = random_bases(random.Random(5), 3000)


def made_index(folder, bases=MADE, **options):
    (folder / "made.fa").write_text(f">a\n{bases[:1000]}\n>b\n{bases[1000:]}\n")
    path = str(folder / "made.mgi")
    make_index(build_options(str(folder / "made.fa"), path, **options), RunContext())
    return IndexFile(path)


@pytest.mark.parametrize("code", ["none", "r"])
def test_a_tree_has_the_bases_of_the_reference(code, tmp_path):
    """It has a copy of them, which the checksum of the reference does not cover."""
    policy = Policy.from_code(code)
    index = made_index(tmp_path, search="tree", minimum_length=20, page_size=2000, policy=policy)
    assert len(index.pages) > 1
    verify(index)
    verify(IndexFile(rewritten(index.path)))
    for page in index.pages:
        own = index.tree(page).reference
        for at in (0, 500, 1900):
            changed = own.copy()
            changed[np.flatnonzero(own)[at % np.count_nonzero(own)]] ^= 1
            path = rewritten(index.path, contents={f"{page.index}.reference": changed})
            with pytest.raises(InputError, match=f"damaged: its page {page.index} is of another"):
                verify(IndexFile(path))


def test_a_table_has_the_step_of_the_header(tmp_path):
    memory = {"purpose": "memory", "minimum_length": 20}
    index = made_index(tmp_path, search="kmer", page_size=1500, **memory)
    step = index.header.reference_step
    assert len(index.pages) > 1 and step > 1
    verify(index)
    verify(IndexFile(rewritten(index.path)))
    for other in {1, 2, step - 1, step + 1, 2 * step, 1000} - {step}:
        with pytest.raises(InputError, match="damaged: its page 0 is of another"):
            verify(IndexFile(rewritten(index.path, with_fields(reference_step=other))))
    with pytest.raises(InputError, match="damaged"):
        verify(IndexFile(rewritten(index.path, with_fields(is_picked=True))))
    # As many k-mers, at other places.
    moved = index.table(index.pages[1]).positions + np.uint32(1)
    with pytest.raises(InputError, match="damaged: its page 1 is of another"):
        verify(IndexFile(rewritten(index.path, contents={"1.positions": moved})))


def test_the_command_tells_of_both(tmp_path, capfd):
    index = made_index(tmp_path, search="kmer", minimum_length=20)
    path = rewritten(index.path, with_fields(reference_step=index.header.reference_step + 1))
    told = f"mummergpu: error: {path}: the index is damaged: its page 0 is of another reference, "
    told += "or of another step\n"
    for words in (f"index --check {path}", f"-C -q --verify {path} {tmp_path}/made.fa"):
        assert main(words.split()) == 1 and capfd.readouterr().err == told
