"""Whether an index is as it was written, and of which reference."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.options import build_options
from helpers.sequences import random_bases

from mummergpu.cli.main import main
from mummergpu.errors import InputError, OptionError
from mummergpu.index import verification
from mummergpu.index.file import IndexFile
from mummergpu.index.format import START_BYTES, checksum_of, start_of
from mummergpu.index.tree.policy import Policy
from mummergpu.index.verification import first_difference, require_reference, verify, verify_for_run
from mummergpu.input.reference import read_reference
from mummergpu.pipeline.build_index import make_index
from mummergpu.pipeline.context import RunContext


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


def test_a_sound_index_is_verified(index, reference):
    verify(index)
    verify_for_run(index, index.path)
    require_reference(index, replace(reference, path="elsewhere"))


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


def test_fasta_cannot_be_verified():
    with pytest.raises(OptionError, match=r"verify: 'r\.fa' is not an index file"):
        verify_for_run(None, "r.fa")


def test_the_first_base_that_differs_is_found_in_pieces(reference, monkeypatch):
    monkeypatch.setattr(verification, "PIECE_BYTES", 4)
    for place, expected in [(0, "'a' differs from its base 1 "), (17, "'a' differs from its base")]:
        codes = reference.codes.copy()
        codes[[place, 25]] ^= 1
        assert expected in first_difference(reference, replace(reference, codes=codes))
    codes = reference.codes.copy()
    codes[-1] ^= 1
    message = first_difference(reference, replace(reference, codes=codes))
    assert message == "record 'c' differs from its base 6 on"


def test_records_are_compared_in_their_order(reference):
    codes = reference.codes.copy()
    codes[20] ^= 1
    changed = replace(reference, codes=codes, names=(b"a", b"b", b"x\xff"))
    assert first_difference(reference, changed).startswith("record 'b' differs from its base 2 ")
    changed = replace(reference, codes=codes, names=(b"x\xff", b"b", b"c"))
    assert first_difference(reference, changed) == (
        "record 1 is 'a' in the index, and 'x\\xff' in the file"
    )
    longer = replace(
        reference,
        codes=np.append(reference.codes, np.uint8(0)),
        record_lengths=reference.record_lengths + np.array([0, 0, 1]),
    )
    assert first_difference(reference, longer).startswith("record 'c' has 6 bases in the index,")


def test_the_same_references_do_not_differ(reference):
    with pytest.raises(ValueError, match="do not differ"):
        first_difference(reference, reference)


def rewritten(index, sections=None, **fields):
    """Change an index file as another program would: with checksums of what is in it."""
    data, header = bytearray(Path(index.path).read_bytes()), index.header
    offset = len(data) - len(header.as_json())
    changed = []
    for section in header.sections:
        content = (sections or {}).get(section.name)
        if content is not None:
            data[section.offset : section.offset + len(content)] = content
            array = np.frombuffer(content, dtype=np.uint8)
            section = replace(section, checksum=checksum_of(array))
        changed.append(section)
    text = replace(header, sections=tuple(changed), **fields).as_json()
    data[:START_BYTES] = start_of(text, offset)
    path = f"{index.path}.changed"
    Path(path).write_bytes(bytes(data[:offset]) + text)
    return path


MADE = random_bases(random.Random(5), 3000)


def made_index(folder, bases=MADE, **options):
    (folder / "made.fa").write_text(f">a\n{bases[:1000]}\n>b\n{bases[1000:]}\n")
    path = str(folder / "made.mgi")
    make_index(build_options(str(folder / "made.fa"), path, **options), RunContext())
    return IndexFile(path)


@pytest.mark.parametrize("code", ["", "r"])
def test_a_tree_has_the_bases_of_the_reference(code, tmp_path):
    """It has a copy of them, which the checksum of the reference does not cover."""
    policy = Policy.from_code(code) if code else Policy()
    index = made_index(tmp_path, search="tree", minimum_length=20, page_size=2000, policy=policy)
    assert len(index.pages) > 1
    verify(index)
    verify(IndexFile(rewritten(index)))
    for page in index.pages:
        own = index.tree(page).reference.copy()
        for at in (0, 500, 1900):
            place = np.flatnonzero(own)[at % np.count_nonzero(own)]
            changed = own.copy()
            changed[place] ^= 1
            path = rewritten(index, {f"{page.index}.reference": changed.tobytes()})
            with pytest.raises(InputError, match=f"damaged: its page {page.index} is of another"):
                verify(IndexFile(path))


def test_a_table_has_the_step_of_the_header(tmp_path):
    memory = {"purpose": "memory", "minimum_length": 20}
    index = made_index(tmp_path, search="kmer", page_size=1500, **memory)
    step = index.header.reference_step
    assert len(index.pages) > 1 and step > 1
    verify(index)
    verify(IndexFile(rewritten(index)))
    for other in {1, 2, step - 1, step + 1, 2 * step, 1000} - {step}:
        with pytest.raises(InputError, match="damaged: its page 0 is of another"):
            verify(IndexFile(rewritten(index, reference_step=other)))
    with pytest.raises(InputError, match="damaged"):
        verify(IndexFile(rewritten(index, is_picked=True)))
    # As many k-mers, at other places.
    moved = index.table(index.pages[1]).positions + np.uint32(1)
    with pytest.raises(InputError, match="damaged: its page 1 is of another"):
        verify(IndexFile(rewritten(index, {"1.positions": moved.tobytes()})))


def test_the_command_tells_of_both(tmp_path, capfd):
    index = made_index(tmp_path, search="kmer", minimum_length=20)
    path = rewritten(index, reference_step=index.header.reference_step + 1)
    told = f"mummergpu: error: {path}: the index is damaged: its page 0 is of another reference, "
    told += "or of another step\n"
    assert main(["index", "--check", path]) == 1
    assert capfd.readouterr().err == told
    assert main(["-C", "-q", "--verify", path, str(tmp_path / "made.fa")]) == 1
    assert capfd.readouterr().err == told
