"""The command ``report``, and its page in a real browser."""

import base64
import json
import re
import sys

import pytest
from helpers.browser import visit
from helpers.loops import each
from helpers.sweeps import CPU_CODES, write_cpu_sweep, write_gpu_sweep

from mummergpu.cli.main import main


@pytest.fixture
def cpu(tmp_path):
    return write_cpu_sweep(tmp_path / "cpu", runs=1, controls=2)


def error_of(capsys, *words, code=1):
    """Run the command, and return its error, which is one line."""
    assert main(["report", *map(str, words)]) == code
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


def test_a_report_lies_in_the_folder_of_its_sweep(cpu, capsys):
    assert main(["report", str(cpu)]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"mummergpu: the report is {cpu}/report.html\n")
    assert sorted(path.name for path in cpu.iterdir()) == [
        *("report.html", "runs.jsonl", "sweep.json")
    ]
    page = (cpu / "report.html").read_text()
    assert set(re.findall('<figure id="([^"]*)">', page)) == {
        *("paper-figure-7", "paper-figure-8", "paper-figure-9", "layouts", "effects"),
        "interactions",
    }
    for text in re.findall('src="data:image/svg.xml;base64,([^"]*)"', page):
        assert base64.b64decode(text).startswith(b"<?xml")
    assert "Without Figures 4, 5 and 6: the cpu backend has no textures." in page


def test_the_same_sweep_makes_the_same_bytes(cpu, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        assert main(["report", "-q", str(cpu), "-o", str(folder)]) == 0
    one, two = ((folder / "report.html").read_bytes() for folder in folders)
    assert one == two


def test_several_sweeps_stand_side_by_side(cpu, tmp_path):
    study = tmp_path / "study"
    write_gpu_sweep(study / "b", runs=1, controls=3)
    write_gpu_sweep(study / "a", runs=1, controls=3, name="HSILL", profile=False)
    out = tmp_path / "made" / "out"
    assert main(["report", "-q", str(study), str(cpu), "-o", str(out)]) == 0
    page = (out / "report.html").read_text()
    title = "<h1>Policy study: HSILL, NVIDIA H200; LMONO, NVIDIA H200; LMONO, AMD EPYC</h1>"
    assert title in page
    assert "One layout for all 3 sweeps: " in page
    assert page.count("<figure") == 9
    assert "are missing" not in page
    # The values that the paper printed.
    for words in ("slower by 6.6% on average", "from -12% to +35%", "56,911 ms"):
        assert words in page
    assert "60.0e9 / s" in page


def test_equal_sweeps_are_told_apart_by_their_folders(tmp_path):
    for name in ("x", "y"):
        write_cpu_sweep(tmp_path / "study" / name, runs=1, controls=0)
    assert main(["report", "-q", str(tmp_path / "study")]) == 0
    text = (tmp_path / "study" / "report.html").read_text()
    assert re.search(r">Policy study: LMONO, AMD EPYC, \S+/x; LMONO, AMD EPYC, \S+/y<", text)
    assert "How noisy the machine was is not known" in text


def test_an_interrupted_sweep_says_what_is_missing(tmp_path):
    folder = write_cpu_sweep(tmp_path / "s", runs=2, controls=3)
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["policy"] != "mn"][:20]
    # A process that was killed wrote half a line.
    (folder / "runs.jsonl").write_text("".join(kept) + lines[-1][:50])
    assert main(["report", "-q", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    note = re.search(r'<p class="note">(.*?)</p>', page)
    assert note
    assert "this sweep was interrupted. 20 of 35 runs were made, 15 are missing." in note[1]
    assert re.search(r"layouts? were not measured at all: .*\bmn\b", note[1])


@each("count", [0, 1, 2, 3])
def test_a_sweep_of_few_runs_is_reported(tmp_path, count):
    folder = write_cpu_sweep(tmp_path / str(count), runs=1, controls=0)
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    (folder / "runs.jsonl").write_text("".join(lines[:count]))
    assert main(["report", "-q", str(folder)]) == 0
    text = (folder / "report.html").read_text()
    assert f"{count} of {len(CPU_CODES)} runs were made" in text
    assert ("No run has been made yet." in text) == (count == 0)


def test_a_sweep_that_was_killed_before_its_first_run_is_reported(cpu):
    (cpu / "runs.jsonl").unlink()
    assert main(["report", "-q", str(cpu)]) == 0
    assert "No run has been made yet." in (cpu / "report.html").read_text()


def test_names_are_text_and_never_markup(tmp_path):
    name = "<script>alert('x')</script> $x^2$ & \x07 日本 | [a](b)"
    folder = write_gpu_sweep(tmp_path / "s", CPU_CODES, runs=1, controls=0, name=name)
    out = tmp_path / "out"
    assert main(["report", "-q", str(folder), "-o", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert "<script" not in page
    for text in re.findall('src="data:image/svg.xml;base64,([^"]*)"', page):
        assert b"<script" not in base64.b64decode(text)
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; $x^2$ &amp;" in page


@pytest.mark.parametrize("library", ["matplotlib", "jinja2", "scipy"])
def test_a_missing_library_is_named_with_what_installs_it(library, cpu, monkeypatch, capsys):
    for module in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    line = error_of(capsys, cpu)
    start = f"mummergpu: error: mummergpu report needs {library} (pip install 'mummergpu[report]')"
    assert line.startswith(start)
    assert not (cpu / "report.html").exists()


def replaced(key, value):
    """Return a function that changes a value in a line of JSON; dots lead into objects."""

    def change(line):
        whole = json.loads(line)
        inner = whole
        *way, last = key.split(".")
        for step in way:
            inner = inner[step]
        inner[last] = value
        return json.dumps(whole)

    return change


@each(
    "damage, expected",
    [
        (lambda line: line[:40], "is not a run of a sweep ("),
        (lambda _line: "[]", "is not a run of a sweep ("),
        (lambda _line: "", "is not a run of a sweep ("),
        (replaced("further", 1), "does not take 'further'"),
        (replaced("policy", "Z"), "not made of the letters"),
        (replaced("policy", "tm"), "the letters of 'tm' are not in order"),
        (replaced("seconds", [1]), "is not a run of a sweep ("),
        (replaced("seconds.match", "long"), "could not convert string to float"),
        (replaced("kernels", {"k": {"milliseconds": 1}}), "launches"),
    ],
)
def test_a_damaged_run_is_named_with_its_line(tmp_path, capsys, damage, expected):
    folder = write_cpu_sweep(tmp_path / "damaged", runs=1, controls=0)
    path = folder / "runs.jsonl"
    lines = path.read_text().splitlines()
    lines[4] = damage(lines[4])
    path.write_text("\n".join(lines) + "\n")
    line = error_of(capsys, folder)
    assert line.startswith(f"mummergpu: error: {path}:5: ")
    assert expected in line
    assert not (folder / "report.html").exists()


@each(
    "damage, expected",
    [
        (lambda text: text[:100], "is not the file of a sweep ("),
        (lambda _text: "3", "is not the file of a sweep ("),
        (replaced("schema_version", 99), "is of version 99, and 1 is known"),
        (replaced("policies", ["QQ"]), "a letter stands twice"),
    ],
)
def test_a_damaged_setup_is_named(tmp_path, capsys, damage, expected):
    folder = write_cpu_sweep(tmp_path / "damaged", runs=1, controls=0)
    path = folder / "sweep.json"
    path.write_text(damage(path.read_text()))
    line = error_of(capsys, folder)
    assert line.startswith(f"mummergpu: error: {path}: ")
    assert expected in line


def test_what_is_no_sweep_is_refused(cpu, tmp_path, capsys):
    line = error_of(capsys, cpu, cpu, code=2)
    assert line.startswith("mummergpu: error: Missing option '-o' / '--output'")
    taken = tmp_path / "taken"
    taken.write_text("")
    assert "taken: cannot be made: File exists" in error_of(capsys, cpu, "-o", taken)


def test_an_older_page_stays_if_the_new_one_fails(cpu, capsys):
    (cpu / "report.html").write_text("older")
    (cpu / "sweep.json").write_text("{}")
    error_of(capsys, cpu)
    assert (cpu / "report.html").read_text() == "older"


MEASURE = """
<pre id="measured"></pre>
<script>
console.log("measuring");
addEventListener("load", () => {
  const box = (one) => [one.getBoundingClientRect().width, one.getBoundingClientRect().height];
  document.getElementById("measured").textContent = JSON.stringify({
    figures: [...document.querySelectorAll("figure img")].map(box),
    images: [...document.querySelectorAll("img")].map((one) => one.naturalWidth),
  });
});
</script>
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of a report on two sweeps."""
    folder = tmp_path_factory.mktemp("page")
    write_gpu_sweep(folder / "study" / "gpu", name="<script>alert(1)</script>")
    write_cpu_sweep(folder / "study" / "cpu")
    assert main(["report", "-q", str(folder / "study"), "-o", str(folder / "out")]) == 0
    return folder / "out" / "report.html"


@pytest.fixture(scope="module")
def visited(browser_binary, report, tmp_path_factory):
    """The page, opened from a folder in which there is nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    page = folder / "report.html"
    page.write_bytes(report.read_bytes())
    return visit(browser_binary, page, tmp_path_factory.mktemp("browser"))


def test_the_page_asks_for_nothing_and_complains_of_nothing(visited):
    assert visited.requests == set()
    assert visited.console == []
    assert "<h2>Summary</h2>" in visited.document
    assert "<script" not in visited.document
    targets = re.findall(r'\b(?:src|href|action|data)="([^"]*)"', visited.document)
    assert targets
    assert all(target.startswith(("#", "data:")) for target in targets)
    assert re.findall(r"url\((?!#)|@import", visited.document) == []


def test_figures_have_a_size(browser_binary, report, tmp_path):
    # The page itself allows no script.
    free = re.sub(r"<meta http-equiv[^>]*>", "", report.read_text())
    measured = report.parent / "measured.html"
    measured.write_text(free.replace("</body>", MEASURE + "</body>"))
    seen = visit(browser_binary, measured, tmp_path)
    assert len(seen.console) == 1
    assert "measuring" in seen.console[0]
    text = re.search(r'<pre id="measured">(.*?)</pre>', seen.document)
    assert text
    sizes = json.loads(text[1])
    assert len(sizes["figures"]) == len(sizes["images"]) == 9
    assert all(width > 300 and height > 100 for width, height in sizes["figures"])
    assert min(sizes["images"]) > 300


def test_what_a_page_must_not_do_is_noticed(browser_binary, tmp_path):
    page = tmp_path / "bad.html"
    page.write_text('<img src="http://127.0.0.1:9/figure.png"><script>undefined.property;</script>')
    seen = visit(browser_binary, page, tmp_path / "browser")
    assert "http://127.0.0.1:9/figure.png" in seen.requests
    assert any("TypeError" in line for line in seen.console)
