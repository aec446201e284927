"""The command ``plot`` and the option ``--plot``: files, defaults, and what is refused."""

import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from helpers.sequences import random_bases, reverse_complement

from mummergpu.cli.main import main
from mummergpu.cli.plot import usual_length
from mummergpu.drawing.picture import PictureStyle
from mummergpu.matching.options import Uniqueness
from mummergpu.output.targets import OutputTarget
from mummergpu.sequence.strand import Strand

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    made = random.Random(3)
    text = random_bases(made, 3000)
    complement = reverse_complement(text[1000:2500])
    (tmp_path / "r.fa").write_text(f">r\n{text}\n")
    (tmp_path / "q.fa").write_text(f">turned\n{complement}\n>straight\n{text[:900]}\n")
    monkeypatch.chdir(tmp_path)


def error_of(capsys, words, code):
    assert main(words.split()) == code
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


@pytest.mark.parametrize("ending", STARTS)
def test_every_kind_of_file(ending, capsys):
    assert main(["plot", "-q", "r.fa", "q.fa", "-o", f"x.{ending.upper()}"]) == 0
    content = Path(f"x.{ending.upper()}").read_bytes()
    assert content.startswith(STARTS[ending])
    assert capsys.readouterr() == ("", "")


def test_a_picture_has_a_title_and_its_matches():
    assert main(["plot", "-q", "r.fa", "q.fa", "-o", "x.svg", "--title", "T"]) == 0
    text = Path("x.svg").read_text()
    ElementTree.fromstring(text)
    assert "*turned" in text and "2 MUMs of at least 20 bp" in text and ">T<" in text


def test_names_of_files_are_the_title():
    assert main(["plot", "-q", "r.fa", "q.fa", "-o", "x.svg", "--no-order"]) == 0
    text = Path("x.svg").read_text()
    assert "q against r" in text and "*turned" not in text and "turned" in text


def test_the_size_is_in_inches():
    for size, found in (("3", (450, 450)), ("4x2.5", (600, 375))):
        assert main(["plot", "-q", "r.fa", "q.fa", "-o", "x.png", "--size", size]) == 0
        header = Path("x.png").read_bytes()[16:24]
        assert (int.from_bytes(header[:4]), int.from_bytes(header[4:])) == found


def test_a_picture_beside_the_rows(capfdbinary):
    words = ["r.fa", "q.fa", "-mum", "-b", "-q", "-C"]
    assert main([*words, "-o", "rows.txt", "-o", "x.png"]) == 0
    assert Path("x.png").read_bytes().startswith(STARTS["png"])
    assert main(words) == 0
    assert capfdbinary.readouterr().out == Path("rows.txt").read_bytes() != b""
    assert main([*words, "-o", "y.svg"]) == 0
    text = Path("y.svg").read_text()
    assert text.startswith("<?xml") and "2 MUMs of at least 20 bp" in text
    assert main([*words[:2], "-l", "30", "-q", "-o", "z.svg"]) == 0
    assert "1 matches of at least 30 bp" in Path("z.svg").read_text()
    assert capfdbinary.readouterr().out == b""


def test_defaults(told):
    assert main("plot r.fa q.fa -o x.png -t 3 --backend cpu".split()) == 0
    options = told.pop()
    assert options.outputs == (OutputTarget("x.png", "plot"),)
    assert options.search.strands == (Strand.FORWARD, Strand.REVERSE)
    assert options.search.uniqueness is Uniqueness.IN_BOTH
    assert options.search.minimum_length == options.index.minimum_length == 20
    assert (options.threads, options.device.backend) == (3, "cpu")
    assert options.picture == PictureStyle()
    assert options.search.in_words == "MUMs of at least 20 bp"


def test_options(told):
    words = "plot --size 9x4 r.fa q.fa r.fa -o x.svg -maxmatch -l 31 --no-order"
    assert main(words.split()) == 0
    options = told.pop()
    assert options.query_paths == ("q.fa", "r.fa")
    assert options.search.uniqueness is Uniqueness.ALL
    assert options.search.minimum_length == 31
    assert options.picture == PictureStyle(False, (9.0, 4.0))
    assert options.search.in_words == "matches of at least 31 bp"
    assert main("plot r.fa q.fa -o x.svg -mumreference".split()) == 0
    assert told[-1].search.uniqueness is Uniqueness.IN_REFERENCE
    assert told[-1].search.in_words == "matches of at least 20 bp, unique in the reference"
    assert main("r.fa q.fa -o x.svg".split()) == 0
    assert told[-1].outputs == (OutputTarget("x.svg", "plot"),)
    assert told[-1].picture == PictureStyle()


def test_a_verbose_run_stays_verbose(capsys):
    assert main("plot r.fa q.fa -v -C -o x.html".split()) == 0
    assert "mummergpu: end_to_end" in capsys.readouterr().err


def test_the_least_length_grows_with_the_genomes(tmp_path, monkeypatch):
    def length(*sizes):
        paths = []
        for number, size in enumerate(sizes):
            paths.append(str(tmp_path / f"{number}.fa"))
            with open(paths[-1], "wb") as file:
                file.truncate(size)
        return usual_length(paths[0], paths[1:])

    assert length(5_000_000, 5_000_000) == length(10, 10) == length(23_000_000, 23_000_000) == 20
    assert length(100_000_000, 100_000_000) == 23
    assert length(3_000_000_000, 3_000_000_000) == length(3_000_000_000, *[1_500_000_000] * 2) == 27
    assert length(5_000_000, 0) == 20
    assert usual_length("r.fa", ["-"]) == usual_length("-", ["q.fa"]) == 20
    monkeypatch.setattr("mummergpu.index.format.is_index", lambda path: True)
    assert length(3_000_000_000, 3_000_000_000) == 20


def test_nothing_is_left_of_matplotlib_where_no_home_can_be_written(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    nowhere = {name: "/proc/none" for name in ("HOME", "XDG_CACHE_HOME")}
    environment = {**os.environ, **nowhere, "TMPDIR": str(temporary)}
    environment.pop("MPLCONFIGDIR", None)
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    words = ["plot", "r.fa", "q.fa", "-q", "-C", "-o", "x.png"]
    done = subprocess.run(
        [sys.executable, "-m", "mummergpu", *words], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("x.png").read_bytes().startswith(STARTS["png"])
    assert [name for name in os.listdir(temporary) if "matplotlib" in name] == []


@pytest.fixture
def matches():
    words = ["-C", "-q", "-b", "-mum", "-l", "20", "r.fa", "q.fa", "-o", "x.paf"]
    assert main([*words, "-o", "x.paf.gz"]) == 0


@pytest.mark.parametrize("name", ["x.paf", "x.paf.gz"])
def test_a_file_of_matches_gives_the_picture_of_its_genomes(matches, name):
    assert main(["plot", "-C", "-q", "r.fa", "q.fa", "-o", "own.html", "--title", "t"]) == 0
    assert main(["plot", name, "-o", "read.html", "--title", "t", "-q"]) == 0
    own, read = (Path(one).read_text() for one in ("own.html", "read.html"))
    # They differ in the titles of the axes, and in what the matches are called.
    assert numbers_of(own) == numbers_of(read) != []
    assert main(["plot", name, "-o", "x.png", "-l", "30"]) == 0
    assert Path("x.png").read_bytes().startswith(STARTS["png"])


@pytest.mark.parametrize("name", ["x.delta", "x.paf"])
def test_alignments_without_a_difference_give_the_same_picture(name):
    assert main(["align", "-C", "-q", "r.fa", "q.fa", "-o", name]) == 0
    assert main(["plot", "-C", "-q", "r.fa", "q.fa", "-o", "own.html", "--title", "t"]) == 0
    assert main(["plot", name, "-o", "read.html", "--title", "t", "-q"]) == 0
    own, read = (Path(one).read_text() for one in ("own.html", "read.html"))
    assert numbers_of(own) == numbers_of(read) != []
    assert main(["plot", name, "-o", "x.png", "-q"]) == 0
    assert Path("x.png").read_bytes().startswith(STARTS["png"])


def test_alignments_are_called_so_and_can_be_coloured_by_identity():
    lines = ["q\t400\t0\t300\t+\tr\t500\t0\t300\t290\t300\t60"]
    lines.append("q\t400\t300\t400\t-\tr\t500\t400\t500\t85\t100\t60")
    Path("two.paf").write_text("\n".join(lines) + "\n")
    words = ["plot", "two.paf", "-q", "-o", "x.svg", "--title", "t"]
    assert main(words) == 0
    assert "2 alignments" in Path("x.svg").read_text()
    assert main([*words, "--colour", "identity", "--line-width", "4"]) == 0
    text = Path("x.svg").read_text()
    assert "95 to 99%" in text and "#56b4e9" in text and "#d55e00" in text


def numbers_of(page):
    """What a page has of matches."""
    return re.findall(r'"columns":"([^"]+)"', page)
