"""Turns an object file for x86-64 into an image (`image.py`).

Only what the compiler makes of this package's functions is understood. Anything else (data that
can be written, unknown relocations, other functions than a few of the C library) is refused: such
code cannot be an image.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from mummergpu.runtime.compiled.image import ALLOWED_SYMBOLS, MachineImage
from mummergpu.runtime.compiled.levels import usable_levels

ENTRY: Final = "entry"
"""The name of the function in an object file that an image begins with."""

_HEADER: Final = struct.Struct("<6s10xHH20xQ10xHHH")
"""The magic bytes, type and machine of an ELF file; where its sections are, the size of each
description, their number, and which holds their names."""
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_WORD: Final = struct.Struct("<Q")
_DISTANCE: Final = struct.Struct("<i")

_MAGIC: Final = b"\x7fELF\x02\x01"
_RELOCATABLE, _X86_64 = 1, 62
_PROGRAM_BITS, _SYMBOLS, _RELOCATIONS = 1, 2, 4
_WRITABLE, _ALLOCATED = 1, 2
_UNDEFINED: Final = 0

_ABSOLUTE: Final = 1
_RELATIVE: Final = {2, 4}
"""To a symbol, and to a function (``R_X86_64_PC32`` and ``R_X86_64_PLT32``)."""
_BY_SLOT: Final = {9, 41, 42}
"""To a slot that holds the address of a symbol (``R_X86_64_GOTPCREL`` and its two kin)."""

_JUMP: Final = b"\xff\x25"
"""The code of a jump to the address in a slot."""
_ALIGNMENT: Final = 64


class UnsuitedCodeError(Exception):
    """An object file with something in it that an image cannot have."""


def target_machine(opt: int = 3) -> Any:
    """Return LLVM's machine for code of images: of the level that this process compiles for.

    Where there are no images, it is for this machine's own processor.
    """
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    levels = usable_levels()
    cpu = levels[0] if levels else binding.get_host_cpu_name()
    features = "" if levels else binding.get_host_cpu_features().flatten()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(
        cpu=cpu, features=features, opt=opt, reloc="pic", codemodel="small"
    )


def image_of(object_file: bytes) -> MachineImage:
    """Link an object file with position-independent code in itself; it begins with `ENTRY`.

    `UnsuitedCodeError` if the file has something in it that an image cannot have.
    """
    try:
        image = _Linker(object_file).image()
    except (struct.error, IndexError, ValueError) as error:
        raise UnsuitedCodeError(f"no object file: {error}") from error
    for _, name in image.symbols:
        if name not in ALLOWED_SYMBOLS:
            raise UnsuitedCodeError(f"the function {name}")
    return image


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    begin: int
    size: int
    link: int
    target: int
    alignment: int


class _Linker:
    def __init__(self, object_file: bytes) -> None:
        self._file = object_file
        self._content = bytearray()
        self._places: dict[int, int] = {}
        self._addresses: list[tuple[int, int]] = []
        self._symbols: list[tuple[int, str]] = []
        self._slots: dict[int, int] = {}
        self._jumps: dict[int, int] = {}
        magic, kind, machine, begin, size, count, names = _HEADER.unpack_from(object_file)
        if (magic, kind, machine, size) != (_MAGIC, _RELOCATABLE, _X86_64, _SECTION.size):
            raise UnsuitedCodeError("no object file for x86-64")
        raw = [_SECTION.unpack_from(object_file, begin + size * number) for number in range(count)]
        self._sections = [
            _Section(self._text(raw[names][4] + one[0]), *one[1:3], *one[4:6], *one[6:9])
            for one in raw
        ]
        self._table = self._read_symbols()

    def image(self) -> MachineImage:
        for number, section in enumerate(self._sections):
            if section.flags & _ALLOCATED and section.size and section.name != ".eh_frame":
                self._place(number, section)
        self._align(_ALIGNMENT)
        for section in self._sections:
            if section.kind == _RELOCATIONS and section.target in self._places:
                for at in range(section.begin, section.begin + section.size, _RELOCATION.size):
                    offset, info, addend = _RELOCATION.unpack_from(self._file, at)
                    place = self._places[section.target] + offset
                    self._relocate(place, info & 0xFFFFFFFF, info >> 32, addend)
        number = [name for name, _, _ in self._table].index(ENTRY)
        return MachineImage(
            bytes(self._content), self._address(number), self._addresses, self._symbols
        )

    def _text(self, begin: int) -> str:
        return self._file[begin : self._file.index(b"\0", begin)].decode()

    def _read_symbols(self) -> list[tuple[str, int, int]]:
        """Return the name, the section and the value of each symbol."""
        found = []
        for section in self._sections:
            if section.kind == _SYMBOLS:
                names = self._sections[section.link].begin
                for at in range(section.begin, section.begin + section.size, _SYMBOL.size):
                    name, _, _, home, value, _ = _SYMBOL.unpack_from(self._file, at)
                    found.append((self._text(names + name), home, value))
        return found

    def _place(self, number: int, section: _Section) -> None:
        """Append a section to the image."""
        # Constants with addresses in them are written once, when they are loaded.
        is_constant = section.name.startswith(".data.rel.ro")
        if section.kind != _PROGRAM_BITS or (section.flags & _WRITABLE and not is_constant):
            raise UnsuitedCodeError(f"data that can be written: {section.name}")
        self._align(max(1, section.alignment))
        self._places[number] = len(self._content)
        self._content += self._file[section.begin : section.begin + section.size]

    def _align(self, alignment: int) -> None:
        self._content += bytes(-len(self._content) % alignment)

    def _relocate(self, place: int, kind: int, symbol: int, addend: int) -> None:
        if kind == _ABSOLUTE:
            self._addresses.append((place, self._address(symbol) + addend))
            return
        if kind in _BY_SLOT:
            target = self._slot(symbol)
        elif kind in _RELATIVE:
            is_outside = self._table[symbol][1] == _UNDEFINED
            target = self._jump(symbol) if is_outside else self._address(symbol)
        else:
            raise UnsuitedCodeError(f"relocation {kind}")
        _DISTANCE.pack_into(self._content, place, target + addend - place)

    def _address(self, symbol: int) -> int:
        """Return where a symbol of the file itself lies in the image."""
        name, home, value = self._table[symbol]
        if home not in self._places:
            raise UnsuitedCodeError(f"the symbol {name}")
        return self._places[home] + value

    def _slot(self, symbol: int) -> int:
        """Return the place of a word that will hold the address of a symbol."""
        if symbol not in self._slots:
            self._slots[symbol] = len(self._content)
            name, home, _ = self._table[symbol]
            if home == _UNDEFINED:
                self._symbols.append((len(self._content), name))
            else:
                self._addresses.append((len(self._content), self._address(symbol)))
            self._content += bytes(_WORD.size)
        return self._slots[symbol]

    def _jump(self, symbol: int) -> int:
        """Return the place of a jump to a function that lies outside the image."""
        if symbol not in self._jumps:
            slot = self._slot(symbol)
            self._jumps[symbol] = at = len(self._content)
            distance = _DISTANCE.pack(slot - (at + len(_JUMP) + _DISTANCE.size))
            self._content += _JUMP + distance
            self._align(_WORD.size)
        return self._jumps[symbol]
