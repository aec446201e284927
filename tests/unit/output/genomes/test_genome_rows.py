"""Lines of genome alignments: against plain formatters, and as samtools reads them."""

import random
import re
from itertools import groupby

import pysam
import pytest
from helpers.alignment_tools import GROUP, samtools
from helpers.alignments import COMPLEMENT
from helpers.genome_alignments import (
    DELETION,
    INSERTION,
    MATCH,
    GenomeCase,
    MadeAlignment,
    paf_lines,
    random_case,
)
from helpers.in_memory import named_records
from helpers.loops import each

from mummergpu.errors import InputError
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.genomes.delta import GenomeDelta
from mummergpu.output.genomes.genome_rows import GenomeRows
from mummergpu.output.genomes.sink import AlignedQueries
from mummergpu.output.records.bam import MOST_OPERATIONS, AlignmentBam
from mummergpu.output.records.header import AlignmentHead
from mummergpu.output.records.sam import AlignmentSam

COMMAND = "mummergpu align r.fa q.fa"


def plain_mismatches(case, row):
    """The value of MD."""
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
    """0, 256 or 2048 for each alignment; the later one scores more."""
    forward = [case.forward_range(row) for row in case.rows]
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


def bins_of(path):
    with pysam.AlignmentFile(str(path), "rb") as file:
        return [record.bin for record in file]


def rows_of(text):
    return [line for line in text.decode().splitlines() if line[0] != "@"]


@each("seed", range(60))
def test_rows_equal_those_of_a_plain_formatter(seed):
    case = random_case(random.Random(seed))
    expected = plain_rows(case)
    piece_bytes = (1, 3000)[seed % 2]
    assert rows_of(content_of(AlignmentSam, case, piece_bytes=piece_bytes)) == expected
    # They may leave out the bases, and the differences with them.
    found = rows_of(content_of(AlignmentSam, case, with_bases=False))
    fields = [line.split("\t") for line in expected]
    assert found == ["\t".join([*row[:9], "*", *row[10:12], *row[13:]]) for row in fields]


def test_many_parts_of_a_query_have_short_cigars_in_sa(monkeypatch):
    cases = (random_case(random.Random(seed)) for seed in range(100))
    case = next(case for case in cases if plain_roles(case).count(2048) > 2)
    monkeypatch.setattr("mummergpu.output.genomes.genome_rows.MAX_TAG_BYTES", 0)
    lines = [line.split("\t") for line in rows_of(content_of(AlignmentSam, case))]
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
    case.write_reference(folder / "r.fa")
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
    assert rows_of(text) == plain_rows(case)
    samtools("quickcheck", tmp_path / "x.bam")
    samtools("view", "-b", "--no-PG", "-o", tmp_path / "theirs.bam", tmp_path / "x.sam")
    assert bins_of(tmp_path / "x.bam") == bins_of(tmp_path / "theirs.bam")
    assert samtools("view", "-h", "--no-PG", tmp_path / "x.bam") == text
    case.write_reference(tmp_path / "r.fa")
    assert samtools("calmd", "--no-PG", tmp_path / "x.bam", tmp_path / "r.fa") == text


def test_names_that_sam_has_no_room_for():
    reference = named_records([(b"r", b"ACGTACGT")])
    row = MadeAlignment(0, 0, 0, 0, 0, [(MATCH, 8)])
    for kind in (AlignmentSam, AlignmentBam):
        case = GenomeCase(reference, [b"@ab"], [b"ACGTTCGT"], [row])
        with pytest.raises(InputError, match="begins with '@'"):
            content_of(kind, case, group=None)


def plain_changes(case, row):
    """The value of cs."""

    def kind_of(pair):
        kind, base, other = pair
        if kind != MATCH:
            return "+" if kind == INSERTION else "-"
        return ":" if base == other and base != "N" else "*"

    text = ""
    for mark, pairs in groupby(case.pairs(row), kind_of):
        found = list(pairs)
        if mark == ":":
            text += f":{len(found)}"
        elif mark == "*":
            text += "".join(f"*{base}{other}".lower() for _, base, other in found)
        else:
            text += mark + "".join(base + other for _, base, other in found).lower()
    return text


def plain_paf(case, row, score, quality):
    """The line of PAF of an alignment; none of these competes with another one."""
    pairs = list(case.pairs(row))
    length = len(case.texts[row.query])
    begin, end = case.forward_range(row)
    errors = sum(case.counts(row)[:2])
    cigar = "".join(f"{size}{'MID'[kind]}" for kind, size in row.operations)
    return "\t".join(
        [
            *(case.names[row.query].decode(), str(length), str(begin), str(end)),
            "+-"[row.strand],
            case.reference.names[row.record].decode(),
            str(int(case.reference.record_lengths[row.record])),
            *(str(row.reference_start), str(row.reference_end)),
            *(str(len(pairs) - errors), str(len(pairs)), str(quality)),
            *(f"NM:i:{errors}", f"AS:i:{score}", "tp:A:P", f"cg:Z:{cigar}"),
            f"cs:Z:{plain_changes(case, row)}",
        ]
    )


@each("seed", range(60))
def test_paf_equals_that_of_a_plain_formatter(seed):
    case = random_case(random.Random(seed))
    qualities = MappingQualities(case.reference).of(case.columns).tolist()
    expected = [
        plain_paf(case, row, score, qualities[score]) for score, row in enumerate(case.rows)
    ]
    assert paf_lines(case.reference, case.queries, with_changes=True) == expected
    without = [line[: line.index("\tcs:Z:")] for line in expected]
    assert paf_lines(case.reference, case.queries) == without


def test_the_random_alignments_have_every_kind_of_difference():
    cases = [random_case(random.Random(seed)) for seed in range(60)]
    text = "".join(plain_changes(case, row) for case in cases for row in case.rows)
    for pattern in r"\*[acgt][acgt] \*n[acgt] \*[acgt]n \+[acgt]{5}- -[acgt]{5}\+".split():
        assert re.search(pattern, text), pattern
    assert {row.strand for case in cases for row in case.rows} == {0, 1}
    kinds = {kind for case in cases for row in case.rows for kind, _ in row.operations}
    assert kinds == {MATCH, INSERTION, DELETION}


def test_queries_without_bases_have_no_changes():
    case = random_case(random.Random(0))
    queries = AlignedQueries.of_block(case.block, case.columns)
    with pytest.raises(ValueError, match="bases"):
        paf_lines(case.reference, queries, with_changes=True)


def plain_delta(case):
    """The text below the head: a header for each two sequences, and the distances of all gaps."""
    lines, last = [], None
    for row in case.rows:
        name, size = case.names[row.query].decode(), len(case.texts[row.query])
        record = case.reference.names[row.record].decode()
        if (row.query, row.record) != last:
            length = case.reference.record_lengths[row.record]
            lines.append(f">{record} {name} {length} {size}")
            last = row.query, row.record
        begin, end = case.forward_range(row)
        first, stop = (end, begin + 1) if row.strand else (begin + 1, end)
        errors = sum(case.counts(row)[:2])
        places = f"{row.reference_start + 1} {row.reference_end} {first} {stop}"
        lines.append(f"{places} {errors} {errors} 0")
        at = 0
        for number, (kind, _, _) in enumerate(case.pairs(row), 1):
            if kind != MATCH:
                lines.append(str((number - at) * (1 if kind == DELETION else -1)))
                at = number
        lines.append("0")
    return lines


@each("seed", range(60))
def test_a_delta_equals_that_of_a_plain_formatter(seed):
    case = random_case(random.Random(seed))
    made = GenomeDelta(case.reference, "q.fa")
    assert made.head().split(b"\n")[1:] == [b"NUCMER", b""]
    text = b"".join(made.format_block(case.queries, case.queries.alignments))
    assert text.decode().splitlines() == plain_delta(case)
