"""Tasks wait while what they take does not fit beside what others have."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mummergpu.pipeline.mapping_groups import MemoryGate

TASKS = 200


@pytest.mark.parametrize("size", [10, 25, None])
def test_together_tasks_take_no_more_than_there_is(size):
    shared, lock = MemoryGate(size), threading.Lock()
    held = []
    most = []
    both = threading.Barrier(2)

    def work(number):
        # Some take more than there is.
        wanted = 1 + number * 7 % 30
        with shared.taken(wanted):
            with lock:
                held.append(wanted)
                most.append(list(held))
            with lock:
                held.remove(wanted)
        return wanted

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(work, range(TASKS)))
    assert len(done) == len(most) == TASKS
    assert not held
    if size is not None:
        assert all(sum(one) <= size or len(one) == 1 for one in most)

    def wait_for_each_other(wanted):
        with shared.taken(wanted):
            both.wait(timeout=20)

    # Two that fit have it at the same time.
    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(wait_for_each_other, [5, 5]))) == 2


def test_what_was_taken_is_free_after_an_error():
    shared = MemoryGate(5)
    for _ in range(2):
        with pytest.raises(ValueError, match="here"), shared.taken(5):
            raise ValueError("here")
