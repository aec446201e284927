"""Making an index file: the reference is read, its pages are built and written one by one.

Pages are let go as soon as they are written. The start of the file, without which it is no
index, is written last, and then the file gets its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from mummergpu import __version__
from mummergpu.errors import InputError, OptionError
from mummergpu.index.checksums import digest_of
from mummergpu.index.file import section_name
from mummergpu.index.format import (
    IndexHeader,
    PageEntry,
    Section,
    is_index,
)
from mummergpu.index.kmer_table import build_kmer_table
from mummergpu.index.pages import Page
from mummergpu.index.tree.build import build_pages
from mummergpu.index.writer import SectionWriter
from mummergpu.input.reference import Reference, read_reference
from mummergpu.matching.options import MatchOptions
from mummergpu.pipeline.plan import Plan, describe_plan, make_plan
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import CodeArray
from mummergpu.sequence.extension import MARGIN, with_margins


def make_index(
    options: MatchOptions,
    stats: Stats,
    notice: Callable[[str], None],
) -> None:
    """Write the index of a reference.

    Parameters
    ----------
    options : MatchOptions
        The reference, the output, and how to build; there are no queries.
    stats : Stats
        Takes times and numbers.
    notice : callable
        Takes lines for people who want to know more.

    Raises
    ------
    MummergpuError
        For whatever the user can mend.
    """
    with stats.stage("end_to_end"), ExitStack() as stack:
        output = stack.enter_context(OutputFile(options.output_path))
        if not output.is_file:
            raise OptionError("--output", "an index goes to a file, not to a pipe or a device")
        if is_index(options.reference_path):
            raise InputError("is an index already", options.reference_path)
        executor = stack.enter_context(ThreadPoolExecutor(options.threads))
        with stats.stage("ref_from_disk"):
            padded, reference = _read_padded(options.reference_path)
        plan = make_plan(options, reference)
        describe_plan(plan, options, reference, "none", stats, notice)
        writer = SectionWriter(output)
        with stats.stage("results_to_disk"):
            _write_reference(writer, reference, padded)
        entries = []
        for entry in _write_pages(writer, options, plan, reference, padded, executor, stats):
            entries.append(entry)
            notice(f"page {len(entries):,} of {len(plan.pages):,} is written")
        digest = digest_of(reference, executor.map)
        writer.finish(_header_of(options, plan, reference, digest, entries, writer.sections))


def _read_padded(path: str) -> tuple[CodeArray, Reference]:
    """Return the codes of a reference with margins, and the reference, which shares them."""
    reference = read_reference(path)
    padded = with_margins(reference.codes)
    return padded, replace(reference, codes=padded[MARGIN:-MARGIN])


def _write_reference(writer: SectionWriter, reference: Reference, padded: CodeArray) -> None:
    writer.write("record_starts", np.ascontiguousarray(reference.record_starts))
    writer.write("record_lengths", np.ascontiguousarray(reference.record_lengths))
    lengths = [len(name) for name in reference.names]
    writer.write("names", np.frombuffer(b"".join(reference.names), dtype=np.uint8))
    writer.write("name_offsets", np.cumsum([0, *lengths], dtype=np.int64))
    writer.write("reference", padded)


def _write_pages(
    writer: SectionWriter,
    options: MatchOptions,
    plan: Plan,
    reference: Reference,
    padded: CodeArray,
    executor: ThreadPoolExecutor,
    stats: Stats,
) -> Iterator[PageEntry]:
    """Build and write the pages; as many trees at a time as there are threads."""
    if plan.kmer_length:
        for page in plan.pages:
            yield _write_table(writer, plan, page, padded, executor, stats)
        return
    for group in plan.groups:
        for first in range(0, len(group), options.threads):
            together = group[first : first + options.threads]
            indexed = build_pages(
                reference, together, plan.layout, stats, executor, _nothing, options.builder
            )
            while indexed:
                one = indexed.pop(0)
                page, tree = one.page, one.tree
                with stats.stage("results_to_disk"):
                    writer.write(section_name(page.index, "nodes"), tree.nodes)
                    if not plan.layout.merged_tree:
                        writer.write(section_name(page.index, "children"), tree.children)
                    writer.write(section_name(page.index, "reference"), tree.reference)
                yield PageEntry(
                    page.begin, page.end, page.owned_end, tree.node_count, tree.leaf_count
                )


def _write_table(
    writer: SectionWriter,
    plan: Plan,
    page: Page,
    padded: CodeArray,
    executor: ThreadPoolExecutor,
    stats: Stats,
) -> PageEntry:
    with stats.stage("table_construction"):
        table = build_kmer_table(
            padded, page.begin, page.owned_end, plan.kmer_length, executor.map, plan.scratch_bytes
        )
    stats.add_bytes(tables=table.byte_count)
    with stats.stage("results_to_disk"):
        writer.write(section_name(page.index, "offsets"), table.offsets)
        writer.write(section_name(page.index, "positions"), table.positions)
    return PageEntry(page.begin, page.end, page.owned_end)


def _nothing() -> None:
    """Do nothing: a page counts when it is written, not when it is built."""


def _header_of(
    options: MatchOptions,
    plan: Plan,
    reference: Reference,
    digest: str,
    entries: list[PageEntry],
    sections: list[Section],
) -> IndexHeader:
    has_trees = plan.kmer_length == 0
    return IndexHeader(
        program=f"mummergpu {__version__}",
        reference_path=options.reference_path,
        digest=digest,
        records=len(reference.names),
        bases=int(reference.record_lengths.sum()),
        search=options.search,
        minimum_length=options.minimum_length,
        page_size=plan.page_size,
        search_length=plan.search_length if has_trees else 0,
        kmer_length=plan.kmer_length,
        policy=options.policy.code if has_trees else "",
        address_bits=plan.layout.address_bits if has_trees else 0,
        builder=options.builder if has_trees else "",
        pages=tuple(entries),
        sections=tuple(sections),
    )
