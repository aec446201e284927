"""Small containers of many blocks, and where their blocks end."""

import struct
import zlib

import pysam

from mummergpu.input.bytes.formats import BGZF_END

CRAM_FILE_DEFINITION = 26


def bgzf_blocks(data, block_size):
    """Return the blocks of `data` as bgzf, without the empty one at the end."""
    blocks = []
    for begin in range(0, len(data), block_size):
        piece = data[begin : begin + block_size]
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        packed = packer.compress(piece) + packer.flush()
        head = b"\x1f\x8b\x08\4\0\0\0\0\0\xff\6\0BC\2\0" + struct.pack("<H", len(packed) + 25)
        blocks.append(head + packed + struct.pack("<II", zlib.crc32(piece), len(piece)))
    return blocks


def bgzf(data, block_size=100):
    """Return `data` as bgzf."""
    return b"".join(bgzf_blocks(data, block_size)) + BGZF_END


def cram_borders(content):
    """Return where each container of CRAM ends, the header's first and the empty one last."""
    checksum = 4 if content[4] >= 3 else 0
    at = CRAM_FILE_DEFINITION
    borders = []
    while at < len(content):
        (length,) = struct.unpack_from("<i", content, at)
        at += 4
        value = 0
        for _ in range(8):  # The last of these says how many landmarks follow.
            at, value = _number(content, at)
        for _ in range(value):
            at, _ = _number(content, at)
        at += checksum
        if not borders:  # Writers of CRAM 2 get the length of the header's container wrong.
            place, _ = _number(content, at + 2)
            place, size = _number(content, place)
            place, _ = _number(content, place)
            length = max(length, place + size + checksum - at)
        at += length
        borders.append(at)
    assert borders[-1] == len(content)
    return borders


def _number(content, at):
    """Return where a number of one to five bytes ends, and what it is if they are at most two."""
    first = content[at]
    more = next((bits for bits in range(4) if not first & (0x80 >> bits)), 4)
    return at + 1 + more, first if more == 0 else (first & 0x7F) << 8 | content[at + 1]


def write_alignments(path, mode, reference, bases, count, **options):
    """Write some reads of a reference of one record, as BAM or CRAM."""
    header = pysam.AlignmentHeader.from_dict(
        {"HD": {"VN": "1.6"}, "SQ": [{"SN": "c1", "LN": len(bases)}]}
    )
    with pysam.AlignmentFile(
        str(path),
        mode,
        header=header,
        reference_filename=str(reference),
        **options,
    ) as file:
        for number in range(count):
            record = pysam.AlignedSegment(header)
            record.query_name = f"r{number}"
            record.flag = 0
            begin = 7 * number
            record.query_sequence = bases[begin : begin + 30]
            record.reference_id = 0
            record.reference_start = begin
            record.cigarstring = "30M"
            file.write(record)
