"""The choice between the processor and a GPU."""

import os

import pytest
from helpers.options import match_options

from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.input.blocks.read_files import ReadFile
from mummergpu.matching.options import DeviceOptions, Uniqueness
from mummergpu.pipeline.backend_choice import (
    backend_of_mapping,
    choose_backend,
    estimate_query_bases,
)
from mummergpu.pipeline.map_options import MapOptions
from mummergpu.sequence.strand import Strand

BOTH = (Strand.FORWARD, Strand.REVERSE)


def sized(path, size):
    """A file that takes no space on the disk."""
    with path.open("wb") as file:
        file.truncate(size)
    return str(path)


def choice(folder, bases, queries, has_index=False, **told):
    reference = sized(folder / "reference", bases)
    told = {"search": "kmer", "backend": "auto", **told}
    options = match_options(reference, (queries,), "-", strands=BOTH, **{"threads": 16, **told})
    query_bases = estimate_query_bases([queries])
    return choose_backend(options, has_index, None if query_bases is None else 2 * query_bases)


@pytest.mark.parametrize("has_index", [False, True])
def test_a_little_work_is_for_the_processor_and_much_for_a_gpu(tmp_path, has_index):
    few = sized(tmp_path / "few.fq", 300_000_000)
    many = sized(tmp_path / "many.fq", 3_500_000_000)
    assert choice(tmp_path, 3_000_000, few, has_index) == "cpu"
    assert choice(tmp_path, 400_000_000 if has_index else 100_000_000, many, has_index) == "auto"


@pytest.mark.parametrize("uniqueness", [Uniqueness.IN_REFERENCE, Uniqueness.IN_BOTH])
def test_unique_matches_are_found_where_it_was_measured_to_be_sooner(tmp_path, uniqueness):
    """Genomes and a copy, beside an H200: Mbp, threads, and which was done first."""
    for million, threads, fastest in (
        *((10, 16, "cpu"), (30, 16, "cpu"), (100, 16, "cpu"), (200, 16, "cpu"), (1000, 16, "cpu")),
        *((10, 4, "cpu"), (30, 4, "cpu"), (100, 4, "auto")),
    ):
        copy = sized(tmp_path / "copy.fa", million * 1_000_000)
        told = {"threads": threads, "uniqueness": uniqueness}
        assert choice(tmp_path, million * 1_000_000, copy, **told) == fastest, (million, threads)


def test_what_is_not_unique_or_not_in_minimizers_is_judged_by_tables_of_kmers(tmp_path):
    bases = 200_000_000
    copy = sized(tmp_path / "copy.fa", bases)
    unique = {"uniqueness": Uniqueness.IN_REFERENCE}
    assert choice(tmp_path, bases, copy, **unique) == "cpu"
    assert choice(tmp_path, bases, copy) == "auto"
    for told in ({"sampling": KmerSampling(13)}, {"page_size": bases // 2}, {"minimum_length": 12}):
        assert choice(tmp_path, bases, copy, **unique, **told) == "auto", told
    assert choice(tmp_path, 4 * bases, copy, has_index=True, **unique) == "auto"
    # Reads of a small genome are looked up in tables of k-mers sooner than by minimizers.
    reads = sized(tmp_path / "reads.fa", 10**9)
    few, many = (choice(tmp_path, 5_000_000, reads, **told) for told in ({}, unique))
    assert few == many


def test_what_the_user_names_is_taken(tmp_path):
    few = sized(tmp_path / "few.fq", 1000)
    for backend in ("cpu", "cuda"):
        assert choice(tmp_path, 1000, few, backend=backend) == backend
    assert choice(tmp_path, 1000, few, search="tree") == "auto"
    assert choice(tmp_path, 1000, few) == "cpu"


def test_where_the_size_is_unknown_a_gpu_is_taken(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for queries in ("-", str(pipe), str(tmp_path / "missing")):
        assert choice(tmp_path, 1000, queries) == "auto"


def test_bases_are_estimated_from_size_and_kind(tmp_path):
    fasta = sized(tmp_path / "r.fa", 1000)
    fastq = sized(tmp_path / "r.fq", 1000)
    packed = sized(tmp_path / "r.fq.GZ", 1000)
    assert estimate_query_bases([fasta]) == 1000
    assert estimate_query_bases([fasta, fastq]) == 1450
    assert estimate_query_bases([packed]) == 2000
    assert estimate_query_bases([fasta, "-"]) is None
    assert estimate_query_bases([]) == 0


def mapping_choice(folder, bases, reads, **told):
    reference = sized(folder / "reference", bases)
    device = DeviceOptions(backend=told.pop("backend", "auto"))
    sources = (ReadFile(reads),)
    return backend_of_mapping(MapOptions(reference, sources, threads=16, device=device, **told))


def test_mapping_is_for_a_gpu_where_it_saves_more_than_it_takes_to_start(tmp_path):
    few, many = (sized(tmp_path / f"{size}.fq", size) for size in (20_000_000, 8_000_000_000))
    assert mapping_choice(tmp_path, 3_000_000, few) == "cpu"
    assert mapping_choice(tmp_path, 100_000_000, many) == "auto"
    assert mapping_choice(tmp_path, 3_000_000_000, sized(tmp_path / "r.fq", 10**9)) == "auto"
    assert mapping_choice(tmp_path, 3_000_000, few, gpu_compression=True) == "auto"
    assert mapping_choice(tmp_path, 3_000_000, few, backend="cuda") == "cuda"
    assert mapping_choice(tmp_path, 3_000_000, "-") == "auto"
