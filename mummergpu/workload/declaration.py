"""What a workload is: the TOML files of ``workloads/``, read and checked.

The files lie inside the package where it was installed from a wheel, and beside the
package in a checkout (or an editable install, which is one).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from mummergpu.errors import InputError, OptionError
from mummergpu.workload.toml_table import CheckedTable, Profile


@dataclass(frozen=True)
class Repeats:
    """Families of dispersed repeats: diverged copies of a consensus, in both orientations.

    Attributes
    ----------
    families : int
        The number of families.
    length : tuple of int
        The shortest and the longest consensus, in bases.
    copies : tuple of int
        The fewest and the most copies of a family.
    divergence : tuple of float
        The lowest and the highest share of substituted bases in a copy.
    """

    families: int
    length: tuple[int, int]
    copies: tuple[int, int]
    divergence: tuple[float, float]


@dataclass(frozen=True)
class Tandems:
    """Arrays of adjacent copies of a unit: satellites and microsatellites.

    Attributes
    ----------
    arrays : int
        The number of arrays, each with a unit of its own.
    unit : tuple of int
        The shortest and the longest unit, in bases.
    copies : tuple of int
        The fewest and the most units of an array.
    divergence : tuple of float
        The lowest and the highest share of substituted bases in an array.
    """

    arrays: int
    unit: tuple[int, int]
    copies: tuple[int, int]
    divergence: tuple[float, float]


@dataclass(frozen=True)
class Gaps:
    """Runs of N.

    Attributes
    ----------
    runs : int
        Their number.
    length : tuple of int
        The shortest and the longest, in bases.
    """

    runs: int
    length: tuple[int, int]


@dataclass(frozen=True)
class Genome:
    """A synthetic reference of one record.

    Attributes
    ----------
    length : int
        In bases, gaps included.
    gc : float
        The share of G and C among the bases.
    repeats, tandems, gaps : tuple
        What is laid over the random bases, in this order.
    """

    length: int
    gc: float
    repeats: tuple[Repeats, ...]
    tandems: tuple[Tandems, ...]
    gaps: tuple[Gaps, ...]


@dataclass(frozen=True)
class Reads:
    """Reads of one platform.

    Attributes
    ----------
    platform : str
        Its name, for people.
    count : int
        The number of reads at scale 1.
    length_mean, length_deviation : float
        Of the bell curve of the lengths, in bases.
    length_minimum, length_maximum : int
        Where the curve is cut.
    substitution, insertion, deletion : tuple of (float, float)
        The rate of each error a base, along the read.
    unknown : tuple of (float, float)
        The rate of N, along the read.
    quality : tuple of (float, float)
        The mean Phred quality of a right base, along the read; empty for reads without
        qualities, which are written as FASTA, each with its name alone.
    homopolymer : tuple of float
        The chance that a run of 1, 2, 3... equal bases is called one base too long or too
        short; the last value holds for all longer runs.
    """

    platform: str
    count: int
    length_mean: float
    length_deviation: float
    length_minimum: int
    length_maximum: int
    substitution: Profile
    insertion: Profile
    deletion: Profile
    unknown: Profile
    quality: Profile
    homopolymer: tuple[float, ...]


@dataclass(frozen=True)
class Copy:
    """A diverged copy of the whole reference, as the genome of a relative.

    Attributes
    ----------
    substitution, insertion, deletion : float
        The share of the bases that are replaced by another, followed by an inserted one,
        or left out.
    """

    substitution: float
    insertion: float
    deletion: float


@dataclass(frozen=True)
class Workload:
    """A declared workload.

    Attributes
    ----------
    name : str
        As in Table 1 of the paper, for those that stand in it.
    organism : str
        What the reference stands for.
    minimum_length : int
        The fewest bases of a match (``-l``).
    seed : int
        The seed of a run that names none.
    genome : Genome
        The reference of a run that is given none.
    queries : Reads or Copy
        What is searched in the reference.
    """

    name: str
    organism: str
    minimum_length: int
    seed: int
    genome: Genome
    queries: Reads | Copy


def workload_folder() -> Path:
    """Return the folder of the declarations.

    Returns
    -------
    Path
        Inside the installed package, or beside it in a checkout.
    """
    package = Path(__file__).resolve().parent.parent
    installed = package / "workloads"
    return installed if installed.is_dir() else package.parent / "workloads"


def workload_names() -> list[str]:
    """Return the names of the declared workloads, in alphabetical order."""
    return sorted(path.stem for path in workload_folder().glob("*.toml"))


def load_declaration(name: str) -> Workload:
    """Return a workload by its name.

    Parameters
    ----------
    name : str
        One of `workload_names`, in either case.

    Returns
    -------
    Workload
        Its declaration.

    Raises
    ------
    OptionError
        If there is no such workload.
    InputError
        If its file is not a valid declaration.
    """
    known = workload_names()
    if name.upper() not in known:
        choice = ", ".join(known) or f"none in {workload_folder()}"
        raise OptionError("NAME", f"there is no workload '{name}' (there are: {choice})")
    return read_declaration(workload_folder() / f"{name.upper()}.toml")


def read_declaration(path: Path) -> Workload:
    """Read a declaration from a file.

    Parameters
    ----------
    path : Path
        A TOML file as ``workloads/README.md`` describes.

    Returns
    -------
    Workload
        What it declares.

    Raises
    ------
    InputError
        If it cannot be read, is not TOML, lacks a key, has an unknown one, or a value is
        out of its range.
    """
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise InputError(error.strerror or str(error), str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a TOML file: {error}", str(path)) from error
    table = CheckedTable(content, str(path), "")
    workload = Workload(
        name=table.text("name"),
        organism=table.text("organism"),
        minimum_length=table.integer("minimum_length", 1),
        seed=table.integer("seed", 0),
        genome=_genome(table.table("genome")),
        queries=_queries(table),
    )
    table.finish()
    return workload


def _genome(table: CheckedTable) -> Genome:
    length = table.integer("length", 1)
    genome = Genome(
        length=length,
        gc=table.number("gc", 0, 1),
        repeats=tuple(_repeats(inner, length) for inner in table.tables("repeats")),
        tandems=tuple(_tandems(inner, length) for inner in table.tables("tandems")),
        gaps=tuple(_gaps(inner, length) for inner in table.tables("gaps")),
    )
    table.finish()
    return genome


def _repeats(table: CheckedTable, genome_length: int) -> Repeats:
    repeats = Repeats(
        families=table.integer("families", 0),
        length=table.integers("length", 1, genome_length),
        copies=table.integers("copies", 0),
        divergence=table.numbers("divergence", 0, 1),
    )
    table.finish()
    return repeats


def _tandems(table: CheckedTable, genome_length: int) -> Tandems:
    tandems = Tandems(
        arrays=table.integer("arrays", 0),
        unit=table.integers("unit", 1, genome_length),
        copies=table.integers("copies", 1),
        divergence=table.numbers("divergence", 0, 1),
    )
    if tandems.unit[1] * tandems.copies[1] > genome_length:
        raise table.error("copies", "would make an array longer than the genome")
    table.finish()
    return tandems


def _gaps(table: CheckedTable, genome_length: int) -> Gaps:
    gaps = Gaps(runs=table.integer("runs", 0), length=table.integers("length", 1, genome_length))
    table.finish()
    return gaps


def _queries(table: CheckedTable) -> Reads | Copy:
    return _copy(table.table("copy")) if table.has("copy") else _reads(table.table("reads"))


def _copy(table: CheckedTable) -> Copy:
    copy = Copy(
        substitution=table.number("substitution", 0, 1),
        insertion=table.number("insertion", 0, 1),
        deletion=table.number("deletion", 0, 1),
    )
    if copy.substitution + copy.insertion + copy.deletion > 1:
        raise table.error("substitution", "must not be above 1 with insertion and deletion")
    table.finish()
    return copy


def _reads(table: CheckedTable) -> Reads:
    reads = Reads(
        platform=table.text("platform"),
        count=table.integer("count", 1),
        length_mean=table.number("length_mean", 1, 1e6),
        length_deviation=table.number("length_deviation", 0, 1e6),
        length_minimum=table.integer("length_minimum", 1, 10**6),
        length_maximum=table.integer("length_maximum", 1, 10**6),
        substitution=table.profile("substitution", 0, 0.2),
        insertion=table.profile("insertion", 0, 0.2),
        deletion=table.profile("deletion", 0, 0.2),
        unknown=table.profile("unknown", 0, 0.2),
        quality=table.profile("quality", 2, 60, may_be_empty=True),
        homopolymer=table.values("homopolymer", 0, 1),
    )
    if reads.length_minimum > reads.length_maximum:
        raise table.error("length_minimum", "must not be above length_maximum")
    table.finish()
    return reads
