"""``mummer-shim`` beside MUMmer's own ``mummer``, and how it finds that."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from helpers.loops import each
from helpers.mummer_scripts import write_launcher
from helpers.sequences import random_bases

from mummergpu.cli import installed_mummer
from mummergpu.cli.installed_mummer import CHOSEN, PASSED, find_mummer
from mummergpu.cli.main import main

Captured = pytest.CaptureFixture[bytes]


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a reference and queries of bases alone."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(3)
    bases = random_bases(chance, 600)
    Path("r.fa").write_text(f">r1 one\n{bases[:400]}\n>r2\n{bases[400:]}\n")
    Path("one.fa").write_text(f">one\n{bases}\n")
    Path("q.fa").write_text(f">q1\n{bases[100:500]}\n>none\n\n>q3\n{bases[350:380].lower()}\n")
    Path("protein.fa").write_text(">p\nMKVLAAGIVWERTYPSDFGHKLCNM\n")
    Path("n.fa").write_text(f">n\n{bases[:50]}NNNNNNNNNNNNNNNNNNNNNNNNNNNNNN{bases[50:90]}\n")
    Path("u.fa").write_text(f">u\n{bases[:200].replace('T', 'U')}\n")
    Path("empty.fa").write_text("")
    return tmp_path


def shim(words: list[str], captured: Captured) -> tuple[int, bytes]:
    captured.readouterr()
    code = main(["mummer-shim", *words])
    return code, captured.readouterr().out


def mummer(binary: str, words: list[str]) -> tuple[int, bytes]:
    done = subprocess.run([binary, *words], capture_output=True)
    return done.returncode, done.stdout


@each(
    "line",
    [
        "r.fa q.fa",
        "-n one.fa q.fa",
        "-mum -b r.fa q.fa",
        "-mumcand -r -c -l 12 one.fa q.fa",
        "-mumreference -b -L -F -s one.fa q.fa r.fa",
        "-l 20000 one.fa q.fa",
        "-l 99999999999999 one.fa q.fa",
        "-l 1 -n n.fa q.fa",
        "-l 10abc r.fa q.fa",
        "r.fa n.fa",
        "n.fa q.fa",
        "-n n.fa n.fa",
        "-l 10 r.fa protein.fa",
    ],
)
def test_text_is_that_of_mummer(
    line: str, inside: Path, mummer_binary: str, capfdbinary: Captured
) -> None:
    expected = mummer(mummer_binary, line.split())
    assert expected[0] == 0
    assert shim(line.split(), capfdbinary) == expected


@each(
    "line",
    [
        "-x r.fa q.fa",
        "-l10 r.fa q.fa",
        "-l 0 r.fa q.fa",
        "-l",
        "r.fa",
        "-mum -maxmatch r.fa q.fa",
        "-c r.fa q.fa",
        "--help r.fa",
        "missing.fa q.fa",
        "r.fa missing.fa",
        "empty.fa q.fa",
        "r.fa empty.fa",
        "r.fa q.fa -b",
    ],
)
def test_what_mummer_refuses_is_refused(
    line: str, inside: Path, mummer_binary: str, capfdbinary: Captured
) -> None:
    assert mummer(mummer_binary, line.split())[0] == 1
    capfdbinary.readouterr()
    assert main(["mummer-shim", *line.split()]) == 1
    assert capfdbinary.readouterr().err.startswith(b"mummergpu: error: ")


@each("line", ["", "-h", "-l 5 -help"])
def test_help_is_that_of_the_shim(line: str, inside: Path, capfdbinary: Captured) -> None:
    code, text = shim(line.split(), capfdbinary)
    assert code == 0
    assert text.startswith(b"Usage: mummer [options]")


@pytest.mark.parametrize("seed", range(4))
def test_random_genomes(seed: int, inside: Path, mummer_binary: str, capfdbinary: Captured) -> None:
    """Small alphabets make repeats; -maxmatch is compared without the order of its rows."""
    chance = random.Random(seed)
    for _ in range(12):
        for name in ("a.fa", "b.fa"):
            letters = chance.choice(["ACGT", "AC", "ACGTN"])
            records = [
                f">{name}{number}\n{''.join(chance.choices(letters, k=chance.randrange(2, 90)))}\n"
                for number in range(chance.randrange(1, 4))
            ]
            Path(name).write_text("".join(records))
        mode = chance.choice(["", "-mum", "-mumreference", "-maxmatch"])
        flags = ["-n", "-l", str(chance.randrange(2, 9)), *chance.choice(["", "-b", "-r"]).split()]
        words = [*mode.split(), *flags, "a.fa", "b.fa"]
        code, text = mummer(mummer_binary, words)
        found = shim(words, capfdbinary)
        if mode == "-maxmatch":
            assert (found[0], sorted_blocks(found[1])) == (code, sorted_blocks(text)), words
        else:
            assert found == (code, text), words


def sorted_blocks(text: bytes) -> list[list[bytes]]:
    """Return the lines of each query, the header first and the rows sorted."""
    return [sorted(block.splitlines()) for block in text.split(b"> ")]


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Collects the command lines that are handed over; a ``mummer`` is in PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mummer").write_text("#!/bin/sh\n")
    (tools / "mummer").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv(CHOSEN, raising=False)
    monkeypatch.delenv(PASSED, raising=False)
    collected: list[list[str]] = []

    def record(path: str, words: list[str]) -> None:
        collected.append([path, *words])
        raise SystemExit

    monkeypatch.setattr("mummergpu.cli.mummer_shim.hand_over", record)
    return collected


@each(
    "line",
    ["protein.fa protein.fa", "-l 12 n.fa q.fa n.fa", "-n u.fa q.fa", "one.fa u.fa"],
)
def test_jobs_with_other_letters_are_handed_over(
    line: str, inside: Path, handed: list[list[str]], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        main(["mummer-shim", *line.split()])
    assert handed.pop() == [str(tmp_path / "tools" / "mummer"), *line.split()]


@each("line", ["protein.fa protein.fa", "n.fa n.fa", "-n u.fa q.fa"])
def test_without_mummer_they_are_refused(
    line: str, inside: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Captured
) -> None:
    monkeypatch.setenv("PATH", str(inside))
    monkeypatch.delenv(CHOSEN, raising=False)
    capfdbinary.readouterr()
    assert main(["mummer-shim", *line.split()]) == 1
    text = capfdbinary.readouterr()
    assert b"needs MUMmer's own mummer" in text.err
    assert text.out == b""


def executable(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_find_mummer(tmp_path: Path) -> None:
    own = executable(tmp_path / "own" / "mummergpu")
    (tmp_path / "own" / "mummer").symlink_to(own)
    (tmp_path / "folder" / "mummer").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mummer").write_text("not a program")
    first = executable(tmp_path / "first" / "mummer")
    second = executable(tmp_path / "second" / "mummer")
    folders = [str(tmp_path / name) for name in ("own", "folder", "data", "first", "second")]
    variables = {"PATH": ":".join(folders)}
    link = str(tmp_path / "own" / "mummer")
    assert find_mummer(variables, link) == str(first)
    assert find_mummer(variables, str(own)) == str(first)
    assert find_mummer({**variables, CHOSEN: str(second)}, link) == str(second)
    assert find_mummer({**variables, CHOSEN: link}, link) == str(first)
    assert find_mummer({**variables, PASSED: str(first)}, link) == str(second)
    assert find_mummer({**variables, PASSED: f"{first}:{second}"}, link) is None
    assert find_mummer({"PATH": ""}, link) is None


def run_link(link: Path, words: list[str], path: str) -> subprocess.CompletedProcess[bytes]:
    variables = {name: value for name, value in os.environ.items() if name not in (CHOSEN, PASSED)}
    return subprocess.run(
        [link, *words], env={**variables, "PATH": path}, capture_output=True, timeout=120
    )


def test_a_job_never_comes_back(inside: Path) -> None:
    """Links, another installation and a script that calls us are all no mummer."""
    folders = [inside / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "mummer").symlink_to(write_launcher(folders[0] / "mummergpu"))
    write_launcher(folders[1] / "mummer")
    (folders[2] / "mummer").write_text(f'#!/bin/sh\nexec "{folders[0]}/mummer" "$@"\n')
    (folders[2] / "mummer").chmod(0o755)
    path = ":".join(map(str, folders))
    for folder in folders:
        done = run_link(folder / "mummer", ["protein.fa", "protein.fa"], path)
        assert done.returncode == 1
        assert b"none is in PATH" in done.stderr
        assert done.stdout == b""


def test_the_link_hands_proteins_to_mummer(inside: Path, mummer_binary: str) -> None:
    tools = inside / "tools"
    tools.mkdir()
    (tools / "mummer").symlink_to(write_launcher(inside / "mummergpu"))
    words = ["-l", "5", "protein.fa", "protein.fa"]
    path = f"{tools}:{Path(mummer_binary).parent}"
    done = run_link(tools / "mummer", words, path)
    assert (done.returncode, done.stdout) == mummer(mummer_binary, words)
    assert done.stdout.count(b"\n") == 2


def test_a_program_that_cannot_be_started(
    inside: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Captured
) -> None:
    broken = executable(inside / "tools" / "mummer")
    broken.write_text("#!/no/such/interpreter\n")
    monkeypatch.setenv("PATH", str(broken.parent))
    monkeypatch.delenv(CHOSEN, raising=False)
    monkeypatch.delenv(PASSED, raising=False)
    before = installed_mummer.signal.getsignal(installed_mummer.signal.SIGPIPE)
    assert main(["mummer-shim", "protein.fa", "protein.fa"]) == 1
    assert b"cannot be started" in capfdbinary.readouterr().err
    assert installed_mummer.signal.getsignal(installed_mummer.signal.SIGPIPE) == before
