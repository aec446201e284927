"""SAM and BAM of genome alignments: against a plain formatter, and as samtools reads them."""

import random
import re
from itertools import groupby

import pysam
import pytest
from helpers.alignment_tools import GROUP, NO_QUALITIES, picard_errors, samtools
from helpers.alignments import COMPLEMENT, bases_of
from helpers.genome_alignments import (
    DELETION,
    INSERTION,
    MATCH,
    GenomeCase,
    MadeAlignment,
    random_case,
)
from helpers.in_memory import named_records
from helpers.loops import each

from mummergpu.errors import InputError
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.genomes.genome_rows import GenomeRows
from mummergpu.output.records.bam import MOST_OPERATIONS, AlignmentBam
from mummergpu.output.records.header import AlignmentHead
from mummergpu.output.records.sam import AlignmentSam

COMMAND = "mummergpu align r.fa q.fa"


def plain_mismatches(case, row):
    """The value of MD, the slow way."""
    text, run = "", 0
    pairs = [pair for pair in case.pairs(row) if pair[0] != INSERTION]
    for kind, group in groupby(pairs, lambda pair: pair[0]):
        found = list(group)
        if kind == DELETION:
            text += f"{run}^" + "".join(base for _, base, _ in found)
            run = 0
            continue
        for _, base, other in found:
            if base == other != "N":
                run += 1
            else:
                text += f"{run}{base}"
                run = 0
    return f"{text}{run}"


def plain_roles(case):
    """0, 256 or 2048 for each alignment, the slow way; the later one scores more."""
    forward = [
        (len(case.texts[row.query]) - row.query_end, len(case.texts[row.query]) - row.query_start)
        if row.strand
        else (row.query_start, row.query_end)
        for row in case.rows
    ]
    roles = [256] * len(case.rows)
    kept = []
    for number in range(len(case.rows))[::-1]:
        begin, end = forward[number]
        own = [other for other in kept if case.rows[other].query == case.rows[number].query]
        overlaps = (
            (min(end, forward[other][1]) - max(begin, forward[other][0]), forward[other])
            for other in own
        )
        if not any(2 * bases >= min(end - begin, other[1] - other[0]) for bases, other in overlaps):
            roles[number] = 2048 if own else 0
            kept.append(number)
    return roles


def plain_cigar(case, row, clip):
    clips = row.query_start, len(case.texts[row.query]) - row.query_end
    before, after = (f"{size}{clip}" if size else "" for size in clips)
    return before + "".join(f"{size}{'MID'[kind]}" for kind, size in row.operations) + after


def plain_rows(case):
    """The rows of all alignments, the slow way."""
    roles, lines = plain_roles(case), []
    qualities = MappingQualities(case.reference).of(case.columns).tolist()
    for score, row in enumerate(case.rows):
        bases = case.texts[row.query]
        if row.strand:
            bases = bases.translate(COMPLEMENT)[::-1]
        is_primary = roles[score] == 0
        errors = sum(case.counts(row)[:2])
        others = [
            other
            for other, role in enumerate(roles)
            if role != 256 and other != score and case.rows[other].query == row.query
        ]
        texts = [
            f"{case.reference.names[other.record].decode()},{other.reference_start + 1},"
            f"{'+-'[other.strand]},{plain_cigar(case, other, 'S')},{qualities[number]},"
            f"{sum(case.counts(other)[:2])};"
            for number in sorted(others, key=lambda number: roles[number])
            for other in [case.rows[number]]
        ]
        fields = [
            case.names[row.query].decode() or "*",
            str(16 * row.strand + roles[score]),
            case.reference.names[row.record].decode(),
            str(row.reference_start + 1),
            str(qualities[score]),
            plain_cigar(case, row, "HS"[is_primary]),
            *("*", "0", "0"),
            (bases if is_primary else case.aligned_text(row)).decode(),
            "*",
            f"NM:i:{errors}",
            f"MD:Z:{plain_mismatches(case, row)}",
            f"AS:i:{score}",
            f"RG:Z:{GROUP.name}",
        ]
        if texts and roles[score] != 256:
            fields.append("SA:Z:" + "".join(texts))
        lines.append("\t".join(fields))
    return lines


def content_of(kind, case, with_bases=True, group=GROUP, piece_bytes=1 << 20):
    source = GenomeRows(case.reference, with_bases=with_bases)
    made = kind(case.reference, source, AlignmentHead(group, COMMAND), "q.fa", piece_bytes)
    pieces = made.format_block(case.queries, case.queries.alignments)
    return b"".join([made.head(), *(piece.tobytes() for piece in pieces), *made.tail()])


def write_bam(path, case):
    compressor = BgzfCompressor()
    content = content_of(AlignmentBam, case)
    path.write_bytes(compressor.compress(content) + compressor.end())


def write_reference(path, case):
    names = [name.decode() for name in case.reference.names]
    path.write_text(
        "".join(
            f">{name}\n{bases_of(case.reference, number).decode()}\n"
            for number, name in enumerate(names)
        )
    )


def bins_of(path):
    with pysam.AlignmentFile(str(path), "rb") as file:
        return [record.bin for record in file]


@each("seed", range(60))
def test_rows_equal_those_of_a_plain_formatter(seed):
    case = random_case(random.Random(seed))
    text = content_of(AlignmentSam, case, piece_bytes=(1, 3000)[seed % 2]).decode()
    assert [line for line in text.splitlines() if line[0] != "@"] == plain_rows(case)


def test_many_parts_of_a_query_have_short_cigars_in_sa(monkeypatch):
    cases = (random_case(random.Random(seed)) for seed in range(100))
    case = next(case for case in cases if plain_roles(case).count(2048) > 2)
    monkeypatch.setattr("mummergpu.output.genomes.genome_rows.MAX_TAG_BYTES", 0)
    text = content_of(AlignmentSam, case).decode()
    lines = [line.split("\t") for line in text.splitlines() if line[0] != "@"]
    parts = {(line[0], line[2], line[3], "+-"[int(line[1]) >> 4 & 1]): line[5] for line in lines}
    for line in lines:
        for other in "".join(line[15:]).removeprefix("SA:Z:").split(";")[:-1]:
            name, position, strand, cigar, _, _ = other.split(",")
            whole = parts[line[0], name, position, strand]
            assert re.fullmatch(r"(\d+S)?\d+M(\d+[ID])?(\d+S)?", cigar)
            # They take the same bases of the query and of the reference, and clip the same ones.
            for kinds in ("MI", "MD", "SH"):
                counts = [
                    sum(int(size) for size, kind in re.findall(r"(\d+)(.)", one) if kind in kinds)
                    for one in (cigar, whole)
                ]
                assert counts[0] == counts[1]


@each("seed", range(10))
def test_rows_may_leave_out_the_bases(seed):
    case = random_case(random.Random(seed))
    text = content_of(AlignmentSam, case, with_bases=False).decode()
    found = [line for line in text.splitlines() if line[0] != "@"]
    expected = []
    for line in plain_rows(case):
        fields = line.split("\t")
        expected.append("\t".join([*fields[:9], "*", *fields[10:12], *fields[13:]]))
    assert found == expected


@each("seed", range(25))
def test_samtools_reads_the_rows_of_sam_from_bam(seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bam")
    case = random_case(random.Random(seed))
    text = content_of(AlignmentSam, case)
    write_bam(folder / "x.bam", case)
    (folder / "x.sam").write_bytes(text)
    assert samtools("view", "-h", "--no-PG", folder / "x.bam") == text
    samtools("view", "-b", "--no-PG", "-o", folder / "theirs.bam", folder / "x.sam")
    assert bins_of(folder / "x.bam") == bins_of(folder / "theirs.bam")
    samtools("sort", "--no-PG", "-o", folder / "sorted.bam", folder / "x.bam")
    samtools("index", folder / "sorted.bam")
    write_reference(folder / "r.fa", case)
    changed = samtools("calmd", "--no-PG", folder / "x.bam", folder / "r.fa")
    assert changed == text
    for row in case.rows:
        name = case.reference.names[row.record].decode()
        place = f"{name}:{row.reference_start + 1}-{row.reference_start + 1}"
        assert int(samtools("view", "-c", folder / "sorted.bam", place)) >= 1


def long_case(pairs):
    """A query whose alignment has two operations for each of so many pairs, and one more; twice."""
    made = random.Random(pairs)
    reference, query = b"", b"GG"
    operations = []
    for number in range(pairs):
        kept = bytes(made.choices(b"ACGT", k=3))
        gap = made.choice(b"ACGT").to_bytes()
        reference += kept + (gap if number % 2 else b"")
        query += kept + (b"" if number % 2 else gap)
        operations += [(MATCH, 3), (DELETION if number % 2 else INSERTION, 1)]
    reference, query = reference + b"ACGT", query + b"ACGT"
    operations.append((MATCH, 4))
    rows = [
        MadeAlignment(0, 0, 0, 2, 0, operations),
        # All but the last ones: a secondary alignment, with as many operations and a clip.
        MadeAlignment(0, 0, 1, 2, 0, [*operations[:-1], (MATCH, 3)]),
    ]
    both = named_records([(b"a", reference), (b"b", reference)])
    return GenomeCase(both, [b"long"], [query], rows)


@pytest.mark.parametrize("pairs", [(MOST_OPERATIONS - 1) // 2 - 1, 40_000])
def test_alignments_of_many_operations(pairs, tmp_path):
    case = long_case(pairs)
    text = content_of(AlignmentSam, case)
    write_bam(tmp_path / "x.bam", case)
    (tmp_path / "x.sam").write_bytes(text)
    assert [line for line in text.decode().splitlines() if line[0] != "@"] == plain_rows(case)
    samtools("quickcheck", tmp_path / "x.bam")
    samtools("view", "-b", "--no-PG", "-o", tmp_path / "theirs.bam", tmp_path / "x.sam")
    assert bins_of(tmp_path / "x.bam") == bins_of(tmp_path / "theirs.bam")
    assert samtools("view", "-h", "--no-PG", tmp_path / "x.bam") == text
    write_reference(tmp_path / "r.fa", case)
    assert samtools("calmd", "--no-PG", tmp_path / "x.bam", tmp_path / "r.fa") == text


def test_picard_finds_no_error(tmp_path):
    case = next(
        case
        for seed in range(100)
        if len((case := random_case(random.Random(seed), b"ACGT")).rows) > 6
    )
    write_reference(tmp_path / "r.fa", case)
    (tmp_path / "x.sam").write_bytes(content_of(AlignmentSam, case))
    write_bam(tmp_path / "x.bam", case)
    for name in ("x.sam", "x.bam"):
        assert picard_errors(tmp_path / name, tmp_path / "r.fa", *NO_QUALITIES) == []


def test_names_that_sam_has_no_room_for():
    reference = named_records([(b"r", b"ACGTACGT")])
    row = MadeAlignment(0, 0, 0, 0, 0, [(MATCH, 8)])
    for kind in (AlignmentSam, AlignmentBam):
        case = GenomeCase(reference, [b"@ab"], [b"ACGTTCGT"], [row])
        with pytest.raises(InputError, match="begins with '@'"):
            content_of(kind, case, group=None)
