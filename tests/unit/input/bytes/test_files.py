"""Opening files: formats, compression, and all that can be wrong; containers cut at every byte."""

import gzip
import os
import random
import subprocess
import threading
from io import BytesIO, TextIOWrapper
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from helpers.containers import bgzf, bgzf_blocks, cram_borders, write_alignments
from helpers.naive import pairs_of

from mummergpu.errors import InputError
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes.file_part import read_into
from mummergpu.input.bytes.files import CountedInput, Input, TextStream
from mummergpu.input.bytes.formats import BGZF_END, Compression, Format, MissingEndError, check_end
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import read_reference
from mummergpu.sequence.codes import decode

MANY_READS = b"".join(b"@r%d\nACGTTGCA\n+\nIIIIIIII\n" % i for i in range(20_000))


def write(folder, content, name="file"):
    path = folder / name
    path.write_bytes(content)
    return str(path)


def text_of(file, size=1000):
    parts, buffer = [], bytearray(size)
    while count := file.text.readinto(buffer):
        parts.append(bytes(buffer[:count]))
    return b"".join(parts)


def read(path, size=1000):
    with Input(path) as file:
        return file.format, text_of(file, size)


def message_of(path):
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.path == path
    return caught.value.message


SAM_LINE = b"r1\t0\tc1\t5\t60\t4M\t*\t0\t0\tACGT\tIIII\n"
CONTENTS = [
    (b">a\nACGT\n", Format.FASTA),
    (b"\n\r\n \n>a\nACGT\n", Format.FASTA),
    (b">", Format.FASTA),
    (b">a\tb\tc\td\te\tf\tg\th\ti\tj\tk\nACGT", Format.FASTA),
    (b"\n" * 100_000 + b">a\nA", Format.FASTA),
    (b">" + b"n" * 200_000 + b"\nA", Format.FASTA),
    (b"@a\nACGT\n+\nIIII\n", Format.FASTQ),
    (b"\r\n@a\nACGT\n+\nIIII\n", Format.FASTQ),
    (b"@HD\nACGT\n+\nIIII\n", Format.FASTQ),
    (b"@SQ\tcomment\nACGT\n+\nIIII\n", Format.FASTQ),
    (b"@CO\tcomment\nACGT\n+\nIIII\n", Format.FASTQ),
    (b"@HD\tVN:1.6\n", Format.SAM),
    (b"@SQ\tSN:c1\tLN:100\n", Format.SAM),
    (b"@RG\tID:1\n", Format.SAM),
    (b"@PG\tPN:x\n", Format.SAM),
    (SAM_LINE, Format.SAM),
    (SAM_LINE[:-1] + b"\tNM:i:0\n", Format.SAM),
]


@pytest.mark.parametrize("content, expected", CONTENTS, ids=lambda value: repr(value)[:40])
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_format_is_told_from_content(tmp_path, content, expected, size):
    assert read(write(tmp_path, content, "reads.sam"), size) == (expected, content)
    assert read(write(tmp_path, gzip.compress(content), "reads.fa"), size) == (expected, content)


def test_byte_order_mark_is_left_out(tmp_path):
    assert read(write(tmp_path, b"\xef\xbb\xbf>a\nA\n")) == (Format.FASTA, b">a\nA\n")


def test_alignments_are_told_from_their_first_bytes(tmp_path):
    text, cram = b"BAM\1" + bytes(100), b"CRAM\3\0rest"
    with Input(write(tmp_path, gzip.compress(text))) as file:
        assert file.format is Format.BAM and file.format.is_alignment
        assert file.text.read() == text
    with Input(write(tmp_path, cram)) as file:
        assert file.format is Format.CRAM and file.format.is_alignment
        assert file.source.read() == cram
    assert not Format.FASTQ.is_alignment


def test_members_of_gzip_are_joined(tmp_path):
    third = len(MANY_READS) // 3
    parts = [MANY_READS[:third], b"", MANY_READS[third : 2 * third], MANY_READS[2 * third :]]
    end = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
    assert end == BGZF_END
    packed = b"".join(map(gzip.compress, parts)) + end
    for content in (packed, packed + bytes(512)):  # Tapes are padded with zeros.
        with Input(write(tmp_path, content)) as file:
            assert text_of(file, 1 << 16) == MANY_READS and file.compression is Compression.GZIP
            assert file.source.bytes_read == len(content) == file.size


@pytest.mark.parametrize("tail", [bytes(1), bytes(512), b"signature", MANY_READS])
@pytest.mark.parametrize("threads", [1, 4])
def test_what_follows_compressed_data_is_told(tmp_path, tail, threads):
    for packed in (gzip.compress(MANY_READS), bgzf(MANY_READS)):
        told = []
        path = write(tmp_path, packed + tail)
        with ReadingThreads(threads) as pool, Input(path, pool) as file:
            assert text_of(file, 1 << 16) == MANY_READS
            file.tell_of_ignored(told.append)
        (line,) = told
        count = "1 byte" if len(tail) == 1 else f"{len(tail):,} bytes"
        assert line.startswith(f"{path}: {count} after the end of the compressed data")


PACKED = gzip.compress(MANY_READS)
LATE = len(PACKED) - 1000
FLIPPED = PACKED[:LATE] + bytes([PACKED[LATE] ^ 0x10]) + PACKED[LATE + 1 :]
END_TOO_EARLY = "the compressed data end too early (truncated?)"
CORRUPT = "the compressed data are corrupt"
BLANK = "the file holds blank lines only"
BINARY = "binary data, but not FASTA, FASTQ, SAM, BAM or CRAM"
PROSE = "text, but not FASTA, FASTQ, SAM, BAM or CRAM"
FAULTY = {
    "only the magic": (PACKED[:2], END_TOO_EARLY),
    "flipped bit": (FLIPPED, CORRUPT),
    "checksum": (PACKED[:-8] + b"abcd" + PACKED[-4:], CORRUPT),
    "length": (PACKED[:-4] + b"abcd", CORRUPT),
    "method": (PACKED[:2] + b"\7" + PACKED[3:], CORRUPT),
    "empty file": (b"", "the file is empty"),
    "gz of nothing": (gzip.compress(b""), "the compressed file holds nothing"),
    "gz of blank": (gzip.compress(b"\n\n"), BLANK),
    "blank lines": (b"\n \n\t\r\n", BLANK),
    "endless blank": (b"\n" * (2 << 20), BLANK),
    "zeros": (bytes(1000), BINARY),
    "rubbish": (random.Random(1).randbytes(5000), BINARY),
    "utf-16": (">a\nACGT\n".encode("utf-16"), BINARY),
    "unpacked bam": (b"BAM\1" + bytes(20), BINARY),
    "prose": (b"Dear all,\nplease find", PROSE),
    "bases": (b"ACGT\nACGT\n", PROSE),
    "table": (b"a\t1\t2\n", PROSE),
    "bzip2": (b"BZh91AY&SY", END_TOO_EARLY),
    "xz": (b"\xfd7zXZ\0\0", END_TOO_EARLY),
    "bzip2 of prose": (b"BZhello, world, and more", CORRUPT),
    "zip": (b"PK\3\4abcd", "compressed with zip; only gzip, bzip2, xz and zstd are understood"),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_faulty_files_are_refused(tmp_path, fault):
    content, message = FAULTY[fault]
    assert message_of(write(tmp_path, content)).startswith(message)


def test_line_of_foreign_text_is_given(tmp_path):
    with pytest.raises(InputError) as caught:
        read(write(tmp_path, b"\n\nhello\n"))
    assert caught.value.line == 3


def test_files_that_cannot_be_opened(tmp_path, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(13, "whatever", path)

    assert message_of(str(tmp_path / "missing")) == "no such file or directory"
    assert message_of(str(tmp_path)) == "is a directory"
    path = write(tmp_path, b">a\nA\n")
    monkeypatch.setattr("builtins.open", refuse)  # Root may open everything.
    assert message_of(path) == "permission denied"


def test_fault_of_the_device_is_reported():
    class Broken:
        def readinto(self, buffer):
            raise OSError(5, "whatever")

    with pytest.raises(InputError, match="reads: input/output error"):
        TextStream(Broken(), "reads").readinto(bytearray(10))


@pytest.mark.parametrize("packed", [False, True])
def test_pipes_are_read(tmp_path, packed):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    content = gzip.compress(MANY_READS) if packed else MANY_READS

    def feed():
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(content[:1])  # The first piece does not show the format.
            pipe.write(content[1:])

    feeder = threading.Thread(target=feed)
    feeder.start()
    with Input(path) as file:
        assert file.size is None and (file.format, text_of(file)) == (Format.FASTQ, MANY_READS)
        assert file.source.bytes_read == len(content)
    feeder.join()


def test_file_descriptors_are_read():
    read_end, write_end = os.pipe()
    os.write(write_end, b">a\nACGT\n")
    os.close(write_end)
    try:
        assert read(f"/dev/fd/{read_end}") == (Format.FASTA, b">a\nACGT\n")
    finally:
        os.close(read_end)


def test_standard_input_is_read_and_left_open(monkeypatch):
    stream = TextIOWrapper(BytesIO(gzip.compress(MANY_READS)))
    monkeypatch.setattr("sys.stdin", stream)
    assert read("-") == (Format.FASTQ, MANY_READS) and not stream.buffer.closed
    monkeypatch.setattr("sys.stdin", None)
    assert message_of("-") == "standard input is closed"


def test_source_begins_again_until_it_is_told_not_to():
    source = CountedInput(BytesIO(b"ACGTACGT"))
    assert source.read(3) == b"ACG"
    source.rewind()
    assert source.read(2) == b"AC"
    source.rewind()
    assert source.read(5) == b"ACG"  # What is kept comes first, the rest with the next call.
    source.commit()
    assert source.read() == b"TACGT" and source.bytes_read == 8
    with pytest.raises(ValueError, match="gone"):
        source.rewind()


@pytest.mark.parametrize("has_preadv", [True, False])
def test_a_part_of_a_file_is_read(has_preadv, tmp_path, monkeypatch):
    if not has_preadv:
        monkeypatch.delattr(os, "preadv", raising=False)
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    memory = np.full(6, ord("-"), dtype=np.uint8)
    with open(path, "rb", buffering=0) as file:
        assert read_into(file.fileno(), memory[:4].data, 3) == 4 and memory.tobytes() == b"3456--"
        assert read_into(file.fileno(), memory.data, 8) == 2 and memory.tobytes() == b"8956--"
        assert read_into(file.fileno(), memory.data, 10) == 0
        assert read_into(file.fileno(), memory[:0].data, 0) == 0
        assert memory.tobytes() == b"8956--" and file.tell() == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        read_into(-1, memory.data, 0)


BASES = "".join(random.Random(1).choices("ACGT", k=500))
COUNT = 24
READS = [(b"r%d" % n, BASES[7 * n : 7 * n + 30].encode()) for n in range(COUNT)]
FASTA = b"".join(b">%s\n%s\n" % read for read in READS)
FASTQ = b"".join(b"@%s\n%s\n+\n%s\n" % (name, bases, b"I" * 30) for name, bases in READS)
SAM = b"@SQ\tSN:c1\tLN:500\n" + b"".join(
    b"%s\t0\tc1\t%d\t60\t30M\t*\t0\t0\t%s\t*\n" % (name, 7 * number + 1, bases)
    for number, (name, bases) in enumerate(READS)
)
BARE_SAM = SAM[SAM.index(b"\n") + 1 :]
TEXTS = {"fa": FASTA, "fq": FASTQ, "sam": SAM, "bare.sam": BARE_SAM}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The reads as BAM of many blocks, and as CRAM of many containers of each version."""
    folder = tmp_path_factory.mktemp("containers")
    reference = folder / "reference.fa"
    reference.write_text(f">c1\n{BASES}\n")
    write_alignments(folder / "one.bam", "wb", reference, BASES, COUNT)
    packed = gzip.decompress((folder / "one.bam").read_bytes())
    (folder / "reads.bam").write_bytes(bgzf(packed, 400))
    for version in ("2.1", "3.0", "3.1"):
        options = [f"version={version}".encode(), b"seqs_per_slice=6"]
        path = folder / f"reads{version}.cram"
        write_alignments(path, "wc", reference, BASES, COUNT, format_options=options)
    return folder


def outcome_of(path):
    """Return ``whole`` if all reads come, or what the error says."""
    try:
        with query_reader([path], 1000, chunk_size=500) as reader:
            pairs = pairs_of(reader)
    except InputError as error:
        assert error.path == path and str(error).count("\n") == 0
        return error.message
    assert pairs == READS, "fewer reads, and no error"
    return "whole"


def outcomes(content, sizes, path):
    """Return what comes of a file that is cut to each of these sizes."""
    found = {}
    for size in sizes:
        path.write_bytes(content[:size])
        found[size] = outcome_of(str(path))
    return found


def piped_outcomes(content, sizes, monkeypatch):
    """Return what comes of standard input that ends too early."""
    found = {}
    for size in sizes:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content[:size])))
        found[size] = outcome_of("-")
    return found


def assert_all_cut(found):
    """Each is told as cut off, or as too short to be anything; none as whole."""
    for size, outcome in found.items():
        assert "truncated" in outcome or size < 30, (size, outcome)
        assert outcome != "whole", size


def assert_whole(content, path, monkeypatch):
    assert outcomes(content, [len(content)], path) == {len(content): "whole"}
    assert piped_outcomes(content, [len(content)], monkeypatch) == {len(content): "whole"}


@pytest.mark.parametrize("name", TEXTS)
def test_bgzf_text_is_told_wherever_it_is_cut(name, tmp_path, monkeypatch):
    content = bgzf(TEXTS[name], 200)
    borders = [*accumulate(map(len, bgzf_blocks(TEXTS[name], 200)))]
    path = tmp_path / f"{name}.gz"
    every = range(1, len(content))
    assert_all_cut(outcomes(content, every, path))
    # From a pipe, alignments go through a temporary file.
    some = [*every[:60:7], *borders, *every[-40::3]]
    assert_all_cut(piped_outcomes(content, some, monkeypatch))
    expected = "the compressed data lack bgzf's empty block at their end (truncated?"
    for outcome in outcomes(content, borders, path).values():
        assert outcome.startswith(expected)
    assert_whole(content, path, monkeypatch)


def test_bgzf_reference_is_told_wherever_it_is_cut(tmp_path):
    path = tmp_path / "reference.fa.gz"
    content = bgzf(FASTA, 200)
    path.write_bytes(content)
    assert decode(read_reference(str(path)).codes) == b"N".join(bases for _, bases in READS)
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(InputError):
            read_reference(str(path))


def test_plain_gzip_has_no_mark_but_its_own_trailer(tmp_path, monkeypatch):
    members = [gzip.compress(text) for text in (FASTA[:300], b"", FASTA[300:])]
    content = b"".join(members)
    path = tmp_path / "cut.gz"
    assert_whole(content, path, monkeypatch)
    # Between members nothing tells; the text is shorter, and sound.
    between = [*accumulate(map(len, members))]
    assert gzip.decompress(content[: between[0]]) == gzip.decompress(content[: between[1]])
    sizes = set(range(1, len(content))) - set(between)
    assert "whole" not in outcomes(content, sizes, path).values()


def test_bgzf_files_that_are_joined_have_empty_blocks_inside(tmp_path, monkeypatch):
    joined = bgzf(FASTQ[:400]) + BGZF_END + bgzf(FASTQ[400:])
    path = tmp_path / "joined.gz"
    assert_whole(joined, path, monkeypatch)
    sizes = [len(joined) - cut for cut in (len(BGZF_END), 1, 100)]
    assert "whole" not in outcomes(joined, sizes, path).values()
    # The mark must be the end, not only be near it.
    path.write_bytes(joined + gzip.compress(b"@x\nA\n+\nI\n"))
    assert outcome_of(str(path)) != "whole"


@pytest.mark.parametrize("name", ["reads.bam", "reads2.1.cram", "reads3.0.cram", "reads3.1.cram"])
def test_alignments_are_told_wherever_they_are_cut(
    name, folder, tmp_path, monkeypatch, capfd, samtools_binary
):
    content = (folder / name).read_bytes()
    if name.endswith(".cram"):
        borders = cram_borders(content)
    else:
        borders = [*accumulate(map(len, bgzf_blocks(gzip.decompress(content), 400)))]
    assert len(borders) >= 5
    near = {border + step for border in borders for step in (-1, 0, 1)} - {len(content) + 1}
    # The header of CRAM 2.1 has some 10,000 bytes of room.
    step = {"reads2.1.cram": 101, "reads3.1.cram": 5}.get(name, 1)
    sizes = sorted(near | {*range(1, len(content), step), len(content)})
    found = outcomes(content, sizes, tmp_path / name)
    assert found.pop(len(content)) == "whole"
    assert_all_cut(found)
    # A pipe shows only at its end that the mark is missing, a file before it is decompressed.
    piped = piped_outcomes(content, sorted(near | {len(content)}), monkeypatch)
    assert piped.pop(len(content)) == "whole"
    assert_all_cut(piped)
    assert capfd.readouterr() == ("", "")
    assert sound_for_samtools(samtools_binary, content, sizes, tmp_path) == [len(content)]


def sound_for_samtools(samtools, content, sizes, folder):
    """Return which sizes ``samtools quickcheck`` has nothing against."""
    paths = {str(folder / f"{size}.cut"): size for size in sizes}
    for path, size in paths.items():
        Path(path).write_bytes(content[:size])
    done = subprocess.run(
        [samtools, "quickcheck", "-v", *paths], capture_output=True, text=True, check=False
    )
    bad = set(done.stdout.split())
    return [size for path, size in paths.items() if path not in bad]


def test_cram_of_version_2_0_ends_without_a_mark(folder, tmp_path):
    content = (folder / "reads2.1.cram").read_bytes()
    older = content[:5] + b"\0" + content[6:]
    sizes = [len(content), cram_borders(content)[-2]]
    assert set(outcomes(older, sizes, tmp_path / "older.cram").values()) == {"whole"}


def test_marks_of_old_and_new_writers_of_cram_are_the_same(folder):
    """Some wrote the first reference number of the last container with other upper bits."""
    content = (folder / "reads3.0.cram").read_bytes()
    other = bytearray(content[-38:])
    other[8] |= 0xF0
    check_end(content[:18], bytes(other))
    other[9] ^= 1
    with pytest.raises(MissingEndError, match="CRAM data lack the empty container"):
        check_end(content[:18], bytes(other))
