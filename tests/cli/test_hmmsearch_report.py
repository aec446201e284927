"""HMMER's report for people (``-o``), and the table with tabs, of ``hmmsearch`` and ``hmmscan``."""

import json
import os
import re
import subprocess

import pytest
from helpers.hmmer import data_folder, need_hmmer, report, rows, write_input
from helpers.mummer_scripts import write_launcher
from helpers.profiles import built

from mummergpu.cli.main import main
from mummergpu.hmm.domains.finisher import DomainFinisher
from mummergpu.hmm.finishing import Finisher
from mummergpu.output.profiles import TSV_COLUMNS

OPTIONS = [
    *("", "--noali", "--notextw", "--textw 150", "--acc", "-E 1e-9", "-E 10.0 -Z 1e6", "-T 20"),
    *("--domE 1e-6", "--domT 12 --domZ 500", "--incE 1e-12 --incdomE 1e-20", "--incT 90"),
    *("--nobias --nonull2", "--seed 7 -E 1e-30", "--F1 0.1 --F2 0.1 --F3 0.01", "--max --noali"),
    *("--F1 1 --F2 1", "--seed 42 --F2 1e-3", "--noali --acc --F3 0.01 --textw 120"),
]
VERBS = ("hmmsearch", "hmmscan")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Profiles and proteins; the names of proteins are long, and some are hits with two domains."""
    profiles, proteins = write_input(tmp_path_factory.mktemp("reports"))
    records = proteins.read_text().split(">")[1:]
    halves = ["".join(one.split("\n")[1:]) for one in records[20:40]]
    twice = [f"twice{n} some  words\n{one}{one}\n" for n, one in enumerate(halves)]
    proteins.write_text("".join(f">{one}" for one in [*records, *twice]))
    pyhmmer = pytest.importorskip("pyhmmer")
    with pyhmmer.plan7.HMMFile(profiles) as file:
        pyhmmer.hmmer.hmmpress(file, profiles)
    return profiles, proteins


def reports(verb, folder, options, *inputs):
    """Return the reports of HMMER and of ours."""
    need_hmmer()
    theirs, ours = folder / "theirs", folder / "ours"
    words = [*options.split(), *map(str, inputs)]
    command = [verb, "--cpu", "0", "-o", str(theirs), *words]
    subprocess.run(command, check=True, capture_output=True)
    assert main([verb, "-q", "-o", str(ours), *words]) == 0
    return report(theirs.read_bytes()), report(ours.read_bytes())


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("options", OPTIONS)
def test_reports_are_those_of_hmmer(verb, options, inputs, tmp_path):
    theirs, ours = reports(verb, tmp_path, options, *inputs)
    assert ours.split(b"\n") == theirs.split(b"\n")
    assert b"  == domain 1" in ours or "--noali" in options


@pytest.mark.parametrize("option", ["--cut_ga", "--cut_nc", "--cut_tc"])
def test_reports_with_cutoffs(option, inputs, tmp_path):
    profile = inputs[0].with_name("cut.hmm")
    theirs, ours = reports("hmmsearch", tmp_path, f"{option} -A {os.devnull}", profile, inputs[1])
    assert ours == theirs and b"hits satisfying inclusion thresholds saved to: /dev/null" in ours


def test_profiles_without_a_composition_and_with_structure(inputs, tmp_path):
    """HMMER itself decides about the former; alignments show annotation of the latter."""
    profiles = tmp_path / "p.hmm"
    folder = data_folder() / "hmms/txt"
    text = "".join((folder / f"{name}.hmm").read_text() for name in ("KR", "PF02826"))
    # A column for the consensus structure, and one for the reference.
    text = text.replace("CS    no", "CS    yes").replace("RF    no", "RF    yes")
    text = re.sub(r"(?m)^( +\d+ .* )- (- -|- - -)$", r"\1x - H", text)
    profiles.write_text(text)
    theirs, ours = reports("hmmsearch", tmp_path, "-E 1000", profiles, inputs[1])
    assert ours == theirs


def test_reports_without_hits_and_with_tiny_e_values(inputs, tmp_path):
    few = tmp_path / "few.faa"
    few.write_text(">a\nACDEFGHIKLMNPQRSTVWY\n>empty\n>b\nWWWWWWWWWW\n")
    for verb in VERBS:
        theirs, ours = reports(verb, tmp_path, "", inputs[0], few)
        assert ours == theirs and b"[No hits detected" in ours
    long = tmp_path / "long.hmm"
    with long.open("wb") as file:
        built(2000).hmm.write(file)
    subprocess.run(["hmmemit", "-c", "-o", str(few), str(long)], check=True)
    theirs, ours = reports("hmmsearch", tmp_path, "", long, few)
    # Below the least normal number HMMER prints 0.
    assert ours == theirs and re.search(rb"\n +0 \d+\.\d ", ours)


def test_a_report_with_more_survivors_than_a_task_takes(inputs, tmp_path, monkeypatch):
    monkeypatch.setattr("mummergpu.pipeline.search_profiles.SUMMED_AT_ONCE", 5)
    monkeypatch.setattr("mummergpu.pipeline.search_profiles.SEQUENCES_AT_ONCE", 3)
    theirs, ours = reports("hmmsearch", tmp_path, "--F3 0.01", *inputs)
    assert ours == theirs


def test_no_report_computes_no_alignments(inputs, tmp_path, monkeypatch):
    """Neither into the null device, nor without alignments: domains are ours."""
    asked = []
    search = DomainFinisher.search
    monkeypatch.setattr(
        DomainFinisher, "search", lambda self, *words: asked.append(1) or search(self, *words)
    )
    for number, words in enumerate((["-o", os.devnull], ["-o", str(tmp_path / "o"), "--noali"])):
        table = tmp_path / f"{number}.table"
        files = ["--tblout", str(table), *map(str, inputs)]
        assert main(["hmmsearch", "-q", *words, *files]) == 0
        assert asked and rows(table.read_bytes()) != [b""]
        asked.clear()
    monkeypatch.setattr(Finisher, "filters_passed", None)
    assert main(["hmmsearch", "-q", "-o", os.devnull, *map(str, inputs)]) == 0


@pytest.mark.parametrize("verb", VERBS)
def test_links_are_programs_of_hmmer(verb, inputs, tmp_path):
    """Their report goes to standard output, as scripts expect, and -h tells HMMER's version."""
    need_hmmer()
    link = tmp_path / verb
    link.symlink_to(write_launcher(tmp_path / "mummergpu"))
    words = ["--noali", "--notextw", "--acc", "-E", "1e-9", "--cpu", "1", *map(str, inputs)]
    done = [
        subprocess.run([program, *words], capture_output=True, timeout=300)
        for program in (verb, str(link))
    ]
    assert report(done[1].stdout) == report(done[0].stdout) and not done[1].returncode
    shown = subprocess.run([str(link), "-h"], capture_output=True, timeout=300).stdout
    theirs = subprocess.run([verb, "-h"], capture_output=True, timeout=300).stdout
    assert shown.split(b"\n")[0] == theirs.split(b"\n")[0]
    assert re.match(rb"# HMMER 3\.\d \(", shown.split(b"\n")[1])


@pytest.mark.parametrize("files", ["- -", "{profiles} -", "scan - {proteins}"])
def test_links_refuse_what_hmmer_refuses(files, inputs, tmp_path):
    """The commands themselves search several profiles in a pipe, and scan with profiles of one."""
    need_hmmer()
    verb = "hmmscan" if files.startswith("scan") else "hmmsearch"
    link = tmp_path / verb
    link.symlink_to(write_launcher(tmp_path / "mummergpu"))
    words = files.removeprefix("scan ").format(profiles=inputs[0], proteins=inputs[1]).split()
    text = inputs[1 if words[0] != "-" else 0].read_bytes()
    done = [
        subprocess.run([program, *words], input=text, capture_output=True, timeout=300)
        for program in (verb, str(link))
    ]
    assert done[1].returncode == 1 and done[0].returncode
    if words[0] == "-":
        assert done[1].stdout.splitlines()[0] == done[0].stdout.splitlines()[0]


@pytest.mark.parametrize("verb", VERBS)
def test_the_table_with_tabs_is_the_table_of_domains(verb, inputs, tmp_path):
    tabs, table = tmp_path / "t.tsv", tmp_path / "t"
    files = ["--tsv", str(tabs), "--domtblout", str(table), *map(str, inputs)]
    assert main([verb, "-q", *files]) == 0
    head, *found = tabs.read_text().splitlines()
    assert tuple(head.split("\t")) == TSV_COLUMNS
    expected = [line.decode().split(None, 22) for line in rows(table.read_bytes()) if line]
    assert [line.split("\t") for line in found] == expected and len(found) > 9
    assert {len(line.split("\t")) for line in found} == {len(TSV_COLUMNS)}


@pytest.mark.parametrize("options", ["", "--max", "--F1 1", "--nobias", "--F2 1"])
def test_numbers_of_stages_never_rise(options, inputs, tmp_path):
    # KR has no composition: HMMER decides about its survivors.
    kr = str(data_folder() / "hmms/txt/KR.hmm")
    for verb in VERBS:
        stats = tmp_path / "stats"
        words = ["--stats", str(stats), "-o", os.devnull, *options.split(), kr, *map(str, inputs)]
        assert main([verb, "-q", *words]) == 0
        counts = json.loads(stats.read_text())["counts"]
        passed = [counts[f"passed_{name}"] for name in ("msv", "viterbi", "forward")]
        assert passed == sorted(passed, reverse=True) and passed[-1] > 0
