"""Records that threads parse in pieces: the pieces, the faults in them, the blocks of them."""

import numpy as np
import pytest
from helpers.naive import pairs_of
from helpers.parallel_files import (
    FASTA,
    FASTQ,
    PIECE,
    fasta_record,
    fastq_record,
    read,
    usual_fasta,
    usual_fastq,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records import parallel_records
from mummergpu.input.records.parallel_records import find_record, split
from mummergpu.input.records.record_arrays import Records
from mummergpu.sequence.codes import BREAK, MARGIN


@pytest.mark.parametrize("piece", [40, 100, 1000, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("is_closed", [True, False])
def test_usual_text_needs_the_pieces_alone(
    tmp_path, monkeypatch, threads, parts, kind, piece, end, is_closed
):
    text = kind.usual_text(200, seed=piece)
    path = tmp_path / "r"
    path.write_text(text if is_closed else text.removesuffix("\n"), newline=end)
    monkeypatch.setattr(parallel_records, "PIECE_BYTES", piece)
    assert read(path, threads) == read(path, None)
    assert parts.rest == path.stat().st_size
    pieces = len(parts.ranges) - 2
    assert pieces == 1 if piece == 1 << 20 else pieces > path.stat().st_size // (3 * piece)


def test_a_byte_order_mark_is_skipped(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text("\ufeff\n\n" + kind.usual_text(30), encoding="utf-8")
    assert read(path, threads) == read(path, None)
    assert parts.rest == path.stat().st_size


@pytest.mark.parametrize(
    ("kind", "odd", "line", "message"),
    [
        (FASTQ, "@x\nACGT\n+\nIII\n", 4, "quality has 3 characters, sequence has 4 (record 'x')"),
        (FASTQ, "@x\nAC\x00T\n+\nIIII\n", 2, "byte 0x00 is not a sequence character (record 'x')"),
        (FASTQ, "x\n", 1, "a record begins with 'x', not with '@'"),
        (FASTQ, "@x\nEFILP\n+\nIIIII\n", 2, "5 of 5 letters are neither bases nor IUPAC codes"),
        (FASTQ, "\r@x\nACGT\n+\nIIII\n", 1, "carriage return without line feed"),
        (FASTA, ">x\nACGT\nAC1T\n", 3, "'1' is not a sequence character (record 'x')"),
        (FASTA, ">x\nAC>T\n", 2, "'>' is not a sequence character (record 'x')"),
        (FASTA, " >x\nACGT\n", 1, "'>' is not a sequence character (record 'r99>@')"),
        (FASTA, ">x\n;AC\nACGT\n", 2, "';' is not a sequence character (record 'x')"),
        (FASTA, ">x\n\n@x\nAC\n+\n", 3, "a line of bases begins with '@' (FASTA and FASTQ mixed?)"),
        (FASTA, ">x\nACGTEF\nILP\n", 2, "5 of 9 letters are neither bases nor IUPAC codes"),
        (FASTA, ">x\nACGT\r>y\nAC\n", 2, "carriage return without line feed"),
        (FASTA, ">x\rACGT\n", 1, "carriage return without line feed"),
    ],
)
@pytest.mark.parametrize("count", [100, 0])
def test_faults_in_later_pieces_are_told_as_ever(
    tmp_path, threads, parts, kind, odd, line, message, count
):
    before = kind.usual_text(100)
    path = tmp_path / "r"
    path.write_text(before + odd + kind.usual_text(count, seed=2), newline="")
    found = read(path, threads)
    assert found == read(path, None)
    assert isinstance(found, str)
    assert found.startswith(f"{path}:{before.count(chr(10)) + line}: {message}")
    assert len(before) - 3 * PIECE < parts.rest <= len(before)


def test_fastq_whose_lines_are_wrapped_is_read_from_there_on(tmp_path, threads, parts):
    before = usual_fastq(50)
    wrapped = "@w\nACGT\nACGT\nAC\n+\n@III\n@III\n@I\n" * 60
    path = tmp_path / "r"
    path.write_text(before + wrapped + usual_fastq(50, seed=2))
    assert read(path, threads) == read(path, None)
    assert len(before) - 3 * PIECE < parts.rest <= len(before) + len(wrapped)


def test_a_long_genome_among_reads_is_read_by_one_parser(tmp_path, threads, parts):
    before, genome = usual_fasta(50), fasta_record("genome", "ACGTTGCAAC" * 500, 70)
    path = tmp_path / "r.fa"
    path.write_text(before + genome + usual_fasta(50, seed=2))
    assert read(path, threads) == read(path, None)
    assert len(before) - 3 * PIECE < parts.rest <= len(before)
    parts.ranges.clear()
    path.write_text(genome + before)
    assert read(path, threads) == read(path, None)
    assert parts.ranges == [(0, None)]


@pytest.mark.parametrize("length", [100, 150, 2000])
def test_reads_may_be_longer_than_a_piece(tmp_path, threads, parts, kind, length):
    path = tmp_path / "r"
    long = kind.record("long", "ACGTTGCAAC" * (length // 10))
    path.write_text(
        kind.usual_text(20) + long + kind.usual_text(20) + 2 * long + kind.usual_text(20)
    )
    assert read(path, threads) == read(path, None)
    # In a window there is no beginning of a record that is much longer.
    assert (parts.rest == path.stat().st_size) == (length < 200)


def test_short_reads_and_long_names_do_not_make_large_blocks(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    text = (
        kind.record("r", "ACGT" * 10) * 3
        + kind.record("r", "A") * 600
        + kind.record("n" * 200, "AC") * 50
    )
    path.write_text(text)
    with query_reader([str(path)], 80, 4096, threads=threads) as reader:
        blocks = list(reader)
    assert pairs_of(blocks) == read(path, None)
    assert parts.rest == len(text)
    assert max(block.base_count for block in blocks) < 160
    assert max(block.query_count for block in blocks) <= 11
    assert max(block.names.size for block in blocks) < 4 * 80 + 200


def test_a_name_that_outgrows_the_memory_is_read_all_the_same(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    long = kind.record("n" * 400, "ACGT")
    path.write_text(kind.usual_text(50) + long + kind.usual_text(50))
    assert read(path, threads) == read(path, None)
    assert parts.rest < path.stat().st_size


def test_blocks_are_about_equally_large_and_do_not_depend_on_threads(
    tmp_path, parts, kind, monkeypatch
):
    path = tmp_path / "r"
    # The names become longer, of which the first ones show nothing.
    path.write_text("".join(kind.record(f"r{number}", "ACGTTGCAAC") for number in range(3000)))
    monkeypatch.setattr(parallel_records, "PIECE_BYTES", 4000)
    found = []
    for count in (3, 8):
        with (
            ReadingThreads(count) as threads,
            query_reader([str(path)], 500, 100, threads=threads) as reader,
        ):
            found.append([block.offsets.tolist() for block in reader])
    assert found[0] == found[1]
    sizes = [offsets[-1] for offsets in found[0]]
    assert 400 < min(sizes) <= max(sizes) < 600


def test_records_are_split_into_equal_parts():
    lengths = [3, 0, 4, 100, 1, 2, 0, 9]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    padded = np.full(offsets[-1] + 2 * MARGIN, BREAK, dtype=np.uint8)
    codes = padded[MARGIN:-MARGIN]
    codes[:] = np.arange(codes.size) % 4
    names = np.frombuffer(b"abcdefgh", dtype=np.uint8).copy()
    whole = Records(padded, offsets, names, np.arange(9))
    assert split(whole, 500) == [whole]
    for most in (1, 3, 10, 40, 60):
        found = split(whole, most)
        assert pairs_of(found) == pairs_of([whole])
        assert all(part.offsets.size > 1 for part in found)
        assert all(np.shares_memory(part.padded_codes, padded) for part in found)
        assert len(found) > 1


def found(path, at, is_fastq):
    with path.open("rb") as file:
        return find_record(file.fileno(), at, path.stat().st_size, is_fastq)


def test_a_record_of_fastq_is_found_by_its_lines(tmp_path, monkeypatch):
    long = "A" * 50
    text = f"@a\nAC\n+\n@@\n@b\nACGT\n+\n@@@@\n@c\n{long}\n+\n{long}\n@d\nA\n+\n@\n"
    second, third, last = (text.index(name) for name in ("@b", "@c", "@d"))
    path = tmp_path / "r.fq"
    path.write_text(text)
    monkeypatch.setattr(parallel_records, "WINDOWS", (10, 80))
    assert {found(path, at, True) for at in range(1, second + 1)} == {second}
    assert {found(path, at, True) for at in range(second + 1, third + 1)} == {third}
    assert {found(path, at, True) for at in range(third + 60, last + 1)} == {last}
    assert {found(path, at, True) for at in range(last + 1, len(text) + 9)} == {len(text)}
    monkeypatch.setattr(parallel_records, "WINDOWS", (10, 40))
    assert found(path, 1, True) == second
    assert found(path, third, True) is None
    assert found(path, third + 1, True) is None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_record_of_fasta_begins_with_the_line(tmp_path, monkeypatch, end):
    lines = [">a>b >c", "AC", ">", ">d @e", "", " >", *["ACGTACGT"] * 10, ">f", "A"]
    text = end.join(lines)
    begins = [text.index(f"{end}{name}") + len(end) for name in (f">{end}", ">d", ">f")]
    path = tmp_path / "r.fa"
    path.write_text(text, newline="")
    monkeypatch.setattr(parallel_records, "WINDOWS", (10, 200))
    at = 1
    for begin in begins:
        assert {found(path, at, False) for at in range(at, begin + 1)} == {begin}
        at = begin + 1
    assert {found(path, at, False) for at in range(at, len(text) + 9)} == {len(text)}
    monkeypatch.setattr(parallel_records, "WINDOWS", (10, 60))
    assert found(path, begins[0], False) == begins[0]
    assert found(path, begins[1] + 1, False) is None


names = st.sampled_from(["", "a", "read/1", "n" * 30])
bases = st.text("ACGTNacgtu", min_size=0, max_size=25)
fastq_records = st.builds(
    lambda name, bases, quality, repeated: fastq_record(
        name, bases, (quality * len(bases))[: len(bases)], name if repeated else ""
    ),
    names,
    bases,
    st.text("@+I!~", min_size=1, max_size=5),
    st.booleans(),
)
fasta_records = st.builds(fasta_record, names, bases, st.sampled_from([1, 10, 30]))
odd_fastq = st.sampled_from(
    [
        "\n",
        "\r\n",
        "\r",
        "@m\nACGT\nAC\n+\nIIII\nII\n",
        "@m\nACGT\nAC\n+m\n@@@@\n@@\n",
        "@e\n\n+\n\n",
        "@e\n+\n",
        "@short\nACGT\n+\nIII\n",
        "@long\nACGT\n+\nIIIII\n",
        "@other\nACGT\n+another\nIIII\n",
        "@bad\nAC1T\n+\nIIII\n",
        "@blank\nACGT\n\n+\nIIII\n",
        "@protein\nEFILPQEFIL\n+\nIIIIIIIIII\n",
        "@space\nACGT\n+\nII I\n",
        "@cut\nACG",
        ">fasta\nACGT\n",
        f"@large\n{'ACGTTGCA' * 60}\n+\n{'@' * 480}\n",
    ]
)
odd_fasta = st.sampled_from(
    [
        "\n",
        "\r\n",
        "\r",
        "\r>return\nACGT\n",
        ">return\rACGT\n",
        ">spaces >x\tACGT\n\n A C\tG\n \nT\n",
        ">a>b@c >d @e\nAC\n",
        ">one\n>two\n>\n>\n",
        ">gaps\n-*.-\n*\n",
        ">few\nACGTACGTAC\nGTACGTACGE\n",
        ">protein\nEFILPQEFIL\n",
        ">half\nACGTACGTAC\nEFILPQEFIL\n",
        ">bad\nAC1T\n",
        ">mark\nAC>GT\n",
        ";comment\n",
        " >space\nACGT\n",
        "@fastq\nACGT\n+\nIIII\n",
        ">\xe4\x00\x01\nACGT\n",
        ">cut",
        ">cut\nACG",
        f">{'n' * 400} {'d' * 400}\nACGT\n",
        fasta_record("large", "ACGTTGCA" * 60, 70),
        fasta_record("larger", "ACGTTGCA" * 200, 70),
    ]
)
texts = st.one_of(
    st.lists(st.one_of(records, records, records, odd), min_size=1, max_size=14).map(
        lambda parts, first=first: first + "".join(parts)  # type: ignore[misc]
    )
    for first, records, odd in (
        ("@first\nACGT\n+\nIIII\n", fastq_records, odd_fastq),
        (">first\nACGT\n", fasta_records, odd_fasta),
    )
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=texts,
    crlf=st.booleans(),
    cut=st.sampled_from([0, 0, 0, 1, 2, 7]),
    piece=st.sampled_from([1, 20, 60, 1000]),
    block=st.sampled_from([1, 9, 40, 1000]),
    chunk=st.sampled_from([2, 13, 64]),
    any_letters=st.booleans(),
)
def test_pieces_give_what_the_whole_text_gives(
    tmp_path, monkeypatch, threads, parts, text, crlf, cut, piece, block, chunk, any_letters
):
    whole = text[: len(text) - cut]
    if crlf:
        whole = whole.replace("\r\n", "\n").replace("\n", "\r\n")
    path = tmp_path / "r"
    path.write_bytes(whole.encode())
    monkeypatch.setattr(parallel_records, "PIECE_BYTES", piece)
    found = read(path, threads, block, chunk, any_letters)
    assert found == read(path, None, block, chunk, any_letters)
