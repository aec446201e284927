"""The command ``sweep`` as tests give it, and what it is given."""

import random

from helpers.sequences import random_bases, reverse_complement
from helpers.sweeps import read_sweep
from mummergpu.cli.main import main
from mummergpu.studies.combinations import differing_policies

ALL = differing_policies("cpu")
"""All policies that differ on the processor."""


def write_files(folder):
    """Write a reference of two records, and reads of both strands."""
    some = random.Random(11)
    records = [random_bases(some, 1500) for _ in range(2)]
    records[1] = records[1][:700] + "N" * 9 + records[0][200:500] + records[1][700:]
    text = "".join(f">record{n}\n{record}\n" for n, record in enumerate(records))
    (folder / "r.fa").write_text(text)
    reads = [record[start : start + 90] for record in records for start in range(0, 1400, 70)]
    reads += [reverse_complement(read) for read in reads[::3]]
    (folder / "q.fa").write_text("".join(f">q{n}\n{read}\n" for n, read in enumerate(reads)))
    (folder / "more.fa").write_text(f">more\n{records[0][100:180]}\n")
    (folder / "none.fa").write_text("")


def swept(words, folder):
    """Sweep with the processor; return what was recorded."""
    assert main(["sweep", "-C", "-o", str(folder), *words.split()]) == 0
    return read_sweep(folder)


def error_of(words, code, capfd):
    """Return the message of a command that fails; it is one line, and all that is said."""
    capfd.readouterr()
    assert main(["sweep", *words.split()]) == code
    out, err = capfd.readouterr()
    start = "mummergpu: error: "
    assert out == "" and err.startswith(start) and err.count("\n") == 1, err
    return err.removeprefix(start).rstrip("\n")
