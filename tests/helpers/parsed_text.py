"""Text of FASTA or FASTQ in memory, and the records that are read from it."""

from io import BytesIO

from mummergpu.input.bytes.file_part import FilePart
from mummergpu.input.records.record_reader import RecordReader


def reader_of(text, is_fastq, options):
    """Return what reads the records of a text; errors name the file `reads`."""
    return RecordReader(FilePart("reads", BytesIO(text)), is_fastq, options)
