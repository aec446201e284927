"""Files that are empty, broken or odd, of other projects, and real reads and genomes."""

import gzip
import re
from collections import Counter
from io import BytesIO, TextIOWrapper

import numpy as np
import pysam
import pytest
from helpers.naive import fold, pairs_of, parse_fasta, parse_fastq, parse_fastq_qualities, reads_of

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.read_files import ReadFile
from mummergpu.input.blocks.reader import query_reader, read_reader
from mummergpu.input.bytes.files import EmptyInputError
from mummergpu.input.bytes.formats import BGZF_END
from mummergpu.input.reference import read_reference
from mummergpu.sequence.codes import decode

SAM_HEADER = b"@HD\tVN:1.6\n@SQ\tSN:c1\tLN:2000\n"
SECONDARY = b"r\t256\tc1\t5\t60\t4M\t*\t0\t0\tACGT\t*\n"
READS = b">a\nACGT\n"
EMPTY = {
    "empty.fq": b"",
    "empty": b"",
    "empty.sam": b"",
    "nothing.fq.gz": gzip.compress(b""),
    "nothing.fq.bgz": BGZF_END,
    "nothing.twice.gz": gzip.compress(b"") * 2,
    "blank.fa": b"\n\r\n \n",
    "blank.fa.gz": gzip.compress(b"\n"),
    "header.sam": SAM_HEADER,
    "header.sam.gz": gzip.compress(SAM_HEADER),
    "secondary.sam": SAM_HEADER + SECONDARY,
}


@pytest.fixture
def empty_files(tmp_path):
    """A file of each kind that holds no read_all."""
    for name, content in EMPTY.items():
        (tmp_path / name).write_bytes(content)
    header = pysam.AlignmentHeader.from_text(SAM_HEADER.decode())
    for name, mode in (("header.bam", "wb"), ("header.cram", "wc")):
        pysam.AlignmentFile(str(tmp_path / name), mode, header=header).close()
    return sorted(tmp_path.iterdir())


def read_all(paths, no_empty=False):
    """Return the reads of all files, and the warnings."""
    warnings = []
    rules = QueryRules(no_empty=no_empty, warn=warnings.append)
    with query_reader([str(path) for path in paths], 1000, rules=rules) as reader:
        pairs = pairs_of(reader)
        assert reader.bytes_total in (None, reader.bytes_read)
    return pairs, warnings


def test_each_empty_file_is_named_in_one_line(empty_files):
    assert len(empty_files) == len(EMPTY) + 2
    for path in empty_files:
        assert read_all([path]) == ([], [f"{path}: no reads"])


def test_the_other_files_are_read(empty_files, tmp_path):
    full = tmp_path / "full.fa"
    full.write_bytes(READS)
    pairs, warnings = read_all([full, *empty_files, full])
    assert pairs == [(b"a", b"ACGT")] * 2
    assert warnings == [f"{path}: no reads" for path in empty_files]


def test_standard_input_without_a_read(empty_files, monkeypatch):
    for path in empty_files:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(path.read_bytes())))
        assert read_all(["-"]) == ([], ["-: no reads"])


def test_all_are_errors_where_that_is_asked_for(empty_files):
    for path in empty_files:
        with pytest.raises(InputError) as caught:
            read_all([path], no_empty=True)
        assert caught.value.path == str(path)
    header = [path for path in empty_files if path.name.startswith("header")]
    assert len(header) == 4
    for path in header:
        with pytest.raises(InputError, match="no reads"):
            read_all([path], no_empty=True)


def test_a_download_that_has_failed_is_an_error(tmp_path):
    for ending in "fq.gz fq.bz2 fq.xz fq.zst fa.bgz bgzf bam cram".split():
        path = tmp_path / f"reads.{ending}"
        path.touch()
        with pytest.raises(InputError, match="the file is empty") as caught:
            read_all([path])
        assert not isinstance(caught.value, EmptyInputError)


def test_an_empty_file_that_is_cut_off_is_an_error(tmp_path):
    content = gzip.compress(b"")
    for size in range(1, len(content)):
        path = tmp_path / "cut"
        path.write_bytes(content[:size])
        with pytest.raises(InputError) as caught:
            read_all([path])
        assert not isinstance(caught.value, EmptyInputError)


def test_an_empty_reference_is_an_error(empty_files):
    for path in empty_files:
        with pytest.raises(InputError):
            read_reference(str(path))


def test_a_read_without_bases_is_a_read(tmp_path):
    path = tmp_path / "reads.fa"
    path.write_bytes(b">a\n")
    assert read_all([path], no_empty=True) == ([(b"a", b"")], [])


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


def read_with_qualities(path, chunk_size):
    with read_reader([ReadFile(str(path))], 1000, chunk_size) as reader:
        return reads_of(reader)


def read_by_htslib(path):
    """Names, sequences and qualities."""
    with pysam.FastxFile(str(path)) as file:
        return [
            (
                (record.name or "").encode(),
                fold((record.sequence or "").encode()),
                bytes(record.get_quality_array() or ()),
            )
            for record in file
        ]


@pytest.mark.parametrize("chunk_size", [13, 1 << 20])
def test_broken_fastq_is_refused_where_it_breaks(awkward, chunk_size):
    folder = awkward / "biopython_Quality"
    names = {path.stem.removeprefix("error_") for path in folder.glob("error_*.fastq")}
    assert names == {*FAULTS, "diff_ids"}
    other = folder / "error_diff_ids.fastq"
    assert read(other, chunk_size=chunk_size) == parse_fastq(other.read_bytes())
    for fault, (line, message, name) in FAULTS.items():
        path = folder / f"error_{fault}.fastq"
        with pytest.raises(InputError) as caught:
            read(path, chunk_size=chunk_size)
        error = caught.value
        assert (error.path, error.line, error.message) == (str(path), line, message)
        assert (error.record is None) == (name is None)
        assert name is None or str(error.record).endswith(name)
        with pytest.raises(InputError) as found:
            read_with_qualities(path, chunk_size)
        assert str(found.value) == str(error)


def test_other_text_and_empty_files_are_refused(awkward):
    told = {}
    for path in files_of(awkward):
        if path.name in NOT_SEQUENCES:
            with pytest.raises(InputError) as caught:
                read(path)
            told[path.name] = (caught.value.line, caught.value.message)
    assert told == NOT_SEQUENCES
    for path in files_of(awkward / "bactopia_empty"):
        for reader in (read, read_reference):
            with pytest.raises(InputError, match="the file is empty"):
                reader(str(path))


@pytest.mark.parametrize("chunk_size", [13, 1 << 20])
def test_awkward_files_are_read_as_they_are_meant(awkward, chunk_size):
    counts = Counter()
    for path in files_of(awkward):
        faulty = path.name.startswith("error_") or path.name in NOT_SEQUENCES
        if faulty or path.parent.name == "bactopia_empty":
            continue
        text = path.read_bytes()
        text = gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text
        is_fastq = text.lstrip().startswith(b"@")
        counts[is_fastq] += 1
        others = read_by_htslib(path)
        pairs = read(path, chunk_size=chunk_size)
        assert pairs == (parse_fastq if is_fastq else parse_fasta)(text), path
        assert [bases for _, bases in pairs] == [bases for _, bases, _ in others], path
        if is_fastq:
            expected = [
                (re.sub(rb"/[12]$", b"", name), bases, qualities)
                for name, bases, qualities in parse_fastq_qualities(text)
            ]
            assert read_with_qualities(path, chunk_size) == expected, path
            assert [read[2] for read in expected] == [read[2] for read in others], path
    assert counts == {False: 14, True: 53}


@pytest.mark.parametrize("kind", ["reads", "references"])
def test_real_files_are_read_as_htslib_reads_them(shared_data, kind):
    for path in files_of(shared_data / kind):
        assert read(path, 1 << 20) == [record[:2] for record in read_by_htslib(path)], path


def test_real_references_are_joined(shared_data):
    for path in files_of(shared_data / "references"):
        reference = read_reference(str(path))
        names, sequences, _ = zip(*read_by_htslib(path), strict=True)
        assert reference.names == names and decode(reference.codes) == b"N".join(sequences)
        lengths = np.array([*map(len, sequences)])
        assert np.array_equal(reference.record_lengths, lengths)
        starts = np.concatenate([[0], np.cumsum(lengths + 1)[:-1]])
        assert np.array_equal(reference.record_starts, starts)
