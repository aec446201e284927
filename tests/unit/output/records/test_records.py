"""Headers and records of SAM, BAM, PAF and CRAM: by definition, and as htslib and bwa have them."""

import gzip
import random
import re
import tempfile
from ast import literal_eval
from itertools import islice
from pathlib import Path

import numpy as np
import pysam
import pytest
from helpers.alignment_tools import GROUP, bwa_alignments, samtools
from helpers.alignments import aligned_reads, reference_of
from helpers.loops import each
from helpers.made_alignments import plain_lines, random_alignments, random_reference
from helpers.match_cases import MatchCase, match_cases, text_of
from helpers.match_records import far_reference, match_bam, match_sam
from helpers.tables import table
from helpers.text_cases import named_block, named_reference
from helpers.uncompiled import Uncompiled
from helpers.written_alignments import pass_through, rows_of, write_bam, write_sorted
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.errors import InputError, OptionError, OutputError
from mummergpu.output.alignments.read_rows import ReadRows
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.bytes.texts import PIECE_BYTES, query_columns
from mummergpu.output.options import (
    ReadGroup,
    SamOptions,
    SortOptions,
    read_group_of,
    usual_read_group,
)
from mummergpu.output.records.bam import PIECE_BYTES as BAM_PIECE_BYTES
from mummergpu.output.records.bam import AlignmentBam
from mummergpu.output.records.cram import CramSink, index_cram
from mummergpu.output.records.header import (
    BY_COORDINATE,
    UNSORTED,
    AlignmentHead,
    sam_header,
    unusual_names,
)
from mummergpu.output.records.paf import AlignmentPaf
from mummergpu.output.records.rows import check_reads
from mummergpu.output.records.sam import AlignmentSam
from mummergpu.output.records.sam_fields import cigar_texts, divergence
from mummergpu.output.sink import ByteSink, writer_of
from mummergpu.output.sorting.sorted_bam import SortedBamSink
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand
from mummergpu.version import __version__


def header_of(names, **told):
    return sam_header(named_reference(names, [9] * len(names)), AlignmentHead(**told)).text


def test_records_without_bases_are_left_out():
    case = MatchCase([(b"", b""), (b"chr1", b"ACGT"), (b"a,b", b""), (b"chr2", b"AC")], [])
    header = sam_header(case.reference, AlignmentHead(command="mummergpu 'a b' c\td"))
    assert header.text == (
        b"@HD\tVN:1.6\tSO:unsorted\tGO:query\n"
        b"@SQ\tSN:chr1\tLN:4\n@SQ\tSN:chr2\tLN:2\n"
        b"@PG\tID:mummergpu\tPN:mummergpu\tVN:%b\tCL:mummergpu 'a b' c d\n" % __version__.encode()
    )
    assert header.record_ids.tolist() == [-1, 0, -1, 1] and header.record_ids.dtype == np.int32


def test_what_a_header_may_tell():
    group = read_group_of("@RG\\tID:x\tSM:a b")
    assert group.name == "x"
    command = "mummergpu \udcff ä"
    checksums = [f"{number:032x}" for number in range(2)]
    told = {"read_group": group, "command": command, "order": BY_COORDINATE, "checksums": checksums}
    lines = header_of([b"a", b"b"], **told).splitlines()
    assert lines[0] == b"@HD\tVN:1.6\tSO:coordinate"
    assert [line.split(b"\t")[3] for line in lines[1:3]] == [b"M5:%032x" % n for n in range(2)]
    assert lines[3] == b"@RG\tID:x\tSM:a b"
    assert lines[4].endswith("\tCL:mummergpu ? ä".encode())
    assert b"CL:" not in header_of([b"r"])


@each("name", [b"", b"*", b"=r", b"a b", b"a\tb", b"a\x7f", b"a\x01", b"r\n", b"r\ns"])
def test_names_of_records_that_break_the_format_are_refused(name):
    with pytest.raises(InputError, match=r"r\.fa: SAM allows no such name"):
        header_of([name])


UNUSUAL = (b"A/duck/1/2015(H5N8)", b"aac(6')-Ib_1", b"a,b", b"a[1]", b'"q"', b"<x>", b"a\xc3\xa9")


@each("name", UNUSUAL)
def test_names_that_only_specifications_refuse_are_written_and_told(name):
    assert b"@SQ\tSN:" + name + b"\tLN:9\n" in header_of([b"chr1", name])
    reference = named_reference([b"chr1", name], [9, 9])
    assert name.decode(errors="backslashreplace") in unusual_names(reference)
    assert not unusual_names(named_reference([b"chr1", b"a:1|=*x"], [9, 9]))


def test_records_need_different_names():
    with pytest.raises(InputError, match=r"different names \(record 'a'\)"):
        header_of([b"a", b"b", b"a"])


def test_lengths_have_31_and_28_bits():
    longest = (1 << 31) - 1
    reference = named_reference([b"a"], [longest])
    assert b"LN:2147483647\n" in sam_header(reference, AlignmentHead()).text
    with pytest.raises(InputError, match=r"2,147,483,647 bases \(record 'a'\)"):
        sam_header(named_reference([b"a"], [longest + 1]), AlignmentHead())
    longest = (1 << 28) - 1
    check_reads(query_columns(named_block([b"a"], [longest])), "q.fa")
    with pytest.raises(InputError, match=r"268,435,455 bases \(record 'b'\)"):
        check_reads(query_columns(named_block([b"a", b"b"], [longest, longest + 1])), "q.fa")


@each(
    "name, message",
    [
        (b"n" * 255, "names of at most 254 bytes"),
        (b"@a", "no name that begins with '@' (record '@a')"),
        (b"@", "no name that begins with '@'"),
        ("ä".encode(), r"no byte 195 in a name (record 'ä')"),
        (b"\x7f", "no byte 127 in a name"),
    ],
)
def test_names_of_queries_that_break_the_format_are_refused(name, message):
    letters = bytes(range(33, 127))
    check_reads(query_columns(named_block([letters, b"", b"n" * 254], [1, 1, 1])), "q.fa")
    block = named_block([b"fine", b"", name, b"fine"], [1, 1, 1, 1])
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        check_reads(query_columns(block), "q.fa")
    assert caught.value.path == "q.fa"


@each("text, message", table(__file__, "read groups", literal_eval))
def test_other_lines_are_no_read_group(text, message):
    with pytest.raises(OptionError, match=re.escape(message)) as caught:
        read_group_of(text)
    assert caught.value.option == "read_group"


SAMPLES = """
lane1.fq.gz > lane1
in/lane1.R1.fastq.gz in/lane1.R2.fastq.gz > lane1
lane1_R1.fq > lane1
lane1_R2.fq.zst > lane1
lane1-R2.fq.bz2 > lane1
lane1_r1.fq > lane1
x_S1_L001_R1_001.fastq.gz x_S1_L001_R2_001.fastq.gz > x_S1_L001
x_S1_L001_R2_001.fastq > x_S1_L001
x.R1.bam > x
x_R1.fa > x
SRR2838702_1.fastq.gz SRR2838702_2.fastq.gz > SRR2838702
SRR2838702_1.fastq.gz > SRR2838702
SRR2838702_2.fq > SRR2838702
a_1.fa a_2.fa > a
a.1.fq a.2.fq > a
a.1.fq > a.1
a.1.fq b.2.fq > a.1
one/a_2.fa two/a_2.fa > a_2
a_1.fa > a_1
a_1.bam > a_1
a_3.fq > a_3
a_11.fq > a_11
a1.fq a2.fq > a1
aR1.fq > aR1
a_R1_01.fq > a_R1_01
_1.fq _2.fq > _1
R1.fq R2.fq > R1
1.fq 2.fq > 1
- x_2.fq > reads
"""
"""Files, and the sample; a single one that ends in 1 may be the first of many samples."""


@each("line", SAMPLES.strip().splitlines())
def test_the_sample_is_not_named_after_mates(line):
    paths, sample = line.split(" > ")
    tags = dict(tag.split(":") for tag in usual_read_group(paths.split()).line.split("\t")[1:])
    assert tags["SM"] == sample


def test_the_group_has_the_name_of_the_first_file():
    group = usual_read_group(["in/lane 1.R1.fq.gz", "in/lane 1.R2.fq.gz"])
    assert group.name == "lane_1.R1"
    assert group.line == "@RG\tID:lane_1.R1\tSM:lane_1\tPL:OTHER"


READS = ("spneumoniae_ERR1438863.R1.fastq.gz", "spneumoniae_ERR1438863.R2.fastq.gz")
PAIRS = 6000
CLIPS, READ, REFERENCE = (4, 5), (0, 1, 7, 8), (0, 2, 3, 7, 8)


def lines_of(made, case):
    text = b""
    for piece in made.format_block(case.reads, case.columns):
        text += piece.tobytes()
        made.take_back(piece)
    return text


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


GROUPS = [None, ReadGroup("@RG\tID:lane 1\tSM:x", "lane 1"), ReadGroup("@RG\tID:x", "x" * 300)]
OPTIONS = st.builds(
    SamOptions, st.sampled_from(GROUPS), st.sampled_from([None, 1, 2, 5]), st.booleans()
)
USUAL = SamOptions()


def bam_of_htslib(text, folder):
    """What htslib makes of SAM, without the compression."""
    source, target = folder / "x.sam", folder / "x.bam"
    source.write_bytes(text)
    with (
        pysam.AlignmentFile(str(source), "r") as alignments,
        pysam.AlignmentFile(str(target), "wbu", template=alignments) as copy,
    ):
        for alignment in alignments.fetch(until_eof=True):
            copy.write(alignment)
    return gzip.decompress(target.read_bytes())


def check_matches(case, folder, options=USUAL, piece_bytes=BAM_PIECE_BYTES, reference=None):
    """Compare the BAM of matches with that of htslib."""
    reference = reference or case.reference
    text = text_of(match_sam(reference, options), case)
    made = match_bam(reference, options, piece_bytes)
    assert text_of(made, case) == bam_of_htslib(text, folder)


@given(match_cases(), OPTIONS, st.integers(1, 2000))
def test_records_of_matches(tmp_path, case, options, piece_bytes):
    check_matches(case, tmp_path, options, piece_bytes)


@each("length", [*range(1, 70), 127, 128, 129, 1000])
@pytest.mark.parametrize("strand", list(Strand))
def test_bases_of_every_length_are_packed(length, strand, tmp_path):
    made = random.Random(length)
    bases = [bytes(made.choices(b"ACGTN", k=size)) for size in (3, length, 2)]
    rows = {strand: [[(0, (0, 0, 1))]] * 3}
    case = MatchCase([(b"r", b"ACGT" * 300)], [(b"q", one) for one in bases], rows)
    check_matches(case, tmp_path)


def test_numbers_of_every_size(tmp_path):
    """Tags of one, two and four bytes; CIGARs with long clips."""
    bases = bytes(random.Random(3).choices(b"ACGT", k=70_000))
    rows = [(0, (n % 60_000, n, 20 + n % 300)) for n in range(69_000)]
    rows.append((0, (1, 0, 69_990)))
    case = MatchCase([(b"r", bases)], [(b"q", bases)], {Strand.FORWARD: [rows]})
    check_matches(case, tmp_path)


def test_rows_without_bases_share_a_piece_however_long_their_query_is():
    """A genome has very many: a text with room for all its bases for each would fill the memory."""
    bases = b"ACGT" * 50_000
    rows = [(0, (n, n, 20 + (n == 0))) for n in range(1000)]
    case = MatchCase([(b"r", bases)], [(b"q", bases)], {Strand.FORWARD: [rows]})
    for make in (match_bam, match_sam):
        made = make(case.reference, SamOptions(), piece_bytes=1 << 16)
        sizes = [len(piece) for piece in made.format_block(case.block, case.columns)]
        # Those of the primary row, and of the thousand others.
        assert len(sizes) <= 10 and sum(sizes) > 1000 * 60


def test_bins_at_every_border(tmp_path):
    """Where each of the levels of bins ends, to the end of the longest record."""
    borders = [1 << level for level in range(14, 31)] + [3 << 14, 5 << 17, 7 << 20, 3 << 26]
    rows = [
        (0, (0, border + shift, length))
        for border in borders
        for shift in (-20_000, -20, -11, -10, -9, -1, 0, 1)
        for length in (1, 10, 15_000)
        if border + shift >= 0
    ]
    case = MatchCase([(b"r", b"A")], [(b"q", b"A" * 15_000)], {Strand.FORWARD: [rows]})
    check_matches(case, tmp_path, reference=far_reference((1 << 31) - 1))


def test_a_longer_record_or_query_is_refused():
    case = MatchCase([(b"r", b"A")], [(b"q" * 255, b"A")], {})
    with pytest.raises(InputError, match="2,147,483,647"):
        match_bam(far_reference(1 << 31), SamOptions())
    with pytest.raises(InputError, match="254 bytes"):
        text_of(match_bam(case.reference, SamOptions()), case)


def content(made, case):
    text = made.head()
    for piece in made.format_block(case.reads, case.columns):
        text += piece.tobytes()
        made.take_back(piece)
    return text


@given(st.integers(), st.integers(1, 40), st.booleans(), st.sampled_from([1, 999, BAM_PIECE_BYTES]))
def test_records_of_reads(tmp_path, seed, templates, with_group, piece_bytes):
    made = random.Random(seed)
    reference = random_reference(made)
    case = random_alignments(made, reference, templates)
    head, rows = AlignmentHead(GROUP if with_group else None, "test"), ReadRows(reference)
    expected = bam_of_htslib(content(AlignmentSam(reference, rows, head, "r.fq"), case), tmp_path)
    assert content(AlignmentBam(reference, rows, head, "r.fq", piece_bytes), case) == expected


def test_the_ends_of_records_are_told():
    made = random.Random(7)
    reference = random_reference(made)
    case = random_alignments(made, reference, 50)
    rows = 0
    bam = AlignmentBam(reference, ReadRows(reference), AlignmentHead(), "r.fq", 4000)
    for piece in bam.records(case.reads, case.columns):
        assert piece.first_row == rows
        rows += piece.ends.size
        begins = np.concatenate([[0], piece.ends[:-1]])
        sizes = [int(piece.text[at : at + 4].view("<u4")[0]) for at in begins]
        assert (begins + sizes + 4).tolist() == piece.ends.tolist()
        assert piece.ends[-1] == piece.text.size
    assert rows == case.columns.row_count
