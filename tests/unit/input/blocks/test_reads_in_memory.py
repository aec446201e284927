"""Reads in memory become the blocks that a FASTQ file of them becomes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input.blocks.memory import ReadsInMemory
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.input.blocks.reader import read_reader

Read = tuple[str, str, str]


@st.composite
def reads(draw):
    bases = draw(st.text("ACGTNacgt", max_size=40))
    characters = st.characters(min_codepoint=33, max_codepoint=126)
    quality = draw(st.text(characters, min_size=len(bases), max_size=len(bases)))
    # A FASTQ file cannot tell a lonely '@' at the start of a line of qualities from a name.
    return draw(st.text("abc./12", min_size=1, max_size=6)), bases, quality.replace("@", "A")


def blocks(source, size):
    with read_reader([source], size) as reader:
        return list(reader)


def joined(found):
    """What all blocks have together, however they are cut."""
    return [
        b"".join(block.codes.tobytes() for block in found),
        b"".join(block.base_qualities.tobytes() for block in found),
        b"".join(block.names.tobytes() for block in found),
        np.concatenate([np.empty(0), *(np.diff(block.offsets) for block in found)]).tolist(),
        np.concatenate([np.empty(0), *(np.diff(block.name_offsets) for block in found)]).tolist(),
        {block.paired for block in found},
    ]


def write(path, records):
    path.write_text("".join(f"@{name}\n{bases}\n+\n{text}\n" for name, bases, text in records))
    return str(path)


@given(records=st.lists(reads(), min_size=1, max_size=12), size=st.integers(1, 90))
def test_single_reads(records, size, tmp_path_factory):
    path = write(tmp_path_factory.mktemp("reads") / "r.fq", records)
    of_numbers = [
        (name, bases, np.array([ord(one) - 33 for one in text], dtype=np.int16))
        for name, bases, text in records
    ]
    of_bytes = [tuple(part.encode() for part in record) for record in records]
    expected = joined(blocks(ReadFile(path), 1 << 20))
    for given_reads in (records, iter(of_numbers), of_bytes):
        assert joined(blocks(ReadsInMemory(given_reads), size)) == expected  # type: ignore[arg-type]


@given(records=st.lists(reads(), min_size=1, max_size=12), size=st.integers(1, 90))
def test_pairs(records, size, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reads")
    named = [(f"{n}/1", bases, text) for n, (_, bases, text) in enumerate(records)]
    mates = [(f"{n}/2", bases, text) for n, (_, bases, text) in enumerate(records[::-1])]
    paths = write(folder / "1.fq", named), write(folder / "2.fq", mates)
    expected = joined(blocks(MateFiles(*paths), 1 << 20))
    pairs = list(zip(named, mates, strict=True))
    alternating = [read for pair in pairs for read in pair]
    for source in (
        ReadsInMemory(named, mates),
        ReadsInMemory(pairs, interleaved=True),
        ReadsInMemory(iter(alternating), interleaved=True),
    ):
        found = blocks(source, size)
        assert joined(found) == expected
        assert all(block.query_count % 2 == 0 for block in found)


@pytest.mark.parametrize(
    "quality", ["FFF", "FFFFF", "FFF\x7f", "FFF\n", b"\xff" * 4, [0, 1, 2, 94], [-1] * 4, [256] * 4]
)
def test_wrong_qualities_name_their_read(quality):
    right = ("right", "ACGT", [0, 93, 7, 1])
    with pytest.raises(InputError, match=r"<memory>: .*qualit.* \(record 'wrong'\)"):
        blocks(ReadsInMemory([right, ("wrong", "ACGT", quality), right]), 100)  # type: ignore[list-item]
