"""Make an index file: read the reference, then build and write its pages one by one.

The memory of a page is freed as soon as the page is written. The header at the start of the file
is written last, and then the file gets its name. So an unfinished file is never an index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError, OptionError
from mummergpu.index.file import CHECKSUM_SECTION
from mummergpu.index.format import CIRCULAR_SECTION, digest_of, is_index
from mummergpu.index.options import KmerOptions
from mummergpu.index.reference_index import BuildFacts, BuildWork, StorableIndex
from mummergpu.index.writer import SectionWriter
from mummergpu.input.bytes.files import bytes_of_files
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.circular_records import UnrolledReference, original_of, unrolled
from mummergpu.input.reference import Reference, read_reference, record_checksums
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.options import BuildOptions
from mummergpu.pipeline.plan import describe_plan, plan_storable_index
from mummergpu.pipeline.progress import PageProgress
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import Phase, Work
from mummergpu.version import __version__


def make_index(options: BuildOptions, context: RunContext) -> None:
    """Write the index of a reference.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    stats, tell = context.stats, context.progress.tell
    with stats.stage("end_to_end"), ExitStack() as stack:
        output = stack.enter_context(open_index_file(options.output_path))
        if is_index(options.reference_path):
            raise InputError("is an index already", options.reference_path)
        stack.callback(context.executor.shutdown)
        tell(Work(Phase.READING_REFERENCE))
        with stats.stage("ref_from_disk"):
            path, letters = options.reference_path, options.any_letters
            is_file = bytes_of_files([path]) is not None
            checksums = context.executor.submit(record_checksums, path) if is_file else None
            with ReadingThreads(options.threads) as reading:
                reference = read_reference(
                    path,
                    any_letters=letters,
                    threads=reading,
                    wants_checksums=True,
                    warn=context.warn,
                )
        if options.circular:
            if not isinstance(options.index.kind, KmerOptions):
                text = "reads are mapped with k-mers, and circular records are for them"
                raise OptionError("circular", text)
            reference = unrolled(reference, options.circular)
        index = plan_storable_index(reference, options.index, options.threads)
        length = options.index.minimum_length
        describe_plan(index, length, "none", context)
        done = PageProgress(tell, index.pages, writes=True)

        def sums() -> Sequence[str]:
            return original_of(reference).checksums if checksums is None else checksums.result()

        write_index(index, length, output, context.build_work(done), context.notice, sums)
        done.end()


def open_index_file(path: str) -> OutputFile:
    """Return an output file for an index, which must be a regular file."""
    output = OutputFile(path, durable=True)
    if not output.is_file:
        output.abandon()
        raise OptionError("output", "an index goes to a file, not to a pipe or a device")
    return output


def write_index(
    index: StorableIndex[Any],
    minimum_length: int,
    output: OutputFile,
    work: BuildWork,
    notice: Callable[[str], None],
    checksums: Callable[[], Sequence[str]] = lambda: (),
) -> None:
    """Build the pages of an index one after the other, and write them with their reference.

    `checksums` waits for the checksums of the records, if any (`Reference.checksums`).
    """
    reference = index.reference
    writer = SectionWriter(output)
    # The first table is built meanwhile.
    writer.write_beside(work.executor, _reference_sections(reference))
    entries = []
    for entry in index.write_pages(writer, work):
        entries.append(entry)
        notice(f"page {len(entries):,} of {len(index.pages):,} is written")
    writer.wait()
    sums = np.frombuffer(bytes.fromhex("".join(checksums())), dtype=np.uint8)
    writer.write(CHECKSUM_SECTION, sums)
    digest = digest_of(original_of(reference), work.executor.map)
    program = f"mummergpu {__version__}"
    pages, sections = tuple(entries), tuple(writer.sections)
    writer.finish(index.header(BuildFacts(program, digest, minimum_length, pages, sections)))


def _reference_sections(searched: Reference) -> list[tuple[str, npt.NDArray[Any]]]:
    reference = original_of(searched)
    lengths = [len(name) for name in reference.names]
    circular = []
    if isinstance(searched, UnrolledReference):
        circular = [(CIRCULAR_SECTION, searched.originals[len(reference.names) :])]
    return [
        *circular,
        ("record_starts", np.ascontiguousarray(reference.record_starts)),
        ("record_lengths", np.ascontiguousarray(reference.record_lengths)),
        ("names", np.frombuffer(b"".join(reference.names), dtype=np.uint8)),
        ("name_offsets", np.cumsum([0, *lengths], dtype=np.int64)),
        ("reference", searched.padded_codes),
        ("letter_positions", reference.letters.positions),
        ("letter_codes", reference.letters.codes),
    ]
