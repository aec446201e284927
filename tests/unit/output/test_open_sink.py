"""The sink for files: by what their rows are, by their formats, sorted or not, with an index."""

import gzip
import random
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pysam
import pytest
from helpers.alignment_tools import GROUP
from helpers.made_alignments import plain_lines, random_alignments, random_reference
from helpers.written_alignments import pass_through, rows_of

from mummergpu.errors import OptionError
from mummergpu.output.formats import FORMATS, USUAL, RowKind, names_of, target_of
from mummergpu.output.open_sink import check_targets, index_path, open_sink
from mummergpu.output.options import SamOptions, SortOptions
from mummergpu.output.sink import OutputContext
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats

SORTED, MARKED = SortOptions(), SortOptions(by_coordinate=False, mark_duplicates=True)


def test_every_format_has_rows_and_is_named_by_its_files():
    for rows in RowKind:
        assert names_of(rows)[0] == USUAL[rows] and set(names_of(rows)) <= FORMATS.keys()
        assert target_of("x", rows=rows).format == USUAL[rows]
        for name in names_of(rows)[1:]:
            for suffix in FORMATS[name].suffixes:
                assert target_of(f"x{suffix}", rows=rows).format == name
    assert all(made.rows for made in FORMATS.values())


@pytest.mark.parametrize(
    ("path", "rows", "expected"),
    [
        (
            "x.bed",
            RowKind.GENOMES,
            "genome alignments are written as delta, .* cram or vcf, .* bed",
        ),
        ("x.delta", RowKind.READS, "alignments are written as sam, .* and not as delta"),
        ("x.bam.gz", RowKind.GENOMES, "compress bam once more"),
        ("x.unknown", RowKind.GENOMES, r"end in '.unknown': choose .delta, .paf, .*, or one with"),
        ("x.txt.gz", RowKind.GENOMES, "no format has names that end in '.txt'"),
        ("a.b/x.bamm", RowKind.READS, r"end in '.bamm': choose .sam, .paf, .bam, .cram, or one"),
        ("x.vcf", RowKind.READS, "alignments are written as sam, .* and not as vcf"),
        ("x.cram", RowKind.MATCHES, "matches are written as mummer, .* and not as cram"),
    ],
)
def test_other_formats_are_refused(path, rows, expected):
    with pytest.raises(OptionError, match=expected):
        target_of(path, rows=rows)


@pytest.mark.parametrize("name", ["x.sam", "x.sam.gz", "x.bam", "x.cram", "x.paf"])
@pytest.mark.parametrize("sort", [None, SORTED, MARKED])
def test_every_format_of_reads(tmp_path, name, sort):
    made = random.Random(3)
    reference = random_reference(made)
    case = random_alignments(made, reference, 40)
    facts = OutputContext(reference, ("r.fq",), 2, "test", SamOptions(GROUP), sort=sort)
    target = target_of(str(tmp_path / name), rows=RowKind.READS)
    if sort is not None and target.format not in ("bam", "cram"):
        option = "sort" if sort.by_coordinate else "mark_duplicates"
        with pytest.raises(OptionError, match=option):
            check_targets([target], None, sort)
        return
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(path)) for path in (target.path, f"{target.path}2")]
        path = index_path(target, reference, sort)
        assert (path is not None) == (name in ("x.bam", "x.cram") and sort is SORTED)
        index = None if path is None else stack.enter_context(OutputFile(path))
        targets, indexes = [target, target], [index, None]
        sink = open_sink(targets, files, facts, Stats(), RowKind.READS, indexes)
        pass_through(sink, [case])
    text = (tmp_path / name).read_bytes()
    assert text == (tmp_path / f"{name}2").read_bytes(), "two files of one run are equal"
    if name == "x.paf":
        assert text.count(b"\n") == int((case.columns.flags & 4 == 0).sum())
        return
    rows = rows_of(tmp_path / name)
    assert len(rows) == case.columns.row_count
    if path is not None:
        with pysam.AlignmentFile(target.path) as found:
            assert found.check_index()
    if "sam" in name:
        text = gzip.decompress(text) if name.endswith("gz") else text
        lines = b"".join(line for line in text.splitlines(True) if not line.startswith(b"@"))
        assert lines == plain_lines(case, reference, GROUP.name.encode())
    with pysam.AlignmentFile(target.path, check_sq=False) as found:
        order = found.header.to_dict()["HD"]["SO"]
        assert order == ("coordinate" if sort is SORTED else "unsorted")


def test_a_long_record_needs_another_index():
    reference = random_reference(random.Random(1))
    long = replace(reference, record_lengths=np.full_like(reference.record_lengths, (1 << 29) + 1))
    target = target_of("x.bam")
    assert index_path(target, reference, SORTED) == "x.bam.bai"
    assert index_path(target, long, SORTED) == "x.bam.csi"
