"""The oracle beside MUMmer 3.23: both print the same rows."""

import subprocess
from pathlib import Path

from helpers.main_job import EVERYTHING, Setting, found_text, output_options, write_fasta
from helpers.oracle import mummer_text
from helpers.strategies import queries, sequences
from hypothesis import given
from hypothesis import strategies as st


@given(
    records=st.lists(sequences().filter(bool), min_size=1, max_size=4),
    data=st.data(),
    minimum_length=st.integers(1, 9),
    told=output_options,
)
def test_the_oracle_prints_the_rows_that_mummer_prints(
    folder, mummer_binary, records, data, minimum_length, told
):
    reads = [read for read in data.draw(queries(records), "reads") if read] or ["A"]
    told = {**told, "show_sequences": False}
    if told["uniqueness"] == "mum":
        # See test_mummer_forgets_a_match_of_one_base_at_the_first_base.
        minimum_length = max(2, minimum_length)
    told["forward_coordinates"] &= told["strands"] != "forward"
    flags = {
        f"-{told['uniqueness']}": True,
        "-b": told["strands"] == "both",
        "-r": told["strands"] == "reverse",
        "-c": told["forward_coordinates"],
        "-F": told["four_columns"],
        "-L": told["show_query_lengths"],
    }
    command = [
        mummer_binary,
        *(flag for flag, on in flags.items() if on),
        *("-n", "-l", str(minimum_length)),
        write_fasta(folder / "reference.fa", "r", records),
        write_fasta(folder / "queries.fa", "q", reads),
    ]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert in_blocks(printed) == in_blocks(mummer_text(records, reads, minimum_length, **told))


def in_blocks(text):
    """Headers in their order, the rows of each sorted."""
    blocks = []
    for line in text.splitlines():
        if line.startswith(">"):
            blocks.append((line, []))
        else:
            blocks[-1][1].append(line)
    return [(header, sorted(rows)) for header, rows in blocks]


def test_mummer_forgets_a_match_of_one_base_at_the_first_base(folder, mummer_binary):
    """Its filter of contained matches begins as if one had ended at the first base.

    By definition the match is unique in both sequences, so we report it.
    """
    paths = [write_fasta(folder / name, "r", ["ACCGG"]) for name in ("one.fa", "same.fa")]
    Path(paths[1]).write_text(">q0\nAT\n")
    command = [mummer_binary, "-n", "-mum", "-l", "1", *paths]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert printed == "> q0\n"
    expected = mummer_text(["ACCGG"], ["AT"], 1, "mum")
    assert expected == "> q0\n       1         1         1\n"
    told = {**EVERYTHING, "uniqueness": "mum", "strands": "forward", "show_sequences": False}
    told["forward_coordinates"] = False
    found = found_text(folder, ["ACCGG"], ["AT"], 1, Setting(), **told)
    assert found == mummer_text(["ACCGG"], ["AT"], 1, **told)
