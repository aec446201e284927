"""Capsules of DLPack: how an array on a device goes to another library without a copy.

The consumer of a capsule gets the address of a structure that describes the array, and calls the
structure's deleter when it needs the array no more, from any thread. Until then the structure and
the owner of the memory are kept here.

A capsule has no destructor. It would be Python's code, and a consumer that refuses a capsule may
drop it while an exception is set, which such code cannot leave as it is. A capsule that nobody took
is therefore found later, when nothing but this module refers to it.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

CPU: Final = 1
CUDA: Final = 2
"""Types of devices (``DLDeviceType``)."""

VERSION: Final = (1, 0)
"""The version of the structure in a versioned capsule."""

_KINDS: Final = {"i": 0, "u": 1, "f": 2, "b": 6}
"""The codes of types (``DLDataTypeCode``), by the kinds of numpy."""

_NAMES: Final = (b"dltensor", b"dltensor_versioned")
"""The names of capsules without and with a version; a consumer gives a capsule another name."""


class _Tensor(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _ManagedTensor(ctypes.Structure):
    """``DLManagedTensor``."""

    _fields_ = (
        ("tensor", _Tensor),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class _VersionedTensor(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass
class _Export:
    """An array that a consumer has, or may take; no capsule when it is known to be taken."""

    parts: tuple[Any, ...]
    name: bytes
    capsule: Any


_exports: dict[int, _Export] = {}
"""What consumers have, by the addresses of the structures."""

# Functions of this module's own: other libraries may change the types of `ctypes.pythonapi`'s.
_new_capsule: Any = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))
_is_capsule: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_keep_for_ever: Any = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


def _let_go(address: int, exports: dict[int, _Export] = _exports) -> None:
    """Forget an array that its consumer needs no more, and with it the owner of its memory."""
    exports.pop(address, None)


_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_let_go)

# A consumer may call the deleter when this module is gone, while the interpreter ends.
for _kept in (_exports, _deleter, *_NAMES):
    _keep_for_ever(_kept)


def new_capsule(
    owner: object,
    address: int,
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
    place: tuple[int, int],
    is_versioned: bool,
) -> object:
    """Return a capsule for a contiguous array, which can be consumed once.

    The owner of the memory is kept until the consumer calls the deleter. The place is the type and
    the number of the device; a consumer of DLPack 1.0 knows the structure with a version.
    """
    drop_refused()
    kind = np.dtype(dtype)
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    extents = (ctypes.c_int64 * (2 * len(shape)))(*shape, *strides)
    tensor = _Tensor(
        *(address, *place, len(shape), _KINDS[kind.kind], 8 * kind.itemsize, 1),
        ctypes.addressof(extents),
        ctypes.addressof(extents) + 8 * len(shape),
        0,
    )
    deleter = ctypes.cast(_deleter, ctypes.c_void_p)
    managed: _ManagedTensor | _VersionedTensor
    if is_versioned:
        managed = _VersionedTensor(*VERSION, None, deleter, 0, tensor)
    else:
        managed = _ManagedTensor(tensor, None, deleter)
    name, place_of_structure = _NAMES[is_versioned], ctypes.addressof(managed)
    capsule = _new_capsule(place_of_structure, name, None)
    _exports[place_of_structure] = _Export((managed, extents, owner), name, capsule)
    return capsule


def drop_refused() -> None:
    """Forget the arrays whose capsules are gone without having been taken."""
    for address, export in list(_exports.items()):
        if export.capsule is None:
            continue
        if not _is_capsule(export.capsule, export.name):
            export.capsule = None
        elif sys.getrefcount(export.capsule) <= _REFERENCES_OF_EXPORT:
            _exports.pop(address, None)


_REFERENCES_OF_EXPORT: Final = 2
"""What refers to a capsule that only its export has: the attribute, and the argument of the
function that counts."""


def export_count() -> int:
    """Return how many arrays consumers have, or may still take."""
    drop_refused()
    return len(_exports)
