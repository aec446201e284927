"""Write the files of a workload: the reference, the queries and their description."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from mummergpu.errors import InputError, OptionError, OutputError
from mummergpu.input.reference import Reference, read_reference
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import Phase, Work
from mummergpu.sequence.codes import BREAK, CodeArray, decode
from mummergpu.workload.declaration import Copy, Excerpt, Genome, Reads, Workload, load_declaration
from mummergpu.workload.genome import diverge, record_lengths, synthesize
from mummergpu.workload.read_simulator import Tally, base_runs, sequence_reads

FORMAT: Final = 1
"""Version of the output; it grows if the same declaration and seed give other bytes."""

LINE_BASES: Final = 60
"""Number of bases in a line of ``reference.fa``."""

MAXIMUM_READS: Final = 1 << 32

_BLOCK_LINES: Final = 1 << 16


@frozen
class WorkloadFiles:
    """The files of a generated workload.

    Attributes
    ----------
    reference : Path
        The reference, as FASTA.
    queries : Path
        The reads, as FASTQ, or as FASTA if they have no qualities; the first mates of pairs; or
        the diverged copy, as FASTA.
    description : Path
        JSON with the parameters, the counts, and the SHA-256 of the other files.
    mates : Path or None
        The second mates of pairs.
    """

    reference: Path
    queries: Path
    description: Path
    mates: Path | None = None

    @property
    def query_paths(self) -> tuple[Path, ...]:
        """The files of queries."""
        return (self.queries,) if self.mates is None else (self.queries, self.mates)


def generate(
    name: str,
    folder: Path,
    scale: float = 1.0,
    reference: Path | None = None,
    seed: int | None = None,
    tell: Callable[[Work], None] = lambda work: None,
) -> WorkloadFiles:
    """Write a workload's reference and queries.

    Parameters
    ----------
    name : str
        One of `declaration.workload_names`.
    folder : Path
        The folder for the files; it is made if it is missing. Each file appears when it is
        complete, ``workload.json`` last, and replaces an older one.
    scale : float
        The factor for the number of reads, and for the length of a genome that is declared so.
        Other references and a diverged copy always have their full length.
    reference : Path, optional
        FASTA file of the reference, instead of a synthetic genome. ``reference.fa`` is a copy
        in which all letters but ACGT are N, and names end at the first white space. A workload
        with a real reference needs the file, and takes the declared regions of it.
    seed : int, optional
        A seed to use instead of the declared seed.
    tell : callable
        Receives the progress.

    Returns
    -------
    WorkloadFiles
        The files that were written.

    Raises
    ------
    OptionError
        If there is no such workload, if the scale gives no reads or too many, if the
        workload has no reads to scale, or if it needs a reference and none is given.
    InputError
        If the reference cannot be read, if it is not the declared one, or if no read fits into it.
    OutputError
        If a file cannot be written.
    """
    workload = load_declaration(name)
    count = scaled_count(workload.queries, scale)
    if reference is None and isinstance(workload.genome, Genome):
        workload = replace(workload, genome=_scaled_genome(workload.genome, scale))
    seed = workload.seed if seed is None else seed
    tell(Work(Phase.READING_REFERENCE if reference else Phase.MAKING_GENOME))
    source = _reference(workload, reference, seed)
    queries, *mates = (folder / file for file in _file_names(workload.queries))
    files = WorkloadFiles(
        folder / "reference.fa", queries, folder / "workload.json", mates[0] if mates else None
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(error.strerror or str(error), str(folder)) from error
    description = _describe(workload, source, reference, seed, scale)
    description["reference"]["sha256"] = _write(
        files.reference, _reported(fasta_text(source), source, files.reference, tell)
    )
    if isinstance(workload.queries, Copy):
        tell(Work(Phase.MAKING_COPY))
        copy, counts = diverge(source, workload.queries, seed, workload.name)
        digest = _write(files.queries, _reported(fasta_text(copy), copy, files.queries, tell))
        description["copy"] = {"file": files.queries.name, **counts, "sha256": digest}
    else:
        tally = Tally()

        def report(reads: int) -> None:
            tell(Work(Phase.READS_MADE, (reads,), tally.bases, reads / count))

        report(0)
        texts = sequence_reads(source, workload.queries, count, workload.name, seed, tally, report)
        digests = _write_all(files.query_paths, texts)
        description["reads"] = {
            "file": files.queries.name,
            "platform": workload.queries.platform,
            "count": count,
            **tally.as_dict(),
            "sha256": digests[0],
        }
        if files.mates is not None:
            description["reads"] |= {"mates": files.mates.name, "sha256_of_mates": digests[1]}
    # Last, for its checksums; and a folder with a description is complete.
    _write(files.description, [(json.dumps(description, indent=2) + "\n").encode()])
    return files


def _reported(
    texts: Iterable[bytes], content: Reference, path: Path, tell: Callable[[Work], None]
) -> Iterator[bytes]:
    """Yield the text of a reference, and report how much of it is written."""
    bases = int(content.record_lengths.sum())
    written = 0
    for text in texts:
        yield text
        # Nearly all of the text are bases and line ends.
        written += len(text) * LINE_BASES // (LINE_BASES + 1)
        share = min(1.0, written / max(1, bases))
        tell(Work(Phase.WRITING_FILE, (path.name,), int(share * bases), share))


def _file_names(queries: Reads | Copy) -> tuple[str, ...]:
    if isinstance(queries, Copy):
        return ("copy.fa",)
    if queries.is_paired:
        return ("reads_1.fq", "reads_2.fq")
    return ("reads.fq" if queries.quality else "reads.fa",)


def _scaled_genome(genome: Genome, scale: float) -> Genome:
    scaled = genome.scaled(scale)
    least = 2 * genome.longest_element
    if scaled.length < min(least, genome.length):
        raise OptionError(
            "--scale", f"{scale} makes a genome of {scaled.length} bases; {least} hold its repeats"
        )
    return scaled


def scaled_count(queries: Reads | Copy, scale: float) -> int:
    """Return the number of queries at a scale, at least 1.

    Raises
    ------
    OptionError
        If the scale gives no reads or too many, or there are no reads to scale.
    """
    if not math.isfinite(scale) or scale <= 0:
        raise OptionError("--scale", f"must be a number above 0, not {scale}")
    if isinstance(queries, Copy):
        if scale != 1:
            raise OptionError("--scale", "this workload has no reads of which to take a part")
        return 1
    scaled = int(queries.count * scale + 0.5)
    if not 1 <= scaled <= MAXIMUM_READS:
        raise OptionError("--scale", f"{scale} makes {scaled} reads of {queries.count}")
    return scaled


def _reference(workload: Workload, path: Path | None, seed: int) -> Reference:
    genome = workload.genome
    if isinstance(genome, Excerpt):
        require_reference(workload, path)
        return _excerpt(read_reference(str(path)), genome)
    if path is not None:
        return read_reference(str(path))
    codes = synthesize(genome, seed, workload.name)
    lengths = np.array(record_lengths(genome), dtype=np.int64)
    name = workload.name
    names = [f"{name}.{n + 1}" for n in range(lengths.size)] if lengths.size > 1 else [name]
    return _joined("reference.fa", codes, lengths, names)


def _joined(path: str, codes: CodeArray, lengths: Int64Array, names: Sequence[str]) -> Reference:
    starts = np.cumsum(np.append(0, lengths[:-1] + 1)).astype(np.int64)
    return Reference(path, codes, starts, lengths, tuple(map(str.encode, names)))


def require_reference(workload: Workload, path: Path | None) -> None:
    """Raise `OptionError` if a workload is cut from a real genome, and no file of it is given."""
    if isinstance(workload.genome, Excerpt) and path is None:
        regions = ", ".join(workload.genome.regions)
        raise OptionError(
            "--reference",
            f"'{workload.name}' is cut from {workload.genome.source}: name a FASTA file that has "
            f"{regions}",
        )


def _excerpt(source: Reference, excerpt: Excerpt) -> Reference:
    """Cut the declared regions out of a reference; `InputError` if it is another genome."""
    records = dict(
        zip(
            source.names, zip(source.record_starts, source.record_lengths, strict=True), strict=True
        )
    )
    pieces: list[CodeArray] = []
    for region in excerpt.regions:
        name, _, span = region.rpartition(":")
        first, last = map(int, span.split("-"))
        start, length = records.get(name.encode(), (0, 0))
        if last > length:
            raise InputError(f"has no bases {region}, of {excerpt.source}", source.path)
        pieces += [source.codes[start + first - 1 : start + last], np.array([BREAK], np.uint8)]
    lengths = np.array([piece.size for piece in pieces[::2]], dtype=np.int64)
    cut = _joined("reference.fa", np.concatenate(pieces[:-1]), lengths, excerpt.regions)
    digest = hashlib.sha256(b"".join(fasta_text(cut))).hexdigest()
    if digest != excerpt.sha256:
        raise InputError(f"has other bases than {excerpt.source} in its regions", source.path)
    return cut


def fasta_text(reference: Reference) -> Iterator[bytes]:
    """Yield a reference as FASTA, piece by piece, with `LINE_BASES` bases in a line.

    Breaks become N.
    """
    block = _BLOCK_LINES * LINE_BASES
    records = zip(reference.names, reference.record_starts, reference.record_lengths, strict=True)
    for name, start, length in records:
        yield b">" + name + b"\n"
        for begin in range(int(start), int(start + length), block):
            yield _lines(reference.codes[begin : min(begin + block, int(start + length))])


def _lines(codes: CodeArray) -> bytes:
    whole = codes.size // LINE_BASES * LINE_BASES
    lines = np.full((whole // LINE_BASES, LINE_BASES + 1), ord("\n"), dtype=np.uint8)
    letters = np.frombuffer(decode(codes), dtype=np.uint8)
    lines[:, :LINE_BASES] = letters[:whole].reshape(-1, LINE_BASES)
    rest = letters[whole:].tobytes()
    return lines.tobytes() + (rest + b"\n" if rest else b"")


def _describe(
    workload: Workload, source: Reference, path: Path | None, seed: int, scale: float
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": workload.name,
        "organism": workload.organism,
        "minimum_length": workload.minimum_length,
        "seed": seed,
        "scale": scale,
        "reference": {
            "file": "reference.fa",
            "source": "synthetic" if path is None else path.name,
            "records": len(source.names),
            "bases": int(source.record_lengths.sum()),
            "unknown_bases": int(source.record_lengths.sum() - np.diff(base_runs(source)).sum()),
        },
    }


def _write(path: Path, texts: Iterable[bytes | memoryview]) -> str:
    """Write pieces of text to a file, and return their SHA-256."""
    (digest,) = _write_all((path,), ((text,) for text in texts))
    return digest


def _write_all(
    paths: Sequence[Path], texts: Iterable[Sequence[bytes | memoryview]]
) -> tuple[str, ...]:
    """Write pieces of text to several files at once, and return the SHA-256 of each."""
    digests = [hashlib.sha256() for _ in paths]
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(str(path))) for path in paths]
        # Each file is written by a thread of its own while the next pieces are made.
        writers = stack.enter_context(ThreadPoolExecutor(len(paths)))

        def write(place: int, text: bytes | memoryview) -> None:
            digests[place].update(text)
            files[place].write(text)

        under_way: list[Future[None]] = []
        for pieces in texts:
            for future in under_way:
                future.result()
            under_way = [writers.submit(write, *one) for one in enumerate(pieces)]
        for future in under_way:
            future.result()
    return tuple(digest.hexdigest() for digest in digests)
