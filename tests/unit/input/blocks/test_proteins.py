"""Proteins from files and from memory."""

import gzip

import pytest

from mummergpu.errors import InputError, OptionError
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import ProteinFiles, ProteinsInMemory
from mummergpu.sequence.codes import AMINO_ACIDS

TEXT = b">a  desc here \nACDEFghikl*\nBJ ZOUX\t.._~\r\n\n>b\n>  c x\x01y\nmnpqrstvwy" * 3


def read(source):
    return [
        (
            block.name(number),
            block.description(number),
            bytes(AMINO_ACIDS.letters[code] for code in block.codes[begin:end].tolist()),
        )
        for block in source.blocks()
        for number, (begin, end) in enumerate(zip(block.offsets, block.offsets[1:], strict=False))
    ]


@pytest.mark.parametrize("block_residues", [1, 10, 1 << 20])
def test_letters_names_and_descriptions(block_residues, tmp_path):
    path = tmp_path / "some.faa.gz"
    path.write_bytes(gzip.compress(TEXT.replace(b"y>", b"y\n>")))
    expected = [
        ("a", "desc here ", b"ACDEFGHIKL*BJZOUX---~"),
        ("b", "", b""),
        ("c", "x", b"MNPQRSTVWY"),
    ]
    assert read(ProteinFiles([str(path)], ProteinRules(), block_residues)) == 3 * expected


def test_memory_and_names_that_are_no_text():
    source = ProteinsInMemory([("a b", "MKL"), ("\udcff", "W")], ProteinRules())
    assert read(source) == [("a", "b", b"MKL"), ("\udcff", "", b"W")] == read(source)


@pytest.mark.parametrize("wrong", ["-", "1", "@", ">", ";", "\0", "\v"])
def test_what_is_no_residue(wrong, tmp_path):
    path = tmp_path / "wrong.faa"
    path.write_text(f">a\nMKL\nMK{wrong}L\n")
    with pytest.raises(InputError, match=r"wrong\.faa:3: .* is not a sequence character"):
        read(ProteinFiles([str(path)], ProteinRules()))


def test_proteins_that_are_too_long_are_left_out_or_an_error(tmp_path):
    path, long = tmp_path / "some.faa", "MKLVRAWQEF" * 10_000 + "A"
    path.write_text(f">a x\nMK\n>long y\n{long}\n>b z\nAC\n>l2\n{long}\n>c\n{long[1:]}\n")
    expected = [("a", "x", b"MK"), ("b", "z", b"AC"), ("c", "", long[1:].encode())]
    for residues in (1, 1 << 20):
        told = []
        source = ProteinFiles([str(path)], ProteinRules(), residues)
        assert list(source.blocks(None, told.append)) and read(source) == expected
        assert told == [f"{path}: 2 proteins of more than 100,000 residues left out: l2, long"]
    with pytest.raises(InputError, match=r"some\.faa:3: 100,001 residues.*'long'"):
        read(ProteinFiles([str(path)], ProteinRules(long_proteins="error")))
    named = [("a", "MK"), ("long", long)]
    assert read(ProteinsInMemory(named, ProteinRules())) == [("a", "", b"MK")]
    with pytest.raises(OptionError, match="warn"):
        ProteinRules(long_proteins="warn")


def test_a_file_without_proteins(tmp_path):
    path = tmp_path / "empty.faa"
    path.write_text("")
    told = []
    assert list(ProteinFiles([str(path)], ProteinRules()).blocks(None, told.append)) == []
    assert told == [f"{path}: no sequences"]
    with pytest.raises(InputError, match="empty"):
        read(ProteinFiles([str(path)], ProteinRules(no_empty=True)))


def test_nucleotides(tmp_path):
    path = tmp_path / "dna.fa"
    path.write_text(">a\n" + 30 * "ACGT")
    with pytest.raises(InputError, match="nucleotides"):
        read(ProteinFiles([str(path)], ProteinRules()))
    assert len(read(ProteinFiles([str(path)], ProteinRules(any_letters=True)))) == 1
