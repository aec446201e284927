"""Alignments of a case as lines of SAM, made the slow way."""

from __future__ import annotations

from itertools import groupby

from helpers.match_cases import MatchCase, PlainMatch, joined
from mummergpu.output.sam_header import sam_header
from mummergpu.output.sam_options import SamOptions
from mummergpu.sequence.codes import decode, encode

_COMPLEMENTS = bytes.maketrans(b"ACGT", b"TGCA")


def plain_sam(case: MatchCase, options: SamOptions) -> bytes:
    """The header and all lines."""
    found = {query: list(group) for query, group in groupby(case.matches(), lambda one: one.query)}
    group = options.read_group
    end = [] if group is None else [b"RG:Z:" + group.name.encode()]
    lines: list[list[bytes | int]] = []
    for query, (name, bases) in enumerate(case.queries):
        letters = decode(encode(bases))
        matches = found.get(query, [])
        if not matches:
            fields = [*(name or b"*", 4, b"*", 0, 0, b"*", b"*", 0, 0, letters or b"*", b"*")]
            lines.append([*fields, *end])
        by_length = sorted(range(len(matches)), key=lambda place: -matches[place].length)
        kept = sorted(by_length[: options.most_hits])
        for number, place in enumerate(kept, 1):
            fields = _fields(matches[place], letters, place == by_length[0])
            tags = [b"NM:i:0", b"AS:i:%d" % matches[place].length]
            tags += [b"NH:i:%d" % len(matches), b"HI:i:%d" % number]
            lines.append([*fields, *tags, *end])
    return sam_header(case.reference, options, "").text + joined(lines)


def _fields(match: PlainMatch, letters: bytes, is_primary: bool) -> list[bytes | int]:
    clips = [match.query_start, len(letters) - match.query_end]
    if match.is_reverse:
        clips.reverse()
        letters = letters.translate(_COMPLEMENTS)[::-1]
    before, after = (b"%dS" % clip if clip else b"" for clip in clips)
    flag = 16 * match.is_reverse + 256 * (not is_primary)
    return [
        *(match.query_name or b"*", flag, match.record_name, match.start + 1, 255),
        *(before + b"%d=" % match.length + after, b"*", 0, 0),
        *(letters if is_primary else b"*", b"*"),
    ]
