"""Immutable bundles of named values, which cost a start little.

`dataclasses.dataclass` writes and compiles the text of six methods for each class. For the eighty
classes that a search imports, that took half of the time of their import.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(bundle: type[Class]) -> type[Class]:
    """Make a class what ``dataclass(frozen=True)`` makes of it, with methods for any fields.

    `dataclasses.fields`, `replace` and `asdict` take its instances. A subclass of such a class is
    made in the same way.
    """
    made = dataclass(init=False, repr=False, eq=False)(bundle)
    own = fields(made)  # type: ignore[arg-type]
    methods: dict[str, Any] = {
        "__init__": _init_of(own, hasattr(made, "__post_init__")),
        "__repr__": _repr,
        "__eq__": _equals,
        "__hash__": _hash,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__signature__": _Signature(),
        "__match_args__": tuple(one.name for one in own if one.init and not one.kw_only),
    }
    for name, method in methods.items():
        if name not in made.__dict__ or name == "__match_args__":
            setattr(made, name, method)
    made._compared = tuple(one.name for one in own if one.compare)  # type: ignore[attr-defined]
    return made


def _init_of(own: tuple[Field[Any], ...], has_post_init: bool) -> Callable[..., None]:
    """Return the method that sets some fields."""
    by_place = tuple(one.name for one in own if not one.kw_only)
    names = frozenset(one.name for one in own)

    def initialize(self: Any, *values: Any, **named: Any) -> None:
        state = self.__dict__
        if len(values) > len(by_place):
            raise TypeError(f"{type(self).__name__}() takes at most {len(by_place)} values")
        state.update(zip(by_place, values, strict=False))
        if not named.keys() <= names or not named.keys().isdisjoint(state):
            wrong = [name for name in named if name not in names or name in state]
            raise TypeError(f"{type(self).__name__}() does not take {wrong[0]!r}, or has it twice")
        state.update(named)
        if len(state) < len(own):
            for one in own:
                if one.name not in state:
                    state[one.name] = _default_of(one, self)
        if has_post_init:
            self.__post_init__()

    return initialize


def _default_of(field_: Field[Any], bundle: object) -> Any:
    """Return the default of a field."""
    if field_.default is not MISSING:
        return field_.default
    if field_.default_factory is not MISSING:
        return field_.default_factory()
    raise TypeError(f"{type(bundle).__name__}() needs a value for {field_.name!r}")


class _Signature:
    """What `inspect.signature` returns for a class; it is made when somebody asks."""

    def __get__(self, instance: object, owner: Any) -> Any:
        from inspect import Parameter, Signature

        parameters = []
        for one in sorted(fields(owner), key=lambda one: bool(one.kw_only)):
            kind = Parameter.KEYWORD_ONLY if one.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            default = one.default if one.default is not MISSING else Parameter.empty
            if one.default_factory is not MISSING:
                default = one.default_factory()
            parameters.append(Parameter(one.name, kind, default=default, annotation=one.type))
        return Signature(parameters, return_annotation=None)


def _repr(self: Any) -> str:
    state = self.__dict__
    shown = (f"{one.name}={state[one.name]!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compared_values(bundle: Any) -> tuple[Any, ...]:
    state = bundle.__dict__
    return tuple(state[name] for name in bundle._compared)


def _equals(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _compared_values(self) == _compared_values(other)


def _hash(self: Any) -> int:
    return hash(_compared_values(self))


def _refuse(self: Any, name: str, *value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")
