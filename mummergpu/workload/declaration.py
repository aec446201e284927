"""Read and check the TOML files of ``workloads/``, which declare the workloads.

These files are inside the package if it was installed from a wheel. In a checkout, and so in an
editable install, they are beside the package.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from mummergpu.errors import InputError, OptionError
from mummergpu.runtime.frozen import frozen
from mummergpu.workload.toml_table import CheckedTable, Profile


@frozen
class Repeats:
    """Families of dispersed repeats: diverged copies of a consensus, in both orientations.

    Attributes
    ----------
    families : int
        The number of families.
    length : tuple of int
        The shortest and the longest consensus, in bases.
    copies : tuple of int
        The fewest and the most copies of a family; none if a share of the genome tells them.
    divergence : tuple of float
        The lowest and the highest share of substituted bases in a copy.
    share : float
        The bases of all copies, as a share of the genome; 0 if their number is given.
    is_cut : bool
        Whether copies lack a random part of their beginning, as most LINEs do.
    """

    families: int
    length: tuple[int, int]
    copies: tuple[int, int]
    divergence: tuple[float, float]
    share: float = 0.0
    is_cut: bool = False


@frozen
class Segments:
    """Segmental duplications: diverged copies of parts of the genome, in both orientations.

    Attributes
    ----------
    share : float
        The bases of all copies, as a share of the genome.
    length : tuple of int
        The shortest and the longest copy, in bases.
    divergence : tuple of float
        The lowest and the highest share of substituted bases in a copy.
    """

    share: float
    length: tuple[int, int]
    divergence: tuple[float, float]


@frozen
class Satellites:
    """Satellites of a higher order: arrays of a unit that is made of diverged monomers.

    Attributes
    ----------
    share : float
        The bases of all arrays, as a share of the genome.
    monomer : int
        The bases of a monomer; all arrays have the same.
    monomers : int
        The monomers of a unit; each array has a unit of its own.
    difference : tuple of float
        The lowest and the highest share of substituted bases in a monomer of a unit.
    units : tuple of int
        The fewest and the most units of an array.
    divergence : tuple of float
        The lowest and the highest share of substituted bases in an array, on top of that.
    """

    share: float
    monomer: int
    monomers: int
    difference: tuple[float, float]
    units: tuple[int, int]
    divergence: tuple[float, float]


@frozen
class Tandems:
    """Tandem arrays, which are adjacent copies of a unit: satellites and microsatellites.

    Attributes
    ----------
    arrays : int
        The number of arrays; each has its own unit.
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


@frozen
class Gaps:
    """Runs of N.

    Attributes
    ----------
    runs : int
        The number of runs.
    length : tuple of int
        The shortest and the longest run, in bases.
    """

    runs: int
    length: tuple[int, int]


@frozen
class Genome:
    """The declaration of a synthetic reference.

    Attributes
    ----------
    length : int
        The number of bases, gaps included.
    gc : float
        The share of G and C among the bases.
    repeats, tandems, gaps : tuple
        The elements that are laid over the random bases; segments follow repeats, satellites
        tandems.
    segments, satellites : tuple
        The same.
    records : int
        The number of records; the first is three times as long as the last.
    is_scaled : bool
        Whether a scale changes the genome too: its length, tandem arrays and gaps. Repeats of such
        a genome are declared by their share of it.
    """

    length: int
    gc: float
    repeats: tuple[Repeats, ...]
    tandems: tuple[Tandems, ...]
    gaps: tuple[Gaps, ...]
    segments: tuple[Segments, ...] = ()
    satellites: tuple[Satellites, ...] = ()
    records: int = 1
    is_scaled: bool = False

    def scaled(self, scale: float) -> Genome:
        """Return the genome at a scale, with as many elements in proportion."""
        if not self.is_scaled:
            return self
        return replace(
            self,
            length=round(self.length * scale),
            tandems=tuple(replace(one, arrays=round(one.arrays * scale)) for one in self.tandems),
            gaps=tuple(replace(one, runs=round(one.runs * scale)) for one in self.gaps),
        )

    @property
    def longest_element(self) -> int:
        """The bases of the longest element that can be laid over the genome."""
        lengths = [1]
        lengths += [one.length[1] for one in self.repeats]
        lengths += [one.length[1] for one in self.gaps]
        lengths += [one.length[1] for one in self.segments]
        lengths += [one.unit[1] * one.copies[1] for one in self.tandems]
        lengths += [one.monomer * one.monomers * one.units[1] for one in self.satellites]
        return max(lengths)


@frozen
class Reads:
    """The declaration of reads of one sequencing platform.

    Attributes
    ----------
    platform : str
        The name of the platform, for people.
    count : int
        The number of reads at scale 1.
    length_mean, length_deviation : float
        The mean and standard deviation of the read length, in bases.
    length_minimum, length_maximum : int
        The least and greatest read length, in bases; others are set to these.
    substitution, insertion, deletion : tuple of (float, float)
        The rate of each error per base, as a curve along the read.
    unknown : tuple of (float, float)
        The rate of N per base, as a curve along the read.
    quality : tuple of (float, float)
        The mean Phred quality of a correct base, as a curve along the read; empty for reads
        without qualities, which are written as FASTA, with only the name in the header.
    homopolymer : tuple of float
        The chance that a run of 1, 2, 3... equal bases is called one base too long or too
        short; the last value also holds for all longer runs.
    template_mean, template_deviation : float
        The mean and standard deviation of the bases of a template, whose two ends are read; 0
        for single reads.
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
    template_mean: float = 0.0
    template_deviation: float = 0.0

    @property
    def is_paired(self) -> bool:
        """Whether both ends of each template are read; `count` is the number of templates then."""
        return self.template_mean > 0


@frozen
class Copy:
    """The declaration of a diverged copy of the whole reference, like a related genome.

    Attributes
    ----------
    substitution, insertion, deletion : float
        The shares of bases that are replaced by another base, followed by an inserted base,
        or deleted.
    """

    substitution: float
    insertion: float
    deletion: float


@frozen
class Workload:
    """A declared workload.

    Attributes
    ----------
    name : str
        The name; workloads of the paper have their names in its Table 1.
    organism : str
        The organism that the reference imitates.
    minimum_length : int
        Least length of a match, in bases (``-l``).
    seed : int
        The seed, unless the user gives another.
    genome : Genome
        The reference, unless the user gives one.
    queries : Reads or Copy
        The queries that are searched in the reference.
    """

    name: str
    organism: str
    minimum_length: int
    seed: int
    genome: Genome
    queries: Reads | Copy


def workload_folder() -> Path:
    """Return the folder of the declarations."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "workloads"
    return installed if installed.is_dir() else package.parent / "workloads"


def workload_names() -> list[str]:
    """Return the names of the declared workloads, in alphabetical order."""
    return sorted(path.stem for path in workload_folder().glob("*.toml"))


def load_declaration(name: str) -> Workload:
    """Return the workload of a name, one of `workload_names` in upper or lower case.

    Raises
    ------
    OptionError
        If there is no such workload.
    InputError
        If the file is not a valid declaration.
    """
    known = workload_names()
    if name.upper() not in known:
        choice = ", ".join(known) or f"none in {workload_folder()}"
        raise OptionError("NAME", f"there is no workload '{name}' (there are: {choice})")
    return read_declaration(workload_folder() / f"{name.upper()}.toml")


def read_declaration(path: Path) -> Workload:
    """Read a declaration from a TOML file with the keys that ``workloads/README.md`` describes.

    Raises
    ------
    InputError
        If the file cannot be read, is not TOML, lacks a key, has an unknown key, or has a value
        out of range.
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
        segments=tuple(_segments(inner, length) for inner in table.tables("segments")),
        satellites=tuple(_satellites(inner) for inner in table.tables("satellites")),
        records=table.integer("records", 1, length) if table.has("records") else 1,
        is_scaled=table.has("scaled") and table.truth("scaled"),
    )
    if genome.longest_element > length:
        raise table.error("length", "is shorter than the longest element")
    if genome.is_scaled and any(not repeats.share for repeats in genome.repeats):
        raise table.error("scaled", "needs repeats that are declared by their share")
    table.finish()
    return genome


def _repeats(table: CheckedTable, genome_length: int) -> Repeats:
    has_share = table.has("share")
    repeats = Repeats(
        families=table.integer("families", 1 if has_share else 0),
        length=table.integers("length", 1, genome_length),
        copies=(0, 0) if has_share else table.integers("copies", 0),
        divergence=table.numbers("divergence", 0, 1),
        share=table.number("share", 0, 1) if has_share else 0.0,
        is_cut=table.has("cut") and table.truth("cut"),
    )
    table.finish()
    return repeats


def _segments(table: CheckedTable, genome_length: int) -> Segments:
    segments = Segments(
        share=table.number("share", 0, 1),
        length=table.integers("length", 1, genome_length),
        divergence=table.numbers("divergence", 0, 1),
    )
    table.finish()
    return segments


def _satellites(table: CheckedTable) -> Satellites:
    satellites = Satellites(
        share=table.number("share", 0, 1),
        monomer=table.integer("monomer", 1),
        monomers=table.integer("monomers", 1),
        difference=table.numbers("difference", 0, 1),
        units=table.integers("units", 1),
        divergence=table.numbers("divergence", 0, 1),
    )
    table.finish()
    return satellites


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
        template_mean=_if_given(table, "template_mean", 1),
        template_deviation=_if_given(table, "template_deviation", 0),
    )
    if reads.length_minimum > reads.length_maximum:
        raise table.error("length_minimum", "must not be above length_maximum")
    if reads.is_paired and not reads.quality:
        raise table.error("template_mean", "needs reads with qualities")
    table.finish()
    return reads


def _if_given(table: CheckedTable, key: str, low: float) -> float:
    return table.number(key, low, 1e6) if table.has(key) else 0.0
