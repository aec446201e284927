"""MUMmer's scripts give the same with this program in the place of ``mummer`` or ``nucmer``."""

import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.mummer_scripts import FOLDER, PROGRAMS, SCRIPTS, copy_scripts, write_launcher
from helpers.oracle import reverse_complement

from mummergpu.cli.main import main

SLICE = "B_anthracis_Mslice.fasta"
CONTIGS = "B_anthracis_contigs.fasta"
PYLORI = ("H_pylori26695_Eslice.fasta", "H_pyloriJ99_Eslice.fasta")

# Else the tables of dnadiff's report have their lines in a random order.
SETTINGS = {"PERL_HASH_SEED": "0"}


@dataclass
class Tools:
    """MUMmer's scripts with its own ``mummer``, and the same with this program.

    A file gets a line for each time that the script starts this program.
    """

    theirs: Path
    ours: Path
    log: Path

    def results(self, where, script, *words):
        """Run a script with each ``mummer``, and return the files that it wrote."""
        made = []
        self.log.unlink(missing_ok=True)
        for tools in (self.theirs, self.ours):
            folder = where / f"by_{tools.name}"
            folder.mkdir()
            command = [str(tools / script), *words]
            environment = {**os.environ, **SETTINGS, "SHIM_LOG": str(self.log)}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True)
            assert done.returncode == 0, done.stderr.decode()
            made.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
            assert self.log.exists() == (tools is self.ours)
        return made


@pytest.fixture(scope="module")
def tools(tmp_path_factory, mummer_binary):
    for name in (*SCRIPTS, *PROGRAMS):
        if not Path(FOLDER, name).exists():
            pytest.skip(f"{name} of MUMmer 3.23 is not installed in {FOLDER}")
    folder = tmp_path_factory.mktemp("tools")
    launcher = write_launcher(folder / "mummergpu")
    text = launcher.read_text().splitlines()
    text[1] = "import sys, os; open(os.environ['SHIM_LOG'], 'a').write('started\\n')"
    launcher.write_text("\n".join(text))
    theirs = copy_scripts(folder / "theirs", mummer_binary)
    return Tools(theirs, copy_scripts(folder / "ours", launcher), folder / "log")


def write_genomes(folder, letters="ACGT"):
    """Write a genome of two records, and one like it: mutated, moved about and partly reversed."""
    chance = random.Random(7)
    bases = "".join(chance.choice(letters) for _ in range(12_000))
    repeat = bases[500:900]
    bases = bases[:5000] + repeat + bases[5000:9000] + repeat + bases[9000:]
    changed = [chance.choice(letters) if chance.random() < 0.02 else base for base in bases]
    copy = "".join(changed)
    copy = copy[6000:] + reverse_complement(copy[2000:6000]) + copy[:1500] + repeat
    texts = {
        "a.fa": f">first one\n{bases[:7000]}\n>second\n{bases[7000:].lower()}\n",
        "b.fa": f">copy\n{copy[:8000]}\n>rest of it\n{copy[8000:]}\n>short\nACG\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return str(folder / "a.fa"), str(folder / "b.fa")


def cut_short(folder, path, name):
    """Write the first 150 kbp of a genome of one record."""
    header, bases = Path(path).read_bytes().split(b"\n", 1)
    (folder / name).write_bytes(header + b"\n" + bases[:150_000] + b"\n")
    return str(folder / name)


@pytest.mark.parametrize("mode", ["", "--maxmatch", "--mum", "--mum -f", "--maxmatch -r -l 12"])
def test_nucmer_on_made_genomes(mode, tools, tmp_path):
    files = write_genomes(tmp_path)
    theirs, ours = tools.results(tmp_path, "nucmer", *mode.split(), "-o", "-p", "out", *files)
    assert theirs["out.delta"].count(b"\n") > 10
    assert ours == theirs


@pytest.mark.parametrize("reference_first", [True, False], ids=["forth", "back"])
def test_nucmer_on_real_genomes(reference_first, tools, real, tmp_path):
    files = [cut_short(tmp_path, real.reference(name), name) for name in PYLORI]
    ordered = files if reference_first else files[::-1]
    theirs, ours = tools.results(tmp_path, "nucmer", "-p", "out", *ordered)
    assert theirs["out.delta"].count(b"\n") > 20
    assert ours == theirs


def test_for_nucmer_gives_its_delta(tools, tmp_path):
    """The lines of the main job's help, beside nucmer's own run."""
    files = write_genomes(tmp_path)
    theirs = tools.results(tmp_path, "nucmer", "-p", "out", *files)[0]
    joined, ours = tmp_path / "a.ntref", tmp_path / "ours.txt"
    joined.write_bytes(run("/usr/lib/mummer/prenuc", files[0]))
    assert main(["-q", str(joined), files[1], "--for", "nucmer", "-o", str(ours)]) == 0
    options = ("-l", "65", "-s", "90", "-d", "5", "-f", ".12")
    chained = run("mgaps", *options, given=ours.read_bytes())
    run("/usr/lib/mummer/postnuc", "-b", "200", *files, str(tmp_path / "out"), given=chained)
    assert (tmp_path / "out.delta").read_bytes() == theirs["out.delta"]


def run(*words, given=b""):
    return subprocess.run(words, input=given, capture_output=True, check=True).stdout


def test_dnadiff_on_made_genomes(tools, tmp_path):
    theirs, ours = tools.results(tmp_path, "dnadiff", *write_genomes(tmp_path))
    assert len(theirs) > 8
    assert theirs["out.snps"].count(b"\n") > 50
    assert ours == theirs


def test_dnadiff_on_real_genomes(tools, real, tmp_path):
    files = real.reference(SLICE), real.reference(CONTIGS)
    theirs, ours = tools.results(tmp_path, "dnadiff", *files)
    assert theirs["out.1delta"].count(b"\n") > 20
    assert ours == theirs


MOST_BASES_APART = 0.002
"""As a share: alignments may begin and end some bases before or after nucmer's."""

LEAST_IDENTITY = -0.05
"""How much lower the identity may be, in percent, of which the report has two decimals."""


@pytest.fixture(scope="module")
def with_shim(tools, tmp_path_factory, mummer_binary):
    """MUMmer's scripts with its own ``nucmer``, and the same with this program in its place."""
    folder = tmp_path_factory.mktemp("tools")
    theirs = copy_scripts(folder / "theirs", mummer_binary)
    ours = copy_scripts(folder / "ours", mummer_binary)
    (ours / "nucmer").unlink()
    (ours / "nucmer").symlink_to(write_launcher(folder / "mummergpu"))
    return theirs, ours


def reports(with_shim, where, *files):
    """Return dnadiff's report with MUMmer's nucmer, and with this program."""
    made = []
    for folder in with_shim:
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


def test_the_report_on_close_genomes_is_the_same(with_shim, real, tmp_path):
    theirs, ours = reports(with_shim, tmp_path, *map(real.reference, (SLICE, CONTIGS)))
    assert columns_of(theirs)["[Bases] TotalBases"] == ["312600", "308837"]
    assert ours == theirs


def test_the_report_on_distant_genomes_is_alike(with_shim, real, tmp_path):
    theirs, ours = map(columns_of, reports(with_shim, tmp_path, *map(real.reference, PYLORI)))
    for name in ("[Sequences] TotalSeqs", "[Sequences] AlignedSeqs", "[Bases] TotalBases"):
        assert ours[name] == theirs[name]
    for name in ("[Bases] AlignedBases", "1-to-1 TotalLength", "M-to-M TotalLength"):
        for own, other in zip(map(bases, ours[name]), map(bases, theirs[name]), strict=True):
            assert other > 200_000
            assert abs(own - other) <= MOST_BASES_APART * other, name
    for name in ("1-to-1 AvgIdentity", "M-to-M AvgIdentity"):
        for own, other in zip(map(float, ours[name]), map(float, theirs[name]), strict=True):
            assert own - other >= LEAST_IDENTITY, name
