"""Whether an index is as it was written, and of which reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.options import build_options

from mummergpu.errors import InputError, OptionError
from mummergpu.index import verification
from mummergpu.index.file import IndexFile
from mummergpu.index.verification import (
    first_difference,
    require_reference,
    verify,
    verify_for_run,
)
from mummergpu.input.reference import Reference, read_reference
from mummergpu.pipeline.build_index import make_index
from mummergpu.pipeline.context import RunContext


@pytest.fixture
def reference(tmp_path: Path) -> Reference:
    path = tmp_path / "r.fa"
    path.write_text(">a\nACGTTGCATTGACCAGTA\n>b\nGGCATTACGANN\n>c\nTTGACA\n")
    return read_reference(str(path))


@pytest.fixture
def index(reference: Reference, tmp_path: Path) -> IndexFile:
    path = str(tmp_path / "r.mgi")
    make_index(build_options(reference.path, path, search="kmer", minimum_length=5), RunContext())
    return IndexFile(path)


def test_a_sound_index_is_verified(index: IndexFile, reference: Reference) -> None:
    verify(index)
    verify_for_run(index, index.path)
    require_reference(index, replace(reference, path="elsewhere"))


def test_each_damaged_section_is_named(index: IndexFile) -> None:
    data = bytearray(Path(index.path).read_bytes())
    for section in index.header.sections[-2:]:
        data[section.offset] ^= 1
    Path(index.path).write_bytes(data)
    with pytest.raises(InputError, match=r"in its sections 0\.order, 0\.bases_beside$"):
        verify(IndexFile(index.path))


def test_the_digest_is_compared(index: IndexFile) -> None:
    index.header = replace(index.header, digest="0" * 64)
    with pytest.raises(InputError, match="not of the reference that it names"):
        verify(index)


def test_fasta_cannot_be_verified() -> None:
    with pytest.raises(OptionError, match=r"verify: 'r\.fa' is not an index file"):
        verify_for_run(None, "r.fa")


def test_the_first_base_that_differs_is_found_in_pieces(
    reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "PIECE_BYTES", 4)
    for place, expected in [(0, "'a' differs from its base 1 "), (17, "'a' differs from its base")]:
        codes = reference.codes.copy()
        codes[[place, 25]] ^= 1
        assert expected in first_difference(reference, replace(reference, codes=codes))
    codes = reference.codes.copy()
    codes[-1] ^= 1
    message = first_difference(reference, replace(reference, codes=codes))
    assert message == "record 'c' differs from its base 6 on"


def test_records_are_compared_in_their_order(reference: Reference) -> None:
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


def test_the_same_references_do_not_differ(reference: Reference) -> None:
    with pytest.raises(ValueError, match="do not differ"):
        first_difference(reference, reference)
