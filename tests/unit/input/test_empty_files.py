"""Files without a read: told and passed over, or refused where that is asked for."""

import gzip
from io import BytesIO, TextIOWrapper

import pysam
import pytest
from helpers.naive import pairs_of

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes.files import EmptyInputError
from mummergpu.input.bytes.formats import BGZF_END
from mummergpu.input.reference import read_reference

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
FAILED_DOWNLOADS = ("reads.fq.gz", "reads.fa.bgz", "reads.bgzf", "reads.bam", "reads.cram")


@pytest.fixture
def empty_files(tmp_path):
    """A file of each kind that holds no read."""
    for name, content in EMPTY.items():
        (tmp_path / name).write_bytes(content)
    header = pysam.AlignmentHeader.from_text(SAM_HEADER.decode())
    for name, mode in (("header.bam", "wb"), ("header.cram", "wc")):
        pysam.AlignmentFile(str(tmp_path / name), mode, header=header).close()  # type: ignore[arg-type]
    return sorted(tmp_path.iterdir())


def read(paths, no_empty=False):
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
        assert read([path]) == ([], [f"{path}: no reads"])


def test_the_other_files_are_read(empty_files, tmp_path):
    full = tmp_path / "full.fa"
    full.write_bytes(READS)
    pairs, warnings = read([full, *empty_files, full])
    assert pairs == [(b"a", b"ACGT")] * 2
    assert warnings == [f"{path}: no reads" for path in empty_files]


def test_standard_input_without_a_read(empty_files, monkeypatch):
    for path in empty_files:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(path.read_bytes())))
        assert read(["-"]) == ([], ["-: no reads"])


def test_all_are_errors_where_that_is_asked_for(empty_files):
    for path in empty_files:
        with pytest.raises(InputError) as caught:
            read([path], no_empty=True)
        assert caught.value.path == str(path)
    header = [path for path in empty_files if path.name.startswith("header")]
    assert len(header) == 4
    for path in header:
        with pytest.raises(InputError, match="no reads"):
            read([path], no_empty=True)


def test_a_download_that_has_failed_is_an_error(tmp_path):
    for name in FAILED_DOWNLOADS:
        (tmp_path / name).touch()
        with pytest.raises(InputError, match="the file is empty") as caught:
            read([tmp_path / name])
        assert not isinstance(caught.value, EmptyInputError)


def test_an_empty_file_that_is_cut_off_is_an_error(tmp_path):
    content = gzip.compress(b"")
    for size in range(1, len(content)):
        path = tmp_path / "cut"
        path.write_bytes(content[:size])
        with pytest.raises(InputError) as caught:
            read([path])
        assert not isinstance(caught.value, EmptyInputError)


def test_an_empty_reference_is_an_error(empty_files):
    for path in empty_files:
        with pytest.raises(InputError):
            read_reference(str(path))


def test_a_read_without_bases_is_a_read(tmp_path):
    path = tmp_path / "reads.fa"
    path.write_bytes(b">a\n")
    assert read([path], no_empty=True) == ([(b"a", b"")], [])
