"""What a silent worker has is done by others, and parts are joined to the bytes of one stream."""

import asyncio
import random
import threading
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from mummergpu.cluster import flow
from mummergpu.cluster.flow import Flow, Steps
from mummergpu.cluster.joined_files import PartJoiner, block_text_bytes, pack_part
from mummergpu.output.bytes.compression import CompressedStream, compressor_of
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats

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
            joiner.add_part(pack_part(text, offset, compressor, folder))
            offset += len(text)
        joiner.add(tail)
        joiner.finish()
    whole = compressed(head + b"".join(texts) + tail, name)
    assert (tmp_path / "out").read_bytes() == whole
    assert [one.name for one in tmp_path.iterdir()] == ["out"]
