"""Threads that read, and small files that they parse in small pieces."""

import pytest
from helpers.parallel_files import FASTA, FASTQ, PIECE, Parts

from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records import parallel_records


@pytest.fixture(scope="module")
def threads():
    with ReadingThreads(4) as pool:
        yield pool


def watched_parts(monkeypatch, sample, piece, windows):
    watched = Parts()
    monkeypatch.setattr(parallel_records, "LEAST_BYTES", 1)
    monkeypatch.setattr(parallel_records, "SAMPLE_BYTES", sample)
    monkeypatch.setattr(parallel_records, "PIECE_BYTES", piece)
    monkeypatch.setattr(parallel_records, "WINDOWS", windows)
    monkeypatch.setattr(parallel_records, "plain_part", watched)
    return watched


@pytest.fixture
def parts(monkeypatch):
    """Small pieces of small files, and where they are."""
    return watched_parts(monkeypatch, 30, PIECE, (40, 1000))


@pytest.fixture
def parts_of_reads(monkeypatch):
    """Pieces of some usual reads."""
    return watched_parts(monkeypatch, 300, 1200, (400, 5000))


@pytest.fixture(params=[FASTQ, FASTA], ids=["fastq", "fasta"])
def kind(request):
    return request.param
