"""The mappers that are compared: how each one indexes a genome and maps reads."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OURS: Final = "mummergpu"


@dataclass(frozen=True)
class MappingJob:
    """Reads to map to a genome.

    Attributes
    ----------
    reference : Path
        The genome, uncompressed FASTA; its indexes go beside it.
    reads : tuple of Path
        One file of single reads, or the two of pairs.
    threads : int
        The threads of the mapper.
    """

    reference: Path
    reads: tuple[Path, ...]
    threads: int

    @property
    def paired(self) -> bool:
        """Whether the reads have mates."""
        return len(self.reads) == 2

    def beside(self, suffix: str) -> str:
        """Return the name of a file beside the reference."""
        return f"{self.reference}{suffix}"

    def files(self) -> list[str]:
        """Return the files of reads."""
        return [str(path) for path in self.reads]


@dataclass(frozen=True)
class Mapper:
    """A program that maps reads.

    Attributes
    ----------
    name : str
        What it is called.
    index : callable
        The command that makes its index.
    index_file : callable
        A file that is there once the index is; None if that cannot be told, and the index is
        made anew for each kind of reads.
    command : callable
        The command that maps with the index, less the words that name the output.
    output_words : tuple of str
        What the name of the output follows; empty if SAM goes to standard output.
    """

    name: str
    index: Callable[[MappingJob], list[str]]
    index_file: Callable[[MappingJob], Path | None]
    command: Callable[[MappingJob], list[str]]
    output_words: tuple[str, ...] = ()

    def make_index(self, job: MappingJob) -> None:
        """Make the index, if it is not there.

        Raises
        ------
        subprocess.CalledProcessError
            If the mapper fails.
        """
        known = self.index_file(job)
        words = self.index(job)
        if words and (known is None or not known.exists()):
            quiet = subprocess.DEVNULL
            subprocess.run(words, check=True, stdout=quiet, stderr=quiet)

    def map(self, job: MappingJob, output: Path) -> None:
        """Map reads to a file of SAM, which appears when it is complete.

        Raises
        ------
        subprocess.CalledProcessError
            If the mapper fails; what it has said goes to standard error before.
        """
        part = output.with_name(f"part.{output.name}")
        words = self.command(job)
        if self.output_words:
            subprocess.run([*words, *self.output_words, str(part)], check=True)
        else:
            with open(part, "wb") as file:
                subprocess.run(words, check=True, stdout=file, stderr=subprocess.DEVNULL)
        part.rename(output)


def _bowtie2_reads(job: MappingJob) -> list[str]:
    fasta = ["-f"] if job.reads[0].suffix in {".fa", ".fasta"} else []
    if job.paired:
        return [*fasta, "-1", str(job.reads[0]), "-2", str(job.reads[1])]
    return [*fasta, "-U", str(job.reads[0])]


PEERS: Final = (
    Mapper(
        "bwa",
        index=lambda job: ["bwa", "index", str(job.reference)],
        index_file=lambda job: Path(job.beside(".bwt")),
        command=lambda job: [
            *("bwa", "mem", "-t", str(job.threads), str(job.reference)),
            *job.files(),
        ],
    ),
    Mapper(
        "minibwa",
        index=lambda job: ["minibwa", "index", str(job.reference), str(job.reference)],
        index_file=lambda job: Path(job.beside(".mbw")),
        command=lambda job: [
            *("minibwa", "map", "-t", str(job.threads), str(job.reference)),
            *job.files(),
        ],
    ),
    Mapper(
        "strobealign",
        # Its index depends on the length of the reads, from which it guesses its seeds.
        index=lambda job: [
            *("strobealign", "--create-index", "-t", str(job.threads), str(job.reference)),
            *job.files(),
        ],
        index_file=lambda job: None,
        command=lambda job: [
            *("strobealign", "--use-index", "-t", str(job.threads), str(job.reference)),
            *job.files(),
        ],
    ),
    Mapper(
        "minimap2",
        index=lambda job: ["minimap2", "-x", "sr", "-d", job.beside(".mmi"), str(job.reference)],
        index_file=lambda job: Path(job.beside(".mmi")),
        command=lambda job: [
            *("minimap2", "-a", "-x", "sr", "-t", str(job.threads), job.beside(".mmi")),
            *job.files(),
        ],
    ),
    Mapper(
        "bowtie2",
        index=lambda job: [
            *("bowtie2-build", "-q", "--threads", str(job.threads)),
            *(str(job.reference), str(job.reference)),
        ],
        index_file=lambda job: Path(job.beside(".rev.1.bt2")),
        command=lambda job: [
            *("bowtie2", "-p", str(job.threads), "-x", str(job.reference)),
            *_bowtie2_reads(job),
        ],
    ),
)
"""The peers, as their makers mean them to be used for short reads."""


def our_mapper(command: str, index: str = "") -> Mapper:
    """Return our mapper.

    Parameters
    ----------
    command : str
        The words that start it, such as ``python -m mummergpu map``.
    index : str, optional
        The words that make an index, such as ``python -m mummergpu index``. By default it maps
        to the FASTA.
    """
    words, index_words = shlex.split(command), shlex.split(index)

    def index_command(job: MappingJob) -> list[str]:
        if not index_words:
            return []
        return [*index_words, str(job.reference), "-o", job.beside(".mgi")]

    def map_command(job: MappingJob) -> list[str]:
        reference = job.beside(".mgi") if index_words else str(job.reference)
        return [*words, reference, *job.files(), "-t", str(job.threads)]

    return Mapper(OURS, index_command, lambda job: None, map_command, ("-o",))


def chosen_mappers(names: Iterable[str], ours: Mapper | None) -> list[Mapper]:
    """Return the peers of some names that are on the PATH, and ours.

    Raises
    ------
    ValueError
        If a name is none of the peers'.
    """
    known = {mapper.name: mapper for mapper in PEERS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no mapper {unknown[0]} (there are: {', '.join(known)})")
    present = [known[name] for name in names if shutil.which(name)]
    return [*present, ours] if ours else present
