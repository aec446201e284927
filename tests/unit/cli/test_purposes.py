"""What ``--for`` sets and refuses."""

import pytest
from helpers.loops import each

from mummergpu.cli.main import main
from mummergpu.matching.options import Uniqueness
from mummergpu.sequence.strand import Strand

FORWARD, REVERSE = (Strand.FORWARD,), (Strand.REVERSE,)
BOTH = (Strand.FORWARD, Strand.REVERSE)


def options_of(told, line):
    assert main(["ref.fa", "reads.fq", *line.split()]) == 0
    return told.pop()


@each(
    "line, strands, mode, flipped, three_columns_for",
    [
        ("", FORWARD, Uniqueness.ALL, False, ""),
        ("--for mgaps", FORWARD, Uniqueness.ALL, False, "mgaps"),
        ("--for mgaps -b -mum", BOTH, Uniqueness.IN_BOTH, False, "mgaps"),
        ("--for nucmer", BOTH, Uniqueness.IN_REFERENCE, False, "nucmer"),
        ("--for nucmer -r -maxmatch", REVERSE, Uniqueness.ALL, False, "nucmer"),
        ("--for nucmer -b -mum", BOTH, Uniqueness.IN_BOTH, False, "nucmer"),
        ("--for nucmer -maxmatch", BOTH, Uniqueness.ALL, False, "nucmer"),
        ("--for mummerplot", BOTH, Uniqueness.ALL, True, ""),
        ("--for mummerplot -r -mum -F -L", REVERSE, Uniqueness.IN_BOTH, True, ""),
        ("--for mummerplot -b -c -o x.bed -o x.txt", BOTH, Uniqueness.ALL, True, ""),
    ],
)
def test_what_is_set(line, strands, mode, flipped, three_columns_for, told):
    options = options_of(told, line)
    assert options.search.strands == strands
    assert options.search.uniqueness is mode
    assert options.style.forward_coordinates == flipped
    assert options.style.three_columns_for == three_columns_for


@pytest.mark.parametrize("program", ["mgaps", "nucmer"])
def test_a_reference_of_several_records(program, tmp_path, capfd):
    reference, out = tmp_path / "r.fa", tmp_path / "out"
    reference.write_text(">a\nACGTTGCA\n>b\nAAAA\n")
    words = [str(reference), str(reference), "-C", "-q", "-l", "4", "-o", str(out)]
    assert main([*words, "--for", program]) == 2
    assert f"--for {program}: the reference has 2 records" in capfd.readouterr().err
    assert not out.exists()
    assert main([*words, "--for", "mummerplot"]) == 0
    reference.write_text(">a\nACGTTGCA\n")
    assert main([*words, "--for", program]) == 0
