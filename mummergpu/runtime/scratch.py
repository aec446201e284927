"""Memory that a thread uses again for each of its tasks."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt


class ThreadArray(threading.local):
    """An array for each thread that asks for it, which grows to the largest size asked for.

    New memory is cleared by the system page by page, and threads wait for each other meanwhile.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._array: npt.NDArray[Any] = np.empty(0, dtype=dtype)

    def of_size(self, size: int) -> npt.NDArray[Any]:
        """Return an array of the calling thread, with anything in it.

        It shares its memory with the arrays that the thread got before.
        """
        if self._array.size < size:
            # The next task may be a little larger. What is too small goes first.
            dtype = self._array.dtype
            self._array = np.empty(0, dtype=dtype)
            self._array = np.empty(size + size // 8, dtype=dtype)
        return self._array[:size]
