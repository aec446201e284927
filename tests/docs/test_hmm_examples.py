"""The programs of hidden Markov models in the documentation print what the page says."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.doc_pages import DOCS, blocks_of

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


@pytest.fixture(autouse=True)
def program_of_the_page(tmp_path):
    for name, text in next(examples())[1].items():
        (tmp_path / name).write_text(text)
