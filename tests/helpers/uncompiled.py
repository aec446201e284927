"""Compiled functions as they are before they are compiled.

The functions are those of the package, called by each other in plain Python: nothing is compiled,
and their branches can be seen. What exists as machine code alone is given a second time.
"""

import sys
from types import FunctionType

import numpy as np

from mummergpu.runtime.compiled.lazy_dispatch import LazyFunction
from mummergpu.sequence.codes import BREAK, STEP


def _mask(one, other):
    differs = (one != other) | (one == BREAK)
    return np.uint64(sum(1 << int(place) for place in np.flatnonzero(differs)))


def differences_right(one, at, other, other_at):
    return _mask(one[at : at + STEP], other[other_at : other_at + STEP])


def differences_left(one, at, other, other_at):
    return _mask(one[at - STEP : at][::-1], other[other_at - STEP : other_at][::-1])


def lowest_bit(word):
    return (int(word) & -int(word)).bit_length() - 1


def extend_right(one, at, other, other_at, most):
    differs = (one[at : at + most] != other[other_at : other_at + most]) | (
        one[at : at + most] == BREAK
    )
    return int(np.argmax(np.append(differs, True)))


def codes_as_word(codes, at):
    return np.uint64(int.from_bytes(codes[at : at + 8].tobytes(), "little"))


def prefetch(array, index):
    """There is nothing to fetch."""


MACHINE_CODE = {
    one.__name__: one
    for one in (
        differences_right,
        differences_left,
        extend_right,
        lowest_bit,
        codes_as_word,
        prefetch,
    )
}


class Uncompiled:
    """Functions as they are before they are compiled, calling each other.

    `instead` stands for functions of some names; `instrument` returns what to use for each other.
    """

    def __init__(self, instead=MACHINE_CODE, instrument=lambda function: function):
        self._instead = instead
        self._instrument = instrument
        self._functions = {}
        self._modules = {}

    def function(self, compiled):
        """The plain form of a function that is compiled, or that calls such ones."""
        plain = compiled.function if isinstance(compiled, LazyFunction) else compiled
        if plain.__name__ in self._instead:
            return self._instead[plain.__name__]
        if id(compiled) not in self._functions:
            names = self._names_in(plain.__module__)
            copy = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__)
            self._functions[id(compiled)] = self._instrument(copy)
        return self._functions[id(compiled)]

    def _names_in(self, module):
        """What the functions of a module see: those of others that are compiled, uncompiled."""
        if module not in self._modules:
            names = self._modules[module] = dict(vars(sys.modules[module]))
            for name, value in list(names.items()):
                if name in self._instead:
                    names[name] = self._instead[name]
                elif isinstance(value, LazyFunction):
                    names[name] = self.function(value)
        return self._modules[module]
