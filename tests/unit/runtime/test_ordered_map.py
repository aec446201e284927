import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mummergpu.runtime.ordered_map import Prefetcher, ordered_map


def test_results_come_in_order_though_the_work_does_not():
    made = random.Random(3)
    waits = [made.random() / 200 for _ in range(60)]
    taken = []

    def work(number):
        time.sleep(waits[number])
        return number

    with ThreadPoolExecutor(4) as executor:
        ordered_map(executor, 7, range(60), work, taken.append)
    assert taken == list(range(60))


def test_no_more_items_than_the_window_are_drawn_ahead():
    drawn = 0
    taken = 0
    furthest = 0

    def items():
        nonlocal drawn, furthest
        for number in range(50):
            drawn += 1
            furthest = max(furthest, drawn - taken)
            yield number

    def take(_number):
        nonlocal taken
        taken += 1

    with ThreadPoolExecutor(2) as executor:
        ordered_map(executor, 5, items(), lambda number: number, take)
    assert taken == 50
    assert furthest == 5


def test_items_without_a_result_are_cut_until_they_have_one():
    taken = []

    def halves(numbers):
        middle = len(numbers) // 2
        return [numbers[:middle], numbers[middle:]]

    with ThreadPoolExecutor(3) as executor:
        ordered_map(
            executor,
            4,
            [range(0, 16), range(16, 17), range(17, 40)],
            lambda numbers: numbers if len(numbers) < 4 else None,
            taken.append,
            halves,
        )
    assert [number for numbers in taken for number in numbers] == list(range(40))


@pytest.mark.parametrize("culprit", ["items", "work", "take"])
def test_the_first_failure_ends_all(culprit):
    worked = threading.Semaphore(0)

    def items():
        for number in range(1000):
            if culprit == "items" and number == 10:
                raise ValueError("items")
            yield number

    def work(number):
        worked.release()
        if culprit == "work" and number == 10:
            raise ValueError("work")
        return number

    def take(number):
        if culprit == "take" and number == 10:
            raise ValueError("take")

    with ThreadPoolExecutor(2) as executor, pytest.raises(ValueError, match=culprit):
        ordered_map(executor, 4, items(), work, take)
    count = 0
    while worked.acquire(blocking=False):
        count += 1
    assert count < 20


def test_parts_of_items_that_are_cut_are_processed_at_once_and_taken_in_order():
    together = threading.Barrier(4, timeout=20)

    def work(item):
        if len(item) == 2:
            return None
        together.wait()
        return item

    taken = []
    with ThreadPoolExecutor(4) as executor:
        ordered_map(executor, 2, ["ab", "cd"], work, taken.append, cut=list)
    assert taken == ["a", "b", "c", "d"]


def test_items_are_drawn_ahead_in_order_by_another_thread():
    threads = set()

    def items():
        for number in range(40):
            threads.add(threading.current_thread())
            yield number

    with Prefetcher(items(), 3) as ahead:
        assert list(ahead) == list(range(40))
    assert len(threads) == 1
    assert threading.current_thread() not in threads
    assert not threads.pop().is_alive()


def test_no_more_are_drawn_than_may_wait():
    drawn = []
    enough = threading.Event()

    def items():
        for number in range(100):
            drawn.append(number)
            if number == 4:
                enough.set()
            yield number

    with Prefetcher(items(), 3) as ahead:
        assert next(iter(ahead)) == 0
        assert enough.wait(10)
        time.sleep(0.05)
        # One was taken, three wait, and one is in the thread's hand.
        assert drawn == [0, 1, 2, 3, 4]


def test_what_the_items_raise_comes_after_those_before():
    def items():
        yield 1
        yield 2
        raise ValueError("broken")

    taken = []
    with Prefetcher(items(), 5) as ahead, pytest.raises(ValueError, match="broken"):
        for item in ahead:
            taken.append(item)
    assert taken == [1, 2]


def test_a_failure_of_who_takes_the_items_ends_the_thread():
    closed = threading.Event()

    def items():
        try:
            number = 0
            while True:
                number += 1
                yield number
        finally:
            closed.set()

    endless = items()
    with pytest.raises(ValueError, match="taker"), Prefetcher(endless, 2) as ahead:
        for item in ahead:
            if item == 10:
                raise ValueError("taker")
    assert not [thread for thread in threading.enumerate() if thread.name == "read"]
    endless.close()
    assert closed.is_set()
