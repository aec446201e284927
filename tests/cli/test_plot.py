"""The command ``plot`` and pictures as output; the page of one in a real browser."""

import html
import json
import os
import random
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from helpers.browser import visit
from helpers.children import COMMAND, child
from helpers.made_matches import made_matches
from helpers.sequences import random_bases, reverse_complement, write_fasta

from mummergpu.cli.main import main
from mummergpu.cli.plot import usual_length
from mummergpu.drawing.colours import FORWARD, REVERSE
from mummergpu.drawing.picture import PictureStyle
from mummergpu.matching.options import Uniqueness
from mummergpu.output.targets import OutputTarget
from mummergpu.plot import page
from mummergpu.runtime.cache_dir import cache_folder
from mummergpu.sequence.strand import Strand

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    made = random.Random(3)
    text = random_bases(made, 3000)
    complement = reverse_complement(text[1000:2500])
    monkeypatch.chdir(tmp_path)
    write_fasta("r.fa", {"r": text})
    write_fasta("q.fa", {"turned": complement, "straight": text[:900]})


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


def test_nothing_is_left_of_matplotlib_where_no_home_can_be_written(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    nowhere = {name: "/proc/none" for name in ("HOME", "XDG_CACHE_HOME")}
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    kept = {"MUMMERGPU_CACHE_DIR": str(cache_folder(os.environ)), "TMPDIR": str(temporary)}
    environment = {**nowhere, **kept, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = child(*COMMAND, *"plot r.fa q.fa -q -C -o x.png".split(), env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("x.png").read_bytes().startswith(STARTS["png"])
    assert [name for name in os.listdir(temporary) if "matplotlib" in name] == []


def check_picture(name, *more):
    """A file gives the picture that its genomes give, but for the words in it."""
    assert main(["plot", "-C", "-q", "r.fa", "q.fa", "-o", "own.html", "--title", "t"]) == 0
    assert main(["plot", name, "-o", "read.html", "--title", "t", "-q"]) == 0
    own, read = (Path(one).read_text() for one in ("own.html", "read.html"))
    # They differ in the titles of the axes, and in what the matches are called.
    assert numbers_of(own) == numbers_of(read) != []
    assert main(["plot", name, "-o", "x.png", "-q", *more]) == 0
    assert Path("x.png").read_bytes().startswith(STARTS["png"])


@pytest.mark.parametrize("name", ["x.paf", "x.paf.gz"])
def test_a_file_of_matches_gives_the_picture_of_its_genomes(name):
    words = ["-C", "-q", "-b", "-mum", "-l", "20", "r.fa", "q.fa", "-o", "x.paf"]
    assert main([*words, "-o", "x.paf.gz"]) == 0
    check_picture(name, "-l", "30")


@pytest.mark.parametrize("name", ["x.delta", "x.paf"])
def test_alignments_without_a_difference_give_the_same_picture(name):
    assert main(["align", "-C", "-q", "r.fa", "q.fa", "-o", name]) == 0
    check_picture(name)


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


LENGTH = 10_000

MATCHES = [
    (0, 0, 1000, 2000, 3000, False),
    (1, 0, 500, 6000, 2000, True),
    (1, 0, 4000, 500, 1000, False),
]
"""The second query matches mostly in reverse, so it is turned around and comes second."""

FIXED_SIZE = "<style>#plot { width: 1168px; height: 700px }</style>"
"""The browser may change the size of its window while it starts: the plot keeps its own."""

QUESTIONS = Path(__file__).with_name("plot_page.js").read_text()
"""What uses the page, and writes what it finds as JSON into the element `answers`."""


@pytest.fixture(scope="module")
def made():
    matches = made_matches(MATCHES, [LENGTH, LENGTH], [LENGTH])
    matches.query_names[1] = "<img src=x onerror=alert(1)>"
    return page(matches, title="Two queries")


@pytest.fixture(scope="module")
def visited(browser_binary, made, tmp_path_factory):
    """The page, opened from a folder in which there is nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "dots.html").write_text(made)
    return visit(browser_binary, folder / "dots.html", tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def answers(browser_binary, made, tmp_path_factory):
    """What a script that uses the page finds; the page itself allows no script but its own."""
    folder = tmp_path_factory.mktemp("asked")
    free = re.sub(r"<meta http-equiv[^>]*>", "", made)
    asking = f'<pre id="answers"></pre><script>{QUESTIONS}</script>'
    fixed = free.replace("</head>", FIXED_SIZE + "</head>")
    (folder / "dots.html").write_text(fixed.replace("</body>", asking + "</body>"))
    opened = visit(browser_binary, folder / "dots.html", tmp_path_factory.mktemp("browser"))
    text = re.search(r'<pre id="answers">(.*?)</pre>', opened.document, re.DOTALL)
    assert text and text[1].startswith("{"), (text and text[1], opened.console)
    return json.loads(html.unescape(text[1]))


def bases_of(place):
    """The positions in what the page says of a place: in the reference, and in the query."""
    return [int(number.replace(",", "")) for number in re.findall(r": ([\d,]+)", place)]


def test_the_page_asks_for_nothing_and_complains_of_nothing(visited):
    assert visited.requests == set()
    assert visited.console == []
    assert "<h1>Two queries</h1>" in visited.document
    assert "3 matches · * reverse complement" in visited.document


def test_matches_are_drawn_in_both_colours(answers):
    assert min(answers["size"]) > 300
    assert answers["colours"].get(FORWARD, 0) > 300
    # The short match of the turned query falls.
    assert answers["colours"].get(REVERSE, 0) > 30


def test_a_match_tells_its_positions(answers):
    other = "query *<img src=x onerror=alert(1)>"
    assert {one.replace("\N{EN DASH}", "-") for one in answers["found"]} == {
        "reference r0: 2,001-5,000\nquery q0: 1,001-4,000\n3,000 bp, forward",
        f"reference r0: 6,001-8,000\n{other}: 501-2,500\n2,000 bp, reverse",
        f"reference r0: 501-1,500\n{other}: 4,001-5,000\n1,000 bp, forward",
    }


def test_the_place_of_the_pointer_is_told(answers):
    reference, query = bases_of(answers["corner"])
    # At the left, and near the top, where the turned query begins.
    assert 1 <= reference < 200 and 1 <= query < 900
    assert answers["corner"].startswith("r0: ") and "*<img" in answers["corner"]
    assert answers["outside"] == {"place": "", "found": None}


def test_the_wheel_zooms_around_the_pointer(answers):
    (corner, middle), (near, same) = (
        map(bases_of, answers["zoomed"][at]) for at in ("before", "after")
    )
    assert abs(middle[0] - same[0]) <= 60
    assert abs(near[0] - same[0]) < 0.2 * abs(corner[0] - middle[0])


def test_a_drag_moves_and_a_key_shows_all_again(answers):
    # What was at 200 is at 300 now.
    assert abs(bases_of(answers["dragged"])[0] - bases_of(answers["zoomed"]["after"][0])[0]) <= 2
    assert answers["reset"] == answers["zoomed"]["before"][0]


def test_short_matches_can_be_left_out(answers):
    assert answers["filtered"] == [
        ["1,000 bp: 3 of 3", 3],
        # In the middle is the square root of 1,000 x 3,000.
        ["1,732 bp: 2 of 3", 2],
        ["3,000 bp: 1 of 3", 1],
    ]
