"""Lines and rows of genome alignments: plain formatters, samtools, and the query made of a VCF."""

import random
import re
from dataclasses import replace
from itertools import groupby

import pysam
import pytest
from helpers.alignment_tools import GROUP, output_of, samtools
from helpers.alignments import COMPLEMENT, bases_of
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
from helpers.requirements import program_of

from mummergpu.errors import InputError
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.genomes.delta import GenomeDelta
from mummergpu.output.genomes.genome_rows import GenomeRows
from mummergpu.output.genomes.sink import AlignedQueries
from mummergpu.output.genomes.vcf import GenomeVcf
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
        names = [name.decode() for name in case.reference.names]
        texts = []
        for number in sorted(range(len(roles)), key=roles.__getitem__):
            other = case.rows[number]
            if roles[number] != 256 and number != score and other.query == row.query:
                place = f"{names[other.record]},{other.reference_start + 1},{'+-'[other.strand]}"
                cigar, edits = plain_cigar(case, other, "S"), sum(case.counts(other)[:2])
                texts.append(f"{place},{cigar},{qualities[number]},{edits};")
        fields = [
            *(case.names[row.query].decode() or "*", str(16 * row.strand + roles[score])),
            *(names[row.record], str(row.reference_start + 1), str(qualities[score])),
            *(plain_cigar(case, row, "HS"[is_primary]), "*", "0", "0"),
            *((bases if is_primary else case.aligned_text(row)).decode(), "*"),
            *(f"NM:i:{errors}", f"MD:Z:{plain_mismatches(case, row)}", f"AS:i:{score}"),
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
                sizes = [re.findall(rf"(\d+)[{kinds}]", one) for one in (cigar, whole)]
                assert sum(map(int, sizes[0])) == sum(map(int, sizes[1]))


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
        kept, gap = bytes(made.choices(b"ACGT", k=3)), bytes(made.choices(b"ACGT"))
        reference += kept + (gap if number % 2 else b"")
        query += kept + (b"" if number % 2 else gap)
        operations += [(MATCH, 3), (DELETION if number % 2 else INSERTION, 1)]
    reference, query = reference + b"ACGT", query + b"ACGT"
    # The other has all but the last ones: secondary, with as many operations and a clip.
    rows = [
        MadeAlignment(0, 0, record, 2, 0, [*operations, (MATCH, last)])
        for record, last in ((0, 4), (1, 3))
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
    begin, end = case.forward_range(row)
    errors, columns = sum(case.counts(row)[:2]), len(list(case.pairs(row)))
    cigar = "".join(f"{size}{'MID'[kind]}" for kind, size in row.operations)
    fields = [
        *(case.names[row.query].decode(), len(case.texts[row.query]), begin, end),
        *("+-"[row.strand], case.reference.names[row.record].decode()),
        *(case.reference.record_lengths[row.record], row.reference_start, row.reference_end),
        *(columns - errors, columns, quality, f"NM:i:{errors}", f"AS:i:{score}", "tp:A:P"),
        *(f"cg:Z:{cigar}", f"cs:Z:{plain_changes(case, row)}"),
    ]
    return "\t".join(map(str, fields))


@each("seed", range(60))
def test_paf_equals_that_of_a_plain_formatter(seed):
    case = random_case(random.Random(seed))
    qualities = MappingQualities(case.reference).of(case.columns).tolist()
    scored = zip(case.rows, qualities, strict=True)
    expected = [plain_paf(case, row, n, quality) for n, (row, quality) in enumerate(scored)]
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


BASES = b"ACGT"
FEW_BASES = b"AC"
"""So few that gaps have many places."""


def vcf_of(case):
    made = GenomeVcf(case.reference, ("folder/sample 1.fa.gz",))
    pieces = [made.head(), *made.format_block(case.queries, case.queries.alignments), *made.tail()]
    return b"".join(pieces).decode()


def vcf_rows(text):
    return [line.split("\t") for line in text.splitlines() if line[0] != "#"]


def changed(bases, rows):
    """A record in which each REF is replaced by its ALT."""
    events = []
    for _, position, _, before, after, *_ in rows:
        at = int(position) - 1
        assert bases[at : at + len(before)] == before and before != after
        if len(before) == 1 < len(after) or len(after) == 1 < len(before):
            # The base before is not part of the difference, and may have a row of its own.
            if before[0] == after[0]:
                at, before, after = at + 1, before[1:], after[1:]
            elif before[-1] == after[-1]:
                before, after = before[:-1], after[:-1]
        events.append((at, at + len(before), after))
    made, end = "", 0
    for begin, stop, after in sorted(events):
        assert begin >= end, "differences overlap"
        made += bases[end:begin] + after
        end = stop
    return made + bases[end:]


def rows_alone(case, row):
    return vcf_rows(vcf_of(replace(case, rows=[row])))


@each("seed, letters", [(seed, letters) for seed in range(60) for letters in (BASES, FEW_BASES)])
def test_the_rows_of_an_alignment_make_the_query_of_the_reference(seed, letters):
    case = random_case(random.Random(seed), letters)
    for row in case.rows:
        bases = bases_of(case.reference, row.record).decode()
        expected = bases[: row.reference_start] + case.aligned_text(row).decode()
        expected += bases[row.reference_end :]
        assert changed(bases, rows_alone(case, row)) == expected


@each("seed", range(60))
def test_rows_are_those_of_all_alignments_once_and_sorted(seed):
    case = random_case(random.Random(seed), FEW_BASES)
    rows = vcf_rows(vcf_of(case))
    keys = [(case.reference.names.index(row[0].encode()), int(row[1])) for row in rows]
    assert keys == sorted(keys)
    changes = [tuple(row[:5]) for row in rows]
    assert len(set(changes)) == len(changes)
    alone = [row for one in case.rows for row in rows_alone(case, one)]
    assert set(changes) == {tuple(row[:5]) for row in alone}
    # Of several alignments with a difference, the row tells of the first.
    firsts = {tuple(row[:5]): row[7] for row in reversed(alone)}
    assert {tuple(row[:5]): row[7] for row in rows} == firsts


@each("seed", range(40))
def test_a_filter_tells_which_places_have_several_alignments(seed):
    case = random_case(random.Random(seed))
    text = vcf_of(case)
    names = [name.decode() for name in case.names]
    extents = [(row, case.forward_range(row)) for row in case.rows]
    for name, position, _, _, _, _, told, info, *_ in vcf_rows(text):
        record, at = case.reference.names.index(name.encode()), int(position) - 1
        values = dict(part.split("=") for part in info.split(";"))
        query, query_at = names.index(values["QNAME"]), int(values["QSTART"]) - 1
        on_reference = sum(
            row.record == record and row.reference_start <= at < row.reference_end
            for row, _ in extents
        )
        on_query = sum(
            row.query == query and begin <= query_at < end for row, (begin, end) in extents
        )
        assert told == ("ambiguous" if max(on_reference, on_query) > 1 else "PASS")


@each("seed, letters", [(seed, letters) for seed in range(12) for letters in (b"ACGTN", FEW_BASES)])
def test_bcftools_norm_changes_nothing(seed, letters, tmp_path_factory):
    program = program_of("bcftools")
    folder = tmp_path_factory.mktemp("norm")
    case = random_case(random.Random(seed), letters)
    case.write_reference(folder / "r.fa")
    text = vcf_of(case)
    (folder / "x.vcf").write_text(text)
    found = output_of(program, "norm", "-f", folder / "r.fa", "-c", "e", folder / "x.vcf").decode()
    assert vcf_rows(found) == vcf_rows(text)


@pytest.mark.parametrize(
    ("reference", "query", "operations", "expected"),
    [
        # A gap leaves its alignment, up to the start of the record.
        (b"CACACAGT", b"CACAGT", [(MATCH, 1), (INSERTION, 2), (MATCH, 3)], "1 C CAC"),
        (b"TCACACGT", b"ACGT", [(MATCH, 1), (DELETION, 2), (MATCH, 3)], "1 TCA T"),
        # A pair that differed is equal after the gap has moved over it.
        (b"ACGTCAG", b"ACGAGTCAG", [(MATCH, 4), (INSERTION, 2), (MATCH, 3)], "2 C CGA"),
        # Two gaps without an equal base between them are one row.
        (b"AACCTT", b"AAGTT", [(MATCH, 2), (INSERTION, 1), (DELETION, 2), (MATCH, 2)], "3 CC G"),
    ],
)
def test_gaps_are_moved_and_joined(reference, query, operations, expected):
    aligned = sum(size for kind, size in operations if kind != INSERTION)
    row = MadeAlignment(0, 0, 0, 0, len(reference) - aligned, operations)
    case = GenomeCase(named_records([(b"r", reference)]), [b"q"], [query], [row])
    rows = vcf_rows(vcf_of(case))
    assert [" ".join((row[1], row[3], row[4])) for row in rows] == [expected]


def test_the_header_has_records_and_the_sample():
    reference = named_records([(b"one", b"ACGT"), (b"none", b""), (b"two", b"AC")])
    lines = GenomeVcf(reference, ("folder/a b.fa.gz", "c.fa")).head().decode().splitlines()
    assert lines[0] == "##fileformat=VCFv4.2"
    contigs = [line for line in lines if line.startswith("##contig")]
    assert contigs == ["##contig=<ID=one,length=4>", "##contig=<ID=two,length=2>"]
    assert lines[-1].split("\t")[8:] == ["FORMAT", "a_b"]


def test_names_that_vcf_has_no_room_for():
    reference = named_records([(b"r", b"ACGTACGT")])
    row = MadeAlignment(0, 0, 0, 0, 0, [(MATCH, 8)])
    ((*_, info, _, _),) = vcf_rows(
        vcf_of(GenomeCase(reference, [b"a;b=c,d%"], [b"ACGTTCGT"], [row]))
    )
    assert info == "QNAME=a%3Bb%3Dc%2Cd%25;QSTART=5;QSTRAND=+"
    with pytest.raises(InputError, match="VCF needs records of different names"):
        GenomeVcf(named_records([(b"a", b"AC"), (b"a", b"AC")]), ("q.fa",))
