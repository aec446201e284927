"""A linear model of the logarithm of a stage's time on the seven policies."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.analysis.effects import is_on, t_quantile
from mummergpu.studies.analysis.timings import FloatArray, Timings


@frozen
class Term:
    """One term of a model.

    Attributes
    ----------
    letters : str
        The letter of a policy, or those of two that interact.
    percent : float
        The change of the time in percent: of a policy, when it is switched on; of two, what both
        do beyond the product of their effects.
    """

    letters: str
    percent: float
    low: float
    high: float


@frozen
class Misfit:
    """A layout that a model explains badly.

    Attributes
    ----------
    measured, modelled : float
        Its time in seconds, measured and by the model.
    """

    policy: Policy
    measured: float
    modelled: float

    @property
    def percent(self) -> float:
        """How far the measured time lies above the model's, in percent of the model's."""
        return 100 * (self.measured / self.modelled - 1)


@frozen
class LinearModel:
    """A least-squares model of the logarithm of a time.

    Attributes
    ----------
    with_interactions : bool
        Whether it has a term for every two policies, besides those of single ones.
    fits : tuple of Misfit
        All layouts, those first that the model explains worst.
    r_squared : float
        The share of the variance of the logarithms that the model explains.
    residual_percent : float
        The residual standard deviation (with the degrees of freedom left), in percent of a time.
    degrees_of_freedom : int
        The number of layouts less that of the coefficients.
    """

    stage: str
    with_interactions: bool
    terms: tuple[Term, ...]
    fits: tuple[Misfit, ...]
    r_squared: float
    residual_percent: float
    degrees_of_freedom: int


def linear_model(timings: Timings, stage: str, with_interactions: bool) -> LinearModel | None:
    """Fit a model of the logarithm of a stage's time.

    It is None if the layouts that were measured do not determine the coefficients, or leave no
    degree of freedom, or if all times are equal.

    A policy enters as -1/2 (off) or 1/2 (on), so that the coefficient of one policy is its effect
    averaged over the states of the others, whether or not there are interactions.
    """
    column = timings.column(stage)
    rows = [row for row in range(len(timings.policies)) if column[row] > 0]
    policies = [timings.policies[row] for row in rows]
    letters = [
        letter
        for letter in LETTERS.values()
        if len({is_on(policy, letter) for policy in policies}) == 2
    ]
    names = letters + ["".join(two) for two in combinations(letters, 2)] * with_interactions
    degrees = len(rows) - len(names) - 1
    if degrees < 1 or not names:
        return None
    design = _design(policies, names)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    logs = np.log(column[rows])
    variance = float(((logs - logs.mean()) ** 2).sum())
    if variance == 0:
        return None
    coefficients = np.asarray(np.linalg.lstsq(design, logs, rcond=None)[0], dtype=np.float64)
    modelled = design @ coefficients
    squares = float(((logs - modelled) ** 2).sum())
    deviation = math.sqrt(squares / degrees)
    variances = np.diag(np.linalg.inv(design.T @ design))
    errors = deviation * np.sqrt(np.asarray(variances, dtype=np.float64))
    fits = [
        Misfit(policy, math.exp(log), math.exp(model))
        for policy, log, model in zip(policies, logs, modelled, strict=True)
    ]
    return LinearModel(
        stage,
        with_interactions,
        _terms(names, coefficients[1:], errors[1:] * t_quantile(degrees)),
        tuple(sorted(fits, key=lambda fit: -abs(math.log(fit.measured / fit.modelled)))),
        1 - squares / variance,
        100 * math.expm1(deviation),
        degrees,
    )


def _design(policies: list[Policy], names: list[str]) -> FloatArray:
    """Return the model's matrix of shape (n_policies, n_names + 1); its first column is 1."""
    design = np.ones((len(policies), len(names) + 1))
    for row, policy in enumerate(policies):
        for column, letters in enumerate(names, 1):
            signs = [1.0 if is_on(policy, letter) else -1.0 for letter in letters]
            # The product of two letters is scaled so that its coefficient is the logarithm of
            # the ratio of ratios, as in `interactions`.
            design[row, column] = signs[0] / 2 if len(signs) == 1 else signs[0] * signs[1] / 4
    return design


def _terms(names: list[str], coefficients: FloatArray, halves: FloatArray) -> tuple[Term, ...]:
    bounds = np.stack((coefficients, coefficients - halves, coefficients + halves), axis=1)
    percents = 100 * np.expm1(bounds)
    return tuple(
        Term(name, *(float(percent) for percent in row))
        for name, row in zip(names, percents, strict=True)
    )
