"""Files of rows: by their names, sorted or not, with an index; and files for MultiQC."""

import json
import random
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pysam
import pytest
from helpers.alignment_tools import GROUP
from helpers.loops import each
from helpers.made_alignments import random_alignments, random_reference
from helpers.tables import table
from helpers.written_alignments import pass_through, rows_of

from mummergpu.errors import OptionError
from mummergpu.mapping.alignments.summary import MAX_INSERT, empty_summary
from mummergpu.matching.summary import FileCounts, MatchCounts
from mummergpu.output.formats import FORMATS, USUAL, RowKind, names_of, target_of
from mummergpu.output.multiqc import general_statistics, sample_of
from mummergpu.output.open_sink import check_targets, index_path, open_sink
from mummergpu.output.options import SamOptions, SortOptions
from mummergpu.output.sink import OutputContext
from mummergpu.output.targets import OutputTarget
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
            # A format that is named wins.
            path = "x.png" if name == "plot" else "x.paf"
            assert target_of(path, name, rows=rows).format == name
    assert all(made.rows for made in FORMATS.values())


@each(
    "path, format_name, compression",
    [
        *(("-", "mummer", None), ("x.txt", "mummer", None), ("a.b/x", "mummer", None)),
        *(("x.txt.gz", "mummer", "bgzf"), ("x.PAF.GZ", "paf", "bgzf"), ("x.bam", "bam", None)),
        *(("x.bed.bgz", "bed", "bgzf"), ("x.sam.zst", "sam", "zstd")),
        ("x.feather", "arrow", None),
    ],
)
def test_the_name_of_a_file_tells_its_format(path, format_name, compression):
    assert target_of(path) == OutputTarget(path, format_name, compression)


@each("path, rows, expected", table(__file__, "refused formats"))
def test_other_formats_are_refused(path, rows, expected):
    with pytest.raises(OptionError, match=expected):
        target_of(path, rows=RowKind[rows])


@each("name", ["x.sam", "x.sam.gz", "x.paf"])
def test_text_is_not_sorted(name):
    target = target_of(name, rows=RowKind.READS)
    for sort, option in ((SORTED, "sort"), (MARKED, "mark_duplicates")):
        with pytest.raises(OptionError, match=option):
            check_targets([target], None, sort)


@pytest.mark.parametrize("name", ["x.bam", "x.cram"])
@pytest.mark.parametrize("sort", [None, SORTED, MARKED])
def test_two_files_of_one_run(tmp_path, name, sort):
    """They are equal, and one that is sorted has an index."""
    made = random.Random(3)
    reference = random_reference(made)
    case = random_alignments(made, reference, 40)
    facts = OutputContext(reference, ("r.fq",), 2, "test", SamOptions(GROUP), sort=sort)
    target = target_of(str(tmp_path / name), rows=RowKind.READS)
    path = index_path(target, reference, sort)
    assert (path is not None) == (sort is SORTED)
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(path)) for path in (target.path, f"{target.path}2")]
        index = None if path is None else stack.enter_context(OutputFile(path))
        sink = open_sink([target] * 2, files, facts, Stats(), RowKind.READS, [index, None])
        pass_through(sink, [case])
    assert (tmp_path / name).read_bytes() == (tmp_path / f"{name}2").read_bytes()
    assert len(rows_of(tmp_path / name)) == case.columns.row_count
    with pysam.AlignmentFile(target.path, check_sq=False) as found:
        order = found.header.to_dict()["HD"]["SO"]
        assert order == ("coordinate" if sort is SORTED else "unsorted")
        assert found.has_index() == (sort is SORTED)


def test_a_long_record_needs_another_index():
    reference = random_reference(random.Random(1))
    long = replace(reference, record_lengths=np.full_like(reference.record_lengths, (1 << 29) + 1))
    target = target_of("x.bam")
    assert index_path(target, reference, SORTED) == "x.bam.bai"
    assert index_path(target, long, SORTED) == "x.bam.csi"


def written(stats):
    content = general_statistics("s", stats)
    assert content.endswith(b"}\n") and content.isascii()
    found = json.loads(content)
    assert set(found["headers"]) >= set(found["data"]["s"])
    return found


@pytest.mark.parametrize(
    ("path", "sample"),
    [("s_mqc.json", "s"), ("a/b.c/s.1_mqc.json", "s.1"), ("_mqc.json_mqc.json", "_mqc.json")],
)
def test_files_are_named_after_the_sample(path, sample):
    assert sample_of(path) == sample


@pytest.mark.parametrize("queries", [800, 0])
def test_matches_have_a_column_for_each_count(queries):
    """A share of nothing is left out."""
    stats = Stats()
    stats.add(queries=queries, reference_bases=4000, matches=778)
    with_match = min(queries, 600)
    file = FileCounts("a.fq", queries, 0, with_match, 778)
    stats.set_match_counts(MatchCounts(1000, (), (file,), ()))
    found = written(stats)
    assert (found["plot_type"], found["namespace"]) == ("generalstats", "mummergpu")
    assert found["data"]["s"] == {
        **{"queries": queries, "queries_with_match": with_match},
        **({"queries_with_match_percent": 75.0} if queries else {}),
        **{"matches": 778, "bases_covered": 1000, "bases_covered_percent": 25.0},
    }
    for column in found["headers"].values():
        assert column["min"] == 0 and column["title"] and column["description"]


def mapped(**told):
    stats = Stats()
    stats.mapping = replace(empty_summary(), **told)
    return written(stats)["data"]["s"]


def test_columns_of_mapped_reads_are_shares():
    sizes = np.zeros(MAX_INSERT + 1, dtype=np.int64)
    sizes[[300, 301, 302]] = 5, 10, 5
    qualities = np.zeros(256, dtype=np.int64)
    qualities[[0, 19, 20, 60]] = 5, 4, 3, 88
    counts = {"reads": 200, "mapped": 100, "paired": 160, "proper": 40}
    assert mapped(**counts, qualities=qualities, inserts=sizes) == {
        **{"reads": 200, "mapped_percent": 50.0, "sure_percent": 45.5, "proper_percent": 25.0},
        "median_insert_size": 301,
    }
    assert mapped() == {"reads": 0}
