"""Hidden Markov models from Python: from arrays, or from the text of a program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from mummergpu.api.log import LOG
from mummergpu.errors import ModelError, OptionError
from mummergpu.hmm.language.evaluation import CompiledModel, Evaluation, evaluate
from mummergpu.hmm.language.lanes import SymbolBlock, offsets_of_counts
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import Algorithm, Attribute, Model, RowSum, State, Transition
from mummergpu.input.blocks.symbols import code_table
from mummergpu.input.records.parser_state import PASSED_OVER
from mummergpu.runtime.arrays import Float64Array, Int64Array

SymbolSequence = str | bytes | Sequence[int] | npt.NDArray[Any]
"""Symbols as text, or as numbers: their indices in the alphabet."""

_MAX_SYMBOLS: Final = 254


class BestPath(NamedTuple):
    """The best path of states that emits a sequence.

    Attributes
    ----------
    score : float
        The natural logarithm of the joint probability of path and symbols; -inf if no path emits
        the sequence.
    states : ndarray of int64, shape (length,)
        The state of each symbol, a number into `HiddenMarkovModel.states`; empty without a path.
    """

    score: float
    states: Int64Array


class FittedModel(NamedTuple):
    """A model that has been trained.

    Attributes
    ----------
    model : HiddenMarkovModel
        The model after the last iteration.
    scores : ndarray of float64, shape (n_iterations,)
        The natural logarithm of the probability of all sequences before each iteration.
    """

    model: HiddenMarkovModel
    scores: Float64Array


class HiddenMarkovModel:
    """A hidden Markov model.

    Parameters
    ----------
    states : sequence of str
        The names of the states.
    transitions : array_like of float, shape (n_states, n_states)
        The probabilities of transitions from the state of a row to that of a column.
    emissions : array_like of float, shape (n_states, n_symbols)
        The probabilities of symbols in each state.
    start : array_like of float, shape (n_states,), optional
        The probabilities of the first state; equal by default.
    end : array_like of float, shape (n_states,), optional
        The probabilities of ending after each state; by default, a path may end in any state.
    alphabet : sequence of str, optional
        The symbols, single ASCII characters, if sequences are given as text.

    Raises
    ------
    OptionError
        If the shapes of the arrays disagree, a probability is negative or not finite, or a row sums
        to more than 1.001. The log warns of a row that sums to more than 1.000001.

    Examples
    --------
    >>> import mummergpu
    >>> casino = mummergpu.HiddenMarkovModel(
    ...     ["fair", "loaded"],
    ...     transitions=[[0.95, 0.05], [0.1, 0.9]],
    ...     emissions=[[1 / 6] * 6, [0.1] * 5 + [0.5]],
    ...     alphabet="123456",
    ... )
    >>> path = casino.viterbi("315116246446644245666666")
    >>> [casino.states[state] for state in path.states[[0, -1]]]
    ['fair', 'loaded']
    >>> round(casino.forward("3151162464"), 4)
    -18.4201
    """

    def __init__(
        self,
        states: Iterable[str],
        transitions: npt.ArrayLike,
        emissions: npt.ArrayLike,
        *,
        start: npt.ArrayLike | None = None,
        end: npt.ArrayLike | None = None,
        alphabet: Iterable[str] | None = None,
    ) -> None:
        names = [str(name) for name in states]
        count = len(names)
        if len(set(names)) != count or count == 0:
            raise OptionError("states", "no names, or one of them twice")
        chances = _probabilities("emissions", emissions, (count, None))
        symbols = chances.shape[1]
        known = [str(symbol) for symbol in alphabet or []]
        if known and (len(set(known)) != symbols or len(known) != symbols):
            raise OptionError("alphabet", f"not {symbols} different symbols")
        if any(len(symbol) != 1 or not symbol.isascii() for symbol in known):
            raise OptionError("alphabet", "a symbol that is no single ASCII character")
        if not 0 < symbols <= _MAX_SYMBOLS:
            raise OptionError("emissions", f"{symbols} symbols; from 1 to {_MAX_SYMBOLS} can be")
        steps = _probabilities("transitions", transitions, (count, count))
        first = np.full(count, 1 / count) if start is None else start
        first = _probabilities("start", first, (count,))
        _check_sums("start", first[None])
        _check_sums("emissions", chances)
        edges = [("start", f"{number}", value) for number, value in enumerate(first.tolist())]
        for source, row in enumerate(steps.tolist()):
            edges += [(f"{source}", f"{target}", value) for target, value in enumerate(row)]
        if end is not None:
            last = _probabilities("end", end, (count,))
            edges += [(f"{number}", "end", value) for number, value in enumerate(last.tolist())]
            steps = np.append(steps, last[:, None], axis=1)
        _check_sums("transitions", steps)
        ends = [] if end is None else [State("end")]
        self._names = names
        self._alphabet = known
        self._compiled = CompiledModel(
            Model(
                "model",
                tuple(known) or tuple(str(code) for code in range(symbols)),
                (State("start"), *(State(f"{n}", f"{n}") for n in range(count)), *ends),
                "start",
                None if end is None else "end",
                {f"{number}": tuple(row) for number, row in enumerate(chances.tolist())},
                tuple(Transition(*edge) for edge in edges if edge[2] > 0),
            )
        )

    @classmethod
    def parse(cls, text: str, name: str | None = None) -> Self:
        """Return a model from a program in the language of ``mummergpu hmm``.

        Parameters
        ----------
        text : str
            The program; a ``main`` is ignored.
        name : str, optional
            The model; the first one of the program by default.

        Raises
        ------
        ModelError
            If the program is wrong, has no such model, or the model cannot be computed.
        """
        models = parse_program(text).models
        model = next(iter(models.values()), None) if name is None else models.get(name)
        if model is None:
            raise ModelError("no model" if name is None else f"no model '{name}'", "<text>")
        for row, line in model.unusual_sums:
            if row.total > 1:
                LOG.warning("<text>:%d: %s", line, row)
        return cls._of_model(model, "<text>")

    @classmethod
    def from_profile(cls, path: str | Path, *, length: int, name: str | None = None) -> Self:
        """Return HMMER's model of a profile, as its searches configure it (Plan 7).

        Scores are log-odds against HMMER's null model: that of `forward`, divided by the logarithm
        of 2, is HMMER's bit score of a sequence of that length before its correction for
        composition. The states ``M[k]`` and ``I[k]`` are matches and insertions of node k; ``N``,
        ``J`` and ``C`` are before, between and after alignments.

        Parameters
        ----------
        path : str or Path
            A file of profiles, as text or pressed.
        length : int
            The length of the sequences that the model is made for.
        name : str, optional
            The profile; the first one of the file by default.

        Raises
        ------
        InputError
            If the file cannot be read.
        LibraryError
            If pyhmmer is not installed.
        ModelError
            If the file has no such profile.
        OptionError
            If the length is not positive.
        """
        from mummergpu.hmm.language.plan7 import plan7_model
        from mummergpu.hmm.profiles import read_profiles

        if not isinstance(length, int | np.integer) or length < 1:
            raise OptionError("length", f"{length!r} is no length of a sequence, from 1 on")
        for profile in read_profiles(path):
            if name in (None, profile.name):
                return cls._of_model(plan7_model(profile, length), str(path))
        raise ModelError("no profile" if name is None else f"no profile '{name}'", str(path))

    @classmethod
    def _of_model(cls, model: Model, path: str) -> Self:
        found = cls.__new__(cls)
        found._compiled = CompiledModel(model, path)
        found._names = found._compiled.state_names
        found._alphabet = list(model.alphabet)
        return found

    @property
    def states(self) -> list[str]:
        """The names of the states that emit, in the order of their declaration."""
        return self._names

    @property
    def alphabet(self) -> list[str]:
        """The symbols; empty if they are numbers only."""
        return self._alphabet

    def __repr__(self) -> str:
        symbols = len(self._compiled.model.alphabet)
        return f"HiddenMarkovModel({len(self._names)} states, {symbols} symbols)"

    def viterbi(self, sequences: SymbolSequence | Iterable[SymbolSequence]) -> Any:
        """Return the best path of each sequence.

        Parameters
        ----------
        sequences : str, bytes, array of int, or an iterable of these
            One sequence, or several, as text or as numbers into the alphabet.

        Returns
        -------
        BestPath or list of BestPath
            A list if there are several sequences. Ties go to the state that was declared first.

        Raises
        ------
        OptionError
            If a symbol is not in the alphabet.
        """
        block, is_one = self._block(sequences)
        wanted = (Attribute.SCORE, Attribute.TRACEBACK)
        found = evaluate(self._compiled, Algorithm.VITERBI, block, wanted)
        paths = [
            BestPath(score, states)
            for score, states in zip(found.scores.tolist(), self._paths(found), strict=True)
        ]
        return paths[0] if is_one else paths

    def forward(self, sequences: SymbolSequence | Iterable[SymbolSequence]) -> Any:
        """Return the natural logarithm of the probability of each sequence, over all paths.

        Parameters
        ----------
        sequences : str, bytes, array of int, or an iterable of these
            As for `viterbi`.

        Returns
        -------
        float or ndarray of float64, shape (n_sequences,)
            -inf for an impossible sequence.
        """
        return self._scores(sequences, Algorithm.FORWARD)

    def backward(self, sequences: SymbolSequence | Iterable[SymbolSequence]) -> Any:
        """Return the values of `forward`, computed from the ends of the sequences."""
        return self._scores(sequences, Algorithm.BACKWARD)

    def posterior(self, sequences: SymbolSequence | Iterable[SymbolSequence]) -> Any:
        """Return the probabilities of the states at each symbol, over all paths.

        Parameters
        ----------
        sequences : str, bytes, array of int, or an iterable of these
            As for `viterbi`.

        Returns
        -------
        ndarray of float64, shape (length, n_states), or list of these
            Rows sum to 1; they are NaN for an impossible sequence.
        """
        block, is_one = self._block(sequences)
        found = evaluate(self._compiled, Algorithm.POSTERIOR, block, (Attribute.TABLE,))
        assert found.tables is not None
        tables = [self._columns(table) for table in found.tables]
        return tables[0] if is_one else tables

    def fit(
        self,
        sequences: SymbolSequence | Iterable[SymbolSequence],
        *,
        iterations: int = 10,
        tolerance: float = 0.01,
    ) -> FittedModel:
        """Train the model by Baum-Welch: raise the probability of all sequences together.

        Each iteration sets every probability to the expected share of its transition or symbol
        (Cartey's paper, section 2.2.3). The result is a new model with the same states. States
        that share an emission in a program share the new one, too. A probability of 0 stays 0, and
        a state that no path visits stays as it is.

        Parameters
        ----------
        sequences : str, bytes, array of int, or an iterable of these
            As for `viterbi`.
        iterations : int
            The largest number of iterations.
        tolerance : float
            The last iteration is the first that raises the score by less than this (in nats).

        Raises
        ------
        OptionError
            If the model cannot emit a sequence, there is none, an argument is out of range, or the
            transitions or emissions of the model are no probabilities: those of a state sum to
            more than 1, as in a model of `from_profile`.
        """
        from mummergpu.hmm.language.training import fit_model

        if not isinstance(iterations, int | np.integer) or iterations < 1:
            raise OptionError("iterations", f"{iterations!r} is no number of iterations, from 1 on")
        if not isinstance(tolerance, int | float | np.number) or not np.isfinite(tolerance):
            raise OptionError("tolerance", f"{tolerance!r} is no finite number")
        for row in self._compiled.model.row_sums():
            if row.is_refused:
                raise OptionError("fit", f"{row}, which is more than 1")
        block, _ = self._block(sequences)
        if block.offsets.size == 1:
            raise OptionError("sequences", "no sequence to fit")
        found = fit_model(self._compiled, block, int(iterations), float(tolerance))
        model = self._of_model(found.model, "<fit>")
        model._names, model._alphabet = self._names, self._alphabet
        return FittedModel(model, np.array(found.scores))

    @property
    def start(self) -> Float64Array:
        """The probabilities of the first state, shape (n_states,)."""
        return self._arrays[0, :-1]

    @property
    def transitions(self) -> Float64Array:
        """The probabilities of transitions, shape (n_states, n_states)."""
        return self._arrays[1:, :-1]

    @property
    def end(self) -> Float64Array | None:
        """The probabilities of ending after each state, shape (n_states,); None: in any state."""
        return self._arrays[1:, -1] if self._compiled.model.end is not None else None

    @property
    def emissions(self) -> Float64Array:
        """The probabilities of symbols in each state, shape (n_states, n_symbols)."""
        emissions = self._compiled.model.emissions
        return np.array([emissions[str(state.emission)] for state in self._emitting])

    @cached_property
    def _emitting(self) -> list[State]:
        """The states that emit; `ModelError` if others than the start and the end do not."""
        model = self._compiled.model
        found = [state for state in model.states if state.emission is not None]
        silent = len(model.states) - len(found) - 1 - (model.end is not None)
        if silent or any(step.emission is not None for step in model.transitions):
            message = f"'{model.name}' has silent states or transitions that emit: no arrays have"
            raise ModelError(f"{message} them, but the text of `to_program`", "<model>")
        return found

    @cached_property
    def _arrays(self) -> Float64Array:
        """The start and the states in rows, the states and the end in columns."""
        model, count = self._compiled.model, len(self._emitting)
        places = {state.name: number for number, state in enumerate(self._emitting)}
        found = np.zeros((count + 1, count + 1))
        for step in model.transitions:
            row = 1 + places.get(step.source, -1)
            found[row, places.get(step.target, count)] += step.probability
        return found

    def to_program(self, name: str | None = None) -> str:
        """Return the model as text in the language of ``mummergpu hmm``, without a ``main``.

        Parameters
        ----------
        name : str, optional
            The name of the model; by default, the one in the text that it came from.

        Raises
        ------
        ModelError
            If a state has a name that the language has not, or the symbols are only numbers.
        """
        from mummergpu.hmm.language.writer import program_text

        model = self._compiled.model
        if not self._alphabet:
            raise ModelError("a program needs an alphabet, and the model has none", model.name)
        if self._names != self._compiled.state_names:
            own = {name: self._names[int(name)] for name in self._compiled.state_names}
            model = model.with_names(own)
        return program_text(replace(model, name=name or model.name))

    def _scores(
        self, sequences: SymbolSequence | Iterable[SymbolSequence], algorithm: Algorithm
    ) -> Any:
        block, is_one = self._block(sequences)
        scores = evaluate(self._compiled, algorithm, block).scores
        return float(scores[0]) if is_one else scores

    @cached_property
    def _numbers(self) -> Int64Array:
        """The number in `states` of each state of the compiled model."""
        own = self._compiled.state_names
        # Internally, states of arrays are named by number, so that users may choose any names.
        numbers = own if self._names != own else range(len(own))
        return np.array([int(name) for name in numbers], dtype=np.int64)

    def _columns(self, table: Float64Array) -> Float64Array:
        found = np.zeros((table.shape[1], len(self._names)))
        found[:, self._numbers] = table.T
        return found

    def _paths(self, found: Evaluation) -> list[Int64Array]:
        runs, visits = found.runs, self._compiled.visits
        assert runs is not None
        own = {name: number for number, name in enumerate(self._compiled.state_names)}
        of_visits = np.array([own.get(name, -1) for name in visits.names] or [0], dtype=np.int64)
        lengths = np.where(visits.emits[runs.visits], runs.lengths, 0)
        states = np.repeat(self._numbers[of_visits[runs.visits]], lengths)
        ends = offsets_of_counts(lengths)[runs.offsets]
        return [states[begin:end] for begin, end in pairwise(ends.tolist())]

    def _block(
        self, sequences: SymbolSequence | Iterable[SymbolSequence]
    ) -> tuple[SymbolBlock, bool]:
        is_one = _is_sequence(sequences)
        several: list[Any] = [sequences] if is_one else list(sequences)
        codes = [self._codes(one, number) for number, one in enumerate(several)]
        sizes = np.array([one.size for one in codes], dtype=np.int64)
        joined = np.concatenate([np.empty(0, dtype=np.uint8), *codes])
        return SymbolBlock(joined, offsets_of_counts(sizes)), is_one

    def _codes(self, sequence: Any, number: int) -> npt.NDArray[np.uint8]:
        if isinstance(sequence, str | bytes):
            if not self._alphabet:
                raise OptionError("sequences", "text, but the model has no alphabet")
            text = sequence.encode("utf-8", "replace") if isinstance(sequence, str) else sequence
            codes = code_table(self._alphabet)[np.frombuffer(text, dtype=np.uint8)]
            wrong = codes >= PASSED_OVER
        else:
            found = np.asarray(sequence)
            if found.ndim == 2 and found.shape[1] == 1:
                found = found[:, 0]
            if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
                raise OptionError("sequences", f"sequence {number} is no row of integers")
            wrong = (found < 0) | (found >= len(self._compiled.model.alphabet))
            codes = found.astype(np.uint8)
        if wrong.any():
            place = f"at position {int(wrong.argmax())} of sequence {number}"
            raise OptionError("sequences", f"a symbol that is not in the alphabet {place}")
        return codes


def _is_sequence(sequences: Any) -> bool:
    """Return whether something is one sequence, and not several."""
    if isinstance(sequences, str | bytes):
        return True
    if hasattr(sequences, "__array__"):
        # hmmlearn represents a sequence as a table of one column.
        found = np.asarray(sequences)
        if found.ndim > 1 and found.shape[1:] != (1,):
            raise OptionError(
                "sequences",
                f"an array of shape {found.shape}: a sequence has the shape (n,) or (n, 1), and "
                "several are a list of these",
            )
        return found.ndim == 2 or found.dtype.kind in "iu"
    several = isinstance(sequences, Sequence) and bool(sequences)
    return several and isinstance(sequences[0], int | np.integer)


def _check_sums(option: str, rows: Float64Array) -> None:
    """Refuse rows that sum to much more than 1, and warn of the first of more than 1."""
    totals = rows.sum(axis=1)
    worst = int(totals.argmax())
    row = RowSum(f"probabilities of row {worst}", float(totals[worst]))
    if row.is_refused:
        raise OptionError(option, f"{row}, which is more than 1")
    if row.is_unusual and row.total > 1:
        LOG.warning("%s: %s", option, row)


def _probabilities(option: str, values: Any, shape: tuple[int | None, ...]) -> Float64Array:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(option, "no array of numbers") from None
    fits = found.ndim == len(shape) and all(
        want in (None, have) for want, have in zip(shape, found.shape, strict=True)
    )
    if not fits:
        wanted = " x ".join("n" if want is None else str(want) for want in shape)
        raise OptionError(option, f"an array of shape {found.shape}, and not {wanted}")
    if not np.isfinite(found).all() or (found < 0).any():
        raise OptionError(option, "a probability that is negative or not finite")
    return found
