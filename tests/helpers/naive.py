"""Slow and obvious readers, and what the fast ones give, in comparable form."""

from mummergpu.sequence.codes import decode

_LETTERS = bytes.maketrans(b"ACGTUacgtu", b"ACGTTACGTT")
_LETTERS = bytes(_LETTERS[byte] if byte in b"ACGTUacgtu" else ord("N") for byte in range(256))


def pairs_of(blocks):
    """Return the names and sequences of blocks."""
    pairs = []
    for block in blocks:
        assert block.codes.size == block.offsets[-1] and block.names.size == block.name_offsets[-1]
        for i in range(block.offsets.size - 1):
            name = block.names[block.name_offsets[i] : block.name_offsets[i + 1]].tobytes()
            pairs.append((name, decode(block.codes[block.offsets[i] : block.offsets[i + 1]])))
    return pairs


def reads_of(blocks):
    """Return the names, sequences and qualities of blocks."""
    reads = []
    for block in blocks:
        assert block.base_qualities.size == block.codes.size
        assert block.base_qualities.dtype == "uint8"
        for i, (name, sequence) in enumerate(pairs_of([block])):
            qualities = block.base_qualities[block.offsets[i] : block.offsets[i + 1]]
            reads.append((name, sequence, qualities.tobytes()))
    return reads


def fold(sequence):
    """Return the letters ``ACGTN`` of a sequence."""
    return sequence.translate(_LETTERS)


def parse_fasta(text):
    """Parse valid FASTA."""
    pairs = []
    for line in text.splitlines():
        if line.startswith(b">"):
            pairs.append((_cut(line[1:]), b""))
        elif pairs:
            name, sequence = pairs[-1]
            pairs[-1] = (name, sequence + fold(b"".join(line.split())))
    return pairs


def parse_fastq(text):
    """Parse valid FASTQ, wrapped or not."""
    return [(name, sequence) for name, sequence, _ in parse_fastq_qualities(text)]


def parse_fastq_qualities(text):
    """Parse valid FASTQ, wrapped or not, with the numbers of its qualities."""
    reads = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line:
            continue
        assert line.startswith(b"@")
        sequence = b""
        for part in lines:
            if part.startswith(b"+"):
                break
            sequence += part
        quality = b""
        while len(quality) < len(sequence):
            quality += next(lines)
        assert len(quality) == len(sequence)
        reads.append((_cut(line[1:]), fold(sequence), bytes(byte - 33 for byte in quality)))
    return reads


def _cut(header):
    end = next((i for i, byte in enumerate(header) if byte in b" \t\v\f\r\n"), len(header))
    return header[:end]
