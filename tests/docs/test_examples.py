"""Commands, examples in Python, programs of models and notebooks do what the pages say."""

import ast
import doctest
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from helpers.doc_pages import ALL_TEXTS, DOCS, PAGES, blocks_of, name_of

from mummergpu.cli.main import commands
from mummergpu.cli.option_types import Session

_END_OF_COMMAND = {"|", "||", "&&", ";", ">", "<", "2>"}
_VARIABLE = re.compile(r"\$\w+")
_INDENTED = re.compile(r"^    (?=mummergpu )(.*)$", re.MULTILINE)


def _shell_text(page):
    """Return the commands of a page, in blocks and indented; a number stands for each variable."""
    blocks = [block.text for block in blocks_of(page) if block.language in ("sh", "bash")]
    text = "".join(blocks) + "".join(f"{line}\n" for line in _INDENTED.findall(page.read_text()))
    return _VARIABLE.sub("8", text.replace("\\\n", " "))


def _commands_of(page):
    """Yield the words of each call of mummergpu, up to a pipe or a redirection."""
    for line in _shell_text(page).split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words = list(lexer)
        while "mummergpu" in words:
            words = words[words.index("mummergpu") + 1 :]
            end = next((n for n, word in enumerate(words) if word in _END_OF_COMMAND), len(words))
            yield words[:end]


@pytest.fixture
def no_work(monkeypatch):
    """Let every verb end as soon as its options are parsed."""
    for command in commands.commands.values():
        monkeypatch.setattr(command, "callback", lambda **_: None)


def _parse(words):
    """Parse a command line as the program does."""
    with commands.make_context("mummergpu", list(words), obj=Session(words)) as context:
        commands.invoke(context)


CALLS = [
    pytest.param(words, id=f"{name_of(page)}: {' '.join(words)}"[:100])
    for page in ALL_TEXTS
    for words in _commands_of(page)
    # A usage line, and those of other programs' configuration, are not commands.
    if words and "[options]" not in words
]


@pytest.mark.parametrize("words", CALLS)
def test_commands_can_be_parsed(words, no_work):
    _parse(words)


def test_an_option_that_is_missing_is_noticed(no_work):
    with pytest.raises(click.UsageError, match="--no-such-option"):
        _parse(["genome.fa", "reads.fq", "--no-such-option"])


def test_there_are_commands():
    assert len(CALLS) > 30


def _session_of(page):
    """Return the examples of a page, each at its own line, so that failures name that line."""
    lines = []
    for block in blocks_of(page):
        if block.language == "python" and ">>>" in block.text:
            lines += [""] * (block.line - 1 - len(lines)) + block.text.split("\n")[:-1]
    return "\n".join(lines)


WITH_EXAMPLES = [page for page in PAGES if _session_of(page)]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_show_what_they_print(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(_session_of(page), {}, page.name, str(page), 0)
    assert test.examples

    report = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)

    assert not report, "".join(report)


def test_there_are_examples():
    assert "docs/tutorials/python.md" in map(name_of, WITH_EXAMPLES)


PAGE = DOCS / "hmm-language.md"


def examples():
    """Yield each block of commands: its line, the programs before it, it, and what it prints."""
    programs = {}
    command = None
    for block in blocks_of(PAGE):
        if block.language == "hmm":
            programs[block.text.split("\n")[0].removeprefix("// ")] = block.text
        elif block.language == "sh":
            command = (block.line, block.text)
        elif block.language == "text" and command is not None:
            yield command[0], dict(programs), command[1], block.text
            command = None
        else:
            command = None


def test_programs_print_what_the_page_says(tmp_path):
    """All in one folder: later commands read the files of earlier ones."""
    folder = os.path.dirname(sys.executable)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    count = 0
    for line, programs, command, printed in examples():
        for name, text in programs.items():
            (tmp_path / name).write_text(text)
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.stderr) == (printed, ""), f"{PAGE.name}:{line}"
        count += 1
    assert count >= 6


def test_the_islands_of_chromosome_20_are_those_of_the_page(tmp_path, shared_data):
    whole = shared_data / "references/human_grch38.chr20_and_21_first10M.fa.gz"
    text = gzip.decompress(whole.read_bytes()).decode()
    sequence = "".join(text[1:].split(">")[0].split("\n")[1:]).upper()
    (tmp_path / "chr20.fa").write_text(f">chr20\n{sequence}\n")
    (program,) = (one.text for one in blocks_of(PAGE) if one.text.startswith("// islands.hmm"))
    (tmp_path / "islands.hmm").write_text(program)
    command = [Path(sys.executable).with_name("mummergpu"), "hmm", "-q", "islands.hmm", "chr20.fa"]
    done = subprocess.run(
        [*command, "--bed"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    rows = [row.split("\t") for row in done.stdout.splitlines()]
    islands = [(int(begin), int(end)) for _, begin, end, name in rows if name == "island"]
    bases = sum(end - begin for begin, end in islands)
    assert f"finds {len(islands)} islands with {bases:,} bases" in PAGE.read_text()
    # Segments follow each other, and a gap is where the sequence has N.
    assert [int(row[1]) for row in rows[1:]] == [int(row[2]) for row in rows[:-1]]
    gaps = [(int(begin), int(end)) for _, begin, end, name in rows if name == "gap"]
    assert sum(end - begin for begin, end in gaps) == sequence.count("N")


FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))

SHOW = """
import sys
def show(value):
    if value is not None:
        print(repr(value))
"""


def cells_of(name):
    found = json.loads((FOLDER / name).read_text())["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def source_of(cell):
    return "".join(cell["source"])


def program_of(name):
    """Return a notebook as a program that prints the value of the last line of each cell."""
    lines = [SHOW]
    for cell in cells_of(name):
        source = source_of(cell)
        *_, last = ast.parse(source).body
        if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
            kept = source.splitlines()[: last.lineno - 1]
            lines += [*kept, f"show({ast.unparse(last)})"]
        else:
            lines.append(source)
    return "\n".join(lines)


def run_python(program, folder):
    """Run a program in a folder, with the libraries of this process; return what it prints."""
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_notebooks():
    assert "quickstart.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_without_output(name):
    for cell in cells_of(name):
        assert cell["outputs"] == [] and cell["execution_count"] is None
    lines = [line for cell in cells_of(name) for line in source_of(cell).splitlines()]
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_cells_of_a_notebook_run(name, tmp_path):
    for library in ("matplotlib", "pandas"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    printed = run_python(program_of(name), tmp_path)
    assert not list(tmp_path.iterdir())
    if name == "quickstart.ipynb":
        assert "matches of 1 query\n  strain:" in printed
        *_, covered, stats, error = printed.splitlines()
        # What was lost, and little more.
        assert 5000 <= int(covered) < 6000
        assert ast.literal_eval(stats)[2] == "cpu" and "'!' is not" in error


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_in_jupyter(name, tmp_path):
    for library in ("matplotlib", "pandas", "nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    program = f"""
import nbclient, nbformat
notebook = nbformat.read({str(FOLDER / name)!r}, as_version=4)
nbformat.validate(notebook)
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print("executed")
"""
    assert run_python(program, tmp_path) == "executed\n"
