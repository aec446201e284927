"""The read groups of reads, as the headers of SAM, BAM and CRAM describe them."""

from __future__ import annotations

from mummergpu.errors import InputError


def group_lines(header: bytes) -> tuple[bytes, ...]:
    """Return the lines of a header that describe read groups, without line ends."""
    lines = header.rstrip(b"\0").split(b"\n")
    return tuple(line.rstrip(b"\r") for line in lines if line.startswith(b"@RG\t"))


class ReadGroups:
    """The read groups of all files of a run."""

    def __init__(self) -> None:
        self._lines: dict[bytes, bytes] = {}

    @property
    def lines(self) -> tuple[bytes, ...]:
        """The lines of the headers, without line ends, in the order of files; equal ones once."""
        return tuple(self._lines.values())

    def add(self, lines: tuple[bytes, ...], path: str, is_late: bool = False) -> None:
        """Add the lines of the header of a file; `is_late` if the output has its header already.

        Raises
        ------
        InputError
            If another file has another group of the same name, or it is too late for a new one.
        """
        for line in lines:
            name = id_of_group(line)
            known = self._lines.get(name)
            shown = name.decode(errors="backslashreplace")
            if known is None and is_late:
                raise InputError(
                    f"the header of the output lacks the read group '{shown}', since it was "
                    "written before this was read: map files, not pipes, or name one read group",
                    path,
                )
            if known is not None and known != line:
                raise InputError(
                    f"the read group '{shown}' is another one than that of a file before, and has "
                    "the same ID: rename it (see samtools addreplacerg), or name one read group",
                    path,
                )
            self._lines[name] = line


def id_of_group(line: bytes) -> bytes:
    """Return the ID of a read group."""
    fields = line.split(b"\t")
    return next((field[3:] for field in fields if field.startswith(b"ID:")), b"")
