"""Sums in logarithms, for the few sequences whose scaled sums are too small for doubles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.recurrence import behind, column
from mummergpu.runtime.arrays import ByteArray, Float64Array


class LogSums:
    """Logarithms of sums, one number at a time: `recurrence.Arithmetic`."""

    def __init__(self, steps: Float64Array, emitted: Float64Array) -> None:
        self._steps = steps.tolist()
        self.emitted = emitted.tolist()

    def along(self, value: float, step: int) -> float:
        """Return a logarithm after a step."""
        return value + float(self._steps[step])

    def join(self, values: Sequence[float], target: int) -> float:
        """Return the logarithm of a sum."""
        return float(np.logaddexp.reduce(values)) if values else -np.inf

    def emit(self, value: float, node: int) -> float:
        """Return a logarithm after a symbol."""
        return value + float(self.emitted[node])


def log_forward(chain: Chain, codes: ByteArray) -> float:
    """Return the logarithm of the sum over all paths that emit a sequence of some symbols."""
    with np.errstate(divide="ignore"):
        logs = np.log(chain.emissions)[list(chain.shape.emissions)]
        numbers = LogSums(np.log(chain.probabilities), logs[:, codes[0]])
        starts, ends = np.log(chain.start).tolist(), np.log(chain.end)
    values = behind(chain.shape, numbers, starts)
    for code in codes[1:].tolist():
        numbers.emitted = logs[:, code].tolist()
        values = column(chain.shape, numbers, values)
    return float(np.logaddexp.reduce(np.array(values[: chain.shape.emitting]) + ends))
