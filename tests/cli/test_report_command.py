"""The command ``report``: its inputs, its files, and what is wrong with either."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.loops import each
from helpers.sweeps import CPU_CODES, write_cpu_sweep, write_gpu_sweep

from mummergpu.cli.main import main

RUN_STATS = {
    "schema_version": 3,
    "settings": {"backend": "cuda", "policy": "Tn", "threads": 2, "minimum_length": 20},
    "counts": {
        **{"queries": 1000, "matches": 771, "queries_with_match": 600},
        **{"reference_bases": 4000, "bases_covered": 1000},
    },
    "files": [
        {
            **{"path": "a.fq", "queries": 900, "query_bases": 90_000},
            **{"queries_with_match": 600, "matches": 771},
        },
        {
            **{"path": "none.fq", "queries": 100, "query_bases": 10_000},
            **{"queries_with_match": 0, "matches": 0},
        },
    ],
    "strands": [
        {"strand": "forward", "queries_with_match": 500, "matches": 700},
        {"strand": "reverse", "queries_with_match": 70, "matches": 71},
    ],
    "match_lengths": [
        {"first": 20, "last": 20, "matches": 700},
        {"first": 21, "last": 21, "matches": 70},
        {"first": 1056, "last": 1087, "matches": 1},
    ],
    "bytes": {"output": 34252},
    "stages": {
        "match_kernel": {"seconds": 0.5, "count": 2, "peak_memory_bytes": 1 << 20},
        "format": {"seconds": 0.0, "count": 0, "peak_memory_bytes": 0},
        "end_to_end": {"seconds": 2.0, "count": 1, "peak_memory_bytes": 3 << 20},
    },
    "kernels": {
        "match_kernel": {
            "milliseconds": 500.0,
            "launches": 2,
            "node_visits": 12345,
            "resources": {"registers": 40, "local_bytes": 0, "occupancy": 0.75},
        }
    },
    "peak_memory_bytes": 3 << 20,
}


@pytest.fixture
def cpu(tmp_path: Path) -> Path:
    return write_cpu_sweep(tmp_path / "cpu", runs=1, controls=2)


def error_of(capsys: pytest.CaptureFixture[str], *words: object, code: int = 1) -> str:
    """Run the command, and return its error, which is one line."""
    assert main(["report", *map(str, words)]) == code
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


def test_a_report_lies_in_the_folder_of_its_sweep(
    cpu: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(cpu)]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"mummergpu: the report is {cpu}/report.html\n")
    assert sorted(path.name for path in cpu.iterdir()) == [
        *("figures", "report.html", "report.md", "runs.jsonl", "sweep.json")
    ]
    page, text = (cpu / "report.html").read_text(), (cpu / "report.md").read_text()
    figures = {path.stem for path in (cpu / "figures").glob("*.svg")}
    assert figures == {
        *("paper-figure-7", "paper-figure-8", "paper-figure-9", "layouts", "effects"),
        *("interactions", "model", "stages"),
    }
    for name in figures:
        assert f"](figures/{name}.svg)" in text
        assert f'<figure id="{name}">' in page
        assert (cpu / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (cpu / "figures" / f"{name}.svg").read_bytes().startswith(b"<?xml")
    assert "Figures 4, 5 and 6 are missing: the cpu backend has no textures." in page


def test_the_same_sweep_makes_the_same_bytes(cpu: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        assert main(["report", "-q", str(cpu), "-o", str(folder)]) == 0
    files = [{p.name: p.read_bytes() for p in one.rglob("*") if p.is_file()} for one in folders]
    assert files[0] == files[1]
    assert len(files[0]) == 2 + 2 * 8


def test_several_sweeps_stand_side_by_side(cpu: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    write_gpu_sweep(study / "b", runs=1, controls=3)
    write_gpu_sweep(study / "a", runs=1, controls=3, name="HSILL", profile=False)
    out = tmp_path / "made" / "out"
    assert main(["report", "-q", str(study), str(cpu), "-o", str(out)]) == 0
    text = (out / "report.md").read_text()
    title = "# Policy study: HSILL, NVIDIA H200; LMONO, NVIDIA H200; LMONO, AMD EPYC\n"
    assert text.startswith(title)
    assert "One layout for all 3 sweeps: " in text
    assert len(list((out / "figures").glob("*.svg"))) == 15
    assert "are missing" not in text
    # The values that the paper printed.
    for words in ("slower by 6.6% on average", "from -12% to +35%", "56,911 ms"):
        assert words in text
    assert "60e9 / s" in text.replace("60.0e9", "60e9")


def test_equal_sweeps_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for name in ("x", "y"):
        write_cpu_sweep(tmp_path / "study" / name, runs=1, controls=0)
    assert main(["report", "-q", str(tmp_path / "study")]) == 0
    text = (tmp_path / "study" / "report.md").read_text()
    assert re.search(r"# Policy study: LMONO, AMD EPYC, \S+/x; LMONO, AMD EPYC, \S+/y\n", text)
    assert "How noisy the machine was is not known" in text


def test_a_stats_file_shows_where_a_run_spent_its_time(tmp_path: Path) -> None:
    stats = tmp_path / "run.json"
    stats.write_text(json.dumps(RUN_STATS))
    assert main(["report", "-q", str(stats), "-o", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "report.md").read_text()
    assert "The run took 2.00 s. Most went to match\\_kernel (500 ms)" in text
    assert "summed over threads" in text
    assert "| match\\_kernel | 500 ms | 25.0% | 2 | 1.00 MiB |" in text
    assert "| match\\_kernel | 500 ms | 2 | 40 | 0 | 75% | 12,345 |" in text
    assert "format" not in text
    figures = {path.name for path in (tmp_path / "out" / "figures").glob("*.svg")}
    assert figures == {"run-1.svg", "run-1-lengths.svg"}


def test_a_stats_file_shows_what_a_run_found(tmp_path: Path) -> None:
    stats = tmp_path / "run.json"
    stats.write_text(json.dumps(RUN_STATS))
    assert main(["report", "-q", str(stats), "-o", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "report.md").read_text()
    assert "The run found 771 matches. Of 1,000 queries, 600 (60.0%) have one." in text
    assert "The matches cover 1,000 of 4,000 bases of the reference (25.0%)." in text
    assert "| a.fq | 900 | 90,000 | 600 | 66.7% | 771 |" in text
    assert "| none.fq | 100 | 10,000 | 0 | 0.0% | 0 |" in text
    assert "| reverse | 70 | 7.0% | 71 |" in text
    assert "A histogram of lengths from 20 to 1,087 bases" in (
        (tmp_path / "out" / "report.html").read_text() + text
    )


@each("left_out", ["match_lengths", "files"])
def test_a_run_without_matches_is_reported(tmp_path: Path, left_out: str) -> None:
    stats = tmp_path / f"{left_out}.json"
    stats.write_text(json.dumps(RUN_STATS | {left_out: []}))
    out = tmp_path / left_out
    assert main(["report", "-q", str(stats), "-o", str(out)]) == 0
    assert [path.name for path in (out / "figures").glob("*.svg")] == ["run-1.svg"]
    assert ("The run found" in (out / "report.md").read_text()) == (left_out == "match_lengths")


MAPPING = {
    **{"reads": 1000, "mapped": 900, "paired": 800, "properly_paired": 600},
    **{"mapped_with_mate": 640, "singletons": 30, "mate_on_other_record": 2},
    **{"secondary": 0, "supplementary": 7, "mapping_qualities": [20, *[0] * 59, 880]},
    "insert_size": {
        **{"pairs": 300, "mean": 301.25, "standard_deviation": 9.5, "longer": 1},
        **{"quartiles": [290, 301, 310], "counts": [*[0] * 290, 100, *[0] * 10, 100, 99]},
    },
}


def test_a_stats_file_shows_what_became_of_reads(tmp_path: Path) -> None:
    stats = tmp_path / "run.json"
    nothing: dict[str, list[str]] = {"files": [], "strands": [], "match_lengths": []}
    stats.write_text(json.dumps(RUN_STATS | nothing | {"mapping": MAPPING}))
    out = tmp_path / "out"
    assert main(["report", "-q", str(stats), "-o", str(out)]) == 0
    text = (out / "report.md").read_text()
    assert "Of 1,000 reads, 900 (90.00%) are mapped." in text
    assert "The insert size of 300 proper pairs is 301.2 bases in the mean" in text
    assert "| in proper pairs | 600 | 75.00% |" in text
    assert "1 are outside of the figure" in text
    figures = {path.name for path in (out / "figures").glob("*.svg")}
    assert figures == {"run-1.svg", "run-1-qualities.svg", "run-1-insert-sizes.svg"}
    stats.write_text(json.dumps(RUN_STATS | {"mapping": MAPPING | {"mapped": "many"}}))
    assert main(["report", "-q", str(stats), "-o", str(out)]) == 1


def test_an_interrupted_sweep_says_what_is_missing(tmp_path: Path) -> None:
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
def test_a_sweep_of_few_runs_is_reported(tmp_path: Path, count: int) -> None:
    folder = write_cpu_sweep(tmp_path / str(count), runs=1, controls=0)
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    (folder / "runs.jsonl").write_text("".join(lines[:count]))
    assert main(["report", "-q", str(folder)]) == 0
    text = (folder / "report.md").read_text()
    assert f"{count} of {len(CPU_CODES)} runs were made" in text
    assert ("No run has been made yet." in text) == (count == 0)


def test_a_sweep_that_was_killed_before_its_first_run_is_reported(cpu: Path) -> None:
    (cpu / "runs.jsonl").unlink()
    assert main(["report", "-q", str(cpu)]) == 0
    assert "No run has been made yet." in (cpu / "report.html").read_text()


def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    name = "<script>alert('x')</script> $x^2$ & \x07 日本 | [a](b)"
    folder = write_gpu_sweep(tmp_path / "s", CPU_CODES, runs=1, controls=0, name=name)
    stats = tmp_path / "<img src=x>.json"
    settings = {"settings": {"backend": "<b>cuda</b>"}}
    stats.write_text(json.dumps(RUN_STATS | settings))
    out = tmp_path / "out"
    assert main(["report", "-q", str(folder), str(stats), "-o", str(out)]) == 0
    page = (out / "report.html").read_text()
    for tag in ("<script", "<img", "<b>"):
        assert tag not in page
        assert tag not in (out / "figures" / "layouts.svg").read_text()
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; $x^2$ &amp;" in page
    assert "<script" not in (out / "report.md").read_text().replace("\\<script", "")


@pytest.mark.parametrize("library", ["matplotlib", "jinja2", "scipy"])
def test_a_missing_library_is_named_with_what_installs_it(
    library: str,
    cpu: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    line = error_of(capsys, cpu)
    start = f"mummergpu: error: mummergpu report needs {library} (pip install 'mummergpu[report]')"
    assert line.startswith(start)
    assert not (cpu / "report.html").exists()


def replaced(key: str, value: object) -> Callable[[str], str]:
    """Return a function that changes a value in a line of JSON; dots lead into objects."""

    def change(line: str) -> str:
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
        (replaced("further", 1), "'further' is unknown"),
        (replaced("policy", "Z"), "not made of the letters"),
        (replaced("policy", "tm"), "the letters of 'tm' are not in order"),
        (replaced("policy", 3), "'policy' is not of type text"),
        (replaced("seconds", [1]), "'seconds' is not an object"),
        (replaced("seconds.match", "1"), "'seconds.match' is not of type number"),
        (replaced("seconds.match", float("nan")), "'seconds.match' is not of type number"),
        (replaced("mems", 1.5), "'mems' is not of type number"),
        (replaced("kernels", {"k": {"milliseconds": 1}}), "launches"),
        (
            replaced("kernels", {"k": {"milliseconds": 1, "launches": 1, "registers": "many"}}),
            "'kernels.k.registers' is not of type number",
        ),
    ],
)
def test_a_damaged_run_is_named_with_its_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[str], str],
    expected: str,
) -> None:
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
        (replaced("input.pages", None), "'input.pages' is not of type number"),
        (replaced("machine.versions", {"a": 1}), "'machine.versions.a' is not of type text"),
        (replaced("policies", ["QQ"]), "a letter stands twice"),
        (replaced("profile", 1), "'profile' is not of type boolean"),
    ],
)
def test_a_damaged_setup_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[str], str],
    expected: str,
) -> None:
    folder = write_cpu_sweep(tmp_path / "damaged", runs=1, controls=0)
    path = folder / "sweep.json"
    path.write_text(damage(path.read_text()))
    line = error_of(capsys, folder)
    assert line.startswith(f"mummergpu: error: {path}: ")
    assert expected in line


@each(
    "content, expected",
    [
        ('{\n"a": ', ":2: is not JSON ("),
        ("[]", ": is not a file of --stats ("),
        ('{"schema_version": 1}', ": is of version 1, and 3 is known"),
        (json.dumps(RUN_STATS | {"stages": 3}), ": is not a file of --stats ("),
        (json.dumps(RUN_STATS | {"peak_memory_bytes": "x"}), "'peak_memory_bytes' is not of"),
        (json.dumps(RUN_STATS | {"counts": {"queries": {}}}), "'counts.number' is not of type"),
        (json.dumps(RUN_STATS | {"files": [{"path": 1}]}), ": is not a file of --stats ("),
        (
            json.dumps(RUN_STATS | {"match_lengths": [{"first": 1, "last": 2, "matches": "x"}]}),
            "'match_lengths.matches' is not of type number",
        ),
    ],
)
def test_a_damaged_stats_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, expected: str
) -> None:
    path = tmp_path / "s.json"
    path.write_text(content)
    line = error_of(capsys, path, "-o", tmp_path / "out")
    assert line.startswith(f"mummergpu: error: {path}:")
    assert expected in line


def test_what_is_no_sweep_is_refused(
    cpu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "empty: holds no sweep: there is no sweep.json in it" in error_of(capsys, empty)
    absent = tmp_path / "absent"
    assert error_of(capsys, absent).endswith("absent: no such file or directory")
    line = error_of(capsys, cpu, cpu, code=2)
    assert line.startswith("mummergpu: error: Missing option '-o' / '--output'")
    assert "Missing option '-o'" in error_of(capsys, cpu / "sweep.json", code=2)
    assert "Missing argument" in error_of(capsys, code=2)
    taken = tmp_path / "taken"
    taken.write_text("")
    assert "taken/figures: cannot be made: Not a directory" in error_of(capsys, cpu, "-o", taken)


def test_an_older_page_stays_if_the_new_one_fails(
    cpu: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cpu / "report.html").write_text("older")
    (cpu / "figures").write_text("no folder")
    error_of(capsys, cpu)
    assert (cpu / "report.html").read_text() == "older"
