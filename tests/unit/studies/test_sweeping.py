"""The records of a sweep on disk: damaged, cut short, of something else, or written by two."""

import errno
import gzip
import json
import os
import subprocess
import sys
from dataclasses import asdict, fields, replace

import pytest
from helpers.studies import some_run, some_setup
from helpers.sweeps import read_setup, read_sweep

from mummergpu.errors import InputError, OutputError
from mummergpu.studies import sweeping
from mummergpu.studies.combinations import PlannedRun
from mummergpu.studies.records import (
    COMPRESSED_RUNS_FILE,
    RUNS_FILE,
    SETUP_FILE,
    KernelRecord,
    SweepRun,
    read_runs,
    run_text,
    setup_text,
)
from mummergpu.studies.sweeping import SweepFolder

KERNEL = KernelRecord(1.5, 2, 77, 32, 0, 16, 0.75)
RUNS = [
    some_run("m", position=0, digest="11"),
    some_run("none", position=1, kernels={"match_kernel": KERNEL}, digest="22"),
    some_run("none", "control", 4, position=2, digest="33"),
    some_run("Tn", "profile", position=3),
]


@pytest.fixture
def folder(tmp_path):
    """A sweep of four runs, deep in folders that were not there."""
    made = tmp_path / "a" / "b"
    with SweepFolder(made) as records:
        records.begin(some_setup())
        for run in RUNS:
            records.add(run)
    return made


def begun(folder, setup=None):
    """Go on with a sweep; return the runs that it has."""
    with SweepFolder(folder) as records:
        records.begin(setup or some_setup())
        found = list(read_runs(folder))
        assert records.count == len(found)
        assert all(records.has(PlannedRun(run.policy, run.kind, run.repeat)) for run in found)
    return found


def test_what_was_written_is_read(folder):
    sweep = read_sweep(folder)
    assert (sweep.folder, sweep.setup, list(sweep.runs)) == (folder, some_setup(), RUNS)
    assert begun(folder) == RUNS and sorted(os.listdir(folder)) == [RUNS_FILE, SETUP_FILE]


def test_compressed_runs_are_read_and_not_added_to(folder):
    plain = folder / RUNS_FILE
    compressed = folder / COMPRESSED_RUNS_FILE
    text = gzip.compress(plain.read_bytes())
    compressed.write_bytes(text)
    plain.unlink()
    assert list(read_sweep(folder).runs) == RUNS
    with pytest.raises(InputError, match="holds the compressed runs of a finished sweep"):
        SweepFolder(folder).__enter__()
    for damaged in (text[:-9], text[:20] + b"?" + text[21:], b"no gzip"):
        compressed.write_bytes(damaged)
        with pytest.raises(InputError, match="cannot be decompressed") as caught:
            read_sweep(folder)
        assert caught.value.path == str(compressed)


def test_a_file_system_without_locks_will_do(folder, monkeypatch):
    def flock(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(sweeping.fcntl, "flock", flock)
    assert begun(folder) == RUNS


def test_a_run_is_on_disk_as_soon_as_it_is_added(folder):
    with SweepFolder(folder) as records:
        records.begin(some_setup())
        records.add(some_run("r"))
        assert (folder / RUNS_FILE).read_text().endswith(run_text(some_run("r")))
        assert read_sweep(folder).setup == some_setup()


def test_it_is_known_which_runs_are_there(folder):
    with SweepFolder(folder) as records:
        assert records.setup == some_setup() and records.has(PlannedRun("none", "control", 4))
        for missing in (("none", "control", 3), ("none", "run", 4), ("m", "run", 1)):
            assert not records.has(PlannedRun(*missing))
        # The matches of the first run of the control are those that others must have.
        assert records.control_digest == "22"
        records.add(some_run("r", repeat=1))
        assert records.has(PlannedRun("r", "run", 1)) and records.count == 5
        assert records.control_digest == "22"


def test_the_first_run_of_the_control_gives_the_matches(tmp_path):
    with SweepFolder(tmp_path) as records:
        assert (records.setup, records.control_digest, records.count) == (None, None, 0)
        records.begin(some_setup())
        records.add(some_run("m", digest="1"))
        assert records.control_digest is None
        records.add(some_run("none", "control", digest="2"))
        records.add(some_run("none", digest="3"))
        assert records.control_digest == "2"


def test_a_file_that_is_cut_anywhere_goes_on(folder):
    """As after a kill: what was not written to the end of its line counts for nothing."""
    text = (folder / RUNS_FILE).read_bytes()
    ends = {place + near for place in range(len(text)) if text[place] == 10 for near in (0, 1, 2)}
    for size in sorted({*range(0, len(text), 13), *ends} & {*range(len(text) + 1)}):
        (folder / RUNS_FILE).write_bytes(text[:size])
        whole = text[:size].count(b"\n")
        assert list(read_runs(folder)) == RUNS[:whole]
        with SweepFolder(folder) as records:
            records.begin(some_setup())
            assert records.count == whole
            for run in RUNS[whole:]:
                records.add(run)
        assert (folder / RUNS_FILE).read_bytes() == text


def test_a_folder_in_which_nothing_was_begun_is_as_good_as_new(tmp_path):
    (tmp_path / RUNS_FILE).touch()
    (tmp_path / "notes.txt").touch()
    assert begun(tmp_path) == []


def test_runs_without_a_setup_are_not_touched(folder):
    (folder / SETUP_FILE).unlink()
    before = (folder / RUNS_FILE).read_bytes()
    with pytest.raises(InputError, match="has runs, but their setup is missing") as caught:
        begun(folder)
    assert caught.value.path == str(folder / RUNS_FILE)
    assert (folder / RUNS_FILE).read_bytes() == before


OTHERS = {
    "input": {"input": replace(some_setup().input, query_digest="cc")},
    "program": {"program": "mummergpu 2"},
    "device": {"machine": replace(some_setup().machine, device="another")},
    "backend": {"machine": replace(some_setup().machine, backend="cuda")},
    "device library": {"machine": replace(some_setup().machine, versions={"pycuda": "2026.1"})},
    "number of threads": {"machine": replace(some_setup().machine, threads=3)},
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_sweep_of_something_else_is_refused(folder, what):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=f"holds a sweep with another {what}; use") as caught:
        begun(folder, some_setup(**OTHERS[what]))
    assert caught.value.path == str(folder / SETUP_FILE)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", [field.name for field in fields(some_setup().input)])
def test_every_fact_of_the_input_counts(folder, name):
    known = some_setup().input
    value = getattr(known, name)
    other = value + 1 if isinstance(value, int) else value * 2
    with pytest.raises(InputError, match="another input"):
        begun(folder, some_setup(input=replace(known, **{name: other})))


def test_more_runs_and_policies_may_follow(folder):
    machine = replace(some_setup().machine, versions={"python": "4"}, gathers_per_second={"m": 1.0})
    more = some_setup(policies=("none", "t"), runs=2, control_runs=9, profile=True, machine=machine)
    assert begun(folder, more) == RUNS
    setup = read_setup(folder)
    # It is the setup of all that the folder has and will have.
    assert setup.policies == ("none", "t", "m")
    assert (setup.runs, setup.control_runs, setup.profile) == (3, 9, True)
    assert setup.machine == machine and begun(folder) == RUNS
    assert read_setup(folder).policies == ("none", "t", "m")


def test_another_process_may_not_write(folder):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from mummergpu.studies.sweeping import SweepFolder\n"
        "try:\n"
        "    with SweepFolder(Path(sys.argv[1])):\n"
        "        print('in')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )

    def other():
        command = [sys.executable, "-c", program, str(folder)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    with SweepFolder(folder) as records:
        path = folder / RUNS_FILE
        assert other() == f"OutputError {path}: another sweep is writing to it"
        with pytest.raises(OutputError, match="another sweep is writing to it"):
            SweepFolder(folder).__enter__()
        records.add(some_run("r"))
    assert other() == "in" and len(list(read_runs(folder))) == 5


@pytest.mark.parametrize("name", [RUNS_FILE, SETUP_FILE])
def test_a_damaged_folder_is_closed_again(folder, name):
    good = (folder / name).read_bytes()
    (folder / name).write_bytes(b"{}\n" + good)
    for _ in range(2):
        with pytest.raises(InputError):
            begun(folder)
    (folder / name).write_bytes(good)
    assert begun(folder) == RUNS


def changed(value, *path):
    """A copy of an object of JSON with a part left out."""
    value = json.loads(json.dumps(value))
    inner = value
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return value


def text_of(value, *path, **more):
    """The bytes of an object of JSON with a part left out, or some added."""
    return json.dumps({**(changed(value, *path) if path else value), **more}).encode()


RUN = json.loads(run_text(RUNS[1]))
KERNEL_OF_RUN = RUN["kernels"]["match_kernel"]
BAD_LINES = {
    "nothing": b"",
    "no JSON": b"{'a': 1}",
    "cut": run_text(RUNS[1]).encode()[:-20],
    "a list": b"[1, 2]",
    "a number": b"7",
    "nothing known": b"{}",
    "bytes that are no text": b'{"policy": "\xff\xfe"}',
    "zeros, as after a power cut": b"\0" * 40,
    "deep": b"[" * 100_000,
    **{f"no {field.name}": text_of(RUN, field.name) for field in fields(SweepRun)},
    "more than known": text_of(RUN, speed=1),
    "kernels in a list": text_of(RUN, kernels=[1]),
    "a kernel of none": text_of(RUN, kernels={"match_kernel": 5}),
    "a kernel's unknown": text_of(RUN, kernels={"match_kernel": {**KERNEL_OF_RUN, "heat": 5}}),
    "a kernel without launches": text_of(RUN, "kernels", "match_kernel", "launches"),
    "a policy of numbers": text_of(RUN, policy=[1]),
    "a list of seconds": text_of(RUN, seconds=[1.0]),
}


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("what", BAD_LINES)
def test_a_damaged_line_is_named(folder, what, number):
    lines = (folder / RUNS_FILE).read_bytes().splitlines()
    lines[number - 1] = BAD_LINES[what]
    text = b"\n".join(lines) + b"\n"
    (folder / RUNS_FILE).write_bytes(text)
    with pytest.raises(InputError, match="is not a run of a sweep") as caught:
        begun(folder)
    assert (caught.value.path, caught.value.line) == (str(folder / RUNS_FILE), number)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError):
        read_sweep(folder)
    assert (folder / RUNS_FILE).read_bytes() == text


SETUP = json.loads(setup_text(some_setup()))
BAD_SETUPS = {
    "nothing": b"",
    "cut": setup_text(some_setup()).encode()[:-4],
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "bytes that are no text": b'{"schema_version": 1, "program": "\xff"}',
    "deep": b"[" * 100_000,
    **{f"no {name}": text_of(SETUP, name) for name in SETUP},
    **{
        f"no {name} of the {part}": text_of(SETUP, part, name)
        for part in ("input", "machine")
        for name in SETUP[part]
    },
    "more than known": text_of(SETUP, speed=1),
    "more of the input": text_of(SETUP, input={**SETUP["input"], "speed": 1}),
    "no input": text_of(SETUP, input=[1]),
    "no machine": text_of(SETUP, machine=7),
    "no list of policies": text_of(SETUP, policies=7),
}


@pytest.mark.parametrize("what", BAD_SETUPS)
def test_a_damaged_setup_is_named(folder, what):
    (folder / SETUP_FILE).write_bytes(BAD_SETUPS[what])
    with pytest.raises(InputError, match="is not the file of a sweep") as caught:
        begun(folder)
    assert caught.value.path == str(folder / SETUP_FILE) and "\n" not in str(caught.value)
    assert list(read_runs(folder)) == RUNS
    assert (folder / SETUP_FILE).read_bytes() == BAD_SETUPS[what]


def test_a_setup_of_a_later_version_is_not_understood(folder):
    (folder / SETUP_FILE).write_text(json.dumps({**SETUP, "schema_version": 2}))
    with pytest.raises(InputError, match="is of version 2, and 1 is known"):
        read_setup(folder)


def test_a_setup_that_is_missing_is_an_error(folder):
    (folder / SETUP_FILE).unlink()
    with pytest.raises(InputError, match="no such file") as caught:
        read_sweep(folder)
    assert caught.value.path == str(folder / SETUP_FILE)


def test_a_sweep_that_was_interrupted_before_its_first_run_has_no_runs(folder):
    (folder / RUNS_FILE).unlink()
    assert read_sweep(folder).runs == ()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    for name in ("file", "file/below"):
        with pytest.raises(OutputError, match="cannot be written: ") as caught:
            begun(tmp_path / name)
        assert caught.value.path == str(tmp_path / name / RUNS_FILE)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_an_error(tmp_path):
    (tmp_path / RUNS_FILE).symlink_to("/dev/full")
    (tmp_path / SETUP_FILE).write_text(setup_text(some_setup()))
    run = some_run()
    folder = SweepFolder(tmp_path)
    # What a device has to say to `flock` and `truncate` does not matter here.
    folder._path = tmp_path / RUNS_FILE
    folder._file = open("/dev/full", "ab")
    with pytest.raises(OutputError, match="cannot be written: No space left") as caught:
        folder.add(run)
    assert caught.value.path == str(tmp_path / RUNS_FILE)
    assert not folder.has(PlannedRun(run.policy, run.kind, run.repeat)) and folder.count == 0
    folder.__exit__(None, None, None)


def test_records_stay_as_they_are():
    """Programs of others read these files."""
    assert json.loads(run_text(RUNS[1])) == asdict(RUNS[1])
    assert next(iter(SETUP)) == "schema_version" and run_text(RUNS[1]).count("\n") == 1
    seconds = {"match": 1.0, "print": 2.0, "ordering": 4.0, "search": 9.0}
    assert some_run(seconds=seconds).kernel_seconds == 7.0
    assert some_run(seconds={"match": 1.0}).kernel_seconds == 1.0
