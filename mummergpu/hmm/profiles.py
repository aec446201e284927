"""Reads profile HMMs; pyhmmer parses the files, in all formats of HMMER."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, cast

import numpy as np

from mummergpu.errors import InputError, LibraryError
from mummergpu.input.bytes.files import STANDARD_INPUT, open_binary, reading
from mummergpu.input.bytes.formats import LONGEST_MAGIC, Compression, compression_of
from mummergpu.input.bytes.inflate import Inflated
from mummergpu.input.bytes.source import Readable, Source
from mummergpu.runtime.arrays import Float32Array
from mummergpu.runtime.libraries import in_one_line, look_for

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PRESSED: Final = ".h3m"
"""The ending of the file in which ``hmmpress`` writes the profiles as numbers."""
_END: Final = b"//"
_TAIL_BYTES: Final = 64


class Statistics(NamedTuple):
    """How scores of random sequences are distributed, in bits: two Gumbel's, one exponential."""

    msv_mu: float
    msv_lambda: float
    viterbi_mu: float
    viterbi_lambda: float
    forward_tau: float
    forward_lambda: float


@dataclass(frozen=True, eq=False)
class Profile:
    """A profile HMM of proteins.

    Attributes
    ----------
    name, accession, description : str
        As the file has them; empty where it has none.
    matches : ndarray of float32, shape (nodes, 20)
        The probabilities of the amino acids in each match state.
    transitions : ndarray of float32, shape (nodes + 1, 7)
        The probabilities MM, MI, MD, IM, II, DM and DD that leave each node; the first row is the
        begin state's.
    composition : ndarray of float32, shape (20,), or None
        The mean probabilities of amino acids, if the file has them.
    statistics : Statistics
        How the scores of random sequences are distributed.
    hmm : pyhmmer.plan7.HMM
        The profile for `finishing`.
    """

    name: str
    accession: str
    description: str
    matches: Float32Array
    transitions: Float32Array
    composition: Float32Array | None
    statistics: Statistics
    hmm: Any

    @property
    def nodes(self) -> int:
        """The number of match states."""
        return len(self.matches)

    @property
    def has_cutoffs(self) -> dict[str, bool]:
        """Which of the cutoffs ``gathering``, ``noise`` and ``trusted`` the profile has."""
        names = ("gathering", "noise", "trusted")
        return {name: getattr(self.hmm.cutoffs, f"{name}_available")() for name in names}

    @cached_property
    def optimized(self) -> Any:
        """The profile as ``pyhmmer.plan7.OptimizedProfile``; users of several threads copy it."""
        plan7 = pyhmmer_module("plan7")
        background = plan7.Background(self.hmm.alphabet)
        return self.hmm.to_profile(background, L=400).to_optimized()


@cache
def pyhmmer_module(name: str) -> Any:
    """Return a module of pyhmmer.

    Raises
    ------
    LibraryError
        If pyhmmer is not installed, or does not work.
    """
    library = look_for("pyhmmer", f"pyhmmer.{name}")
    if library.problem is not None:
        raise LibraryError("a search with profiles", "pyhmmer", "hmm", library.problem)
    import pyhmmer

    return getattr(pyhmmer, name)


def profile_of(hmm: Any) -> Profile:
    """Return a profile from a ``pyhmmer.plan7.HMM`` of proteins, which it keeps."""
    composition = hmm.composition
    return Profile(
        hmm.name or "",
        hmm.accession or "",
        hmm.description or "",
        np.array(hmm.match_emissions, dtype=np.float32)[1:],
        np.array(hmm.transition_probabilities, dtype=np.float32),
        None if composition is None else np.array(composition, dtype=np.float32),
        Statistics(*map(float, hmm.evalue_parameters.as_vector())),
        hmm,
    )


def read_profiles(source: str | os.PathLike[str] | BinaryIO) -> Iterator[Profile]:
    """Read the profiles of a file one by one.

    If ``hmmpress`` has made a file of them since they were last changed, that one is read.

    Parameters
    ----------
    source : path or file
        A file of profiles, "-" being standard input, compressed or not; or an open binary file.

    Raises
    ------
    InputError
        If the file cannot be read, is no file of profiles or is cut, or if a profile is not of
        proteins.
    LibraryError
        If pyhmmer is missing.
    """
    if not isinstance(source, str | os.PathLike):
        name = getattr(source, "name", "profiles")
        yield from _read(_Watched(source), name if isinstance(name, str) else "profiles")
        return
    path = os.fspath(source)
    with open_binary(_pressed_file_of(path) or path) as file:
        yield from _read(_Watched(_decompressed(file, path)), path)


def _pressed_file_of(path: str) -> str | None:
    """Return the pressed file of a text, if there is one that is not older."""
    pressed = Path(path + _PRESSED)
    if path == STANDARD_INPUT or not pressed.is_file():
        return None
    try:
        if pressed.stat().st_mtime_ns < os.stat(path).st_mtime_ns:
            return None
    except FileNotFoundError:  # The pressed file suffices.
        pass
    return str(pressed)


def _decompressed(file: BinaryIO, path: str) -> Readable:
    source = Source(cast(Readable, file))
    with reading(path):
        compression = compression_of(source.read(LONGEST_MAGIC) or b"")
    source.rewind()
    source.commit()
    if compression is None:
        return source
    if compression is Compression.GZIP:
        return Inflated(source, source.check_end)
    from mummergpu.input.bytes.stream_decoders import DecodedStreams

    return DecodedStreams(source, compression, path)


class _Watched(RawIOBase):
    """A file whose last bytes are kept, and whose errors: C code reads it, which loses them."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file
        self.tail = b""
        self.begins_with = b""
        self.error: Exception | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of a buffer of bytes; return how many, 0 at the end or after an error."""
        try:
            count = self._file.readinto(buffer) or 0
        except Exception as error:
            self.error = error
            return 0
        read = memoryview(buffer)[:count]
        if not self.begins_with:
            self.begins_with = bytes(read[:_TAIL_BYTES])
        self.tail = (self.tail + bytes(read[-_TAIL_BYTES:]))[-_TAIL_BYTES:]
        return count

    @property
    def is_cut(self) -> bool:
        """Whether this is text, and does not end as a profile does."""
        return self.begins_with.startswith(b"HMMER") and not self.tail.rstrip().endswith(_END)


def _read(file: _Watched, path: str) -> Iterator[Profile]:
    with ExitStack() as stack:
        yield from _read_in(file, path, stack)


def _read_in(file: _Watched, path: str, stack: ExitStack) -> Iterator[Profile]:
    plan7 = pyhmmer_module("plan7")
    read, last = 0, None
    hmms: Any = None
    while True:
        try:
            if hmms is None:
                hmms = stack.enter_context(plan7.HMMFile(file))
            hmm = hmms.read()
        except EOFError:
            hmm = None
        except Exception as error:
            _raise_error_of(file, path)
            raise InputError(_complaint(error, read), path, record=last) from None
        _raise_error_of(file, path)
        if hmm is None:
            break
        if not hmm.alphabet.is_amino():
            what = hmm.alphabet.type
            message = f"the profile is of {what}, not of proteins (nhmmer searches with those)"
            raise InputError(message, path, record=hmm.name)
        read, last = read + 1, hmm.name
        yield profile_of(hmm)
    if file.is_cut:
        raise InputError("the file ends within a profile (truncated?)", path, record=last)
    if not read:
        raise InputError("the file holds no profile", path)


def _raise_error_of(file: _Watched, path: str) -> None:
    """Raise the error that reading has met, if any."""
    if file.error is not None:
        with reading(path):
            raise file.error


def _complaint(error: Exception, read: int) -> str:
    """Return in one line what pyhmmer says of the profile after those that have been read."""
    text = in_one_line(error).removeprefix("Invalid format in file: ")
    if not read and "format" in text.lower():
        return f"not a file of profiles of HMMER ({text})"
    if type(error).__name__ == "AlphabetMismatch":
        text = "it is not of proteins"
    return f"profile {read + 1} cannot be read, the one after the record: {text}"
