"""The numbers of a chain, as the programs of a processor or a device take them."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.processor_text import IMPOSSIBLE, LOG_BITS, OFFSET_BITS
from mummergpu.hmm.language.recurrence import Shape
from mummergpu.runtime.arrays import Float64Array, Int64Array

Numbers = npt.NDArray[Any]
"""float64, or int64 for best paths."""

LONGEST_CHUNK: Final = 64
DOUBLE_RANGE: Final = 650.0
"""The natural logarithms that doubles have on each side of 1, and some to spare."""
LOG_UNITS: Final = float(1 << LOG_BITS)
EMISSION_ROW: Final = 256
"""The places of an emission in a table; the one behind the symbols is that of padding."""


class ChainTables(NamedTuple):
    """A chain in numbers.

    Attributes
    ----------
    numbers : ndarray
        The probabilities of transitions, and then of the start.
    emissions : ndarray, shape=(n_emissions, EMISSION_ROW)
        The probabilities of symbols; behind them 1 for the padding.
    end : ndarray
        The probabilities of the end.
    chunk : int
        After how many columns values have to be scaled.
    """

    numbers: Numbers
    emissions: Numbers
    end: Numbers
    chunk: int


def sum_tables(chain: Chain) -> ChainTables:
    """Return the numbers of a chain for sums."""
    numbers = np.concatenate([chain.probabilities, chain.start])
    emissions = np.zeros((chain.emissions.shape[0], EMISSION_ROW))
    symbols = chain.emissions.shape[1]
    emissions[:, :symbols] = chain.emissions
    if symbols < EMISSION_ROW:
        emissions[:, symbols] = 1
    low, high = _growth(chain)
    chunk = int(DOUBLE_RANGE / max(-low, high, DOUBLE_RANGE / LONGEST_CHUNK))
    return ChainTables(numbers, emissions, chain.end.copy(), max(1, chunk))


def best_tables(chain: Chain) -> ChainTables:
    """Return the numbers of a chain for best paths: logarithms in units of 2**-LOG_BITS."""
    numbers = log_units(np.concatenate([chain.probabilities, chain.start]))
    emissions = np.full((chain.emissions.shape[0], EMISSION_ROW), IMPOSSIBLE, dtype=np.int64)
    symbols = chain.emissions.shape[1]
    emissions[:, :symbols] = log_units(chain.emissions)
    if symbols < EMISSION_ROW:
        emissions[:, symbols] = 0
    # A column adds a transition for each silent state at most.
    most = 745.0 * (chain.shape.silent + 2)
    chunk = max(1, min(LONGEST_CHUNK, int((1 << 23) / most)))
    return ChainTables(numbers, emissions, log_units(chain.end), chunk)


def log_units(values: Float64Array) -> Int64Array:
    """Return natural logarithms in units of 2**-LOG_BITS, `IMPOSSIBLE` for 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(values) * LOG_UNITS
    return np.where(values > 0, np.rint(np.maximum(logs, -1e15)), IMPOSSIBLE).astype(np.int64)


def log_of_units(values: Int64Array, offsets: Int64Array) -> Float64Array:
    """Return natural logarithms of values and of what was taken off them; -inf where dead."""
    found = values / LOG_UNITS + offsets * ((1 << OFFSET_BITS) / LOG_UNITS)
    return np.where(values < IMPOSSIBLE // 2, -np.inf, found)


def _growth(chain: Chain) -> tuple[float, float]:
    """Return logarithms: by what a column shrinks values at most, and by what they grow."""
    logs = [math.log(value) if value > 0 else 0.0 for value in chain.probabilities]
    low, high = _reach(chain.shape, logs, min), _reach(chain.shape, logs, max)
    some = chain.emissions[chain.emissions > 0]
    if some.size == 0:
        return low, high
    steps = max(1, max((len(into) for into in chain.shape.into()), default=1))
    grown = high + math.log(float(some.max())) + math.log(steps) * (1 + chain.shape.silent)
    return low + math.log(float(some.min())), grown


def _reach(shape: Shape, logs: list[float], choose: Any) -> float:
    """Return the least or the largest logarithm of the transitions of a column."""
    silent = [0.0] * shape.nodes
    found = 0.0
    for (source, target), value in sorted(
        zip(shape.steps, logs, strict=True), key=_silent_first(shape)
    ):
        total = value + silent[source]
        if target >= shape.emitting:
            silent[target] = choose(silent[target], total)
        found = choose(found, total)
    return found


def _silent_first(shape: Shape) -> Any:
    return lambda one: (one[0][1] < shape.emitting, one[0][1])
