"""The sink for a target: by its format, sorted or not, with its index."""

from __future__ import annotations

import gzip
import random
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pysam
import pytest
from helpers.alignment_tools import GROUP
from helpers.made_alignments import plain_lines, random_alignments, random_reference
from helpers.written_alignments import pass_through, rows_of

from mummergpu.errors import OptionError
from mummergpu.output.open_alignments import (
    AlignmentFacts,
    check_alignment_target,
    index_path,
    open_alignment_sink,
)
from mummergpu.output.sorting.options import SortOptions
from mummergpu.output.targets import target_of
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats

SORTED, MARKED = SortOptions(), SortOptions(by_coordinate=False, mark_duplicates=True)


@pytest.mark.parametrize("name", ["x.sam", "x.sam.gz", "x.bam", "x.cram"])
@pytest.mark.parametrize("sort", [None, SORTED, MARKED])
def test_every_format(tmp_path: Path, name: str, sort: SortOptions | None) -> None:
    made = random.Random(3)
    reference = random_reference(made)
    case = random_alignments(made, reference, 40)
    facts = AlignmentFacts(reference, ("r.fq",), 2, "test", GROUP, sort=sort)
    target = target_of(str(tmp_path / name))
    if sort is not None and "sam" in name:
        option = "--sort" if sort.by_coordinate else "--mark-duplicates"
        with pytest.raises(OptionError, match=option):
            check_alignment_target(target, sort)
        return
    with ExitStack() as stack:
        file = stack.enter_context(OutputFile(target.path))
        path = index_path(target, reference, sort)
        assert (path is not None) == (name in ("x.bam", "x.cram") and sort is SORTED)
        index = None if path is None else stack.enter_context(OutputFile(path))
        pass_through(open_alignment_sink(target, file, facts, Stats(), index), [case])
    rows = rows_of(tmp_path / name)
    assert len(rows) == case.columns.row_count
    if path is not None:
        with pysam.AlignmentFile(target.path) as found:
            assert found.check_index()
    if "sam" in name:
        text = (tmp_path / name).read_bytes()
        text = gzip.decompress(text) if name.endswith("gz") else text
        lines = b"".join(line for line in text.splitlines(True) if not line.startswith(b"@"))
        assert lines == plain_lines(case, reference, GROUP.name.encode())
    with pysam.AlignmentFile(target.path, check_sq=False) as found:
        order = found.header.to_dict()["HD"]["SO"]
        assert order == ("coordinate" if sort is SORTED else "unsorted")


def test_a_long_record_needs_another_index() -> None:
    reference = random_reference(random.Random(1))
    long = replace(reference, record_lengths=np.full_like(reference.record_lengths, (1 << 29) + 1))
    target = target_of("x.bam")
    assert index_path(target, reference, SORTED) == "x.bam.bai"
    assert index_path(target, long, SORTED) == "x.bam.csi"


def test_other_formats_are_refused() -> None:
    with pytest.raises(OptionError, match="not paf"):
        check_alignment_target(target_of("x.paf"), None)
