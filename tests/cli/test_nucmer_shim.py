"""``nucmer-shim``: the command lines of nucmer 3.23 and 4, and what they write."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.alignment_tools import samtools
from helpers.loops import each
from helpers.mummer_scripts import write_launcher
from helpers.sequences import random_bases
from helpers.tables import keywords, table

from mummergpu.cli.main import main
from mummergpu.cli.nucmer_shim import NucmerCommand, align_words, parse_nucmer_arguments


def command(line):
    found = parse_nucmer_arguments(line.split())
    assert isinstance(found, NucmerCommand)
    return found


@each("line, fields", table(__file__, "command lines", str, keywords))
def test_what_a_command_line_asks_for(line, fields):
    expected = {"reference": "r", "query": "q", "output": "out.delta"} | fields
    assert command(line) == NucmerCommand(**expected)


def test_words_for_align():
    words = align_words(command("--mum -f --noextend --nosimplify -l 9 -p x a -- -b"))
    assert words == (
        "--mum -l 9 --forward --noextend --nosimplify --no-empty --format delta -o x.delta -- a -b"
    ).split(" ")


def test_words_for_align_that_write_sam():
    words = "--mumreference --no-empty {}--format sam -o x -- a b"
    assert align_words(command("--sam-long x a b")) == words.format("").split()
    assert align_words(command("--sam-short x a b")) == words.format("--no-bases ").split()


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """The working folder, with a reference that has a repeat, and a query like it."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(5)
    bases = random_bases(chance, 3000)
    bases += bases[500:900]
    changed = "".join(chance.choice("ACGT") if chance.random() < 0.02 else one for one in bases)
    Path("r.fa").write_text(f">r1 one\n{bases[:2000]}\n>r2\n{bases[2000:]}\n")
    Path("q.fa").write_text(f">q1\n{changed}\n")
    Path("empty.fa").write_text("")
    return tmp_path


def shim(line):
    return main(["nucmer-shim", *line.split()])


def positions(path):
    """Return the lines of a .delta that say where alignments are."""
    return [line for line in Path(path).read_text().splitlines() if line.count(" ") == 6]


@each("line", ["", *table(__file__, "alignments")])
def test_alignments_are_those_of_nucmer(line, inside, nucmer_binary):
    for names in ("r.fa q.fa", "r.fa r.fa"):
        words = [nucmer_binary, *line.split(), "-p", "theirs", *names.split()]
        subprocess.run(words, check=True, capture_output=True)
        assert shim(f"{line} -p ours {names}") == 0
        head, *_ = Path("ours.delta").read_text().splitlines()
        assert head == " ".join(str(inside / name) for name in names.split())
        assert sorted(positions("ours.delta")) == sorted(positions("theirs.delta"))
    assert positions("theirs.delta") or line in ("-r --maxmatch",)


@pytest.fixture(scope="session")
def nucmer_binary(mummer_binary):
    """The path of MUMmer's own nucmer, where its mummer is found."""
    path = shutil.which("nucmer")
    if path is None:
        pytest.skip("nucmer is not installed")
    return path


def test_the_coordinates_are_those_of_show_coords(inside, nucmer_binary):
    assert shim("--coords -p x r.fa q.fa") == 0
    expected = subprocess.run(["show-coords", "-r", "x.delta"], check=True, capture_output=True)
    assert Path("x.coords").read_bytes() == expected.stdout
    assert expected.stdout.count(b"q1") > 1


def test_sam_has_the_alignments_of_the_delta(inside):
    assert shim("--maxmatch -p x r.fa q.fa") == 0
    assert shim("--maxmatch --sam-long long.sam r.fa q.fa") == 0
    assert shim("--maxmatch --sam-short=short.sam r.fa q.fa") == 0
    assert sorted(inside.glob("out*")) == []
    query = Path("q.fa").read_text().split()[1]
    heads = []
    for name, has_bases in (("long.sam", True), ("short.sam", False)):
        # It refuses a file with an error.
        text = samtools("view", "-h", "--no-PG", inside / name)
        assert text == Path(name).read_bytes()
        lines = text.decode().splitlines()
        heads.append([line for line in lines if line.startswith(("@HD", "@SQ"))])
        rows = [line.split("\t") for line in lines if line[0] != "@"]
        starts = [f"{row[2]} {row[3]}" for row in rows]
        assert sorted(starts) == sorted(delta_starts("x.delta"))
        assert [int(row[1]) & 0x900 for row in rows].count(0) == 1
        assert {row[9] == "*" for row in rows} == {not has_bases}
        assert {any(tag.startswith("MD:Z:") for tag in row[11:]) for row in rows} == {has_bases}
        assert all(row[10] == "*" and row[11].startswith("NM:i:") for row in rows)
        primary = next(row for row in rows if not int(row[1]) & 2048)
        assert primary[9] == (query if has_bases else "*")
    assert heads[0] == heads[1]
    assert len(heads[0]) == 3


def delta_starts(path):
    """Return the record and the start of each alignment of a .delta."""
    found = []
    for line in Path(path).read_text().splitlines():
        if line.startswith(">"):
            record = line[1:].split()[0]
        elif line.count(" ") == 6:
            found.append(f"{record} {line.split()[0]}")
    return found


def test_coordinates_need_show_coords(inside, monkeypatch, capfdbinary):
    monkeypatch.setenv("PATH", str(inside))
    monkeypatch.setattr("sys.argv", [str(inside / "nucmer")])
    assert shim("-o r.fa q.fa") == 1
    assert b"needs MUMmer's show-coords" in capfdbinary.readouterr().err
    assert not Path("out.delta").exists()
    broken = inside / "show-coords"
    broken.write_text("#!/bin/sh\necho out of ink >&2\nexit 3\n")
    broken.chmod(0o755)
    assert shim("-o r.fa q.fa") == 1
    assert b"show-coords failed: out of ink" in capfdbinary.readouterr().err
    assert not Path("out.coords").exists()


@each(
    "line, begin",
    [
        ("-h", b"Usage: nucmer [options]"),
        ("--help r.fa", b"Usage: nucmer [options]"),
        ("-V", b"nucmer (mummergpu "),
        ("--depend", b"mummergpu needs no other program"),
    ],
)
def test_information(line, begin, inside, capfdbinary):
    capfdbinary.readouterr()
    assert shim(line) == 0
    assert capfdbinary.readouterr().out.startswith(begin)


def test_the_version_is_found_where_programs_look_for_it(capfdbinary):
    capfdbinary.readouterr()
    assert shim("--version") == 0
    assert b"version 3.1\n" in capfdbinary.readouterr().out


def test_a_link_is_nucmer(inside):
    (inside / "nucmer").symlink_to(write_launcher(inside / "mummergpu"))
    words = [str(inside / "nucmer"), "-maxmatch", "-p", "linked", "r.fa", "q.fa"]
    done = subprocess.run(words, env=dict(os.environ), capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert shim("-maxmatch -p own r.fa q.fa") == 0
    assert Path("linked.delta").read_bytes() == Path("own.delta").read_bytes()
