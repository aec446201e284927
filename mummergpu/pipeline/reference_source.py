"""Opens what a run searches: a FASTA file or an index file."""

from __future__ import annotations

from concurrent.futures import Executor

from mummergpu.index.file import IndexFile
from mummergpu.index.verification import verify_for_run
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference, read_reference


def open_source(
    path: str,
    has_index: bool,
    verifies: bool,
    any_letters: bool,
    executor: Executor,
    reading: ReadingThreads,
) -> Reference | IndexFile:
    """Read a reference or open its index file; verify the index file if the user asks for it.

    Parameters
    ----------
    path : str
        The file.
    has_index : bool
        Whether it is an index file.
    verifies : bool
        Whether to compare an index file with its checksums.
    any_letters : bool
        Accept records whose letters are mostly not DNA or RNA.
    executor : concurrent.futures.Executor
        Its threads compute the checksums.
    reading : ReadingThreads
        They help with a large file.

    Returns
    -------
    Reference or IndexFile
        What the file holds.

    Raises
    ------
    MummergpuError
        If the file cannot be read, or is at fault.
    """
    index = IndexFile(path) if has_index else None
    if verifies:
        verify_for_run(index, path, executor.map)
    if index is not None:
        return index
    return read_reference(path, any_letters=any_letters, threads=reading)
