"""ORFs are those of esl-translate, from files of all formats and from memory."""

import gzip
from random import Random

import numpy as np
import pytest
from helpers.hmmer import ORF, esl_translate
from helpers.sequences import random_bases, reverse_complement

from mummergpu.errors import InputError, OptionError
from mummergpu.hmm import translation
from mummergpu.hmm.proteins import SYMBOLS
from mummergpu.hmm.translation import (
    OrfPlace,
    Orfs,
    TranslatedFiles,
    TranslatedInMemory,
    _cut_at_gaps,
    translated,
)
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.bytes.reading_threads import ReadingThreads

ALL_LETTERS = "ACGTUNRYKMSWBDHVacgtn"


def read(source, threads=None):
    return [
        (
            block.name(number),
            block.description(number),
            "".join(SYMBOLS[code] for code in block.codes[begin:end].tolist()),
        )
        for block in source.blocks(threads)
        for number, (begin, end) in enumerate(zip(block.offsets, block.offsets[1:], strict=False))
    ]


def random_records(seed):
    random = Random(seed)
    records = []
    for number in range(120):
        letters = "ACGT" if number % 2 else random.choice(("ACG", "ACGTN", ALL_LETTERS))
        weights = [20 if letter in "ACGT" else 1 for letter in letters]
        # Easel's program puts records of one base or two before the next one's bases.
        length = random.choice((0, 3, 59, 60, 61, 62, 63, 150, 151, 400, 3000))
        text = "".join(random.choices(letters, weights, k=length))
        records.append(f">r{number} some  text\t{number}\n{text}\n")
    return "".join(records)


@pytest.mark.parametrize("block_residues", [10, 1000, 1 << 22])
def test_orfs_are_those_of_esl_translate(block_residues, tmp_path):
    path = tmp_path / "some.fa"
    path.write_text(random_records(block_residues))
    files = TranslatedFiles([str(path)], ProteinRules(), block_residues)
    found = read(files)
    with ReadingThreads(4) as threads:
        assert read(files, threads) == found
    theirs = esl_translate(path)
    assert len(theirs) > 100 and [(text, residues) for _, text, residues in found] == theirs
    for name, text, _ in found:
        place = OrfPlace.of_name(name)
        match = ORF.match(text)
        assert match and place == (match[1], int(match[4]), int(match[2]), int(match[3]))
        assert place.name == name


OPTIONS = {
    **{f"-c {code}": ProteinRules(code=code) for code in (2, 4, 5, 6, 11, 25)},
    "-l 1": ProteinRules(min_orf=1),
    "-l 75": ProteinRules(min_orf=75),
    "--watson": ProteinRules(strand="plus"),
    "--crick": ProteinRules(strand="minus"),
    "--crick -c 22 -l 33": ProteinRules(code=22, strand="minus", min_orf=33),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("block_residues", [1000, 1 << 22])
def test_codes_lengths_and_strands(options, block_residues, tmp_path):
    path = tmp_path / "some.fa"
    path.write_text(random_records(len(options)))
    found = read(TranslatedFiles([str(path)], OPTIONS[options], block_residues))
    theirs = esl_translate(path, *options.split())
    assert len(theirs) > 20 and [(text, residues) for _, text, residues in found] == theirs


@pytest.mark.parametrize("block_residues", [100_000, 1 << 22])
def test_gaps_end_orfs_that_are_too_long(block_residues, monkeypatch):
    monkeypatch.setattr(translated, "__defaults__", (block_residues,))
    random = Random(1)
    coding = ["".join(random.choices(("GCT", "GAA", "AAC"), k=n)) for n in (40, 70, 30_000, 30)]
    gap, small = "N" * 300_060, "N" * 57
    bases = coding[0] + gap + coding[1] + small + coding[2] + gap + coding[3] + "TAA"
    found = read(TranslatedInMemory([("a", bases)], ProteinRules()))
    kept = {name: residues for name, _, residues in found if ":1:" in name or ":4:" in name}
    begins = [1, 120 + 300_060 + 1]
    ends = [120, begins[1] - 1 + 210 + 57 + 90_000]
    begins.append(ends[1] + 300_060 + 1)
    ends.append(begins[2] + 89)
    forward = [f"a:1:{begin}-{end}" for begin, end in zip(begins, ends, strict=True)]
    assert [name for name in kept if ":1:" in name] == forward
    assert kept[forward[1]].count("X") == 19 and len(kept[forward[1]]) == 30_089
    reverse = reverse_complement(bases)
    for name, residues in kept.items():
        _, frame, start, end = OrfPlace.of_name(name)
        if frame == 4:
            again = reverse[len(bases) - start : len(bases) - end + 1]
            expected = read(TranslatedInMemory([("b", again)], ProteinRules()))
            assert residues in [one for name, _, one in expected if ":1:" in name]
    assert sum(":4:" in name for name in kept) >= 2


@pytest.mark.parametrize(("unknown", "pieces"), [(19, []), (20, [1, 151]), (21, [1, 154])])
def test_a_gap_of_twenty_residues_cuts(unknown, pieces, monkeypatch):
    monkeypatch.setattr(translation, "MOST_RESIDUES", 70)
    codes = np.array([0] * 30 + [SYMBOLS.index("X")] * unknown + [0] * 30, dtype=np.uint8)
    one = np.ones(1, dtype=np.int64)
    orfs = Orfs(codes, np.array([0, codes.size]), one, one, one)
    left_out = []
    found = _cut_at_gaps(orfs, 20, left_out.append)
    assert found.starts.tolist() == pieces
    assert np.diff(found.offsets).tolist() == [30] * len(pieces) and len(left_out) == (not pieces)


WORDS = {
    # A stop, 20 codons, a stop: the other frames have stops, or are too short.
    "between stops": ("TAA" + "GCT" * 20 + "TGA", [("a:1:4-63", 20 * "A")]),
    "no bases": ("AC", []),
    "19 residues": ("TAA" + "GCA" * 19 + "TGA", []),
    "to the ends": ("AAA" * 20, [("a:1:1-60", 20 * "K"), ("a:4:60-1", 20 * "F")]),
    "RNA, any case": ("uuu" * 20, [("a:1:1-60", 20 * "F"), ("a:4:60-1", 20 * "K")]),
    # An ORF does not begin with what may be a stop, but goes on over it.
    "N": ("NNN" + "AAA" * 10 + "NNN" * 10, [("a:1:4-63", 10 * "K" + 10 * "X")]),
    "stops in letters": ("TAR" + "GGN" * 19 + "URA", []),
}


@pytest.mark.parametrize("word", WORDS)
def test_small_cases(word):
    bases, expected = WORDS[word]
    found = read(TranslatedInMemory([("a", bases)], ProteinRules()))
    kept = {name: residues for name, _, residues in found}
    for name, residues in expected:
        assert kept.pop(name) == residues
    # What other frames have is no part of these cases, unless none is expected.
    assert expected or not [name for name in kept if OrfPlace.of_name(name).frame == 1]


def test_formats_have_the_same_orfs(tmp_path):
    random = Random(7)
    reads = [(f"r{n}", random_bases(random, 150)) for n in range(40)]
    texts = {
        "r.fa": "".join(f">{name} x\n{bases}\n" for name, bases in reads),
        "r.fq": "".join(f"@{name} x\n{bases}\n+\n{'I' * 150}\n" for name, bases in reads),
        "r.sam": "@HD\tVN:1.6\n"
        + "".join(f"{name}\t4\t*\t0\t0\t*\t*\t0\t0\t{bases}\t*\n" for name, bases in reads),
    }
    expected = [row[::2] for row in read(TranslatedInMemory(reads, ProteinRules()))]
    assert len(expected) > 20
    for name, text in texts.items():
        for path, content in (
            (tmp_path / name, text.encode()),
            (tmp_path / f"{name}.gz", gzip.compress(text.encode())),
        ):
            path.write_bytes(content)
            assert [
                row[::2] for row in read(TranslatedFiles([str(path)], ProteinRules()))
            ] == expected
    bam = tmp_path / "r.bam"
    pysam = pytest.importorskip("pysam")
    with pysam.AlignmentFile(str(tmp_path / "r.sam"), check_sq=False) as sam:
        with pysam.AlignmentFile(str(bam), "wb", template=sam) as file:
            for record in sam.fetch(until_eof=True):
                file.write(record)
    assert [row[::2] for row in read(TranslatedFiles([str(bam)], ProteinRules()))] == expected


def test_mates_of_sam_have_names_of_their_own(tmp_path):
    path = tmp_path / "r.sam"
    rows = [(f, "AAA" * 20) for f in (77, 141)]
    text = "".join(f"t\t{flag}\t*\t0\t0\t*\t*\t0\t0\t{bases}\t*\n" for flag, bases in rows)
    path.write_text("@HD\tVN:1.6\n" + text)
    names = [name for name, _, _ in read(TranslatedFiles([str(path)], ProteinRules()))]
    assert names == ["t/1:1:1-60", "t/1:4:60-1", "t/2:1:1-60", "t/2:4:60-1"]


def test_what_is_refused_or_told(tmp_path):
    path = tmp_path / "some.fa"
    path.write_text(">long\n" + "AAA" * 100_001 + "\n")
    with pytest.raises(InputError, match=r"an ORF of 100,001 residues.*'long:1:1-300003'"):
        read(TranslatedFiles([str(path)], ProteinRules(long_proteins="error")))
    told = []
    kept = list(TranslatedFiles([str(path)], ProteinRules()).blocks(None, told.append))
    assert [block.count for block in kept] == [4]
    count = "2 ORFs of more than 100,000 residues left out"
    assert told == [f"{path}: {count}: long:1:1-300003, long:4:300003-1"]
    with ReadingThreads(2) as threads:
        list(TranslatedFiles([str(path)], ProteinRules()).blocks(threads, told.append))
    assert told[1] == told[0]
    with pytest.raises(OptionError, match="7 is not the number of a genetic code"):
        read(TranslatedFiles([str(path)], ProteinRules(code=7)))
    path.write_text(">p\n" + "MKLVRAWQEF" * 20 + "\n")
    with pytest.raises(InputError, match="letters are neither bases nor IUPAC codes"):
        read(TranslatedFiles([str(path)], ProteinRules()))
    path.write_text("")
    told.clear()
    assert list(TranslatedFiles([str(path)], ProteinRules()).blocks(None, told.append)) == []
    assert told == [f"{path}: no sequences"]
