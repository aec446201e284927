"""How the effect of one policy changes with another."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mummergpu.index.tree.policy import LETTERS
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.analysis.effects import is_on, mean_interval, switched
from mummergpu.studies.analysis.timings import FloatArray, Timings


@frozen
class Interaction:
    """The interaction of two policies, over all settings of the five others.

    Attributes
    ----------
    squares : int
        The number of settings of the other policies for which all four times are known.
    first_alone, first_with_second : float
        The effect of the first policy in percent while the second is off, and while it is on
        (geometric means).
    percent : float
        What having both does beyond the product of the two effects: the change of the ratio
        on : off of the one policy when the other is switched on, in percent (geometric mean).
        It is the same whichever policy comes first.
    low, high : float or None
        Its confidence interval in percent; None for a single square.
    noise : float or None
        The noise of such a figure in percent: twice the coefficient of variation of a run, because
        four independent times enter it.
    """

    first: str
    second: str
    stage: str
    squares: int
    first_alone: float
    first_with_second: float
    percent: float
    low: float | None
    high: float | None
    noise: float | None

    @property
    def is_within_noise(self) -> bool:
        """Whether it is smaller than the noise of the machine."""
        return self.noise is not None and abs(self.percent) < self.noise


def interactions(timings: Timings, stage: str) -> tuple[Interaction, ...]:
    """Return the interactions of every two policies for which there are times."""
    found = (
        interaction(timings, first, second, stage)
        for first, second in combinations(LETTERS.values(), 2)
    )
    return tuple(one for one in found if one)


def interaction(timings: Timings, first: str, second: str, stage: str) -> Interaction | None:
    """Return the interaction of two policies.

    It is None if there is no setting of the others with times for all four states of the two.
    """
    logs = _log_times(timings, first, second, stage)
    if not len(logs):
        return None
    alone, together = logs[:, 1] - logs[:, 0], logs[:, 3] - logs[:, 2]
    change = together - alone
    interval = mean_interval(change)
    low, high = (_percent(bound) for bound in interval) if interval else (None, None)
    noise = timings.noise_of(stage)
    return Interaction(
        first,
        second,
        stage,
        len(logs),
        _percent(float(alone.mean())),
        _percent(float(together.mean())),
        _percent(float(change.mean())),
        low,
        high,
        None if noise is None else 200 * noise,
    )


def _log_times(timings: Timings, first: str, second: str, stage: str) -> FloatArray:
    """Return the logarithms of the times of each square; its columns are off, on, off, on.

    The first policy changes from column to column, the second after two columns.
    """
    rows = []
    for policy in timings.policies:
        if is_on(policy, first) or is_on(policy, second):
            continue
        with_second = switched(policy, second, True)
        corners = (
            policy,
            switched(policy, first, True),
            with_second,
            switched(with_second, first, True),
        )
        times = [timings.of(corner, stage) for corner in corners]
        if all(time > 0 for time in times):
            rows.append(np.log(times))
    return np.array(rows, dtype=np.float64).reshape(len(rows), 4)


def _percent(log: float) -> float:
    return 100 * float(np.expm1(log))
