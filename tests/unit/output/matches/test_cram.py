"""CRAM has the alignments of BAM, and all that is needed to read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pysam
from helpers.match_cases import MatchCase, match_cases, text_of
from helpers.match_records import match_bam, match_sam
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.records.cram import CramSink
from mummergpu.output.records.sam_options import ReadGroup, SamOptions
from mummergpu.output.sink import ByteSink, Emit, writer_of
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand

OPTIONS = st.builds(
    SamOptions, st.sampled_from([None, ReadGroup("@RG\tID:x", "x")]), st.sampled_from([None, 1, 3])
)
SIMPLE = MatchCase([(b"r", b"ACGT")], [(b"q", b"ACGT")], {Strand.FORWARD: [[(0, (0, 0, 4))]]})


def write_cram(path: Path, case: MatchCase, options: SamOptions) -> Stats:
    stats = Stats()
    with OutputFile(str(path)) as file:
        made = match_bam(case.reference, options)

        def keep_in(emit: Emit) -> ByteSink[Any, Any]:
            return ByteSink(made, emit, stats, BgzfCompressor(), 2, 1000)

        sink = CramSink(keep_in, writer_of(file, stats), stats)
        try:
            sink.write(sink.prepare(case.block, case.columns))
            sink.finish()
        finally:
            sink.close()
    return stats


def sam_of(path: Path) -> bytes:
    """The content of a file as SAM, read where no reference is found."""
    with (
        patch.dict(os.environ, {"REF_PATH": "/nowhere", "REF_CACHE": "/nowhere"}),
        pysam.AlignmentFile(str(path)) as alignments,
    ):
        lines = [str(alignments.header), *(one.to_string() + "\n" for one in alignments)]
    return "".join(lines).encode()


def in_cram(text: bytes) -> bytes:
    """What CRAM keeps of SAM: no equal bases in a CIGAR."""
    lines = [line.split(b"\t") for line in text.splitlines(keepends=True)]
    for fields in lines:
        if len(fields) > 10:
            fields[5] = fields[5].replace(b"=", b"M")
    return b"".join(map(b"\t".join, lines))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)
@given(match_cases(), OPTIONS)
def test_alignments_are_those_of_sam(tmp_path: Path, case: MatchCase, options: SamOptions) -> None:
    path = tmp_path / "x.cram"
    write_cram(path, case, options)
    assert sam_of(path) == in_cram(text_of(match_sam(case.reference, options), case))


def test_bytes_and_times_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.cram"
    stats = write_cram(path, SIMPLE, SamOptions())
    assert stats.bytes == {"output": path.stat().st_size}
    assert stats.stages["format"].seconds > 0 and stats.stages["results_to_disk"].seconds > 0


def test_the_file_does_not_tell_how_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "x.cram"
    write_cram(path, SIMPLE, SamOptions())
    assert path.read_bytes()[:26] == b"CRAM\x03\x00" + bytes(20)
