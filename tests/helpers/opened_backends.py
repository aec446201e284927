"""Backends that tests have opened on the host's device, and cases that go wrong on it."""

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from helpers.host_device import everything_given_back
from helpers.kmer_cases import tables_of
from helpers.search_cases import ANY, SearchCase, find_on, made_bases, made_queries, rows_of
from helpers.watched_device import WatchedDevice
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends.cuda_streams import CudaStreamsBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand

FORWARD = Strand.FORWARD


def _genome():
    random = np.random.default_rng(8)
    repeat = made_bases(random, 40, "ACGT")
    records = tuple(made_bases(random, 90, "ACGT", 0.02) + repeat for _ in range(4))
    return SearchCase("genome", records, made_queries(random, "N".join(records), 13, 70), 6, 130)


GENOME = _genome()
"""Four records on several pages."""

REPEATS = SearchCase("repeats", ("A" * 300,), tuple("A" * 100 for _ in range(16)), 5)
"""Each query has some 10,000 bytes of matches."""


@dataclass
class OpenedBackend:
    """A backend, its device, and what it said."""

    backend: CudaStreamsBackend
    device: WatchedDevice
    stats: Stats
    notices: list[str]

    too_many: ClassVar = "bytes"
    """Of what a block may have too many, as a pattern."""

    def find(self, block, max_rows=ANY, strand=FORWARD):
        columns = find_on(self.backend, block, strand, max_rows)
        return None if columns is None else rows_of(columns)

    def release(self):
        """Let all searchers give their memory back."""
        for searcher in self.backend._searchers:
            searcher.release()

    def refusals(self, work):
        """Do some work; then yield the number of each request for memory, which is refused now."""
        with refused(self.device, lambda number, size: False):
            work()
            requests = self.device.requests
        before = self.device.refusals
        self.release()
        for wanted in range(1, requests + 1):
            with refused(self.device, lambda number, size, wanted=wanted: number == wanted):
                yield wanted
            assert self.device.refusals == before + wanted
            self.release()

    @property
    def halved(self):
        """The numbers of queries that are said not to have fit."""
        pattern = rf"([\d,]+) queries do not fit the device: \d+ {self.too_many}.*; halving"
        return [int(re.fullmatch(pattern, line)[1]) for line in self.notices[1:]]


@dataclass
class OpenedTrees(OpenedBackend):
    """A backend that searches trees of one policy."""

    policy: Policy

    def load_pages(self, case, wide=False):
        self.backend.load_pages(case.pages(Layout.of(self.policy, wide)), case.minimum_length)


class OpenedTables(OpenedBackend):
    """A backend that searches tables."""

    too_many = "(bytes|bases)"

    def load_pages(self, case, kmer_length=3, reference_step=1):
        sampling = KmerSampling(kmer_length, reference_step)
        self.backend.load_pages(tables_of(case, sampling), case.minimum_length)


def close_all(every):
    """Close backends: then nothing may be left on their devices."""
    for one in every:
        if not one.device.closed:
            one.backend.close()
        assert everything_given_back(one.device)


@contextmanager
def refused(device, refuse):
    """Has a device refuse requests, whose numbers count from now on."""
    device.requests, before, device.refuse = 0, device.refuse, refuse
    yield
    device.refuse = before
