"""Opening files: formats told from content, compression, and all that can be wrong."""

import gzip
import os
import random
import threading
from io import BytesIO, TextIOWrapper

import numpy as np
import pytest
from helpers.containers import bgzf

from mummergpu.errors import InputError
from mummergpu.input.bytes.file_part import read_into
from mummergpu.input.bytes.files import CountedInput, Input, TextStream
from mummergpu.input.bytes.formats import Compression, Format
from mummergpu.input.bytes.reading_threads import ReadingThreads

FASTQ = b"".join(b"@r%d\nACGTTGCA\n+\nIIIIIIII\n" % i for i in range(20_000))
BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


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
    plain = write(tmp_path, content, "reads.sam")
    assert read(plain, size) == (expected, content)
    packed = write(tmp_path, gzip.compress(content), "reads.fa")
    assert read(packed, size) == (expected, content)


def test_byte_order_mark_is_left_out(tmp_path):
    assert read(write(tmp_path, b"\xef\xbb\xbf>a\nA\n")) == (Format.FASTA, b">a\nA\n")


def test_alignments_are_told_from_their_first_bytes(tmp_path):
    bam = gzip.compress(b"BAM\1" + bytes(100))
    for content, expected in ((bam, Format.BAM), (b"CRAM\3\0rest", Format.CRAM)):
        with Input(write(tmp_path, content)) as file:
            assert file.format is expected
            assert file.format.is_alignment
            if expected is Format.CRAM:
                assert file.source.read() == content
            else:
                assert file.text.read() == gzip.decompress(content)
    assert not Format.FASTQ.is_alignment


def test_members_of_gzip_are_joined(tmp_path):
    third = len(FASTQ) // 3
    parts = [FASTQ[:third], b"", FASTQ[third : 2 * third], FASTQ[2 * third :]]
    packed = b"".join(map(gzip.compress, parts)) + BGZF_END
    for content in (packed, packed + bytes(512)):  # Tapes are padded with zeros.
        with Input(write(tmp_path, content)) as file:
            assert text_of(file, 1 << 16) == FASTQ
            assert file.compression is Compression.GZIP
            assert file.source.bytes_read == len(content) == file.size


@pytest.mark.parametrize("tail", [bytes(1), bytes(512), b"signature", FASTQ])
@pytest.mark.parametrize("threads", [1, 4])
def test_what_follows_compressed_data_is_told(tmp_path, tail, threads):
    for packed in (gzip.compress(FASTQ), bgzf(FASTQ)):
        told = []
        path = write(tmp_path, packed + tail)
        with ReadingThreads(threads) as pool, Input(path, pool) as file:
            assert text_of(file, 1 << 16) == FASTQ
            file.tell_of_ignored(told.append)
        (line,) = told
        count = "1 byte" if len(tail) == 1 else f"{len(tail):,} bytes"
        assert line.startswith(f"{path}: {count} after the end of the compressed data")


PACKED = gzip.compress(FASTQ)
LATE = len(PACKED) - 1000
FLIPPED = PACKED[:LATE] + bytes([PACKED[LATE] ^ 0x10]) + PACKED[LATE + 1 :]

FAULTY = {
    "cut early": (PACKED[:40], "the compressed data end too early (truncated?)"),
    "cut in header": (PACKED[:6], "the compressed data end too early (truncated?)"),
    "only the magic": (PACKED[:2], "the compressed data end too early (truncated?)"),
    "cut late": (PACKED[:-9], "the compressed data end too early (truncated?)"),
    "cut in checksum": (PACKED[:-5], "the compressed data end too early (truncated?)"),
    "cut second member": ((PACKED * 2)[:-9], "the compressed data end too early (truncated?)"),
    "flipped bit": (FLIPPED, "the compressed data are corrupt"),
    "checksum": (PACKED[:-8] + b"abcd" + PACKED[-4:], "the compressed data are corrupt"),
    "length": (PACKED[:-4] + b"abcd", "the compressed data are corrupt"),
    "method": (PACKED[:2] + b"\7" + PACKED[3:], "the compressed data are corrupt"),
    "empty file": (b"", "the file is empty"),
    "gz of nothing": (gzip.compress(b""), "the compressed file holds nothing"),
    "gz of blank": (gzip.compress(b"\n\n"), "the file holds blank lines only"),
    "blank lines": (b"\n \n\t\r\n", "the file holds blank lines only"),
    "endless blank": (b"\n" * (2 << 20), "the file holds blank lines only"),
    "zeros": (bytes(1000), "binary data, but not FASTA, FASTQ, SAM, BAM or CRAM"),
    "rubbish": (random.Random(1).randbytes(5000), "binary data, but not FASTA"),
    "utf-16": (">a\nACGT\n".encode("utf-16"), "binary data, but not FASTA"),
    "unpacked bam": (b"BAM\1" + bytes(20), "binary data, but not FASTA"),
    "prose": (b"Dear all,\nplease find", "text, but not FASTA, FASTQ, SAM, BAM or CRAM"),
    "bases": (b"ACGT\nACGT\n", "text, but not FASTA, FASTQ, SAM, BAM or CRAM"),
    "table": (b"a\t1\t2\n", "text, but not FASTA, FASTQ, SAM, BAM or CRAM"),
    "bzip2": (b"BZh91AY&SY", "the compressed data end too early (truncated?)"),
    "xz": (b"\xfd7zXZ\0\0", "the compressed data end too early (truncated?)"),
    "bzip2 of prose": (b"BZhello, world, and more", "the compressed data are corrupt"),
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


def test_files_that_cannot_be_opened(tmp_path):
    assert message_of(str(tmp_path / "missing")) == "no such file or directory"
    assert message_of(str(tmp_path)) == "is a directory"


def test_forbidden_file(tmp_path, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(13, "whatever", path)

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
    content = gzip.compress(FASTQ) if packed else FASTQ

    def feed():
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(content[:1])  # The first piece does not show the format.
            pipe.write(content[1:])

    feeder = threading.Thread(target=feed)
    feeder.start()
    with Input(path) as file:
        assert file.size is None
        assert (file.format, text_of(file)) == (Format.FASTQ, FASTQ)
        assert file.source.bytes_read == len(content)
    feeder.join()


def test_file_descriptors_are_read(tmp_path):
    read_end, write_end = os.pipe()
    os.write(write_end, b">a\nACGT\n")
    os.close(write_end)
    try:
        assert read(f"/dev/fd/{read_end}") == (Format.FASTA, b">a\nACGT\n")
    finally:
        os.close(read_end)


def test_standard_input_is_read_and_left_open(monkeypatch):
    stream = TextIOWrapper(BytesIO(gzip.compress(FASTQ)))
    monkeypatch.setattr("sys.stdin", stream)
    assert read("-") == (Format.FASTQ, FASTQ)
    assert not stream.buffer.closed
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
    assert source.read() == b"TACGT"
    assert source.bytes_read == 8
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
        assert read_into(file.fileno(), memory[:4].data, 3) == 4
        assert memory.tobytes() == b"3456--"
        assert read_into(file.fileno(), memory.data, 8) == 2
        assert memory.tobytes() == b"8956--"
        assert read_into(file.fileno(), memory.data, 10) == 0
        assert read_into(file.fileno(), memory[:0].data, 0) == 0
        assert memory.tobytes() == b"8956--" and file.tell() == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        read_into(-1, memory.data, 0)
