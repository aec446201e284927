"""Other projects' test files, broken and unbroken, and real reads and genomes."""

import gzip
import re

import numpy as np
import pysam
import pytest
from helpers.naive import fold, pairs_of, parse_fasta, parse_fastq, parse_fastq_qualities, reads_of

from mummergpu.errors import InputError
from mummergpu.input.blocks.read_files import ReadFile
from mummergpu.input.blocks.reader import query_reader, read_reader
from mummergpu.input.reference import read_reference
from mummergpu.sequence.codes import decode

SHORT = "quality has 24 characters, sequence has 25"
ENDS = "the file ends inside this record"
FAULTS = {
    "double_qual": (13, "a record begins with '+', not with '@'", None),
    "double_seq": (15, "'@' is not a sequence character", "362_549"),
    "long_qual": (16, "quality has 26 characters, sequence has 25", "362_549"),
    "no_qual": (4, "quality has 0 characters, sequence has 25", "610_79"),
    "qual_del": (16, "byte 0x7F is not a quality character", "362_549"),
    "qual_escape": (20, "byte 0x1B is not a quality character", "183_714"),
    "qual_null": (4, "byte 0x00 is not a quality character", "850_123"),
    "qual_space": (16, "a blank is not a quality character", "362_549"),
    "qual_tab": (20, "a tab is not a quality character", "183_714"),
    "qual_unit_sep": (12, "byte 0x1F is not a quality character", "850_123"),
    "qual_vtab": (4, "byte 0x0B is not a quality character", "610_79"),
    "short_qual": (12, SHORT, "850_123"),
    "spaces": (2, "a blank is not a sequence character", "610_79"),
    "tabs": (2, "a tab is not a sequence character", "610_79"),
    "trunc_at_plus": (19, "blank line inside a record", "183_714"),
    "trunc_at_qual": (19, ENDS, "183_714"),
    "trunc_at_seq": (18, ENDS, "183_714"),
    "trunc_in_plus": (19, ENDS, "183_714"),
    "trunc_in_qual": (20, SHORT, "183_714"),
    "trunc_in_seq": (18, ENDS, "183_714"),
    "trunc_in_title": (17, ENDS, ""),
}
NOT_SEQUENCES = {
    "example.qual": (2, "'2' is not a sequence character"),
    "faidx.fa.expected.fai": (1, "text, but not FASTA, FASTQ, SAM, BAM or CRAM"),
    "fastqs.fq.expected.fai": (1, "text, but not FASTA, FASTQ, SAM, BAM or CRAM"),
}


@pytest.fixture(scope="module")
def awkward(shared_data):
    return shared_data / "awkward"


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def read(path, block_size=1000, chunk_size=1 << 20):
    with query_reader([str(path)], block_size, chunk_size) as reader:
        return pairs_of(reader)


def read_slowly(path):
    text = path.read_bytes()
    if text.startswith(b"\x1f\x8b"):
        text = gzip.decompress(text)
    return parse_fasta(text) if text.lstrip().startswith(b">") else parse_fastq(text)


@pytest.mark.parametrize("chunk_size", [13, 1 << 20])
def test_broken_fastq_is_refused_where_it_breaks(awkward, chunk_size):
    paths = sorted((awkward / "biopython_Quality").glob("error_*.fastq"))
    names = [path.stem.removeprefix("error_") for path in paths]
    assert names == sorted([*FAULTS, "diff_ids"])
    for path in paths:
        if path.stem == "error_diff_ids":
            assert read(path, chunk_size=chunk_size) == read_slowly(path)
            continue
        line, message, name = FAULTS[path.stem.removeprefix("error_")]
        with pytest.raises(InputError) as caught:
            read(path, chunk_size=chunk_size)
        error = caught.value
        assert (error.path, error.line, error.message) == (str(path), line, message)
        assert (error.record is None) == (name is None)
        assert name is None or str(error.record).endswith(name)


def test_other_text_and_empty_files_are_refused(awkward):
    for path in files_of(awkward):
        if path.name in NOT_SEQUENCES:
            with pytest.raises(InputError) as caught:
                read(path)
            assert (caught.value.line, caught.value.message) == NOT_SEQUENCES[path.name]
    for path in files_of(awkward / "bactopia_empty"):
        with pytest.raises(InputError, match="the file is empty"):
            read(path)
        with pytest.raises(InputError, match="the file is empty"):
            read_reference(str(path))


@pytest.mark.parametrize("chunk_size", [2, 13, 1 << 20])
def test_awkward_files_are_read_as_they_are_meant(awkward, chunk_size):
    count = 0
    for path in files_of(awkward):
        faulty = path.name.startswith("error_") or path.name in NOT_SEQUENCES
        if faulty or path.parent.name == "bactopia_empty":
            continue
        count += 1
        pairs = read(path, chunk_size=chunk_size)
        assert pairs == read_slowly(path), path
        with pysam.FastxFile(str(path)) as file:
            others = [(record.sequence or "").encode() for record in file]
        assert [sequence for _, sequence in pairs] == [fold(other) for other in others], path
    assert count == 67


@pytest.mark.parametrize("chunk_size", [2, 13, 1 << 20])
def test_qualities_of_awkward_files(awkward, chunk_size):
    count = 0
    for path in files_of(awkward):
        faulty = path.name.startswith("error_") or path.name in NOT_SEQUENCES
        if faulty or path.parent.name == "bactopia_empty":
            continue
        text = path.read_bytes()
        text = gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text
        if not text.lstrip().startswith(b"@"):
            continue
        count += 1
        with read_reader([ReadFile(str(path))], 1000, chunk_size) as reader:
            found = reads_of(reader)
        expected = parse_fastq_qualities(text)
        assert [read[1:] for read in found] == [read[1:] for read in expected], path
        names = [re.sub(rb"/[12]$", b"", name) for name, _, _ in expected]
        assert [name for name, _, _ in found] == names, path
        with pysam.FastxFile(str(path)) as file:
            others = [bytes(record.get_quality_array() or ()) for record in file]
        assert [quality for _, _, quality in found] == others, path
    assert count == 53


@pytest.mark.parametrize("chunk_size", [13, 1 << 20])
def test_errors_are_the_same_with_qualities(awkward, chunk_size):
    for path in sorted((awkward / "biopython_Quality").glob("error_*.fastq")):
        if path.stem == "error_diff_ids":
            continue
        with pytest.raises(InputError) as expected:
            read(path, chunk_size=chunk_size)
        with (
            pytest.raises(InputError) as found,
            read_reader([ReadFile(str(path))], 1000, chunk_size) as reader,
        ):
            list(reader)
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("kind", ["reads", "references"])
def test_real_files_are_read_as_htslib_reads_them(shared_data, kind):
    for path in files_of(shared_data / kind):
        with pysam.FastxFile(str(path)) as file:
            expected = [
                ((record.name or "").encode(), fold((record.sequence or "").encode()))
                for record in file
            ]
        assert read(path, 1 << 20) == expected, path


def test_real_references_are_joined(shared_data):
    for path in files_of(shared_data / "references"):
        reference = read_reference(str(path))
        with pysam.FastxFile(str(path)) as file:
            records = [
                ((record.name or "").encode(), fold((record.sequence or "").encode()))
                for record in file
            ]
        assert reference.names == tuple(name for name, _ in records)
        assert decode(reference.codes) == b"N".join(sequence for _, sequence in records)
        lengths = np.array([len(sequence) for _, sequence in records])
        assert np.array_equal(reference.record_lengths, lengths)
        starts = np.concatenate([[0], np.cumsum(lengths + 1)[:-1]])
        assert np.array_equal(reference.record_starts, starts)
