"""Simulated pairs whose names tell where they come from, made once by ``dwgsim``."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_SEED: Final = 7
DEFAULT_PAIRS: Final = 200_000
SIMULATION: Final = (
    *("-d", "400", "-s", "60", "-e", "0.001-0.006", "-E", "0.001-0.01"),
    *("-r", "0.001", "-R", "0.15", "-X", "0.3", "-y", "0"),
)
"""Fragments of 400 bases, standard deviation 60; sequencing errors that grow along the read, more
of them in the second mate; one base in a thousand changed, 15% of that by insertions and deletions,
each extended with a chance of 30%; no reads from nowhere."""


@dataclass(frozen=True)
class ReadSet:
    """Simulated pairs of one genome and read length.

    Attributes
    ----------
    name : str
        The genome, the read length, and the seed and the number of pairs if they are not the
        usual ones, with dots.
    reference : Path
        The genome.
    mates : tuple of Path
        Both files of FASTQ, uncompressed.
    pairs : int
        How many pairs there are.
    read_bases : int
        The length of each read.
    """

    name: str
    reference: Path
    mates: tuple[Path, Path]
    pairs: int
    read_bases: int


def read_set(
    genome: str, reference: Path, read_bases: int, pairs: int, seed: int, folder: Path
) -> ReadSet:
    """Return the pairs of a genome, made if they are not there.

    Parameters
    ----------
    genome : str
        The name of the genome.
    reference : Path
        Its FASTA.
    read_bases : int
        The length of both mates.
    pairs : int
        How many pairs to ask for.
    seed : int
        Where the random numbers start.
    folder : Path
        Where the files go.

    Raises
    ------
    subprocess.CalledProcessError
        If ``dwgsim`` fails.
    """
    name = f"{genome}.{read_bases}"
    name += "" if seed == DEFAULT_SEED else f".seed{seed}"
    name += "" if pairs == DEFAULT_PAIRS else f".pairs{pairs}"
    first, second = (folder / f"{name}.r{mate}.fq" for mate in (1, 2))
    if not (first.exists() and second.exists()):
        _simulate(reference, read_bases, pairs, seed, (first, second))
    found = count_reads(first)
    return ReadSet(name, reference, (first, second), found, read_bases)


def count_reads(path: Path) -> int:
    """Return the reads of a FASTQ file of four lines a read."""
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) // 4


def _simulate(
    reference: Path, read_bases: int, pairs: int, seed: int, mates: tuple[Path, Path]
) -> None:
    length = ["-1", str(read_bases), "-2", str(read_bases)]
    with tempfile.TemporaryDirectory(dir=mates[0].parent) as temporary:
        prefix = Path(temporary) / "made"
        words = ["-z", str(seed), *length, *SIMULATION, "-o", "1", "-N", str(pairs)]
        command = ["dwgsim", *words, str(reference), str(prefix)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        for mate, path in enumerate(mates, 1):
            made, part = Path(f"{prefix}.bwa.read{mate}.fastq.gz"), path.with_suffix(".part")
            with gzip.open(made, "rb") as file, open(part, "wb") as copy:
                shutil.copyfileobj(file, copy)
            part.rename(path)
