"""Search profile HMMs among proteins from Python, and the hits as columns of numpy."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.api.requests import device_options
from mummergpu.api.tables import ROWS_SHOWN, ResultRows
from mummergpu.errors import OptionError
from mummergpu.hmm.options import HmmerOptions
from mummergpu.hmm.profiles import Profile, profile_of
from mummergpu.hmm.translation import TranslatedFiles, TranslatedInMemory
from mummergpu.input.blocks.memory import NamedSequence, several
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import ProteinFiles, ProteinsInMemory
from mummergpu.matching.options import DeviceOptions
from mummergpu.output.profiles import (
    FIELDS,
    NUCLEOTIDE_FIELDS,
    TEXT_FIELDS,
    ColumnSink,
    DomainColumns,
    nucleotide_columns,
)
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.profile_options import ProfileSearchOptions, ProteinSource
from mummergpu.pipeline.search_profiles import run
from mummergpu.runtime.option_values import check_bool, path, shown
from mummergpu.runtime.words import pluralize


class Hit(NamedTuple):
    """One domain of a hit; ranges are 0-based and half-open.

    Attributes
    ----------
    query, target : str
        A profile and a protein; in a scan, a protein and a profile.
    e_value, score, bias : float
        Of the whole target.
    domain, domains : int
        The number of the domain, counted from 1, and how many domains the target has.
    c_evalue, i_evalue, domain_score, domain_bias : float
        Of the domain: its conditional and its independent E-value.
    profile_start, profile_end, start, end, envelope_start, envelope_end : int
        The ranges of the alignment on the profile and on the protein, and the envelope.
    included : bool
        Whether the domain is significant.
    record, frame, nucleotide_start, nucleotide_end : str, int, int, int
        With ``translate``, where the domain lies on the nucleotides: the record, the frame of its
        ORF (1 to 3, or 4 to 6 on the reverse strand), and its bases on the strand of the record.
        Otherwise None and -1.
    query_length, target_length : int
        The residues of the protein, and the nodes of the profile.
    accuracy : float
        The mean posterior probability of the aligned residues.
    query_accession, target_accession, description : str
        As in the files, empty if missing; the description is the target's.
    """

    query: str
    target: str
    e_value: float
    score: float
    bias: float
    domain: int
    domains: int
    c_evalue: float
    i_evalue: float
    domain_score: float
    domain_bias: float
    profile_start: int
    profile_end: int
    start: int
    end: int
    envelope_start: int
    envelope_end: int
    included: bool
    record: str | None = None
    frame: int = -1
    nucleotide_start: int = -1
    nucleotide_end: int = -1
    query_length: int = -1
    target_length: int = -1
    accuracy: float = float("nan")
    query_accession: str = ""
    target_accession: str = ""
    description: str = ""


class Hits(ResultRows[Hit]):
    """The domains that HMMER reports, query by query, the best target first.

    The fields of `Hit` are columns: numpy arrays. `query`, `target` and `record` are indices into
    `query_names`, `target_names` and `record_names`; accessions and descriptions are indices into
    `texts`. `to_arrow`, `to_pandas` and `to_polars` return tables.
    """

    _row = Hit
    _names: ClassVar = {
        "query": ("query", "query_names"),
        "target": ("target", "target_names"),
        "record": ("record", "record_names"),
        **{field: (field, "texts") for field in TEXT_FIELDS},
    }
    _can_lack = NUCLEOTIDE_FIELDS[1:]

    def __init__(self, columns: DomainColumns, orfs: str | None = None) -> None:
        self._columns = columns
        self._orfs = orfs
        self._places = nucleotide_columns(columns, orfs)
        self.record_names = self._places.record_names
        self.query_names = columns.query_names
        self.target_names = columns.target_names
        self.texts = columns.texts

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            return getattr(self._columns, name)
        if name in NUCLEOTIDE_FIELDS:
            return getattr(self._places, name)
        raise AttributeError(f"'Hits' object has no attribute {name!r}")

    def __len__(self) -> int:
        return self._columns.query.size

    def __repr__(self) -> str:
        lines = [pluralize(len(self), "domain")]
        for hit in self._rows(slice(ROWS_SHOWN)):
            place = f"{hit.target}:{hit.start}-{hit.end}"
            lines.append(f"  {hit.query} {place} {hit.domain_score:.1f} bits, {hit.i_evalue:.2g}")
        return "\n".join([*lines, "  ..."] if len(self) > ROWS_SHOWN else lines)

    def _part(self, key: slice | npt.NDArray[np.bool_]) -> Hits:
        parts = {field: getattr(self._columns, field)[key] for field in FIELDS}
        return Hits(self._columns._replace(**parts), self._orfs)


def hmmsearch(
    profiles: object,
    sequences: object,
    *,
    threads: int | None = None,
    backend: str = "auto",
    **options: Any,
) -> Hits:
    """Search profile HMMs among proteins, as HMMER's hmmsearch does.

    Parameters
    ----------
    profiles : path, pyhmmer HMM, or sequence of them
        HMMER files, also pressed or compressed, or pyhmmer profiles.
    sequences : path, or iterable of (str, str)
        A FASTA file of proteins, also compressed, or names and sequences, or pyhmmer sequences;
        with ``translate``, reads or contigs in any format.
    threads : int, optional
        The number of threads; by default all processors.
    backend : {"auto", "cpu", "cuda"}
        Where proteins are filtered; ``auto`` uses a GPU if there is enough work.
    **options
        HMMER's options without dashes: ``E``, ``T``, ``domE``, ``domT``, ``incE``, ``incT``,
        ``incdomE``, ``incdomT``, ``Z``, ``domZ``, ``F1``, ``F2``, ``F3`` and ``seed`` are numbers;
        ``cut_ga``, ``cut_nc``, ``cut_tc``, ``max``, ``nobias`` and ``nonull2`` are true or false,
        as are ``any_letters`` and ``translate`` of the command. ``long_proteins``, ``code``,
        ``min_orf`` and ``strand`` are as in the command too, and ``sequence_format`` is its
        ``--tformat``.

    Returns
    -------
    Hits
        The reported domains.

    Raises
    ------
    MummergpuError
        If the input or an option is wrong, or pyhmmer or the backend is not available.
    TypeError
        If there is no such option.
    """
    return _search(profiles, sequences, device_options(backend, threads), options, scans=False)


def hmmscan(
    profiles: object,
    sequences: object,
    *,
    threads: int | None = None,
    backend: str = "auto",
    **options: Any,
) -> Hits:
    """Search proteins among profile HMMs, as HMMER's hmmscan does; see `hmmsearch`.

    The queries of the hits are proteins, and E-values count profiles.
    """
    return _search(profiles, sequences, device_options(backend, threads), options, scans=True)


def _search(
    profiles: object, sequences: object, device: DeviceOptions, options: dict[str, Any], scans: bool
) -> Hits:
    translates = check_bool("translate", options.pop("translate", False))
    names = [one.name for one in fields(ProteinRules) if one.name in options]
    rules = ProteinRules(**{name: options.pop(name) for name in names})
    rules.check_if_translated(translates)
    known = {one.name for one in fields(HmmerOptions)}
    if unknown := sorted(options.keys() - known):
        raise TypeError(f"no such option: {', '.join(unknown)}")
    hmmer = HmmerOptions(**options)
    source = _source(sequences, rules, translates)
    asked = ProfileSearchOptions(
        _profiles(profiles),
        source,
        hmmer.finishing,
        hmmer.Z,
        scans,
        threads=device.threads,
        device=device,
    )
    sink = ColumnSink()
    run(asked, RunContext(device.threads), sink)
    return Hits(sink.columns(), asked.orfs)


def _profiles(profiles: Any) -> tuple[str | Profile, ...]:
    if _is_path(profiles) or hasattr(profiles, "evalue_parameters"):
        profiles = [profiles]
    if not isinstance(profiles, Iterable):
        raise OptionError("profiles", f"{shown(profiles)} is neither a file nor a profile")
    return tuple(_profile(one) for one in profiles)


def _profile(given: Any) -> str | Profile:
    """Return the path of a file, or a protein profile from one of pyhmmer."""
    if isinstance(given, Profile) or _is_path(given):
        return given if isinstance(given, Profile) else path("profiles", given)
    if not hasattr(given, "evalue_parameters") or not hasattr(given, "match_emissions"):
        raise OptionError("profiles", f"{shown(given)} is neither a file nor a profile of pyhmmer")
    if not given.alphabet.is_amino():
        text = f"'{given.name}' is of {given.alphabet.type}, not of proteins"
        raise OptionError("profiles", text)
    return profile_of(given)


def _is_path(given: Any) -> bool:
    return isinstance(given, str | bytes | os.PathLike)


def _source(sequences: Any, rules: ProteinRules, translates: bool) -> ProteinSource:
    if _is_path(sequences):
        names = [path("sequences", sequences)]
        return (TranslatedFiles if translates else ProteinFiles)(names, rules)
    named: Iterable[NamedSequence] = several(sequences, "sequence")
    return (TranslatedInMemory if translates else ProteinsInMemory)(named, rules)
