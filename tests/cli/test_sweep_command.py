"""The command ``sweep``: whole, killed and interrupted sweeps of a small reference."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.browser import visit
from helpers.studies import planned_in, wanted
from helpers.sweep_command import ALL, error_of, swept, write_files
from helpers.sweeps import read_sweep
from helpers.tables import table

from mummergpu.cli.main import main
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.studies.combinations import CONTROL
from mummergpu.studies.records import RUNS_FILE, SETUP_FILE
from mummergpu.workload import generation


@pytest.fixture(scope="module")
def inside_sweep_files(tmp_path_factory):
    """The folder of the files of `write_files`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("made"))
        write_files(Path())
        yield


pytestmark = pytest.mark.usefixtures("inside_sweep_files")
SHORT = "--runs 1 --repeat-control 0 --policies m -t 2"


def mems_of(words, capfd):
    """How many matches an ordinary run finds."""
    capfd.readouterr()
    assert main(["-q", "-C", *words.split()]) == 0
    lines = capfd.readouterr().out.splitlines()
    return sum(not line.startswith(">") for line in lines)


def test_all_layouts_are_measured(tmp_path, capfd):
    sweep = swept("r.fa q.fa --runs 2 --repeat-control 3", tmp_path / "out")
    out, err = capfd.readouterr()
    assert out == ""
    new, best, last = err.splitlines()[-3:]
    assert new == f"mummergpu: r.fa: 35 runs are new in {tmp_path / 'out'}"
    code = best.split()[2]
    assert code in ALL
    words = f"{code} is the fastest of 16: choose it with --search tree --policy {code}"
    assert best == f"mummergpu: r.fa: {words}"
    assert last == f"mummergpu: to see them: mummergpu report {tmp_path / 'out'}"
    assert planned_in(tmp_path / "out") == wanted(ALL, 2, 3)
    assert {run.mems for run in sweep.runs} == {mems_of("r.fa q.fa", capfd)}
    assert sweep.setup.policies == tuple(ALL)
    given = sweep.setup.input
    assert (given.name, given.minimum_length, given.strands) == ("r.fa", 20, ("forward",))
    assert (given.reference_records, given.query_count, given.pages) == (2, 54, 1)
    assert (given.address_bits, given.page_size) == (24, 8 << 20)
    assert (sweep.setup.runs, sweep.setup.control_runs, sweep.setup.seed) == (2, 3, 1)
    machine = sweep.setup.machine
    assert machine.backend == "cpu" and machine.threads == len(os.sched_getaffinity(0))
    assert all(rate > 1e5 for rate in machine.gathers_per_second.values())
    assert set(machine.gathers_per_second) == {"merged", "split"}
    main(["sweep", "-C", "-o", str(tmp_path / "out"), "r.fa", "q.fa", "--runs", "2"])
    # Seven further runs of the control, as by default.
    assert planned_in(tmp_path / "out") == wanted(ALL, 2, 10)


def test_five_runs_and_ten_of_the_control_are_made_by_default(tmp_path):
    swept("r.fa q.fa -q --policies m", tmp_path)
    assert planned_in(tmp_path) == wanted([CONTROL, "m"], 5, 10)


def test_a_second_time_there_is_nothing_to_do(tmp_path, capfd):
    swept(f"r.fa q.fa {SHORT}", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    capfd.readouterr()
    swept(f"r.fa q.fa {SHORT}", tmp_path)
    assert f"r.fa: all runs were already in {tmp_path}\n" in capfd.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_quiet_is_quiet(tmp_path, capfd):
    swept(f"r.fa q.fa -q {SHORT}", tmp_path)
    assert capfd.readouterr() == ("", "")


def test_it_is_told_what_is_done(tmp_path, capfd):
    swept(f"r.fa q.fa --page-size 500 {SHORT}", tmp_path)
    err = capfd.readouterr().err
    pages = read_sweep(tmp_path).setup.input.pages
    assert pages > 5
    assert f"mummergpu: r.fa: building {pages} pages of trees\n" in err
    assert "mummergpu: r.fa: laying them out in 2 ways\n" in err


@pytest.mark.parametrize(("words", "plain"), table(__file__, "options of the search"))
def test_options_of_the_search_are_heeded(words, plain, tmp_path, capfd):
    short = SHORT.replace(" -t 2", "" if "-t" in words else " -t 2")
    runs = swept(f"r.fa q.fa -q {words} {short}", tmp_path).runs
    assert {run.mems for run in runs} == {mems_of(f"r.fa q.fa {plain}", capfd)}
    given, setup = read_sweep(tmp_path).setup.input, read_sweep(tmp_path).setup
    both = {"-b": ("forward", "reverse"), "-r": ("reverse",)}.get(words[:2], ("forward",))
    assert given.strands == both
    assert given.address_bits == (32 if "32" in words else 24)
    assert given.pages == (1 if "700" not in words else 5)
    assert setup.machine.threads == (int(words[3]) if words[:2] == "-t" else 2)
    assert setup.seed == (9 if "seed" in words else 1)


CHOSEN = {"none": "none", "t*,m": "none t tn m", "Tn,QRTn": "none Tn QRTn", "?": "none n t r m"}


@pytest.mark.parametrize(("words", "expected"), CHOSEN.items())
def test_policies_are_chosen(words, expected, tmp_path):
    given = ["--policies", words, "--runs", "1", "--repeat-control", "0", "-q", "-t", "2"]
    assert main(["sweep", "-C", "r.fa", "q.fa", "-o", str(tmp_path), *given]) == 0
    assert planned_in(tmp_path) == wanted(expected.split(), 1, 0)
    # On the processor, a policy with textures is searched as one without.
    sizes = {}
    for run in read_sweep(tmp_path).runs:
        sizes.setdefault(Layout.of(Policy.from_code(run.policy)), set()).add(run.bytes["trees"])
    assert all(len(each) == 1 for each in sizes.values())


def test_a_workload_may_have_reads_of_a_file(tmp_path, capfd):
    (tmp_path / "own.fa").write_text(f">own\n{'ACGGTCATTGCAAGGCCTTA' * 20}\n")
    words = ["--workload", f"ssuis={tmp_path / 'own.fa'}", "--scale", "0.0005", *SHORT.split()]
    assert main(["sweep", "-C", "-o", str(tmp_path / "out"), *words]) == 0
    given = read_sweep(tmp_path / "out").setup.input
    assert (given.name, given.reference_bases, given.query_count) == ("SSUIS", 400, 500)
    capfd.readouterr()
    assert main(["sweep", "-C", "-o", str(tmp_path / "none"), "--workload", "hsill"]) == 2
    err = capfd.readouterr().err
    assert "--workload: 'HSILL' is cut from GRCh38" in err
    assert "(--workload hsill=FASTA)" in err


def test_workloads_get_a_folder_each(tmp_path, capfd, monkeypatch):
    small = generation.load_declaration

    def smaller(name):
        declared = small(name)
        return replace(declared, genome=replace(declared.genome, length=30_000))

    monkeypatch.setattr(generation, "load_declaration", smaller)
    words = f"--workload lmono --workload SSUIS --scale 0.0005 {SHORT}"
    assert main(["sweep", "-C", "-o", str(tmp_path / "out"), *words.split()]) == 0
    err = capfd.readouterr().err
    assert sorted(os.listdir(tmp_path / "out")) == ["LMONO", "SSUIS"]
    lengths = {}
    for name in ("LMONO", "SSUIS"):
        folder = tmp_path / "out" / name
        assert planned_in(folder) == wanted([CONTROL, "m"], 1, 0)
        given = read_sweep(folder).setup.input
        assert (given.name, given.reference_bases) == (name, 30_000)
        lengths[name] = given.minimum_length
        assert f"mummergpu: {name}: 2 runs are new in {folder}\n" in err
    assert lengths == {"LMONO": 20, "SSUIS": 10}
    assert f"to see them: mummergpu report {tmp_path / 'out'}\n" in err
    words = f"--workload SSUIS -l 33 --scale 0.0005 {SHORT}"
    assert main(["sweep", "-C", "-o", str(tmp_path / "one"), *words.split()]) == 0
    assert sorted(os.listdir(tmp_path / "one")) == [RUNS_FILE, SETUP_FILE]
    assert read_sweep(tmp_path / "one").setup.input.minimum_length == 33


@pytest.mark.slow
def test_whole_workloads_are_measured(tmp_path):
    words = f"--workload LMONO --workload SSUIS --scale 0.0005 -q {SHORT}"
    assert main(["sweep", "-C", "-o", str(tmp_path), *words.split()]) == 0
    for name, bases in (("LMONO", 2_944_528), ("SSUIS", 2_007_491)):
        given = read_sweep(tmp_path / name).setup.input
        assert given.reference_bases == bases
        assert planned_in(tmp_path / name) == wanted([CONTROL, "m"], 1, 0)


def test_unclear_input_is_refused_before_anything_is_opened(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr("mummergpu.studies.searcher.open_searcher", None)
    monkeypatch.setattr(generation, "generate", None)
    for words in ("--workload LMONO --workload X", "--workload X", "--workload LMONO --scale -1"):
        error_of(f"{words} -o {tmp_path / 'out'}", 2, capfd)
    assert os.listdir(tmp_path) == []


def test_a_folder_of_another_sweep_is_refused(tmp_path, capfd):
    swept(f"r.fa q.fa -q {SHORT}", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    message = f"{tmp_path / SETUP_FILE}: holds a sweep with another input; use another folder"
    for words in ("more.fa", "q.fa -b", "q.fa -l 21", "q.fa --page-size 700"):
        assert error_of(f"-o {tmp_path} -C r.fa {words} {SHORT}", 1, capfd) == message
    short = SHORT.replace("-t 2", "-t 1")
    told = error_of(f"-o {tmp_path} -C r.fa q.fa {short}", 1, capfd)
    assert "another number of threads" in told
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_damaged_folder_is_one_line(tmp_path, capfd):
    swept(f"r.fa q.fa -q {SHORT}", tmp_path)
    with open(tmp_path / RUNS_FILE, "a") as file:
        file.write("nonsense\n")
    told = error_of(f"-o {tmp_path} -C r.fa q.fa {SHORT}", 1, capfd)
    assert told.startswith(f"{tmp_path / RUNS_FILE}:3: is not a run of a sweep (")
    (tmp_path / SETUP_FILE).write_text("{")
    told = error_of(f"-o {tmp_path} -C r.fa q.fa {SHORT}", 1, capfd)
    assert told.startswith(f"{tmp_path / SETUP_FILE}: is not the file of a sweep (")


ROOT = Path(__file__).resolve().parents[2]


class Sweeping:
    """A sweep in a process of its own, in the middle of its runs."""

    def __init__(self, folder, words, lines):
        command = [sys.executable, "-m", "mummergpu", "sweep", "-C", "-o", str(folder)]
        self.folder = folder
        self.process = subprocess.Popen(
            [*command, *words.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            # What is started in the background of a shell inherits that SIGINT is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        until = time.monotonic() + 120
        while self.count() < lines:
            assert self.process.poll() is None and time.monotonic() < until
            time.sleep(0.005)

    def count(self):
        path = self.folder / RUNS_FILE
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def end_by(self, number):
        """Send a signal; return the exit code and what was said."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


LONG = "r.fa q.fa -t 2 -q --runs 40 --repeat-control 60"


def test_a_sweep_that_was_killed_goes_on(tmp_path):
    lines = 1
    for _ in range(3):
        sweeping = Sweeping(tmp_path, LONG, lines)
        assert sweeping.end_by(signal.SIGKILL) == (-signal.SIGKILL, b"")
        # Some runs are made while a process looks at the file and sends the signal.
        lines = sweeping.count() + 20
    recorded = sweeping.count()
    assert 40 < recorded < 700
    before = (tmp_path / RUNS_FILE).read_bytes()
    sweep = swept(LONG, tmp_path)
    assert planned_in(tmp_path) == wanted(ALL, 40, 60)
    whole = before[: before.rindex(b"\n") + 1]
    assert (tmp_path / RUNS_FILE).read_bytes().startswith(whole)
    assert len({run.digest for run in sweep.runs}) == 1
    assert sorted(os.listdir(tmp_path)) == [RUNS_FILE, SETUP_FILE]


def test_a_sweep_that_went_on_is_reported(browser_binary, tmp_path):
    """From a reference and reads to a page in a browser, with a kill on the way."""
    folder = tmp_path / "study"
    words = "r.fa q.fa -t 2 -q --runs 6 --repeat-control 9"
    Sweeping(folder, words, 5).end_by(signal.SIGKILL)
    swept(words, folder)
    assert main(["report", "-q", str(folder)]) == 0
    seen = visit(browser_binary, folder / "report.html", tmp_path / "browser")
    assert (seen.requests, seen.console) == (set(), [])
    assert "medians of 6 runs of 16 layouts" in seen.document
    assert seen.document.count("data:image/svg+xml") > 5


def test_an_interrupt_is_one_line_and_loses_nothing(tmp_path):
    sweeping = Sweeping(tmp_path, LONG, 10)
    code, err = sweeping.end_by(signal.SIGINT)
    assert (code, err) == (130, b"mummergpu: interrupted\n")
    text = (tmp_path / RUNS_FILE).read_bytes()
    lines = text[: text.rindex(b"\n") + 1].splitlines()
    assert Counter(json.loads(line)["digest"] for line in lines).total() == len(lines) >= 10
    swept(LONG, tmp_path)
    assert planned_in(tmp_path) == wanted(ALL, 40, 60)


def test_two_sweeps_do_not_write_to_one_folder(tmp_path, capfd):
    sweeping = Sweeping(tmp_path, LONG.replace("40", "4000"), 3)
    try:
        told = error_of(f"-C -o {tmp_path} {LONG}", 1, capfd)
        assert told == f"{tmp_path / RUNS_FILE}: another sweep is writing to it"
        assert sweeping.process.poll() is None
    finally:
        sweeping.end_by(signal.SIGKILL)
