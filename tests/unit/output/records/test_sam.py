"""Lines of SAM for alignments of reads: as the specification has them, and as bwa writes them."""

import random

import numpy as np
import pytest
from helpers.alignment_tools import GROUP, bwa_alignments, picard_errors, samtools
from helpers.alignments import aligned_reads, made_reads, reference_of
from helpers.made_alignments import plain_lines, random_alignments, random_reference
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.output.alignments.read_rows import ReadRows
from mummergpu.output.bytes.texts import PIECE_BYTES
from mummergpu.output.records.header import BY_COORDINATE, AlignmentHead
from mummergpu.output.records.sam import AlignmentSam

READS = ("spneumoniae_ERR1438863.R1.fastq.gz", "spneumoniae_ERR1438863.R2.fastq.gz")


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


def test_the_header_tells_order_checksums_and_one_program():
    reference = random_reference(random.Random(1), b"ACGT")
    checksums = [f"{number:032x}" for number in range(len(reference.names))]
    head = AlignmentHead(GROUP, "mummergpu map\tx", BY_COORDINATE, checksums)
    lines = AlignmentSam(reference, ReadRows(reference), head, "r.fq").head().decode().splitlines()
    assert lines[0] == "@HD\tVN:1.6\tSO:coordinate"
    assert [line.rsplit("\t", 1)[1] for line in lines if line.startswith("@SQ")] == [
        f"M5:{checksum}" for checksum in checksums
    ]
    assert lines[-2] == GROUP.line
    assert lines[-1].startswith("@PG\tID:mummergpu") and lines[-1].endswith("CL:mummergpu map x")


def test_a_name_that_sam_does_not_allow_is_refused():
    made = random.Random(2)
    reference = random_reference(made)
    case = random_alignments(made, reference, 1)
    reads = made_reads([(b"@ab", b"ACGT", None)] * case.reads.offsets.size)
    with pytest.raises(InputError, match="'@'"):
        list(
            AlignmentSam(reference, ReadRows(reference), AlignmentHead(), "r.fq").format_block(
                reads, case.columns
            )
        )


@pytest.fixture(scope="module")
def bwa_case(shared_data, tmp_path_factory):
    """Real pairs with a reference of two species, as bwa maps them."""
    import gzip

    folder = tmp_path_factory.mktemp("bwa")
    found = sorted((shared_data / "references").glob("streptococcus_*.fna.gz"))
    text = b"".join(gzip.decompress(path.read_bytes()) for path in found)
    (folder / "ref.fa").write_bytes(text)
    reads = [shared_data / "reads" / name for name in READS]
    group = GROUP.line.replace("\t", "\\t")
    (folder / "bwa.sam").write_bytes(bwa_alignments(folder / "ref.fa", "-R", group, *reads))
    return folder


@pytest.fixture(scope="module")
def written(bwa_case):
    """The alignments of bwa, as this package writes them."""
    reference = reference_of(bwa_case / "ref.fa")
    case = aligned_reads(bwa_case / "bwa.sam")
    made = AlignmentSam(reference, ReadRows(reference), AlignmentHead(GROUP, "test"), "r.fq")
    (bwa_case / "ours.sam").write_bytes(made.head() + lines_of(made, case))
    return reference, case, bwa_case / "ours.sam"


def fields_of(path):
    lines = [line.split("\t") for line in path.read_text().splitlines() if line[0] != "@"]
    return [(line[:11], {tag[:2]: tag[5:] for tag in line[11:]}) for line in lines]


def test_real_alignments_are_written_as_bwa_does(bwa_case, written):
    """Besides: bwa has no MQ and scores unmapped reads; it calls clips hard in MC of some rows."""
    expected, found = fields_of(bwa_case / "bwa.sam"), fields_of(written[2])
    assert len(expected) == len(found) > 50_000
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
    assert parts > 100


def test_samtools_changes_nothing(written):
    """Besides the order of the rows of a read, and MC of a mate without an alignment.

    The lengths of templates are those of bwa here, and others if mates do not face each other.
    """
    path = written[2]
    samtools("quickcheck", path)
    changed = path.with_name("changed.sam")
    changed.write_bytes(samtools("calmd", path, path.with_name("ref.fa")))
    expected = fields_of(path)
    assert fields_of(changed) == expected
    changed.write_bytes(samtools("fixmate", "-O", "sam", path, "-"))
    fixed = fields_of(changed)
    for fields, tags in expected + fixed:
        del fields[8]
        if tags.get("MC") == "*":
            del tags["MC"]

    def order(row):
        return row[0]

    assert sorted(fixed, key=order) == sorted(expected, key=order)


def test_picard_finds_no_error(written):
    assert picard_errors(written[2]) == []


def test_threads_share_a_format(written):
    """Blocks of any size have the same lines, from any thread."""
    from concurrent.futures import ThreadPoolExecutor

    reference, case, path = written
    made = AlignmentSam(
        reference, ReadRows(reference), AlignmentHead(GROUP, "test"), "r.fq", 1 << 16
    )
    borders = [*np.arange(0, 50_000, 998).tolist(), 50_000]
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda part: lines_of(made, part), case.parts(borders)))
    assert made.head() + b"".join(texts) == path.read_bytes()
