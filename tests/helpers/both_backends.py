"""Small random searches, on both backends, whose results must be equal."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from helpers.index_pages import build_kmer_pages
from helpers.search_cases import ANY, STRANDS
from mummergpu.index.pages import plan_pages
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.index.tree_index import build_page
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import BREAK, with_margins

ALL_POLICIES = [
    Policy(**dict(zip(LETTERS, flags, strict=True)))
    for flags in product((False, True), repeat=len(LETTERS))
]


@dataclass(frozen=True)
class Case:
    """A reference, queries from it and from elsewhere, and how they are searched."""

    reference: Reference
    block: QueryBlock
    minimum_length: int
    page_size: int


def random_codes(random, count, letters):
    codes = random.integers(0, letters, count).astype(np.uint8)
    codes[random.random(count) < 0.01] = BREAK
    return codes


def random_case(seed, bases=3000, queries=200):
    """Return a case with breaks, repeats, a homopolymer, and more letters in some than others."""
    random = np.random.default_rng(seed)
    letters = 2 + seed % 3
    reference = random_codes(random, bases, letters)
    for _ in range(6):
        begin, to = random.integers(0, bases - 200, 2)
        reference[to : to + 120] = reference[begin : begin + 120]
    reference[bases // 2 : bases // 2 + 80] = 0
    texts = []
    for _ in range(queries):
        length = int(random.integers(0, 150))
        if random.random() < 0.7:
            begin = int(random.integers(0, bases - length))
            text = reference[begin : begin + length].copy()
            wrong = random.random(length) < 0.03
            text[wrong] = random.integers(0, 5, int(wrong.sum()))
        else:
            text = random_codes(random, length, letters)
        texts.append(text)
    texts.append(np.zeros(60, dtype=np.uint8))
    offsets = np.concatenate(([0], np.cumsum([text.size for text in texts]))).astype(np.int64)
    names = np.empty(0, dtype=np.uint8), np.zeros(offsets.size, dtype=np.int64)
    block = QueryBlock(0, with_margins(np.concatenate(texts)), offsets, *names)
    start, length = np.array([0]), np.array([bases])
    joined = Reference("random", reference, start, length, (b"random",))
    minimum_length = (9, 12, 20, 4)[seed % 4]
    return Case(joined, block, minimum_length, (bases, 700, 90)[seed % 3])


def build(case, layout):
    count = case.reference.codes.size
    pages = plan_pages(count, case.page_size, case.minimum_length - 1)
    return [build_page(case.reference, page, layout, Stats()) for page in pages]


def as_lists(columns):
    assert columns is not None
    return [
        array.tolist()
        for array in (
            columns.offsets,
            columns.query_starts,
            columns.reference_starts,
            columns.lengths,
        )
    ]


def find_both(backend, block):
    """What a backend finds on both strands, which it is asked for at once."""
    found = backend.find_mems(block, STRANDS, ANY)
    assert found is not None and list(found) == list(STRANDS)
    return {strand: as_lists(columns) for strand, columns in found.items()}


def differences(device, cache, case, policies, wide):
    """Search a case under each policy; return where the backends differ."""
    found = []
    cpu = TreeCpuBackend(Stats())
    cpu.load_pages(build(case, Layout.of(Policy(), wide)), case.minimum_length)
    expected = find_both(cpu, case.block)
    assert any(expected[strand][1] for strand in expected)
    for policy in policies:
        backend = TreeCudaBackend(device, cache, policy, Stats(), lambda _: None)
        backend.load_pages(build(case, Layout.of(policy, wide)), case.minimum_length)
        if (others := find_both(backend, case.block)) != expected:
            strands = [strand.name for strand in STRANDS if others[strand] != expected[strand]]
            found.append(f"{policy.code} {'wide' if wide else 'paper'} {strands}")
        backend.close()
    return found


def kmer_case(seed, minimum_length):
    """A case for a k-mer search: fewer bases where nearly everything matches.

    Of two letters many k-mers are heavy; a repeat that is long and has errors gives matches that
    are longer than a step, from many query_kmers.
    """
    size = 1 if minimum_length < 6 else 5
    case = random_case(seed, 700 * size, 30 * size)
    codes = case.reference.codes
    unit = codes[:171].copy()
    for copy in range(size):
        begin = 300 + 171 * copy
        codes[begin : begin + 171] = unit
        codes[begin + 20 * copy] = copy % 4
    long = np.concatenate((codes[60:-40], np.zeros(90, dtype=np.uint8), codes[200:600]))
    long[:: 97 + seed] = BREAK
    offsets = np.append(case.block.offsets, [case.block.offsets[-1] + np.array([0, long.size])])
    names = np.empty(0, dtype=np.uint8), np.zeros(offsets.size, dtype=np.int64)
    block = QueryBlock(0, with_margins(np.append(case.block.codes, long)), offsets, *names)
    return replace(case, block=block, minimum_length=minimum_length)


def kmer_differences(device, cache, case, samplings):
    """Search a case with some tables of k-mers; return where the backends differ.

    The cpu backend searches a tree: the other search, and the other backend.
    """
    found = []
    bases = case.reference.codes.size
    cpu = TreeCpuBackend(Stats())
    whole = replace(case, page_size=bases)
    cpu.load_pages(build(whole, Layout.of(Policy())), case.minimum_length)
    expected = find_both(cpu, case.block)
    assert any(expected[strand][1] for strand in expected)
    for sampling in samplings:
        plan = plan_pages(bases, case.page_size, 0)
        pages = build_kmer_pages(case.reference, plan, sampling)
        on_host = KmerCpuBackend(Stats())
        on_device = KmerCudaBackend(device, cache, Stats(), lambda _: None)
        for backend in (on_host, on_device):
            backend.load_pages(pages, case.minimum_length)
            if (others := find_both(backend, case.block)) != expected:
                strands = [strand.name for strand in STRANDS if others[strand] != expected[strand]]
                found.append(f"{backend.name}, {sampling}, {len(pages)} parts, {strands}")
        on_device.close()
    return found
