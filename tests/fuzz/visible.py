"""Showing the branches of a module to a fuzzer."""

from types import FunctionType


def instrument_module(module, function):
    """Give each function and method that a module defines to `function`, which changes it.

    Only for modules of plain Python: numba cannot compile what a fuzzer has changed.
    """
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        members = vars(value).values() if isinstance(value, type) else (value,)
        for member in members:
            if isinstance(member, property):
                member = member.fget
            member = getattr(member, "__func__", member)
            member = getattr(member, "__wrapped__", member)
            if isinstance(member, FunctionType):
                function(member)
