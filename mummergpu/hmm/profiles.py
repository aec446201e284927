"""Reads profile HMMs in all formats of HMMER; pyhmmer parses those that are not plain."""

from __future__ import annotations

import math
import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import RawIOBase
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, cast

import numpy as np

from mummergpu.errors import InputError, LibraryError
from mummergpu.hmm.plain_profiles import PLAIN_END, PlainProfile, parse_profile
from mummergpu.input.bytes.files import STANDARD_INPUT, CountedInput, Readable, open_binary, reading
from mummergpu.input.bytes.formats import BGZF_HEAD, compression_of, is_bgzf
from mummergpu.input.records.record_reader import printable
from mummergpu.runtime.arrays import Float32Array
from mummergpu.runtime.optional_imports import in_one_line
from mummergpu.runtime.pyhmmer_library import bytes_of, pyhmmer_module, text_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PRESSED: Final = ".h3m"
"""The ending of the file in which ``hmmpress`` writes the profiles as numbers."""
_MODEL_LENGTH: Final = 400
"""The sequence length of an optimized profile; any value will do."""
_END: Final = b"//"
_TEXT: Final = b"HMMER"
_TITLES: Final = re.compile(
    rb"\n[ \t]*(HMMER\d\S*|NAME|LENG|ALPH|NULE|GA|TC|NC|HMM)(?=\s)[ \t]*(\S*)"
)
_CUSTOM: Final = b"custom"
"""A word for an alphabet, of which Easel has none."""
_PIECE_BYTES: Final = 1 << 18
"""The bytes that are read at once."""
_MOST_PLAIN: Final = 1 << 26
"""A text without the end of a profile for more bytes is left to HMMER's parser."""
_TAIL_BYTES: Final = 64
_HEAD_BYTES: Final = 64
_PRESSED_MAGICS: Final = tuple(
    number.to_bytes(4, order)
    for number in (0xE8ECEDB5, 0xE8ECEDB6, 0xE8ECEDB7, 0xE8ECEDB8, 0xB3E1E6F1)
    for order in ("little", "big")
)


class Statistics(NamedTuple):
    """The distributions of random sequences' scores, in bits: two Gumbel, one exponential."""

    msv_mu: float
    msv_lambda: float
    viterbi_mu: float
    viterbi_lambda: float
    forward_tau: float
    forward_lambda: float


@dataclass(frozen=True, eq=False)
class Profile:
    """A profile HMM of proteins."""

    # As in the file; empty where the file lacks them.
    name: str
    accession: str
    description: str
    matches: Float32Array  # (nodes, 20): the probabilities of the amino acids in each match state
    # (nodes + 1, 7): the probabilities MM, MI, MD, IM, II, DM and DD that leave each node; the
    # first row is the begin state's.
    transitions: Float32Array
    # (20,): the mean probabilities of amino acids, if the file has them.
    composition: Float32Array | None
    statistics: Statistics  # How the scores of random sequences are distributed
    hmm: Any  # The profile for `finishing`
    path: str = "profiles"  # Where it comes from, for errors
    _idle_models: deque[Any] = field(default_factory=deque, init=False, repr=False)

    @property
    def shown_name(self) -> str:
        """The name as errors show it."""
        return printable(bytes_of(self.name))

    @property
    def nodes(self) -> int:
        """The number of match states."""
        return len(self.matches)

    @property
    def has_cutoffs(self) -> dict[str, bool]:
        """Which of the cutoffs ``gathering``, ``noise`` and ``trusted`` the profile has."""
        names = ("gathering", "noise", "trusted")
        return {name: getattr(self.hmm.cutoffs, f"{name}_available")() for name in names}

    @property
    def optimized(self) -> Any:
        """The profile as a new ``pyhmmer.plan7.OptimizedProfile``."""
        plan7 = pyhmmer_module("plan7")
        background = plan7.Background(self.hmm.alphabet)
        return self.hmm.to_profile(background, L=_MODEL_LENGTH).to_optimized()

    @contextmanager
    def lent_model(self) -> Iterator[Any]:
        """Lend an optimized profile: pyhmmer writes the length of a sequence into it.

        Making one takes longer than many a comparison, and as much memory as the profile. All that
        are not lent are equal, as pyhmmer demands where it merges their hits.
        """
        try:
            model = self._idle_models.pop()
        except IndexError:
            model = self.optimized
        try:
            yield model
        finally:
            model.L = _MODEL_LENGTH
            self._idle_models.append(model)


def profile_of(hmm: Any, path: str = "profiles", table: int | None = None) -> Profile:
    """Return a profile from a ``pyhmmer.plan7.HMM``, which it keeps.

    `table` is the line of a text in which the table of its numbers begins. `InputError` is raised
    if the profile is not of proteins, has no consensus, or has an invalid number.
    """
    name = text_of(hmm, "name")
    if not hmm.alphabet.is_amino():
        what = hmm.alphabet.type
        message = f"the profile is of {what}, not of proteins (nhmmer searches with those)"
        raise InputError(message, path, record=printable(bytes_of(name)))
    composition = hmm.composition
    profile = Profile(
        name,
        text_of(hmm, "accession"),
        text_of(hmm, "description"),
        np.asarray(hmm.match_emissions, dtype=np.float32)[1:],
        np.asarray(hmm.transition_probabilities, dtype=np.float32),
        None if composition is None else np.array(composition, dtype=np.float32),
        Statistics(*map(float, hmm.evalue_parameters.as_vector())),
        hmm,
        path,
    )
    if not text_of(hmm, "consensus"):
        message = "the profile has no consensus (CONS), without which HMMER searches none"
        raise InputError(message, path, record=profile.shown_name)
    if not all(map(math.isfinite, profile.statistics)):
        raise InputError("STATS that are no numbers", path, record=profile.shown_name)
    if lines := _lines_without_numbers(profile):
        line = None if table is None else table + min(lines)
        raise InputError("no number where HMMER needs one", path, line, profile.shown_name)
    return profile


def _lines_without_numbers(profile: Profile) -> list[int]:
    """Return the 0-based lines of a profile's table that have nan or the like.

    Below the titles are the mean composition, two lines of the begin state and three of each node.
    HMMER does not use the middle ones, which are of insertions.
    """
    numbers = profile.transitions, profile.matches, profile.composition
    if math.isfinite(sum(float(one.sum()) for one in numbers if one is not None)):
        return []
    bad = [~np.isfinite(rows).all(axis=1) for rows in (profile.transitions, profile.matches)]
    lines = []
    first = 3
    if profile.composition is not None:
        first = 4
        lines += [] if np.isfinite(profile.composition).all() else [2]
    for rows, begin in zip(bad, (first, first + 1), strict=True):
        lines += (begin + 3 * np.flatnonzero(rows)).tolist()
    return lines


def read_profiles(source: str | os.PathLike[str] | BinaryIO) -> Iterator[Profile]:
    """Read the profiles of a file one by one.

    The file may be compressed, or "-" for standard input. The pressed file of ``hmmpress`` is read
    if it is newer than the text. It is an error if the text is newer and has other profiles: HMMER
    would search those of the pressed file.
    """
    if not isinstance(source, str | os.PathLike):
        name = getattr(source, "name", "profiles")
        name = name if isinstance(name, str) else "profiles"
        yield from _read(_Watched(source, name), name)
        return
    path = os.fspath(source)
    pressed = path + _PRESSED
    if path == STANDARD_INPUT or not Path(pressed).is_file():
        yield from _read_file(path)
    elif _is_newer(path, pressed):
        yield from _beside_pressed(path, pressed)
    else:
        yield from _read_file(pressed)


def holds_profiles(path: str) -> bool:
    """Return whether the first bytes of a file are those of profiles, as text or pressed.

    A file that cannot be read holds none.
    """
    if path == STANDARD_INPUT:
        return False
    try:
        with reading(path), open_binary(path) as file:
            head = _Watched(_decompressed(file, path), path).read(_HEAD_BYTES) or b""
    except (InputError, LibraryError):
        return False
    return head.lstrip().startswith(_TEXT) or head[:4] in _PRESSED_MAGICS


def _read_file(path: str) -> Iterator[Profile]:
    with open_binary(path) as file:
        yield from _read(_Watched(_decompressed(file, path), path), path)


def _is_newer(path: str, pressed: str) -> bool:
    """Return whether a text has changed since it was pressed; the pressed file alone suffices."""
    try:
        return Path(pressed).stat().st_mtime_ns < os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return False


def _beside_pressed(path: str, pressed: str) -> Iterator[Profile]:
    """Read a text; raise an error where an older pressed file has other profiles."""
    end = object()
    for text, old in zip_longest(_read_file(path), _read_file(pressed), fillvalue=end):
        same = text is not end and old is not end and _identity(text) == _identity(old)
        if not same:
            message = f"{pressed} is older and has other profiles: see hmmpress -f"
            last = old if text is end else text
            raise InputError(message, path, record=cast(Profile, last).shown_name)
        yield cast(Profile, text)


def _identity(profile: Any) -> tuple[Any, ...]:
    return profile.name, profile.accession, profile.nodes, profile.hmm.checksum


def _decompressed(file: BinaryIO, path: str) -> Readable:
    source = CountedInput(cast(Readable, file))
    with reading(path):
        magic = source.read(BGZF_HEAD) or b""
    compression = compression_of(magic)
    source.rewind()
    source.commit()
    if compression is None:
        return source
    from mummergpu.input.bytes.stream_decoders import DecodedStreams

    return DecodedStreams(source, compression, path, is_bgzf=is_bgzf(magic))


class _Watched(RawIOBase):
    """A file of profiles; plain ones are parsed here, and HMMER's parser reads the rest.

    It keeps the facts for error messages.
    """

    def __init__(self, file: Any, path: str) -> None:
        super().__init__()
        self._path = path
        self._file = file
        # What has been read, from the last plain profile on: up to `_at` it has been parsed.
        self._text = bytearray(2 * _PIECE_BYTES)
        self._at = self._end = 0
        self._plain: PlainProfile | None = None
        self._line = b"\n"
        self._lines = 0
        self._has_alphabet = False
        self._has_length = False
        self.tail = b""
        self.begins_with = b""
        self.names: list[bytes] = []
        self.formats: list[bytes] = []
        # The lines of a text, from 1 on, with which the numbers of its profiles begin.
        self.tables: list[int] = []
        self.error: Exception | None = None
        self.is_at_end = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def _fill(self) -> bool:
        """Append a piece of the file to the text; return whether there is one."""
        # HMMER's parser may need the last plain profile.
        done = self._at if self._plain is None else self._at - self._plain.size
        kept = self._end - done
        with memoryview(self._text) as text:
            text[:kept] = text[done : self._end]
        self._at, self._end = self._at - done, kept
        if len(self._text) < kept + _PIECE_BYTES:
            self._text += bytes(_PIECE_BYTES)
        try:
            with memoryview(self._text)[kept : kept + _PIECE_BYTES] as piece:
                self._end += self._file.readinto(piece) or 0
        except Exception as error:
            self.error = error
            return False
        self.begins_with = self.begins_with or bytes(self._text[: min(self._end, _TAIL_BYTES)])
        return self._end > kept

    def plain_profiles(self) -> Iterator[Any]:
        """Yield the profiles before the first one that HMMER has to parse."""
        end = 0
        while True:
            while end <= self._at:
                is_long = self._end - self._at > _MOST_PLAIN
                if is_long or not self._fill() or not self._is_text:
                    return
                begin = max(self._at, self._end - _PIECE_BYTES - len(PLAIN_END))
                last = self._text.rfind(PLAIN_END, begin, self._end)
                end = 0 if last < 0 else last + len(PLAIN_END)
            found = parse_profile(self._text, self._at)
            # HMMER refuses several formats.
            if found is None or not {found.format}.issuperset(self.formats[-1:]):
                return
            self._plain = found
            self._at += found.size
            self.names.append(bytes_of(found.hmm.name))
            self.formats.append(found.format)
            self.tables.append(self._lines + found.table)
            self._lines += found.lines
            yield found.hmm

    @property
    def is_parsed(self) -> bool:
        """Whether the plain profiles are all."""
        is_rest = bool(self._text[self._at : self._end].strip())
        return self._plain is not None and self.error is None and not is_rest

    def step_back(self) -> bool:
        """Return to the last plain profile, if any: errors of the next one depend on it."""
        last, self._plain = self._plain, None
        if last is not None:
            self._at -= last.size
            self._lines -= last.lines
            del self.names[-1], self.formats[-1], self.tables[-1]
        return last is not None

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of a buffer; return the bytes read, 0 at the end or after an error."""
        if self._at == self._end and not self.error:
            self._fill()
        with memoryview(buffer) as view:
            read = bytes(self._text[self._at : min(self._at + len(view), self._end)])
            view[: len(read)] = read
        self._at += len(read)
        self.is_at_end = not read
        self.tail = (self.tail + read[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        if self._is_text:
            self._look_at(self._line + read)
        return 0 if self.error else len(read)

    @property
    def _is_text(self) -> bool:
        return self.begins_with.startswith(_TEXT)

    def _look_at(self, text: bytes) -> None:
        """Note the facts in whole lines about their profiles; keep the last, which may go on.

        HMMER's parser, which has not seen them yet, crashes on numbers without an alphabet or a
        length, or on an invalid alphabet.
        """
        whole, _, last = text.rpartition(b"\n")
        counted = 0
        for title in _TITLES.finditer(whole + b"\n"):
            word, name = title.groups()
            if word == b"NAME":
                self.names.append(name)
            elif word == b"ALPH" and name.lower() != _CUSTOM:
                self._has_alphabet = True
            elif word == b"LENG":
                self._has_length = True
            elif word.startswith(_TEXT):
                self.formats.append(word)
                self._has_alphabet = self._has_length = False
            else:
                self._lines += whole.count(b"\n", counted, title.start() + 1)
                counted = title.start() + 1
                if not self._has_alphabet or (word == b"HMM" and not self._has_length):
                    lacks = "a length (LENG)" if self._has_alphabet else "an alphabet (ALPH)"
                    message = f"a profile without {lacks}"
                    record = printable(self.names[-1]) if self.names else None
                    self.error = InputError(message, self._path, self._lines, record)
                    return
                if word == b"HMM":
                    self.tables.append(self._lines)
        self._lines += whole.count(b"\n", counted)
        self._line = b"\n" + last

    @property
    def is_cut(self) -> bool:
        """Whether this is text, and does not end as a profile does."""
        return self._is_text and not self.tail.rstrip().endswith(_END)


def _read(file: _Watched, path: str) -> Iterator[Profile]:
    with ExitStack() as stack:
        yield from _read_in(file, path, stack)


def _read_in(file: _Watched, path: str, stack: ExitStack) -> Iterator[Profile]:
    plan7 = pyhmmer_module("plan7")
    read, last = 0, None
    for hmm in file.plain_profiles():
        profile = profile_of(hmm, path, file.tables[read])
        read, last = read + 1, profile.shown_name
        yield profile
    if file.is_parsed:
        return
    is_again = file.step_back()
    hmms: Any = None
    while True:
        try:
            if hmms is None:
                hmms = stack.enter_context(plan7.HMMFile(file))
            if is_again:
                hmms.read()
                is_again = False
            hmm = hmms.read()
        except EOFError:
            hmm = None
        except Exception as error:
            _raise_error_of(file, path)
            raise _fault(error, file, path, read, last) from None
        _raise_error_of(file, path)
        if hmm is None:
            break
        profile = profile_of(hmm, path, file.tables[read] if read < len(file.tables) else None)
        read, last = read + 1, profile.shown_name
        yield profile
    if file.is_cut:
        raise _cut(file, path)
    if not read:
        raise InputError("the file holds no profile", path)


def _raise_error_of(file: _Watched, path: str) -> None:
    """Raise the error of reading, if any."""
    if file.error is not None:
        with reading(path):
            raise file.error


def _fault(error: Exception, file: _Watched, path: str, read: int, last: str | None) -> InputError:
    """Return the error of the profile after those that have been read."""
    text = in_one_line(error).removeprefix("Invalid format in file: ")
    if not read and not file.begins_with.startswith(_TEXT) and "format" in text.lower():
        begin = printable(file.begins_with.partition(b"\n")[0], 20)
        hint = f"it begins with '{begin}'" if begin.isascii() else "it is binary"
        return InputError(f"not a file of profiles of HMMER ({hint})", path)
    formats = sorted({one.decode(errors="replace") for one in file.formats})
    if len(formats) > 1:
        found = " and ".join(formats)
        return InputError(
            f"profiles in several formats ({found}): see hmmconvert", path, record=last
        )
    if file.is_at_end and file.is_cut and "tag" not in text:
        return _cut(file, path)
    if type(error).__name__ == "AlphabetMismatch":
        text = "it is not of proteins (nhmmer searches with profiles of DNA or RNA)"
    if read < len(file.names):
        name = printable(file.names[read])
        return InputError(f"profile {read + 1} cannot be read: {text}", path, record=name)
    message = f"profile {read + 1} cannot be read, the one after the record: {text}"
    return InputError(message, path, record=last)


def _cut(file: _Watched, path: str) -> InputError:
    name = printable(file.names[-1]) if file.names else None
    return InputError("the file ends within a profile (truncated?)", path, record=name)
