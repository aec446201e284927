"""Small genomes, changed copies of them, and their alignments, for tests."""

import numpy as np

import mummergpu
from helpers.in_memory import named_queries, reference_of
from helpers.sequences import random_bases, reverse_complement
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.mapping.genomes.options import GenomeOptions
from mummergpu.matching.filter import keep_unique
from mummergpu.sequence.codes import encode
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand


def changed(text, some, differences, gaps=0.0):
    """A copy in which each base may differ, and a gap of a few bases may begin at each."""
    result = []
    skipped = 0
    for base in text:
        if skipped:
            skipped -= 1
            continue
        if some.random() < gaps:
            if some.random() < 0.5:
                skipped = some.choice((0, 1, 4))
                continue
            result.append(random_bases(some, some.choice((1, 2, 5))))
        result.append(some.choice("ACGT") if some.random() < differences else base)
    return "".join(result)


def block_of(texts):
    return named_queries((b"q%d" % number, text.encode()) for number, text in enumerate(texts))


def matches_of(reference, queries, least=20, in_query=False):
    """The matches that are unique in the reference, on both strands."""
    named = [(f"r{number}", text) for number, text in enumerate(reference)]
    index = mummergpu.Index.build(named, min_length=least)
    found = {}
    for strand in Strand:
        texts = [reverse_complement(text) if strand else text for text in queries]
        sequences = [(f"q{number}", text) for number, text in enumerate(texts)]
        matches = index.match(sequences, strands="forward", backend="cpu", threads=1)
        starts = reference_of(reference).record_starts[matches.reference]
        columns = MemColumns(
            matches.offsets,
            matches.query_start.astype(np.int64),
            matches.reference_start.astype(np.int64) + starts,
            matches.length.astype(np.int64),
        )
        found[strand] = keep_unique(columns, in_query)
    return found


def align(reference, queries, options=None, map_function=map):
    """Align sequences, beginning with the matches that are unique in the reference."""
    aligner = GenomeAligner(reference_of(reference), options or GenomeOptions())
    return aligner.align_block(block_of(queries), matches_of(reference, queries), map_function)


def operations_of(found, row):
    words = found.cigars[found.cigar_offsets[row] : found.cigar_offsets[row + 1]]
    return [(int(word) >> 4, int(word) & 15) for word in words]


def sides_of(found, row, reference, queries):
    """The codes of the query and of the reference that an alignment uses."""
    query = queries[found.queries[row]]
    if found.strands[row]:
        query = reverse_complement(query)
    record = reference[found.records[row]]
    return (
        encode(query[found.query_starts[row] : found.query_ends[row]].encode()),
        encode(record[found.reference_starts[row] : found.reference_ends[row]].encode()),
    )
