"""Run the k-mer search's kernels under the sanitizers, held to the definition of a match.

A program of its own, as `sanitized_search.py` is; it is given a folder. It prints what it has
tried and what differs, and ends with 1 if anything does.

With ``--short`` each buffer that the kernels write to gets one byte less than it needs, in a
process of its own; printed is for each whether anybody minds.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from helpers.in_memory import reference_of  # isort: skip
from helpers.host_device import SANITIZERS, HostCompiler, HostDevice, everything_given_back
from sanitized_search import PLENTY, ExactWorkspace

from mummergpu.cuda import stream_worker
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.output.matches.mummer import MummerFormatter
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand

# `sanitized_search` has put their folder on the path.
from helpers.device_columns import (  # isort: skip
    columns_of_device,
    columns_of_host,
    difference,
    on_host,
)
from helpers.kmer_cases import KMER_CASES, ordered_tables_of, picked_samplings, samplings, tables_of  # isort: skip
from helpers.search_cases import ANY, STRANDS, SearchCase, rows_of  # isort: skip
from helpers.text_cases import (  # isort: skip
    STYLES,
    TEXT_CASES,
    awkwardly_named,
    columns_of,
    text_of_device,
)

BUFFERS = (
    *("bit planes", "reverse bit planes", "query offsets", "kept mems", "tiles"),
    *("mem counts", "mem counts of tiles"),
    *("frequent query_kmers", "mem offsets of tiles", "offsets of mems 0"),
    *("query starts 0", "reference starts 0", "lengths 0"),
    *("offsets of mems 1", "query starts 1", "reference starts 1", "lengths 1"),
    *("query names", "query name offsets", "bytes of text tiles", "offsets of text tiles", "text"),
)

SINGLE = SearchCase("single", ("ACGGTCTTACGAACGC",), ("ACG",), 3)
HEAVY = SearchCase("heavy", ("A" * 80,), ("A" * 40,), 1)
FULL = SearchCase("full", ("ACAC" * 3,), ("ACAC" * 8,), 1)
MANY = SearchCase("many", ("ACGTTGCACTGA" * 8,), ("GATCCAGT" * 4,), 1)
"""For short buffers: each of them is full to its last byte with one of these cases."""


def find(backend, block, strands=STRANDS):
    return backend.find_mems(block, strands, ANY)


def joined(pieces):
    return b"".join(piece.tobytes() for piece in pieces)


def check_texts(compiler):
    """Make the text of every case in some styles; return what is wrong."""
    wrong = []
    for number, case in enumerate(TEXT_CASES):
        for style in (STYLES[0], STYLES[-1], STYLES[1 + number % 6]):
            device = HostDevice(PLENTY, 1 + number % 3)
            formatter = MummerFormatter(case.reference, style)
            text = text_of_device(device, compiler, formatter, case.block, case.columns)
            if text != case.text(style):
                wrong.append(f"{case.name}, {style}: another text")
    return wrong


def check_columns(compiler):
    """Leave the columns of every case on the device; return what is wrong."""
    wrong = []
    for number, case in enumerate(TEXT_CASES):
        device = HostDevice(PLENTY, 1 + number % 3)
        columns = on_host(columns_of_device(device, compiler, case, number, 3 * number))
        expected = columns_of_host(case)
        expected["query"] = expected["query"] + np.uint32(number)
        expected["offsets"] = expected["offsets"] + 3 * number
        if (text := difference(columns, expected)) is not None:
            wrong.append(f"{case.name}: {text}")
        if device.buffers or device.shared:
            wrong.append(f"{case.name}: something was not given back")
    return wrong


def check(case, pages, compiler, blocks):
    """Search both strands of a case, whole and in halves; return the matches and what is wrong."""
    found, wrong = 0, []
    device = HostDevice(PLENTY, blocks)
    backend = KmerCudaBackend(device, compiler, Stats(), lambda line: None, closes_device=True)
    formatter = MummerFormatter(reference_of(case.records), STYLES[blocks % 8])
    backend.set_format(formatter.row_format())
    backend.load_pages(pages, case.minimum_length)
    assert backend.makes_text == (len(pages) == 1)
    block = awkwardly_named(case.block())
    for strand, columns in find(backend, block).items():
        found += columns.count
        if rows_of(columns) != case.expected(strand):
            wrong.append(f"{strand}: {rows_of(columns)}, not {case.expected(strand)}")
    reverse = Strand.REVERSE
    one, other = (rows_of(find(backend, half, (reverse,))[reverse]) for half in block.halves())
    if [*one, *other] != case.expected(reverse):
        wrong.append("in halves: others")
    if backend.makes_text:
        expected = {strand: columns_of(case.expected(strand)) for strand in STRANDS}
        text = backend.find_text(block, STRANDS, found)
        host_text = joined(formatter.format_block(block, expected))
        if text is None or text.count != found or joined(text.pieces) != host_text:
            wrong.append("another text")
        if found > 0 and backend.find_text(block, STRANDS, found - 1) is not None:
            wrong.append("a text of too many rows")
    backend.close()
    if not everything_given_back(device):
        wrong.append("something was not given back")
    return found, wrong


def check_all(compiler):
    """Search every case with k-mers of several lengths."""
    searches = found = longest = farthest = max_pages = 0
    wrong = []
    for number, case in enumerate(KMER_CASES):
        # Searches of long periods take longest, so each of these cases is tried with every other.
        tried = samplings(case) + picked_samplings(case)
        for sampling in tried[number % 2 :: 2] if case.name.startswith("far") else tried:
            pages = (tables_of, ordered_tables_of)[searches % 2](case, sampling)
            # One block of threads, some, and more than there are items.
            count, differences = check(case, pages, compiler, (1, 2, 3, 400)[searches % 4])
            lists = [
                int((page.table.offsets[1:] - page.table.offsets[:-1]).max()) for page in pages
            ]
            searches, found = searches + 1, found + count
            longest = max(longest, *lists)
            farthest = max(farthest, sampling.sampling_step(case.minimum_length))
            max_pages = max(max_pages, len(pages))
            wrong += [f"{case.name}, {sampling}: {text}" for text in differences]
    wrong += check_texts(compiler) + check_columns(compiler)
    print(f"{found} matches in {searches} searches, {len(wrong)} differences")
    print(f"lists of {longest} places, periods of {farthest} bases, {max_pages} parts")
    for line in wrong[:20]:
        print(line[:2000])
    return 1 if wrong else 0


def try_short_buffer(buffer, compiler):
    """Tell whether a buffer is noticed that is a byte too small, by some case; in a child."""
    for case, kmer_length in ((SINGLE, 3), (HEAVY, 1), (FULL, 1), (MANY, 1)):
        step = 2 if case.minimum_length > kmer_length else 1
        pages = tables_of(case, KmerSampling(kmer_length, step))
        with tempfile.TemporaryFile() as errors:
            child = os.fork()
            if child == 0:
                os.dup2(errors.fileno(), 2)
                ExactWorkspace.short = buffer
                check(case, pages, compiler, 1)
                os._exit(0 if ExactWorkspace.was_short else 3)
            _, status = os.waitpid(child, 0)
            errors.seek(0)
            text = errors.read().decode()
        code = os.waitstatus_to_exitcode(status)
        assert code != 3, f"there is no buffer {buffer}"
        if code != 0:
            print(text[-3000:], file=sys.stderr)
            return "ERROR: AddressSanitizer" in text
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    stream_worker.SMALLEST_BUFFER = 1
    stream_worker.SLACK = PLENTY
    stream_worker.Workspace = ExactWorkspace
    compiler = HostCompiler(given.folder, SANITIZERS)
    if not given.short:
        return check_all(compiler)
    # Compile before there are children.
    check(SINGLE, tables_of(SINGLE, KmerSampling(3)), compiler, 1)
    for buffer in BUFFERS:
        verdict = "noticed" if try_short_buffer(buffer, compiler) else "nobody minds"
        print(f"{buffer}: {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
