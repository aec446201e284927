"""HMMER's own filters, by ctypes from the library in pyhmmer's wheel: no compiler is needed."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from helpers.profiles import built, profiles

POINTER = ctypes.c_void_p
INTEGER = ctypes.c_int
SCORE = ctypes.POINTER(ctypes.c_float)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "p7_bg_Create": (POINTER, POINTER),
    "p7_profile_Create": (POINTER, INTEGER, POINTER),
    "p7_oprofile_Create": (POINTER, INTEGER, POINTER),
    "p7_omx_Create": (POINTER, INTEGER, INTEGER, INTEGER),
    "p7_hmmfile_Open": (INTEGER, ctypes.c_char_p, ctypes.c_char_p, POINTER, ctypes.c_char_p),
    "p7_hmmfile_Read": (INTEGER, POINTER, POINTER, POINTER),
    "p7_ProfileConfig": (INTEGER, POINTER, POINTER, POINTER, INTEGER, INTEGER),
    "p7_oprofile_Convert": (INTEGER, POINTER, POINTER),
    "p7_oprofile_ReconfigLength": (INTEGER, POINTER, INTEGER),
    "p7_omx_GrowTo": (INTEGER, POINTER, INTEGER, INTEGER, INTEGER),
    "p7_ViterbiFilter": (INTEGER, ctypes.c_char_p, INTEGER, POINTER, POINTER, SCORE),
    "p7_ForwardParser": (INTEGER, ctypes.c_char_p, INTEGER, POINTER, POINTER, SCORE),
    "p7_bg_SetLength": (INTEGER, POINTER, INTEGER),
    "p7_bg_SetFilter": (INTEGER, POINTER, INTEGER, POINTER),
    "p7_bg_FilterScore": (INTEGER, POINTER, ctypes.c_char_p, INTEGER, SCORE),
}


@cache
def library():
    pyhmmer = pytest.importorskip("pyhmmer")
    folder = Path(pyhmmer.__file__).parent.parent / "pyhmmer.libs"
    names = [folder / f"liblib{name}.so" for name in ("easel", "hmmer")]
    if not all(name.is_file() for name in names):
        pytest.skip("this pyhmmer has no library of HMMER beside it")
    ctypes.CDLL(str(names[0]), mode=ctypes.RTLD_GLOBAL)
    loaded = ctypes.CDLL(str(names[1]))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


class HmmerFilters:
    """HMMER's filters for the first profile of a file; they live as long as the process."""

    def __init__(self, path, composition):
        self._library = hmmer = library()
        file, alphabet, hmm = POINTER(), POINTER(), POINTER()
        error = ctypes.create_string_buffer(512)
        opened = hmmer.p7_hmmfile_Open(str(path).encode(), None, ctypes.byref(file), error)
        assert opened == 0, error.value
        assert hmmer.p7_hmmfile_Read(file, ctypes.byref(alphabet), ctypes.byref(hmm)) == 0
        # The number of nodes is the first member of HMMER's structure.
        self._nodes = nodes = ctypes.cast(hmm, ctypes.POINTER(ctypes.c_int))[0]
        self._background = hmmer.p7_bg_Create(alphabet)
        generic = hmmer.p7_profile_Create(nodes, alphabet)
        self._profile = hmmer.p7_oprofile_Create(nodes, alphabet)
        assert hmmer.p7_ProfileConfig(hmm, self._background, generic, 400, 1) == 0
        assert hmmer.p7_oprofile_Convert(generic, self._profile) == 0
        self._matrix = hmmer.p7_omx_Create(nodes, 0, 400)
        self._composition = composition

    def viterbi(self, codes):
        """Return the score of the Viterbi filter in nats."""
        return self._path_score("p7_ViterbiFilter", codes)

    def forward(self, codes):
        """Return the score of all paths in nats."""
        return self._path_score("p7_ForwardParser", codes)

    def _path_score(self, name, codes):
        self._library.p7_oprofile_ReconfigLength(self._profile, codes.size)
        self._library.p7_omx_GrowTo(self._matrix, self._nodes, 0, codes.size)
        return self._score(name, _digital(codes), codes.size, self._profile, self._matrix)

    def bias(self, codes):
        """Return the score of the background corrected for composition, in nats."""
        composition = self._composition.ctypes.data
        self._library.p7_bg_SetFilter(self._background, self._nodes, composition)
        self._library.p7_bg_SetLength(self._background, codes.size)
        return self._score("p7_bg_FilterScore", self._background, _digital(codes), codes.size)

    def _score(self, name, *arguments):
        score = ctypes.c_float()
        getattr(self._library, name)(*arguments, ctypes.byref(score))
        return score.value


def _digital(codes):
    return b"\xff" + codes.tobytes() + b"\xff"


def hmmer_of(profile, folder):
    """The filters of HMMER for a profile."""
    path = folder / "one.hmm"
    with path.open("wb") as file:
        profile.hmm.write(file, binary=True)
    return HmmerFilters(path, profile.composition)


def some_profiles(sizes):
    """Real profiles, and made ones of so many nodes, where HMMER's library is."""
    library()
    return [*profiles(), *map(built, sizes)]
