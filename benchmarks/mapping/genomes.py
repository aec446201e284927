"""The genomes that mappers are compared on: real ones from files, one made of repeats."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Final

REPEATS: Final = "repeats"
REFERENCES: Final = {
    "human": "human_grch38.chr20_and_21_first10M.fa.gz",
    "yeast": "yeast_S288C_R64.ensembl94.fa.gz",
    "ecoli": "ecoli_K12_MG1655.NC_000913.2.fa.gz",
}
"""What the real genomes are called in the folder of references: the first 10 Mbp of GRCh38's
chromosomes 20 and 21, *S. cerevisiae* S288C R64, and *E. coli* K-12 MG1655."""


def genome_sources(references: Path | None, named: list[str]) -> dict[str, Path | None]:
    """Return the file of each genome that is there; None of the one that is made.

    Parameters
    ----------
    references : Path, optional
        A folder with files of `REFERENCES`.
    named : list of str
        Further genomes, or other files of the known ones, as ``NAME=FILE``.

    Raises
    ------
    ValueError
        If a name lacks its file.
    """
    sources: dict[str, Path | None] = {}
    for name, file in REFERENCES.items():
        if references is not None and (references / file).exists():
            sources[name] = references / file
    for item in named:
        name, equals, path = item.partition("=")
        if not (name and equals and path):
            raise ValueError(f"not a genome as NAME=FILE: {item}")
        sources[name] = Path(path)
    return {**sources, REPEATS: None}


def genome_file(name: str, source: Path | None, folder: Path, seed: int) -> Path:
    """Return the uncompressed FASTA of a genome in a folder, made if it is not there.

    Parameters
    ----------
    name : str
        What it is called.
    source : Path, optional
        FASTA, compressed with gzip or not. By default the genome of repeats is made.
    folder : Path
        Where the file goes.
    seed : int
        Where the random numbers of the genome of repeats start.
    """
    path = folder / (f"{name}.fa" if source else f"{name}-{seed}.fa")
    if not path.exists():
        part = path.with_suffix(".part")
        if source is None:
            write_repeats(part, seed)
        else:
            opener = gzip.open if source.suffix == ".gz" else open
            with opener(source, "rb") as file, open(part, "wb") as copy:
                shutil.copyfileobj(file, copy)
        part.rename(path)
    return path


def write_repeats(path: Path, seed: int, bases: int = 8_000_000) -> None:
    """Write a genome of two records, two thirds of it repeats of all ages and kinds.

    Parameters
    ----------
    path : Path
        Where the FASTA goes.
    seed : int
        Where the random numbers start.
    bases : int
        The length of both records together.

    Notes
    -----
    There are young and old interspersed families, segmental duplications that are nearly
    identical, whole copies, satellites, and short tandem arrays, whose counts grow with the
    genome; families have copies in both records.
    """
    import numpy as np

    from mummergpu.input.reference import Reference
    from mummergpu.workload.declaration import Gaps, Genome, Repeats, Tandems
    from mummergpu.workload.generation import fasta_text
    from mummergpu.workload.genome import synthesize

    def many(count: int) -> int:
        return max(1, count * bases // 8_000_000)

    def families(
        count: int, length: tuple[int, int], copies: int, divergence: tuple[float, float]
    ) -> Repeats:
        return Repeats(count, length, divergence, (many(copies), many(copies)))

    genome = Genome(
        length=bases,
        gc=0.41,
        repeats=(
            families(4, (280, 320), 1_200, (0.02, 0.2)),
            families(4, (1_000, 6_000), 150, (0.005, 0.2)),
            families(40, (150, 1_500), 40, (0.01, 0.3)),
            Repeats(many(30), (5_000, 20_000), (0.0, 0.02), (2, 3)),
            Repeats(many(20), (500, 3_000), (0.0, 0.0), (2, 8)),
        ),
        tandems=(
            Tandems(many(3), (150, 200), (50, 200), (0.0, 0.03)),
            Tandems(many(60), (10, 60), (5, 30), (0.0, 0.1)),
            Tandems(many(800), (1, 6), (5, 30), (0.0, 0.1)),
        ),
        gaps=(Gaps(many(4), (100, 5_000)),),
    )
    codes = synthesize(genome, seed, REPEATS)
    starts = np.array([0, bases // 3], dtype=np.int64)
    lengths = np.array([bases // 3, bases - bases // 3], dtype=np.int64)
    names = (b"repeats_1", b"repeats_2")
    with open(path, "wb") as file:
        file.writelines(fasta_text(Reference(str(path), codes, starts, lengths, names)))
