"""Read the TOML files of ``workloads/``, which declare the workloads.

``workloads/README.md`` describes their keys; lengths are in bases, pairs are the ends of a range.
These files are inside the package if it was installed from a wheel. In a checkout, and so in an
editable install, they are next to the package.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mummergpu.errors import InputError, OptionError
from mummergpu.runtime.frozen import frozen

Profile = tuple[tuple[float, float], ...]
"""Points (fraction of the read, value) of a curve; straight lines join them."""


@frozen
class Repeats:
    """Families of dispersed repeats: diverged copies of a consensus, in both orientations."""

    families: int
    length: tuple[int, int]
    divergence: tuple[float, float]
    copies: tuple[int, int] = (0, 0)
    share: float = 0.0
    is_cut: bool = False


@frozen
class Segments:
    """Segmental duplications: diverged copies of parts of the genome, in both orientations."""

    share: float
    length: tuple[int, int]
    divergence: tuple[float, float]


@frozen
class Satellites:
    """Satellites of a higher order: arrays of a unit that is made of diverged monomers."""

    share: float
    monomer: int
    monomers: int
    difference: tuple[float, float]
    units: tuple[int, int]
    divergence: tuple[float, float]


@frozen
class Tandems:
    """Tandem arrays, which are adjacent copies of a unit: satellites and microsatellites."""

    arrays: int
    unit: tuple[int, int]
    copies: tuple[int, int]
    divergence: tuple[float, float]


@frozen
class Gaps:
    """Runs of N."""

    runs: int
    length: tuple[int, int]


@frozen
class Genome:
    """The declaration of a synthetic reference."""

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
class Excerpt:
    """The declaration of a real reference: parts of the records of a FASTA file of the user's.

    `regions` are written as samtools writes them: ``chr20:60001-10000000`` are the bases from
    60,001 to 10,000,000 of a record, counted from 1. `source` names the genome, and `sha256` is the
    digest of the ``reference.fa`` that is made.
    """

    source: str
    regions: tuple[str, ...]
    sha256: str


@frozen
class Reads:
    """The declaration of reads of one sequencing platform."""

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
    """The declaration of a diverged copy of the whole reference, like a related genome."""

    substitution: float
    insertion: float
    deletion: float


@frozen
class Workload:
    """A declared workload."""

    name: str
    organism: str
    minimum_length: int
    seed: int
    genome: Genome | Excerpt
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
    """Return the workload of a name, one of `workload_names` in upper or lower case."""
    known = workload_names()
    if name.upper() not in known:
        choice = ", ".join(known) or f"none in {workload_folder()}"
        raise OptionError("NAME", f"there is no workload '{name}' (there are: {choice})")
    return read_declaration(workload_folder() / f"{name.upper()}.toml")


def read_declaration(path: Path) -> Workload:
    """Read a declaration; `InputError` if it is not TOML, lacks a key, or has an unknown one."""
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
        genome = _genome_of(content)
        kind, key = (Copy, "copy") if "copy" in content else (Reads, "reads")
        queries = kind(**_tuples(content.pop(key)))
        return Workload(**content, genome=genome, queries=queries)
    except OSError as error:
        raise InputError(error.strerror or str(error), str(path)) from error
    except KeyError as error:
        raise InputError(f"lacks the table {error}", str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
        raise InputError(f"is not the declaration of a workload: {error}", str(path)) from error


def _genome_of(content: dict[str, Any]) -> Genome | Excerpt:
    """Take the table of the reference out of a declaration."""
    if "excerpt" in content:
        return Excerpt(**_tuples(content.pop("excerpt")))
    genome = _tuples(content.pop("genome"))
    for name, kind in _ELEMENTS.items():
        genome[name] = tuple(kind(**_tuples(one)) for one in genome.get(name, ()))
    return Genome(**genome)


_ELEMENTS: Final[dict[str, type]] = {
    "repeats": Repeats,
    "segments": Segments,
    "satellites": Satellites,
    "tandems": Tandems,
    "gaps": Gaps,
}
"""The lists of tables of a genome."""


def _tuples(value: Any) -> Any:
    """Return the values of a table with tuples in place of lists."""
    if isinstance(value, dict):
        return {name: _tuples(one) for name, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
