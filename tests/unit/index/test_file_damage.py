"""Damage to index files is told: bytes that changed, ends that lack, parts that do not fit."""

import os
from dataclasses import replace

import numpy as np
import pytest
from helpers.index_files import SAMPLED, SAMPLED_PAGES, TREE, TREE_PAGES, WIDE_PAGES, index_of
from helpers.index_pages import load_pages
from helpers.options import build_options
from helpers.sequences import write_fasta

from mummergpu.errors import InputError
from mummergpu.index.file import RECORD_SECTIONS, IndexFile
from mummergpu.index.format import PageEntry, checksum_of, start_of
from mummergpu.pipeline.build_index import make_index
from mummergpu.pipeline.context import RunContext


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


@pytest.mark.parametrize("told", [SAMPLED, TREE])
@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_a_truncated_index_is_refused(told, part, fasta, tmp_path):
    path = index_of(fasta, tmp_path, **told)
    size = path.stat().st_size
    os.truncate(path, max(5, int(part * size) - 1))
    with pytest.raises(InputError, match=r"ref\.mgi: the index is truncated: it has "):
        IndexFile(str(path))


def test_a_change_of_any_byte_of_the_records_is_told(fasta, tmp_path):
    path = index_of(fasta, tmp_path, **SAMPLED)
    sections = [one for one in IndexFile(str(path)).header.sections if one.name in RECORD_SECTIONS]
    places = [one.offset + byte for one in sections for byte in range(one.byte_count)]
    assert len(places) > 400
    with open(path, "r+b", buffering=0) as file:
        for place in places:
            byte = os.pread(file.fileno(), 1, place)
            os.pwrite(file.fileno(), bytes([byte[0] ^ 1 << place % 8]), place)
            with pytest.raises(InputError, match="the index is damaged: its section '"):
                IndexFile(str(path))
            os.pwrite(file.fileno(), byte, place)
    assert IndexFile(str(path)).damaged_sections() == []


@pytest.mark.parametrize("told", [SAMPLED_PAGES, TREE_PAGES])
def test_an_index_that_ends_at_a_border_of_blocks_is_refused(told, fasta, tmp_path):
    path = index_of(fasta, tmp_path, **told)
    size = path.stat().st_size
    # From the last border to the first: what is cut off does not come back.
    for border in range((size - 1) // 4096 * 4096, 0, -4096):
        os.truncate(path, border)
        with pytest.raises(InputError, match="the index is truncated: it has "):
            IndexFile(str(path))


def test_a_missing_index_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.mgi: no such file"):
        IndexFile(str(tmp_path / "none.mgi"))


def rewritten(path, change):
    """Give a file another header, with the hash that belongs to it."""
    header = IndexFile(str(path)).header
    text = change(header).as_json()
    data = path.read_bytes()
    end = int.from_bytes(data[24:32], "little")
    path.write_bytes(start_of(text, end) + data[4096:end] + text)
    return path


def without(name):
    def change(header):
        kept = tuple(section for section in header.sections if section.name != name)
        assert len(kept) == len(header.sections) - 1
        return replace(header, sections=kept)

    return change


def with_section(name, **changes):
    def change(header):
        sections = [
            replace(section, **changes) if section.name == name else section
            for section in header.sections
        ]
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
    with_fields(pages=(PageEntry(0, 10, 10, 2, 1),)),
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
    with_fields(kmer_length=2),
    with_fields(kmer_length=0),
    with_fields(kmer_length=16),
    with_fields(reference_step=0),
    with_fields(reference_step=(1 << 20) + 1),
    with_fields(reference_step=31, is_picked=True),
    with_section("1.positions", count=5),
    with_section("0.offsets", count=5),
]
OF_TREES = [
    without("1.nodes"),
    without("0.children"),
    with_fields(kmer_length=11),
    with_fields(reference_step=1),
    with_fields(search_length=0),
    with_fields(policy="x"),
    with_fields(address_bits=32),
    with_page(1, node_count=3),
    with_page(1, node_count=1 << 40),
    with_page(1, leaf_count=1 << 40),
    with_section("1.nodes", count=16),
    with_section("1.children", count=16),
    with_section("1.reference", count=16),
]


@pytest.mark.parametrize("kind", ["kmer", "tree"])
def test_parts_that_do_not_fit_each_other_are_refused(kind, fasta, tmp_path):
    told = SAMPLED_PAGES if kind == "kmer" else TREE_PAGES
    sound = index_of(fasta, tmp_path, **told).read_bytes()
    path = tmp_path / "changed.mgi"
    for change in OF_BOTH + (OF_TABLES if kind == "kmer" else OF_TREES):
        path.write_bytes(sound)
        rewritten(path, change)
        with pytest.raises(InputError, match=r"changed\.mgi: the "):
            index = IndexFile(str(path))
            load_pages(index)
    path.write_bytes(sound)
    rewritten(path, with_fields(program="another"))
    assert IndexFile(str(path)).header.program == "another"


def test_circular_records_that_are_not_those_of_the_tables_are_refused(tmp_path):
    write_fasta(tmp_path / "c.fa", {"a": "ACGGTCA" * 400, "b": "CATTG" * 500, "c": "ACGTC"})
    path = tmp_path / "c.mgi"
    options = build_options(str(tmp_path / "c.fa"), str(path), search="kmer")
    make_index(replace(options, circular=("a", "b")), RunContext())
    sound = path.read_bytes()
    index = IndexFile(str(path))
    assert index.circular.tolist() == [0, 1] and index.original.names == (b"a", b"b", b"c")
    (section,) = (one for one in index.header.sections if one.name == "circular")
    for wrong in ([0], [1, 0], [1, 1], [0, 2], [0, 3], [-1, 0], []):
        numbers = np.array(wrong, dtype=np.int64)
        path.write_bytes(sound)
        told = {"count": numbers.size, "checksum": checksum_of(numbers)}
        rewritten(path, with_section("circular", **told))
        with open(path, "r+b") as file:
            file.seek(section.offset)
            file.write(numbers.tobytes())
        with pytest.raises(InputError, match="its records cannot be"):
            IndexFile(str(path))


def test_offsets_end_where_positions_do(fasta, tmp_path):
    path = index_of(fasta, tmp_path, **SAMPLED)
    section = {one.name: one for one in IndexFile(str(path)).header.sections}["0.offsets"]
    with open(path, "r+b") as file:
        file.seek(section.offset + section.byte_count - 4)
        file.write(b"\xff\xff\xff\x7f")
    index = IndexFile(str(path))
    with pytest.raises(InputError, match="its table of page 0 cannot be"):
        load_pages(index)


def test_the_margins_are_breaks(fasta, tmp_path):
    path = index_of(fasta, tmp_path, **SAMPLED)
    section = {one.name: one for one in IndexFile(str(path)).header.sections}["reference"]
    for at in (section.offset, section.offset + section.byte_count - 1):
        data = path.read_bytes()
        path.write_bytes(data[:at] + b"\0" + data[at + 1 :])
        with pytest.raises(InputError, match="its margins of the reference cannot be"):
            IndexFile(str(path))
        path.write_bytes(data)
