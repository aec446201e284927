"""Workers that differ are refused; what a silent one has is done by others; parts make one file."""

import asyncio
import random
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.played_machine import H200

from mummergpu.cluster import connection, flow, worker
from mummergpu.cluster.connection import WorkerFacts, check_files, check_folders, check_versions
from mummergpu.cluster.flow import Flow, Steps
from mummergpu.cluster.joined_files import PartJoiner, block_text_bytes, pack_part
from mummergpu.cluster.options import OF_LOCAL, ClusterOptions
from mummergpu.cluster.worker import device_of_process
from mummergpu.cuda.driver import DriverFacts
from mummergpu.errors import ClusterError, OptionError
from mummergpu.matching.options import DeviceOptions
from mummergpu.output.bytes.compression import CompressedStream, compressor_of
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats

ADDRESS = "tcp://10.0.0.2:4001"

SILENCED = """
import logging, sys
from mummergpu.cluster import connection
assert "distributed" not in sys.modules
connection._silence()
import distributed
sys.exit(logging.getLogger("distributed.client").isEnabledFor(logging.ERROR))
"""


def test_errors_of_dask_are_told_in_one_line():
    """Dask's log has a traceback where a scheduler ends; its import sets what the log tells."""
    pytest.importorskip("distributed")
    subprocess.run([sys.executable, "-c", SILENCED], check=True)


class Answering:
    """A cluster whose one worker answers so, in place of what it is asked."""

    def __init__(self, answer):
        self.answer = answer

    def on_all(self, function, *arguments):
        return {ADDRESS: self.answer(function, *arguments)}


def test_a_worker_like_this_process_passes(tmp_path):
    path, folder = tmp_path / "r.fa", tmp_path / "parts"
    path.write_text(">a\nACGT\n")
    folder.mkdir()
    same = Answering(lambda function, *arguments: function(*arguments))
    check_versions(same)
    check_files(same, [str(path)])
    check_folders(same, [str(folder)])
    assert [one.name for one in folder.iterdir()] == ["shared"]


@pytest.mark.parametrize("name", ["mummergpu", "python", "numpy", "isal"])
def test_another_version_is_refused(name):
    def older(function):
        facts = function()
        assert isinstance(facts, WorkerFacts)
        return WorkerFacts("b", tuple((one, "0.1" if one == name else v) for one, v in facts[1]))

    with pytest.raises(ClusterError, match=f"worker {ADDRESS} on b: has {name} 0.1, and this"):
        check_versions(Answering(older))


def test_a_worker_without_the_package_is_refused():
    failed = ModuleNotFoundError("No module named 'mummergpu'")
    with pytest.raises(ClusterError, match="does not run there: No module named 'mummergpu'"):
        check_versions(Answering(lambda function: failed))


def test_a_file_that_a_worker_does_not_see_is_refused(tmp_path):
    path, other = tmp_path / "r.fa", tmp_path / "other.fa"
    path.write_text(">a\nACGT\n")
    other.write_text(">a\nACGA\n")
    for found, message in (
        (tmp_path / "none", rf"{ADDRESS}: does not see '{path}' \(No such file"),
        (other, "it is another file"),
    ):
        cluster = Answering(lambda function, _, found=found: function([str(found)]))
        with pytest.raises(ClusterError, match=message):
            check_files(cluster, [str(path)])


def test_a_folder_that_is_not_shared_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "_SECONDS_TO_APPEAR", 0.1)
    folder, elsewhere = tmp_path / "x" / "parts", tmp_path / "y"
    folder.mkdir(parents=True)
    cluster = Answering(lambda function, _: function(str(elsewhere)))
    with pytest.raises(ClusterError, match=rf"cannot write parts into '{folder.parent}' \(No such"):
        check_folders(cluster, [str(folder)])
    elsewhere.mkdir()
    (elsewhere / "shared").touch()
    with pytest.raises(ClusterError, match="what it writes there does not appear here"):
        check_folders(cluster, [str(folder)])


@pytest.mark.parametrize("address", ["", "host:8786", "local:", "local:0", "local:-1", "local:two"])
def test_what_is_no_cluster(address):
    with pytest.raises(OptionError):
        ClusterOptions(address)


def test_processes_share_the_threads():
    assert ClusterOptions.shared("local:4", 9).threads == 2
    assert ClusterOptions.shared("local:4", 2).threads == 1
    assert ClusterOptions.shared("tcp://host:1", 9).threads is None


def test_processes_take_turns_at_the_gpus(monkeypatch):
    two = DriverFacts((13, 0), (H200, replace(H200, number=1)), None)
    monkeypatch.setattr(worker, "driver_facts", lambda: two)

    def number(of, process, backend="cuda"):
        found = device_of_process(DeviceOptions(backend, of), 3, process)
        assert found.threads == 3
        return found.number

    assert [number(0, process) for process in range(5)] == [0, 1, 0, 1, 0]
    assert [number(1, process) for process in range(3)] == [1, 0, 1]
    # A worker that somebody else has started is told which GPU is its own.
    assert number(0, None) == 0 and number(1, None) == 1
    # There is no such GPU, which whoever opens it says.
    assert number(7, 1) == 7
    monkeypatch.setattr(worker, "driver_facts", lambda: DriverFacts(None, (), "no driver"))
    assert number(0, 1, "auto") == 0
    assert number(0, 1, "cpu") == 0


BUSY, SILENT = "tcp://10.0.0.2:1", "tcp://10.0.0.3:1"


class Task:
    """A future of Dask, at a worker; one that is never done needs what a silent worker has."""

    def __init__(self, key, worker, value, is_done):
        self.key, self.worker, self.value, self.is_done = key, worker, value, is_done

    def done(self):
        return self.is_done


class TwoWorkers:
    """A cluster of which one worker falls silent when it has found the first part."""

    name, patience, window = "tcp://10.0.0.1:1", 0.05, 2

    def __init__(self, loop, loses_value):
        self.loses_value = loses_value
        self.client = SimpleNamespace(
            submit=self.submit, gather=self.gather, loop=SimpleNamespace(asyncio_loop=loop)
        )
        self.workers = {BUSY, SILENT}
        self.tasks = []
        self.lines = []

    clear_errors = nullcontext

    def submit(self, _, digest, step, *arguments, **told):
        key = told["key"]
        # Parts go to the silent worker first, and what is found there is packed by the other one.
        is_first = key.endswith("-1") and "-0-" in key
        is_silent = is_first and "workers" not in told and "-pack-" not in key
        worker = SILENT if is_silent else BUSY
        needed = [one for one in arguments if isinstance(one, Task)]
        waits = "-pack-" in key and any(one.worker == SILENT for one in needed)
        values = [one.value if isinstance(one, Task) else one for one in arguments]
        self.tasks.append(Task(key, worker, None if waits else step(*values), not waits))
        return self.tasks[-1]

    async def gather(self, task, asynchronous):
        # What a silent worker has is fetched with it.
        is_lost = self.loses_value and task.key.endswith("-0-1")
        while is_lost or not task.is_done:
            await asyncio.sleep(0.01)
        return task.value

    def look_for_workers(self):
        return set(self.workers)

    def workers_alive(self):
        return {BUSY}

    def places(self):
        return {task.key: {task.worker} for task in self.tasks}

    def notice(self, line):
        self.lines.append(line)


@contextmanager
def running_loop():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop

    async def cancel_all():
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run_coroutine_threadsafe(cancel_all(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("loses_value", [False, True])
def test_a_part_that_a_silent_worker_has_found_is_found_again(monkeypatch, loses_value):
    monkeypatch.setattr(flow, "_LOOK_SECONDS", 0.01)
    steps = Steps(
        find=lambda work, part: part,
        report=lambda part: SimpleNamespace(sizes=(10,), part=part),
        pack=lambda work, part, offsets: (part, offsets),
    )
    with running_loop() as loop:
        cluster = TwoWorkers(loop, loses_value)
        parts = Flow(cluster, None, steps, [5])
        # It has been silent before.
        parts._suspects |= {SILENT} if loses_value else set()
        whole = list(parts.results(range(4)))
    assert [told.part for told, _ in whole] == [0, 1, 2, 3]
    assert [packed for _, packed in whole] == [(part, (5 + 10 * part,)) for part in range(4)]
    late = "those that are late" if loses_value else SILENT
    assert cluster.lines == [f"other workers get the parts of {late}"]
    assert sum("-find-" in task.key for task in cluster.tasks) == 5


def compressed(text, name):
    compressor, pieces = compressor_of(name), []
    if compressor is None:
        return text
    stream = CompressedStream(compressor, 1, pieces.append, Stats())
    stream.add(text)
    stream.finish()
    stream.close()
    return b"".join(pieces)


@pytest.mark.parametrize("name", [None, "bgzf", "zstd"])
@pytest.mark.parametrize("has_folder", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_parts_make_the_same_file(tmp_path, name, has_folder, seed):
    made = random.Random(seed)
    compressor = compressor_of(name)
    block = block_text_bytes(compressor)
    # Parts of no byte, of less than a block, of whole ones, and of any size.
    sizes = [0, 1, block, made.randrange(100_000), made.randrange(100_000), 2 * block, 7]
    if name == "zstd":
        sizes.append(made.randrange(3 * block))
    made.shuffle(sizes)
    head, tail = made.randbytes(made.randrange(1000)), b"the end"
    letters = np.frombuffer(b"ACGT\n", dtype=np.uint8)
    texts = [np.random.default_rng(size).choice(letters, size).tobytes() for size in sizes]
    folder = str(tmp_path) if has_folder else None
    with OutputFile(str(tmp_path / "out")) as file:
        joiner = PartJoiner(file, Stats())
        joiner.add(head)
        offset = joiner.waiting_bytes
        joiner.begin(compressor)
        for text in texts:
            array = np.frombuffer(text, dtype=np.uint8)
            joiner.add_part(pack_part(array, offset, compressor, folder))
            offset += len(text)
        joiner.add(tail)
        joiner.finish()
    whole = compressed(head + b"".join(texts) + tail, name)
    assert (tmp_path / "out").read_bytes() == whole
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


class PlayedWork:
    """Work whose data are loaded by `open`, unless it fails the first time."""

    token = "played"

    def __init__(self, fails):
        self.fails = fails
        self.tried = threading.Semaphore(0)
        self.opened = []

    def open(self, threads, number):
        self.tried.release()
        if self.fails and not self.opened:
            self.opened.append(None)
            raise OSError("not yet")
        self.opened.append((threads, number))
        return SimpleNamespace(find=lambda work, part: part, close=lambda: None)


@pytest.mark.parametrize("fails", [False, True])
def test_a_worker_loads_its_data_before_the_first_part(fails, monkeypatch):
    pytest.importorskip("distributed")
    own = SimpleNamespace(name="1", state=SimpleNamespace(nthreads=3, total_resources={OF_LOCAL}))
    monkeypatch.setattr("distributed.get_worker", lambda: own)
    monkeypatch.setattr(worker, "_opened", {})
    monkeypatch.setattr(worker, "_forgotten", set())
    work = PlayedWork(fails)
    worker.begin_to_open(work, own)
    assert work.tried.acquire(timeout=30)
    # What was loaded is not loaded again; what failed is tried again for the part.
    assert worker.find(work, "part") == "part"
    assert work.opened == [*([None] if fails else []), (3, 1)]
    worker._forget("played")
    tried = len(work.opened)
    worker.begin_to_open(work, own)
    time.sleep(0.1)
    assert len(work.opened) == tried
