"""Files of the hits of profiles: HMMER's tables and alignments, and Parquet of the domains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.hit_lists import HitList, accuracies
from mummergpu.hmm.text_report import TextReport
from mummergpu.hmm.translation import FORWARD_FRAMES, OrfPlace
from mummergpu.output.matches.arrow import import_pyarrow, readable_name
from mummergpu.output.sink import Emit
from mummergpu.runtime.arrays import Float64Array, Int64Array
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.pyhmmer_library import bytes_of, text_of
from mummergpu.version import __version__

ALIGNMENT: Final = "alignment"
PARQUET: Final = "parquet"
TEXT: Final = "text"
TSV: Final = "tsv"


TSV_COLUMNS: Final = (
    *("target_name", "target_accession", "tlen", "query_name", "query_accession", "qlen"),
    *("full_E-value", "full_score", "full_bias", "domain", "of", "c-Evalue", "i-Evalue"),
    *("domain_score", "domain_bias", "hmm_from", "hmm_to", "ali_from", "ali_to"),
    *("env_from", "env_to", "acc", "description"),
)
"""The headings of HMMER's table of domains, each in one word."""


class HitSink(ABC):
    """Receives the hits of all queries, query by query."""

    @abstractmethod
    def write(self, hits: HitList) -> None:
        """Write the hits of the next query."""

    def finish(self) -> None:
        """Write what follows the last query."""
        return None


class TableSink(HitSink):
    """Writes a table of `hit_lists.TABLES`; its last lines say what program and command made it."""

    def __init__(self, kind: str, emit: Emit, program: str, command: str) -> None:
        self._kind = kind
        self._emit = emit
        self._tail = (
            f"#\n# Program:         {program}\n# Version:         mummergpu {__version__}\n"
            f"# Option settings: {' '.join(command.split())}\n# [ok]\n"
        )
        self._has_head = False

    def write(self, hits: HitList) -> None:
        """Write the rows of a query; the columns are as wide as HMMER makes them for it."""
        text = hits.table(self._kind, header=not self._has_head)
        self._has_head = True
        if text:
            self._emit(text)

    def finish(self) -> None:
        """Write who has made the table."""
        self._emit(self._tail.encode())


class TextSink(HitSink):
    """Writes HMMER's report."""

    def __init__(self, emit: Emit, report: TextReport, head: str) -> None:
        self._emit = emit
        self._report = report
        emit(bytes_of(head))

    def write(self, hits: HitList) -> None:
        """Write the text of a query."""
        assert hits.statistics is not None
        self._emit(self._report.query(hits.query, hits.hits, hits.statistics))

    def finish(self) -> None:
        """Write that all went well."""
        self._emit(b"[ok]\n")


class TsvSink(HitSink):
    """Writes HMMER's table of domains with tabs, and one line of headings."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        emit("\t".join(TSV_COLUMNS).encode() + b"\n")

    def write(self, hits: HitList) -> None:
        """Write the domains of a query."""
        rows = hits.table("domtblout").splitlines()
        last = len(TSV_COLUMNS) - 1
        if rows:
            # Only a description has further blanks.
            fields = ([one.replace(b"\t", b" ") for one in row.split(None, last)] for row in rows)
            self._emit(b"".join(b"\t".join(own) + b"\n" for own in fields))


class AlignmentSink(HitSink):
    """Writes the included domains of each profile as an alignment in Stockholm."""

    def __init__(self, emit: Emit, program: str, wraps: bool, warn: Callable[[str], None]) -> None:
        self._emit = emit
        self._warn = warn
        self._wraps = wraps
        self._program = f"{program} (mummergpu {__version__})"

    def write(self, hits: HitList) -> None:
        """Write the alignment of a profile, if any domain is included."""
        if text := hits.alignment(self._program, self._wraps, self._warn):
            self._emit(text)


class DomainColumns(NamedTuple):
    """The reported domains of all queries, in the order of HMMER's table of domains.

    `query` and `target` are numbers into their names, accessions and `description` (the target's)
    into `texts`. `e_value`, `score` and `bias` are the whole target's. A `domain` has its number,
    from 1 on, of `domains` of the target, a conditional and an independent E-value, and where it
    lies on the profile and on the protein, 0-based, half-open. `accuracy` is the mean posterior
    probability of the aligned residues; lengths are residues of a protein, or nodes of a profile.
    """

    query: Int64Array
    target: Int64Array
    e_value: Float64Array
    score: Float64Array
    bias: Float64Array
    domain: Int64Array
    domains: Int64Array
    c_evalue: Float64Array
    i_evalue: Float64Array
    domain_score: Float64Array
    domain_bias: Float64Array
    profile_start: Int64Array
    profile_end: Int64Array
    start: Int64Array
    end: Int64Array
    envelope_start: Int64Array
    envelope_end: Int64Array
    included: Any
    query_length: Int64Array
    target_length: Int64Array
    accuracy: Float64Array
    query_accession: Int64Array
    target_accession: Int64Array
    description: Int64Array
    query_names: list[str]
    target_names: list[str]
    texts: list[str]


FIELDS: Final = DomainColumns._fields[:-3]
TEXT_FIELDS: Final = ("query_accession", "target_accession", "description")
_FLOATS: Final = frozenset(
    name for name, kind in DomainColumns.__annotations__.items() if "Float64" in str(kind)
)
_ROW: Final = np.dtype(
    [(name, "f8" if name in _FLOATS else "?" if name == "included" else "i8") for name in FIELDS]
)


class NucleotideColumns(NamedTuple):
    """Where domains of ORFs lie on the nucleotides; without translation, all numbers are -1.

    `record` has numbers into `record_names`; see `hmm.translation.OrfPlace` for `frame`. Positions
    are 0-based, half-open, on the strand of the record, whatever the frame.
    """

    record: Int64Array
    frame: Int64Array
    nucleotide_start: Int64Array
    nucleotide_end: Int64Array
    record_names: list[str]


NUCLEOTIDE_FIELDS: Final = NucleotideColumns._fields[:-1]


def nucleotide_columns(columns: DomainColumns, orfs: str | None) -> NucleotideColumns:
    """Return where domains lie on nucleotides; `orfs` is "query", "target", or None."""
    if orfs is None:
        none = np.full(columns.query.size, -1, dtype=np.int64)
        return NucleotideColumns(none, none, none, none, [])
    names = columns.query_names if orfs == "query" else columns.target_names
    places = [OrfPlace.of_name(name) for name in names]
    numbers: dict[str, int] = {}
    table = np.array(
        [
            (numbers.setdefault(place.record, len(numbers)), place.frame, place.start)
            for place in places
        ],
        dtype=np.int64,
    ).reshape(-1, 3)
    record, frame, start = table[getattr(columns, orfs)].T
    is_forward = frame <= FORWARD_FRAMES
    begin = np.where(is_forward, start - 1 + 3 * columns.start, start - 3 * columns.end)
    end = begin + 3 * (columns.end - columns.start)
    return NucleotideColumns(record, frame, begin, end, list(numbers))


class ColumnSink(HitSink):
    """Keeps the reported domains of all queries."""

    def __init__(self) -> None:
        self._parts: list[Any] = [np.empty(0, dtype=_ROW)]
        self._queries: dict[str, int] = {}
        self._targets: dict[str, int] = {}
        self._texts: dict[str, int] = {}

    def write(self, hits: HitList) -> None:
        """Keep the domains of a query."""
        query = _number(hits.query, "name", self._queries)
        rows = []
        for hit in hits.reported():
            whole = query, _number(hit, "name", self._targets), hit.evalue, hit.score, hit.bias
            texts = (
                _number(hits.query, "accession", self._texts),
                *(_number(hit, name, self._texts) for name in ("accession", "description")),
            )
            number, count = 0, len(hit.domains.reported)
            for domain, accuracy in zip(hit.domains, accuracies(hit), strict=True):
                if not domain.reported:
                    continue
                place, number = domain.alignment, number + 1
                lengths = place.hmm_length, place.target_length
                rows.append(
                    (
                        *(*whole, number, count, domain.c_evalue, domain.i_evalue),
                        *(domain.score, domain.bias, place.hmm_from - 1, place.hmm_to),
                        *(place.target_from - 1, place.target_to),
                        *(domain.env_from - 1, domain.env_to, domain.included),
                        *(lengths[::-1] if hits.are_profiles else lengths),
                        *(accuracy, *texts),
                    )
                )
        if rows:
            self._parts.append(np.array(rows, dtype=_ROW))

    def columns(self) -> DomainColumns:
        """Return the domains of all queries."""
        rows = np.concatenate(self._parts)
        arrays: Any = {name: np.ascontiguousarray(rows[name]) for name in FIELDS}
        return DomainColumns(
            **arrays,
            query_names=list(self._queries),
            target_names=list(self._targets),
            texts=list(self._texts),
        )


def _number(owner: Any, field: str, numbers: dict[str, int]) -> int:
    """Return the number of a text of pyhmmer's among all."""
    return numbers.setdefault(text_of(owner, field), len(numbers))


class ParquetSink(ColumnSink):
    """Writes the reported domains of all queries as Parquet; of ORFs, also on the nucleotides."""

    def __init__(self, file: OutputFile, orfs: str | None = None) -> None:
        super().__init__()
        self._file = file
        self._orfs = orfs
        self._library = import_pyarrow("parquet")

    def finish(self) -> None:
        """Write all domains."""
        import io

        import pyarrow.parquet

        pa, columns = self._library, self.columns()
        names = {"query": columns.query_names, "target": columns.target_names}
        names |= dict.fromkeys(TEXT_FIELDS, columns.texts)
        values = {field: getattr(columns, field) for field in FIELDS}
        if self._orfs is not None:
            places = nucleotide_columns(columns, self._orfs)
            names["record"] = places.record_names
            values |= {field: getattr(places, field) for field in NUCLEOTIDE_FIELDS}
        arrays = {
            field: pa.DictionaryArray.from_arrays(
                pa.array(column.astype(np.int32)),
                pa.array([readable_name(bytes_of(one)) for one in names[field]], pa.string()),
            )
            if field in names
            else pa.array(column)
            for field, column in values.items()
        }
        text = io.BytesIO()
        pyarrow.parquet.write_table(pa.table(arrays), text)
        self._file.write(text.getvalue())
