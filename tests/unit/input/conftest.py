"""Threads that read, and small files that they parse in small pieces."""

import pytest
from helpers.parallel_files import FASTA, FASTQ, PIECE, Parts

from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records import parallel_records


@pytest.fixture(scope="module")
def threads():
    with ReadingThreads(4) as pool:
        yield pool


@pytest.fixture
def parts(monkeypatch):
    """Small pieces of small files, and where they are."""
    watched = Parts()
    monkeypatch.setattr(parallel_records, "LEAST_BYTES", 1)
    monkeypatch.setattr(parallel_records, "SAMPLE_BYTES", 30)
    monkeypatch.setattr(parallel_records, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(parallel_records, "WINDOWS", (40, 1000))
    monkeypatch.setattr(parallel_records, "plain_part", watched)
    return watched


@pytest.fixture(params=[FASTQ, FASTA], ids=["fastq", "fasta"])
def kind(request):
    chosen = request.param
    return chosen
