"""Any text that threads parse in pieces, against the parser that reads it from end to end."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.parallel_files import (
    Parts,
    fasta_record,
    fastq_record,
    read,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records import parallel_records

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
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: ReadingThreads,
    parts: Parts,
    text: str,
    crlf: bool,
    cut: int,
    piece: int,
    block: int,
    chunk: int,
    any_letters: bool,
) -> None:
    whole = text[: len(text) - cut]
    if crlf:
        whole = whole.replace("\r\n", "\n").replace("\n", "\r\n")
    path = tmp_path / "r"
    path.write_bytes(whole.encode())
    monkeypatch.setattr(parallel_records, "PIECE_BYTES", piece)
    found = read(path, threads, block, chunk, any_letters)
    assert found == read(path, None, block, chunk, any_letters)
