"""dnadiff tells the same of two genomes with this program in the place of ``nucmer``."""

import os
import subprocess
from pathlib import Path

import pytest
from helpers.mummer_scripts import FOLDER, PROGRAMS, SCRIPTS, copy_scripts, write_launcher

SLICE = "B_anthracis_Mslice.fasta"
CONTIGS = "B_anthracis_contigs.fasta"
PYLORI = ("H_pylori26695_Eslice.fasta", "H_pyloriJ99_Eslice.fasta")

MOST_BASES_APART = 0.002
"""As a share: alignments may begin and end some bases before or after nucmer's."""

LEAST_IDENTITY = -0.05
"""How much lower the identity may be, in percent, of which the report has two decimals."""

# Else the tables of the report have their lines in a random order.
SETTINGS = {"PERL_HASH_SEED": "0"}


@pytest.fixture(scope="module")
def tools(tmp_path_factory, mummer_binary):
    """MUMmer's scripts with its own ``nucmer``, and the same with this program in its place."""
    for name in (*SCRIPTS, *PROGRAMS):
        if not Path(FOLDER, name).exists():
            pytest.skip(f"{name} of MUMmer 3.23 is not installed in {FOLDER}")
    folder = tmp_path_factory.mktemp("tools")
    theirs = copy_scripts(folder / "theirs", mummer_binary)
    ours = copy_scripts(folder / "ours", mummer_binary)
    (ours / "nucmer").unlink()
    (ours / "nucmer").symlink_to(write_launcher(folder / "mummergpu"))
    return theirs, ours


def reports(tools, where, *files):
    """Return dnadiff's report with MUMmer's nucmer, and with this program."""
    made = []
    for folder in tools:
        prefix = where / folder.name
        words = [str(folder / "dnadiff"), "-p", str(prefix), *files]
        done = subprocess.run(words, env={**os.environ, **SETTINGS}, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        assert (b"RUNNING mummer" in done.stderr) == (folder.name == "theirs")
        made.append(Path(f"{prefix}.report").read_text())
    return made[0], made[1]


def columns_of(report):
    """Return the columns of the lines of a report, by their section and their name."""
    found = {}
    section = ""
    for line in report.splitlines():
        words = line.split()
        if line.startswith("["):
            section = words[0]
        elif len(words) == 3:
            found.setdefault(f"{section} {words[0]}", words[1:])
            if words[0] in ("1-to-1", "M-to-M"):
                section = words[0]
    return found


def bases(word):
    """Return a number of bases, which stands before its share in parentheses."""
    return int(word.split("(")[0])


def test_the_report_on_close_genomes_is_the_same(tools, real, tmp_path):
    theirs, ours = reports(tools, tmp_path, *map(real.reference, (SLICE, CONTIGS)))
    assert columns_of(theirs)["[Bases] TotalBases"] == ["312600", "308837"]
    assert ours == theirs


def test_the_report_on_distant_genomes_is_alike(tools, real, tmp_path):
    theirs, ours = map(columns_of, reports(tools, tmp_path, *map(real.reference, PYLORI)))
    for name in ("[Sequences] TotalSeqs", "[Sequences] AlignedSeqs", "[Bases] TotalBases"):
        assert ours[name] == theirs[name]
    for name in ("[Bases] AlignedBases", "1-to-1 TotalLength", "M-to-M TotalLength"):
        for own, other in zip(map(bases, ours[name]), map(bases, theirs[name]), strict=True):
            assert other > 200_000
            assert abs(own - other) <= MOST_BASES_APART * other, name
    for name in ("1-to-1 AvgIdentity", "M-to-M AvgIdentity"):
        for own, other in zip(map(float, ours[name]), map(float, theirs[name]), strict=True):
            assert own - other >= LEAST_IDENTITY, name
