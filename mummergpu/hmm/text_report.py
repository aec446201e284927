"""Writes HMMER's report of hits for people: its bytes, but for times and who computed it.

HMMER's programs print it by default; pyhmmer does not. Numbers come from the records of hits
(HMMER's ``p7_hit_Serialize``), in the widths and digits in which HMMER prints them.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.hit_lists import (
    ALIGNMENT,
    DOMAIN,
    HAS_ACCESSION,
    HAS_DESCRIPTION,
    HAS_RESIDUES,
    HIT,
    INCLUDED,
    REPORTED,
)
from mummergpu.hmm.options import FinishingOptions
from mummergpu.hmm.report_options import ReportOptions
from mummergpu.hmm.stage_counts import Statistics
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.pyhmmer_library import bytes_of, text_of

_LEAST_NAME: Final = 8
_LEAST_DESCRIPTION: Final = 32
_LEAST_ALIGNMENT: Final = 40
_LOG2R: Final = 1.44269504088896341
"""1 / ln 2, as HMMER writes it."""

_RF, _MM, _CS, _PP, _, _CODONS = (1 << bit for bit in range(6))


class _Alignment(NamedTuple):
    """An alignment of a record; the texts are rows of the same length, or empty."""

    profile: tuple[int, int, int]  # The first and the last node, and how many the profile has
    sequence: tuple[int, int, int]  # The first and the last residue, and all
    lines: dict[str, bytes]  # ``CS``, ``RF``, ``MM``, ``PP``, and the three rows by `_ROWS`
    names: tuple[bytes, ...]  # Profile: name, accession; sequence: name, accession


_ROWS: Final = ("model", "match", "sequence")


class _Domain(NamedTuple):
    """A domain of a record."""

    envelope: tuple[int, int]
    bias: float  # In nats
    expected: float
    score: float
    log_chance: float
    is_reported: bool
    is_included: bool
    alignment: _Alignment


class _Hit(NamedTuple):
    """A hit of a record."""

    name: bytes
    accession: bytes
    description: bytes
    score: float
    bias: float
    log_chance: float
    expected: float
    flags: int
    best: int
    domains: list[_Domain]

    @property
    def reported(self) -> list[_Domain]:
        """The domains that are reported."""
        return [one for one in self.domains if one.is_reported]


def _hit_of(record: bytes) -> _Hit:
    size, _, score, plain, _, chance, _, _, expected, *_, count, flags, best, present = (
        HIT.unpack_from(record)
    )
    name, *texts = record[HIT.size : size].split(b"\0")
    accession = texts.pop(0) if present & HAS_ACCESSION else b""
    description = texts.pop(0) if present & HAS_DESCRIPTION else b""
    bias = float(np.float32(plain) - np.float32(score))
    domains, at = [], size
    for _ in range(count):
        own, at = _domain_of(record, at)
        domains.append(own)
    return _Hit(name, accession, description, score, bias, chance, expected, flags, best, domains)


def _domain_of(record: bytes, at: int) -> tuple[_Domain, int]:
    """Return the domain that begins at a place of a record, and where the next one begins."""
    size, first, last, *_, bias, expected, score, chance, reported, included = DOMAIN.unpack_from(
        record, at
    )
    begin = at + size
    size, *places, present = ALIGNMENT.unpack_from(record, begin)
    texts = record[begin + ALIGNMENT.size : begin + size].split(b"\0")
    lines = {}
    for bit, name in ((_RF, "RF"), (_MM, "MM"), (_CS, "CS")):
        lines[name] = texts.pop(0) if present & bit else b""
    for name in _ROWS[:2]:
        lines[name] = texts.pop(0)
    for bit, name in ((HAS_RESIDUES, _ROWS[2]), (_CODONS, "codons"), (_PP, "PP")):
        lines[name] = texts.pop(0) if present & bit else b""
    names = (texts[0], texts[1], texts[3], texts[4])
    profile, sequence = tuple(places[:3]), tuple(places[3:])
    alignment = _Alignment(profile, sequence, lines, names)
    envelope = (first, last)
    found = _Domain(
        *(envelope, bias, expected, score, chance), bool(reported), bool(included), alignment
    )
    return found, begin + size


class TextReport:
    """Makes the text of each query of a search or a scan; `Z` is as for `finishing.Finisher`."""

    def __init__(
        self, program: str, options: ReportOptions, finishing: FinishingOptions, Z: float | None
    ) -> None:
        self._options = options
        self._finishing = finishing
        self._Z = Z
        self._scans = program == "hmmscan"
        self._target = b"model" if self._scans else b"sequence"
        self._began = _clock()

    def query(self, query: Any, hits: Any, statistics: Statistics) -> bytes:
        """Return the text of a query: hits of pyhmmer, or None if no target was compared."""
        # HMMER prints 0 for E-values below the least normal number.
        with flushed_floats():
            return b"".join(self._parts(query, hits, statistics))

    def _parts(self, query: Any, hits: Any, statistics: Statistics) -> Iterator[bytes]:
        state = None if hits is None else hits.__getstate__()
        found = [] if state is None else [_hit_of(bytes(state["unsrt"][n])) for n in state["hit"]]
        shown = [one for one in found if one.flags & REPORTED]
        space = (
            _Space(float(statistics.targets), 0.0) if hits is None else _Space(hits.Z, hits.domZ)
        )
        if hits is None:
            given = self._Z, self._finishing.domZ
            space = _Space(*(mine or its for mine, its in zip(given, space, strict=True)))
        width = max((len(self._name(one)) for one in found), default=0)
        yield from self._head_of(query)
        yield from self._targets(shown, max(_LEAST_NAME, width), space)
        yield b"\n\n"
        yield from self._domains(shown, space)
        yield b"\n\n"
        yield from self._statistics(query, statistics, space)
        yield b"//\n"
        if self._options.alignment_file:
            yield self._alignment_line(found)

    def _name(self, hit: _Hit) -> bytes:
        return hit.accession if self._options.prefers_accessions and hit.accession else hit.name

    def _head_of(self, query: Any) -> Iterator[bytes]:
        name, accession, description = (
            bytes_of(text_of(query, one)) for one in ("name", "accession", "description")
        )
        yield b"Query:       %s  [%s=%d]\n" % (name, b"L" if self._scans else b"M", _size(query))
        if accession:
            yield b"Accession:   %s\n" % accession
        if description:
            yield b"Description: %s\n" % description

    def _description(self, hit: _Hit, taken: int) -> bytes:
        """Return as much of a description as a line has room for."""
        if self._options.width == 0:
            return hit.description
        return hit.description[: max(_LEAST_DESCRIPTION, self._options.width - taken)]

    def _targets(self, hits: list[_Hit], width: int, space: _Space) -> Iterator[bytes]:
        """Yield the table of targets."""
        plural, column = (b"", b"Model") if self._scans else (b"s", b"Sequence")
        yield b"Scores for complete sequence%s (score includes all domains):\n" % plural
        yield b"  %22s  %22s  %8s\n" % (
            *(b" --- full sequence ---", b" --- best 1 domain ---"),
            b"-#dom-",
        )
        row = b"  %9s %6s %5s  %9s %6s %5s  %5s %2s  %-*s %s\n"
        score = (b"E-value", b" score", b" bias")
        yield row % (*score, *score, b"  exp", b"N", width, column, b"Description")
        line = (b"-------", b"------", b"-----")
        yield row % (*line, *line, b" ----", b"--", width, b"--------", b"-----------")
        is_above = True
        for hit in hits:
            if is_above and not hit.flags & INCLUDED:
                is_above = False
                yield b"  ------ inclusion threshold ------\n"
            best = hit.domains[hit.best]
            yield b"  %9.2g %6.1f %5.1f  %9.2g %6.1f %5.1f  %5.1f %2d  %-*s  %s\n" % (
                *(math.exp(hit.log_chance) * space.targets, hit.score, hit.bias),
                *(math.exp(best.log_chance) * space.targets, best.score, _LOG2R * best.bias),
                *(hit.expected, len(hit.reported), width, self._name(hit)),
                self._description(hit, width + 61),
            )
        if not hits:
            yield b"\n   [No hits detected that satisfy reporting thresholds]\n"

    def _domains(self, hits: list[_Hit], space: _Space) -> Iterator[bytes]:
        """Yield the domains of all targets, with their alignments."""
        shows = self._options.shows_alignments
        with_them = b" (and alignments)" if shows else b""
        yield b"Domain annotation for each %s%s:\n" % (self._target, with_them)
        for hit in hits:
            name, domains = self._name(hit), hit.reported
            yield b">> %s  %s\n" % (name, self._description(hit, len(name) + 5))
            if not domains:
                yield b"   [No individual domains that satisfy reporting thresholds "
                yield b"(although complete target did)]\n\n"
                continue
            yield _DOMAIN_HEAD
            for number, one in enumerate(domains, 1):
                yield _domain_row(number, one, space)
            yield b"\n  Alignments for each domain:\n" if shows else b"\n"
            for number, one in enumerate(domains if shows else (), 1):
                yield b"  == domain %d  score: %.1f bits;  conditional E-value: %.2g\n" % (
                    *(number, one.score),
                    math.exp(one.log_chance) * space.domains,
                )
                yield from self._alignment(one.alignment)
                yield b"\n"
        if not hits:
            yield b"\n   [No targets detected that satisfy reporting thresholds]\n"

    def _alignment(self, one: _Alignment) -> Iterator[bytes]:
        """Yield the rows of an alignment, wrapped."""
        accessions = one.names[1::2] if self._options.prefers_accessions else (b"", b"")
        profile, sequence = (
            own or name for name, own in zip(one.names[::2], accessions, strict=True)
        )
        first, last, _ = one.sequence
        name_width = max(len(profile), len(sequence))
        number_width = max(len(b"%d" % n) for n in (*one.profile[:2], first, last))
        columns, width = len(one.lines["model"]), self._options.width
        size = width - name_width - 2 * number_width - 5 if width else columns
        size = max(size, _LEAST_ALIGNMENT) if size < columns else size
        step = 1 if first < last else -1
        node, residue = one.profile[0], first
        indent = name_width + number_width + 1
        for at in range(0, columns, size):
            if at:
                yield b"\n"
            rows = {key: text[at : at + size] for key, text in one.lines.items()}
            for key in ("CS", "RF", "MM"):
                if one.lines[key]:
                    yield b"  %*s %s %s\n" % (indent, b"", rows[key], key.encode())
            nodes = len(rows["model"]) - rows["model"].count(b".")
            residues = len(rows["sequence"]) - rows["sequence"].count(b"-")
            ends = number_width, node, rows["model"], number_width, node + nodes - 1
            yield b"  %*s %*d %s %-*d\n" % (name_width, profile, *ends)
            yield b"  %*s %s\n" % (indent, b" ", rows["match"])
            if residues:
                end = residue + step * (residues - 1)
                ends = number_width, residue, rows["sequence"], number_width, end
                yield b"  %*s %*d %s %-*d\n" % (name_width, sequence, *ends)
            else:
                none = number_width, b"-", rows["sequence"], number_width, b"-"
                yield b"  %*s %*s %s %*s\n" % (name_width, sequence, *none)
            if one.lines["PP"]:
                yield b"  %*s %s PP\n" % (indent, b"", rows["PP"])
            node += nodes
            residue += step * residues

    def _statistics(self, query: Any, found: Statistics, space: _Space) -> Iterator[bytes]:
        """Yield how many targets passed each filter, and the time since the query before."""
        sequences, models = (1, _size(query)), (found.targets, found.letters)
        if not self._scans:
            sequences, models = models, sequences
        residues = b"(%d residues searched)" % sequences[1]
        nodes = b"(%d nodes)" % models[1]
        yield b"Internal pipeline statistics summary:\n-------------------------------------\n"
        rows = [
            (
                b"Query sequence(s):         " if self._scans else b"Target sequences:          ",
                sequences[0],
                residues,
            ),
            (
                b"Target model(s):           " if self._scans else b"Query model(s):            ",
                models[0],
                nodes,
            ),
        ]
        for label, count, size in rows if self._scans else rows[::-1]:
            yield b"%s  %15d  %s\n" % (label, count, size)
        limits = self._finishing.thresholds
        by_filter = (limits.F1, limits.F1, limits.F2, limits.F3)
        for name, passed, limit in zip(_FILTERS, found.passed, by_filter, strict=True):
            share = b"%.6g" % (passed / found.targets) if found.targets else b"-nan"
            expected = limit * found.targets, limit
            yield b"%-29s%15d  (%s); expected %.1f (%.6g)\n" % (name, passed, share, *expected)
        given = (
            self._Z,
            b"Z",
            b"actual number of targets",
            space.targets,
            b"Initial search space (Z):    ",
        )
        for option, word, otherwise, number, label in (
            given,
            (
                *(self._finishing.domZ, b"domZ", b"number of targets reported over threshold"),
                *(space.domains, b"Domain search space  (domZ): "),
            ),
        ):
            why = otherwise if option is None else b"as set by --%s on cmdline" % word
            yield b"%s%15.0f  [%s]\n" % (label, number, why)
        yield self._times(sequences[1] * models[1])

    def _times(self, cells: int) -> bytes:
        before, self._began = self._began, _clock()
        user, system, elapsed = (now - then for now, then in zip(self._began, before, strict=True))
        took = b"%.2fu %.2fs %s" % (user, system, _shown_time(user + system))
        speed = b"%.2f" % (cells / elapsed / 1e6) if elapsed else b"inf"
        return b"# CPU time: %s Elapsed: %s\n# Mc/sec: %s\n" % (took, _shown_time(elapsed), speed)

    def _alignment_line(self, hits: list[_Hit]) -> bytes:
        """Return what HMMER says of the alignment that it saves."""
        included = [one for one in hits if one.flags & INCLUDED]
        count = sum(domain.is_included for one in included for domain in one.domains)
        if not count:
            return b"# No hits satisfy inclusion thresholds; no alignment saved\n"
        path = os.fsencode(self._options.alignment_file)
        text = b"# Alignment of %d hits satisfying inclusion thresholds saved to: %s\n"
        return text % (count, path)


class _Space(NamedTuple):
    """The numbers of targets, and of those reported, that E-values count."""

    targets: float
    domains: float


_FILTERS: Final = (
    *(b"Passed MSV filter:", b"Passed bias filter:"),
    *(b"Passed Vit filter:", b"Passed Fwd filter:"),
)

_DOMAIN_HEAD: Final = (
    b"   #    score  bias  c-Evalue  i-Evalue hmmfrom  hmm to    alifrom  ali to    envfrom  env to"
    b"     acc\n"
    b" ---   ------ ----- --------- --------- ------- -------    ------- -------    ------- -------"
    b"    ----\n"
)


def _domain_row(number: int, one: _Domain, space: _Space) -> bytes:
    """Return the row of a domain in the table of its target."""
    chance, ali = math.exp(one.log_chance), one.alignment
    ranges = (ali.profile, ali.sequence, (*one.envelope, ali.sequence[2]))
    places = b" ".join(
        b"%7d %7d %s%s"
        % (first, last, b"[" if first == 1 else b".", b"]" if last == size else b".")
        for first, last, size in ranges
    )
    accuracy = one.expected / (1.0 + abs(one.envelope[1] - one.envelope[0]))
    mark, bias = b"!" if one.is_included else b"?", one.bias * _LOG2R
    head = b" %3d %s %6.1f %5.1f" % (number, mark, one.score, bias)
    chances = b"%9.2g %9.2g" % (chance * space.domains, chance * space.targets)
    return b"%s %s %s %4.2f\n" % (head, chances, places, accuracy)


def _size(query: Any) -> int:
    """Return the nodes of a profile, or the residues of a sequence, of pyhmmer."""
    return int(query.M) if hasattr(query, "M") else len(query)


def _clock() -> tuple[float, float, float]:
    """Return the processor's seconds of this process, user's and system's, and those of a clock."""
    used = os.times()
    return used.user, used.system, time.perf_counter()


def _shown_time(seconds: float) -> bytes:
    hundredths = int(seconds * 100)
    minutes, left = divmod(hundredths, 6000)
    return b"%02d:%02d:%02d.%02d" % (*divmod(minutes, 60), *divmod(left, 100))
