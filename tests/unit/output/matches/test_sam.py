"""SAM: against a plain formatter, in pieces of every size, and as pysam reads it."""

import numpy as np
import pysam
import pytest
from helpers.compilations import compilation_count
from helpers.match_cases import MatchCase, joined, match_cases, text_of
from helpers.match_records import match_sam
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.output.bytes.texts import OVERSHOOT, PIECE_BYTES
from mummergpu.output.matches import match_rows
from mummergpu.output.matches.match_rows import PIECE_ROWS
from mummergpu.output.options import SamOptions, read_group_of
from mummergpu.output.records import sam
from mummergpu.output.records.header import AlignmentHead, sam_header
from mummergpu.output.records.sam import PART_BASES
from mummergpu.sequence.codes import decode, encode
from mummergpu.sequence.strand import Strand

GROUP = read_group_of(r"@RG\tID:a group\tSM:sample")
COMPLEMENTS = bytes.maketrans(b"ACGTN", b"TGCAN")


def letters_of(bases, is_reverse):
    """The letters of a query on a strand: A, C, G, T and N."""
    letters = decode(encode(bases))
    return letters[::-1].translate(COMPLEMENTS) if is_reverse else letters


def plain_lines(case, options):
    """The lines of a case, the slow way."""
    group = [] if options.read_group is None else [b"RG:Z:" + options.read_group.name.encode()]
    lines = []
    for query, (name, bases) in enumerate(case.queries):
        matches = [one for one in case.matches() if one.query == query]
        name = name or b"*"
        if not matches:
            letters = letters_of(bases, False) or b"*"
            lines.append([name, 4, b"*", 0, 0, b"*", b"*", 0, 0, letters, b"*", *group])
        # Python sorts equal lengths in their order.
        best = sorted(matches, key=lambda one: -one.length)
        kept = best[: options.max_hits]
        for number, one in enumerate([one for one in matches if any(one is two for two in kept)]):
            is_primary = one is best[0]
            has_bases = is_primary or options.secondary_bases
            clips = [one.query_start, one.query_length - one.query_end]
            if one.is_reverse:
                clips.reverse()
            before, behind = (b"%dS" % clip if clip else b"" for clip in clips)
            lines.append(
                [
                    *(name, 16 * one.is_reverse + 256 * (not is_primary)),
                    *(one.record_name, one.start + 1, 255),
                    *(before + b"%d=" % one.length + behind, b"*", 0, 0),
                    *(letters_of(bases, one.is_reverse) if has_bases else b"*", b"*"),
                    *(b"NM:i:0", b"AS:i:%d" % one.length, b"NH:i:%d" % len(matches)),
                    *(b"HI:i:%d" % (number + 1), *group),
                ]
            )
    return joined(lines)


def sam_of(case, options, piece_bytes=PIECE_BYTES, piece_rows=PIECE_ROWS):
    return match_sam(case.reference, options, "mummergpu r q", piece_bytes, piece_rows)


OPTIONS = st.builds(
    SamOptions, st.sampled_from([None, GROUP]), st.sampled_from([None, 1, 2, 5]), st.booleans()
)


@settings(deadline=None)
@given(
    match_cases(),
    OPTIONS,
    st.one_of(st.integers(1, 500), st.just(PIECE_BYTES)),
    st.one_of(st.integers(1, 9), st.just(PIECE_ROWS)),
    st.booleans(),
)
def test_lines_equal_those_of_a_plain_formatter(case, options, piece_bytes, piece_rows, nameless):
    if nameless:
        case = MatchCase(case.records, [(b"", bases) for _, bases in case.queries], case.rows)
    head = AlignmentHead(options.read_group, "mummergpu r q")
    header = sam_header(case.reference, head).text
    made = sam_of(case, options, piece_bytes, piece_rows)
    assert text_of(made, case) == header + plain_lines(case, options)


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 40))
def test_the_longest_are_kept(lengths, max_hits):
    rows = [(0, (length, 0, length)) for length in lengths]
    middle = len(rows) // 3
    strands = {Strand.FORWARD: [rows[:middle]], Strand.REVERSE: [rows[middle:]]}
    case = MatchCase([(b"r", b"A" * 9)], [(b"q", b"A" * 18)], strands)
    options = SamOptions(max_hits=max_hits)
    for piece_bytes, piece_rows in ((1, 1), (300, 7), (PIECE_BYTES, PIECE_ROWS)):
        made = sam_of(case, options, piece_bytes, piece_rows)
        assert text_of(made, case).removeprefix(made.head()) == plain_lines(case, options)


@settings(deadline=None, max_examples=30)
@given(case=match_cases(), options=OPTIONS)
def test_pysam_reads_what_the_columns_say(case, options, tmp_path_factory):
    path = tmp_path_factory.mktemp("sam") / "x.sam"
    path.write_bytes(text_of(sam_of(case, options), case))
    matches = list(case.matches())
    with pysam.AlignmentFile(str(path)) as file:
        rows = list(file)
        assert file.header["HD"]["GO"] == "query"
    unmapped = [row for row in rows if row.is_unmapped]
    with_matches = {one.query for one in matches}
    assert len(unmapped) == len(case.queries) - len(with_matches)
    if options.max_hits is None:
        assert len(rows) == len(matches) + len(unmapped)
    mapped = [row for row in rows if not row.is_unmapped]
    assert len([row for row in mapped if not row.is_secondary]) == len(with_matches)
    wanted = {
        (one.record_name.decode(), one.start, one.end, one.is_reverse, one.query_name.decode())
        for one in matches
    }
    found = [
        (row.reference_name, row.reference_start, row.reference_end, row.is_reverse, row.query_name)
        for row in mapped
    ]
    assert set(found) <= wanted and (options.max_hits or set(found) == wanted)
    for row in mapped:
        assert row.get_tag("AS") == row.reference_length == row.query_alignment_length
        assert (row.get_tag("NM"), row.mapping_quality) == (0, 255)
        assert row.has_tag("RG") == (options.read_group is not None)


def long_query(length):
    random = np.random.default_rng(length)
    bases = decode(random.integers(0, 5, length).astype(np.uint8))
    rows = [(0, (3, 0, 5)), (0, (4, 1, 7))]
    strands = {Strand.FORWARD: [[], rows[:1], []], Strand.REVERSE: [[], rows, []]}
    return MatchCase([(b"r", b"ACGTACGTA")], [(b"a", bases), (b"b", bases), (b"", b"")], strands)


@pytest.mark.parametrize("length", [11, PART_BASES - 1, PART_BASES, PART_BASES + 1, 50_003])
def test_the_bases_of_a_query_may_lie_in_many_pieces(length):
    case = long_query(length)
    expected = plain_lines(case, SamOptions())
    for piece_bytes in (1, 10_000, 10_033, 20_000):
        made = sam_of(case, SamOptions(), piece_bytes)
        pieces = [bytes(piece) for piece in made.format_block(case.block, case.columns)]
        assert b"".join(pieces) == expected
        assert max(map(len, pieces)) <= max(piece_bytes, 2 * PART_BASES + 1000)


def test_nothing_is_written_behind_the_text(monkeypatch):
    case = long_query(11_000)
    guards = []

    def guarded(size):
        whole = np.full(size + OVERSHOOT + 64, 255, dtype=np.uint8)
        guards.append(whole[-64:])
        return whole[: size + OVERSHOOT]

    for piece_bytes in range(9000, 10_200, 17):
        made = sam_of(case, SamOptions(), piece_bytes)
        monkeypatch.setattr(made._pool, "room_for", guarded)
        text = b"".join(bytes(piece) for piece in made.format_block(case.block, case.columns))
        assert text == plain_lines(case, SamOptions())
    assert guards and all((guard == 255).all() for guard in guards)


def test_long_clips_and_positions(tmp_path):
    """Numbers beyond the table of small ones, and of more than eight digits."""
    case = MatchCase(
        [(b"r", b"A" * 5000)],
        [(b"q", b"A" * 4000)],
        {Strand.FORWARD: [[(0, (999, 998, 1)), (0, (1000, 999, 1000)), (0, (2999, 4000, 1000))]]},
    )
    assert text_of(sam_of(case, SamOptions()), case).endswith(plain_lines(case, SamOptions()))
    longest = (1 << 31) - 1
    reference = case.reference
    reference = type(reference)(
        "r.fa",
        np.broadcast_to(np.zeros(1, dtype=np.uint8), (longest,)),
        reference.record_starts,
        np.array([longest], dtype=np.int64),
        reference.names,
    )
    columns = case.columns
    columns[Strand.FORWARD].reference_starts[:] = [99_999_998, 99_999_999, longest - 1000]
    made = match_sam(reference, SamOptions())
    text = b"".join(bytes(piece) for piece in made.format_block(case.block, columns))
    positions = [int(line.split(b"\t")[3]) for line in text.splitlines()]
    assert positions == [99_999_999, 100_000_000, longest - 999]


def test_a_name_that_is_too_long_is_an_error():
    case = MatchCase([(b"r", b"A")], [(b"n" * 255, b"A")], {Strand.FORWARD: [[]]})
    made = sam_of(case, SamOptions())
    with pytest.raises(InputError, match="at most 254 bytes"):
        list(made.format_block(case.block, case.columns))


def test_one_compilation_serves_all():
    for case in (long_query(50), MatchCase([(b"r", b"A")], [], {Strand.REVERSE: []})):
        block = case.block
        for array in (block.padded_codes, block.offsets, block.names, block.name_offsets):
            array.flags.writeable = False
        for options in (SamOptions(), SamOptions(GROUP, 1)):
            list(sam_of(case, options).format_block(block, case.columns))
    assert compilation_count(match_rows.fill_match_rows) == 1
    assert compilation_count(sam.write_sam_matches) == 1
