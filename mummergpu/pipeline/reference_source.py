"""Opens what a run searches: a FASTA file or an index file."""

from __future__ import annotations

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.format import is_index
from mummergpu.index.verification import verify_for_run
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference, read_reference
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.run_options import RunOptions
from mummergpu.runtime.progress import Phase, Work


def open_source(
    options: RunOptions,
    context: RunContext,
    reading: ReadingThreads,
    wants_checksums: bool = False,
    takes_circles: bool = False,
) -> Reference | IndexFile:
    """Read the reference or open its index file; verify the index file if the user asks for it.

    `wants_checksums` is that of `read_reference`; `takes_circles` allows an index with circular
    records.
    """
    context.progress.tell(Work(Phase.READING_REFERENCE))
    path = options.reference_path
    with context.stats.stage("ref_from_disk"):
        index = IndexFile(path) if is_index(path) else None
        if options.verify:
            verify_for_run(index, path, context.executor.map)
        if index is not None:
            if index.circular.size and not takes_circles:
                text = f"'{path}' is an index with circular records, to which reads are mapped only"
                raise OptionError("reference", text)
            return index
        reference = read_reference(
            path,
            any_letters=options.any_letters,
            threads=reading,
            needs_base=False,
            wants_checksums=wants_checksums,
            warn=context.warn,
        )
    if reference.base_count == 0:
        context.warn(f"{path}: the reference holds no A, C, G or T, so nothing is found in it")
    return reference


def reference_of(source: Reference | IndexFile) -> Reference:
    """Return the reference as its file has it, also that of an index file."""
    return source.original if isinstance(source, IndexFile) else source
