"""Completion in a shell: what is offered, and the scripts in the shells themselves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from helpers.children import child
from helpers.loops import each
from helpers.tables import table

from mummergpu.cli.main import commands, main

VERBS = {"match", "index", "map", "workload", "doctor", "completion", "plot", "report"} | {
    *("sweep", "warmup", "nucmer-shim", "align"),
    *("hmmsearch", "hmmscan", "hmm"),
}
FILES = {"genome.fa", "input.fa", "two words.fa", "folder"}


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    """A folder with some files, and programs: the shells, python and mummergpu."""
    folder = tmp_path / "inside"
    folder.mkdir()
    for name in FILES - {"folder"}:
        (folder / name).touch()
    (folder / "folder").mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "mummergpu"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mummergpu "$@"\n')
    program.chmod(0o755)
    root = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def offered(monkeypatch, capfd):
    """Asks as bash's script does; returns a line for each word, file or folder."""

    def ask(*words):
        monkeypatch.setenv("_MUMMERGPU_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", "\n".join(["mummergpu", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        assert main([]) == 0
        out, err = capfd.readouterr()
        assert err == ""
        return set(out.split("\n")) - {""}

    return ask


@each("words, names", table(__file__))
def test_what_is_offered(offered, words, names):
    expected = names.replace("VERBS", " ".join(VERBS)).split()
    found = offered(*("" if word == "_" else word for word in words.split()))
    assert found == {one if "," in one else f"plain,{one}" for one in expected}


def test_every_option_of_the_main_job_is_offered(offered):
    own = commands.commands["match"].params
    names = {name for one in own for name in one.opts}
    assert {f"plain,{name}" for name in names if name.startswith("--")} <= offered("--")


def test_all_that_is_called_a_file_is_completed_as_one():
    without_files = {("workload", "name"), ("completion", "shell")}
    checked = set()
    for verb, command in commands.commands.items():
        context = click.Context(command)
        for one in command.params:
            kind = {"FILE": "file", "DIR": "dir"}.get(one.metavar or "")
            if isinstance(one, click.Argument) and (verb, one.name) not in without_files:
                kind = "dir" if verb == "report" else "file"
            if kind:
                checked.add((verb, one.name))
                (item,) = one.shell_complete(context, "some")
                assert (item.type, item.value) == (kind, "some"), (verb, one.name)
    assert checked >= {("match", "query"), ("match", "stats"), ("index", "output")}


def test_completion_imports_nothing_heavy():
    program = """
import sys
from mummergpu.cli.main import main
assert main([]) == 0
sys.exit(', '.join({'numpy', 'numba', 'pysam', 'isal', 'llvmlite'} & set(sys.modules)) or 0)
"""
    for words in ("mummergpu -", "mummergpu workload ", "mummergpu index --"):
        asked = {"_MUMMERGPU_COMPLETE": "zsh_complete", "COMP_WORDS": words}
        done = child("-c", program, env={**asked, "COMP_CWORD": str(words.count(" "))})
        assert (done.returncode, done.stderr) == (0, "") and done.stdout


@pytest.mark.parametrize("instruction", ["bash", "csh_complete", "1"])
def test_an_unknown_instruction_fails(instruction, monkeypatch, capfd):
    monkeypatch.setenv("_MUMMERGPU_COMPLETE", instruction)
    assert main([]) == 1
    assert capfd.readouterr().out == ""


def in_shell(shell, script):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    done = subprocess.run([program, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_bash_gets_words():
    # bash itself completes files where there is no word.
    cases = [
        ('""', VERBS),
        ("in", {"index"}),
        ("-t 2 in", {"index"}),
        ("genome.fa t", set()),
        ("-o g", set()),
        ("workload -o f", set()),
        ("--gpu-m", {"--gpu-memory"}),
        ("-l 20 genome.fa -mumc", {"-mumcand"}),
    ]
    # Outside of a line that is being edited there is nothing to set options of.
    script = """
set -eu
compopt() { :; }
source <(mummergpu completion bash)
[[ $(complete -p mummergpu) == "complete -o nosort -F _mummergpu_completion mummergpu" ]]
"""
    for words, _ in cases:
        script += f"""
COMP_WORDS=(mummergpu {words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMPREPLY=()
_mummergpu_completion mummergpu
printf '%s\\n' "${{COMPREPLY[@]}}" end
"""
    found = in_shell("bash", script).split("end\n")
    assert [set(one.splitlines()) for one in found] == [*(names for _, names in cases), set()]


def test_fish_gets_words_and_files():
    script = "mummergpu completion fish | source; complete -C 'mummergpu -q in'"
    lines = in_shell("fish", script).splitlines()
    assert {line.split("\t")[0] for line in lines} == {"index", "input.fa"}


def test_zsh_takes_the_script():
    script = (
        "autoload -Uz compinit; compinit -u -D; source <(mummergpu completion zsh);"
        "echo $_comps[mummergpu]"
    )
    assert in_shell("zsh", script) == "_mummergpu_completion\n"
