"""Rows of reads as lines of SAM and PAF, by definition and as bwa writes them, and as CRAM."""

import gzip
import random
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from helpers.alignment_tools import GROUP, bwa_alignments, samtools
from helpers.alignments import aligned_reads, reference_of
from helpers.made_alignments import plain_lines, random_alignments, random_reference
from helpers.uncompiled import Uncompiled
from helpers.written_alignments import pass_through, rows_of, write_bam, write_sorted
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import OutputError
from mummergpu.output.alignments.read_rows import ReadRows
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.bytes.texts import PIECE_BYTES
from mummergpu.output.options import SortOptions
from mummergpu.output.records.bam import AlignmentBam
from mummergpu.output.records.cram import CramSink, index_cram
from mummergpu.output.records.header import BY_COORDINATE, UNSORTED, AlignmentHead
from mummergpu.output.records.paf import AlignmentPaf
from mummergpu.output.records.sam import AlignmentSam
from mummergpu.output.records.sam_fields import cigar_texts, divergence
from mummergpu.output.sink import ByteSink, writer_of
from mummergpu.output.sorting.sorted_bam import SortedBamSink
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats

READS = ("spneumoniae_ERR1438863.R1.fastq.gz", "spneumoniae_ERR1438863.R2.fastq.gz")
PAIRS = 6000
CLIPS, READ, REFERENCE = (4, 5), (0, 1, 7, 8), (0, 2, 3, 7, 8)


def lines_of(made, case):
    text = b""
    for piece in made.format_block(case.reads, case.columns):
        text += piece.tobytes()
        made.take_back(piece)
    return text


@settings(deadline=None)
@given(st.integers(), st.integers(1, 40), st.booleans(), st.sampled_from([1, 1500, PIECE_BYTES]))
def test_lines_are_those_of_the_specification(seed, templates, with_group, piece_bytes):
    made = random.Random(seed)
    reference = random_reference(made)
    case = random_alignments(made, reference, templates)
    head = AlignmentHead(GROUP if with_group else None)
    found = lines_of(AlignmentSam(reference, ReadRows(reference), head, "r.fq", piece_bytes), case)
    group = GROUP.name.encode() if with_group else None
    assert found.splitlines() == plain_lines(case, reference, group).splitlines()


@pytest.fixture(scope="module")
def bwa_case(shared_data, tmp_path_factory):
    """Real pairs as bwa maps them to two species, and as this package writes what bwa found."""
    folder = tmp_path_factory.mktemp("bwa")
    found = sorted((shared_data / "references").glob("streptococcus_*.fna.gz"))
    (folder / "ref.fa").write_bytes(b"".join(gzip.decompress(path.read_bytes()) for path in found))
    reads = [folder / name for name in ("1.fq", "2.fq")]
    for name, path in zip(READS, reads, strict=True):
        with gzip.open(shared_data / "reads" / name) as file:
            path.write_bytes(b"".join(islice(file, 4 * PAIRS)))
    group = GROUP.line.replace("\t", "\\t")
    (folder / "bwa.sam").write_bytes(bwa_alignments(folder / "ref.fa", "-R", group, *reads))
    reference, case = reference_of(folder / "ref.fa"), aligned_reads(folder / "bwa.sam")
    made = AlignmentSam(reference, ReadRows(reference), AlignmentHead(GROUP, "test"), "r.fq")
    (folder / "ours.sam").write_bytes(made.head() + lines_of(made, case))
    return folder


def fields_of(path):
    lines = [line.split("\t") for line in path.read_text().splitlines() if line[0] != "@"]
    return [(line[:11], {tag[:2]: tag[5:] for tag in line[11:]}) for line in lines]


def test_real_alignments_are_written_as_bwa_does(bwa_case):
    """Besides: bwa has no MQ and scores unmapped reads; it calls clips hard in MC of some rows."""
    expected, found = fields_of(bwa_case / "bwa.sam"), fields_of(bwa_case / "ours.sam")
    assert len(expected) == len(found) > 2 * PAIRS
    parts = 0
    for (bwa_fields, bwa_tags), (fields, tags) in zip(expected, found, strict=True):
        assert fields == bwa_fields
        bwa_tags.pop("XA", None)
        tags.pop("MQ", None)
        flag = int(fields[1])
        if flag & 4:
            del bwa_tags["AS"], bwa_tags["XS"]
        if flag & 0x800 and "MC" in bwa_tags:
            bwa_tags["MC"] = bwa_tags["MC"].replace("H", "S")
        assert tags == bwa_tags
        parts += "SA" in tags
    assert parts > 30


def plain_paf(columns, row, name, size):
    """The fields of a line but for those of the record, from the CIGAR."""
    begin, end = columns.cigar_offsets[row : row + 2].tolist()
    operations = [(one & 15, one >> 4) for one in columns.cigars[begin:end].tolist()]
    aligned = [(kind, length) for kind, length in operations if kind not in CLIPS]
    bases = sum(length for kind, length in aligned if kind in READ)
    before = 0
    for kind, length in operations:
        if kind not in CLIPS:
            break
        before += length
    flag, distance = int(columns.flags[row]), int(columns.edit_distances[row])
    start = size - before - bases if flag & 16 else before
    length = sum(length for _, length in aligned)
    position = int(columns.positions[row])
    span = sum(length for kind, length in aligned if kind in REFERENCE)
    return [
        *(name, b"%d" % size, b"%d" % start, b"%d" % (start + bases)),
        b"-" if flag & 16 else b"+",
        *(b"%d" % position, b"%d" % (position + span)),
        *(b"%d" % max(0, length - distance), b"%d" % length, b"%d" % columns.qualities[row]),
        *(b"NM:i:%d" % distance, b"AS:i:%d" % columns.scores[row]),
        b"tp:A:S" if flag & 256 else b"tp:A:P",
        b"cg:Z:" + b"".join(b"%d%c" % (size, b"MIDNSHP=X"[kind]) for kind, size in aligned),
    ]


def test_lines_of_paf_agree_with_cigars():
    made = random.Random(5)
    for round_ in range(20):
        reference = random_reference(made)
        case = random_alignments(made, reference, 60)
        columns, reads = case.columns, case.reads
        names, sizes = reads.name_offsets, np.diff(reads.as_written.offsets)
        piece_bytes = made.choice([1, 3000, 1 << 20])
        paf = AlignmentPaf(reference, ReadRows(reference), piece_bytes=piece_bytes)
        found = [line.split(b"\t") for line in lines_of(paf, case).splitlines()]
        expected = []
        for row in np.flatnonzero(columns.flags & 4 == 0).tolist():
            read, record = int(columns.reads[row]), int(columns.records[row])
            name = reads.names[names[read] : names[read + 1]].tobytes() or b"*"
            fields = plain_paf(columns, row, name, int(sizes[read]))
            own = reference.names[record], b"%d" % reference.record_lengths[record]
            expected.append([*fields[:5], *own, *fields[5:]])
        assert found == expected, round_


def fields_in_any_order(row):
    """CRAM puts the read group last."""
    fields = row.to_string().split("\t")
    return fields[:11] + sorted(fields[11:])


@pytest.mark.parametrize("by_coordinate", [False, True])
def test_cram_has_the_alignments_of_bam(tmp_path, by_coordinate):
    made = random.Random(9)
    reference = random_reference(made)
    case = random_alignments(made, reference, 200)
    path, stats = tmp_path / "x.cram", Stats()
    head = AlignmentHead(GROUP, order=BY_COORDINATE if by_coordinate else UNSORTED)
    records = AlignmentBam(reference, ReadRows(reference), head, "r.fq")

    def sink_of(emit):
        if by_coordinate:
            return SortedBamSink(records, reference, emit, stats, SortOptions())
        return ByteSink(records, emit, stats, BgzfCompressor())

    with OutputFile(str(path)) as output, OutputFile(f"{path}.crai") as index:
        emit = writer_of(output, stats)
        pass_through(CramSink(sink_of, emit, stats, index if by_coordinate else None), [case])
    samtools("quickcheck", path)
    if by_coordinate:
        write_sorted(tmp_path / "x.bam", reference, [case], SortOptions(), GROUP)
        ours = Path(f"{path}.crai").read_bytes()
        samtools("index", path)
        assert gzip.decompress(Path(f"{path}.crai").read_bytes()) == gzip.decompress(ours)
    else:
        write_bam(tmp_path / "x.bam", reference, [case], GROUP)
    found, expected = rows_of(path), rows_of(tmp_path / "x.bam")
    assert len(found) == case.columns.row_count
    assert [*map(fields_in_any_order, found)] == [*map(fields_in_any_order, expected)]


def test_a_missing_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with pytest.raises(OutputError, match="/nowhere"):
        CramSink(pytest.fail, lambda piece: None, Stats())


def test_what_htslib_cannot_index_is_an_error():
    with tempfile.TemporaryFile() as cram, tempfile.TemporaryFile() as index:
        cram.write(b"CRAM, but not really")
        with pytest.raises(OutputError, match="temporary data"):
            index_cram(cram, index)


@pytest.mark.parametrize(
    ("cigar", "edits", "parts"),
    [
        ([(100, 0)], 0, 0),
        ([(100, 0)], 2, 200),
        # Each gap is one column, and one difference.
        ([(50, 0), (3, 2), (50, 0)], 3, 99),
        ([(50, 0), (7, 1), (48, 0), (1, 2), (1, 0)], 10, 396),
        ([(5, 4), (60, 7), (40, 8), (9, 5)], 40, 4000),
        # A half is rounded up.
        ([(16, 0)], 1, 625),
        ([(32, 0)], 1, 313),
        ([(9, 4)], 0, 0),
    ],
)
def test_a_divergence_counts_each_gap_once(cigar, edits, parts):
    cigars = np.array([length << 4 | kind for length, kind in cigar], dtype=np.uint32)
    assert Uncompiled().function(divergence)(cigars, 0, cigars.size, edits) == parts


def test_operations_of_every_size_are_written():
    lengths = [1, 9, 10, 99, 100, 999, 1000, 1001, 9999, 10_000, (1 << 28) - 1]
    cigars = np.array([n << 4 | kind for n in lengths for kind in range(9)], dtype=np.uint32)
    found = cigar_texts(cigars, np.array([0, 0, cigars.size]))
    text = found.texts[: found.offsets[-1]].tobytes().decode()
    assert text == "*" + "".join(f"{n}{kind}" for n in lengths for kind in "MIDNSHP=X")
    assert found.offsets.tolist() == [0, 1, len(text)]
