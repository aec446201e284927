"""Memory that a thread uses again."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mummergpu.runtime.scratch import ThreadArray


def test_a_thread_gets_the_same_memory_again():
    made = ThreadArray(np.int32)
    first = made.of_size(100)
    assert first.shape == (100,) and first.dtype == np.int32 and first.flags.writeable
    assert np.shares_memory(first, made.of_size(7)) and made.of_size(7).size == 7
    larger = made.of_size(1000)
    assert larger.size == 1000 and not np.shares_memory(first, larger)
    assert np.shares_memory(larger, made.of_size(1))
    assert made.of_size(0).size == 0


def test_each_thread_has_memory_of_its_own():
    made = ThreadArray(np.uint8)
    here = made.of_size(50)
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(made.of_size, 50).result()
    assert not np.shares_memory(here, there)
