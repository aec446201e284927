"""What the programs that read MUMmer's text need of a run (``--for``, ``for_program``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mummergpu.errors import OptionClashError

if TYPE_CHECKING:
    from mummergpu.output.matches.mummer import TextStyle


class TextNeeds(NamedTuple):
    """What a program needs.

    Attributes
    ----------
    both_strands : bool
        Matches on both strands, unless the user asks for the reverse one.
    unique_in_reference : bool
        Matches whose bases occur once in the reference, unless the user names a mode.
    forward_coordinates : bool
        Query positions of reverse matches on the forward strand.
    three_columns : bool
        Rows without the name of a record.
    refused : tuple of str
        The attributes of `output.matches.mummer.TextStyle` that it cannot do with.
    """

    both_strands: bool
    unique_in_reference: bool
    forward_coordinates: bool
    three_columns: bool
    refused: tuple[str, ...]


NEEDS: Final = {
    "mgaps": TextNeeds(False, False, False, True, ("forward_coordinates", "four_columns")),
    "nucmer": TextNeeds(True, True, False, True, ("forward_coordinates", "four_columns")),
    "mummerplot": TextNeeds(True, False, True, False, ("show_sequences",)),
}
"""The needs of each program."""

PURPOSES: Final = tuple(NEEDS)
"""The programs."""

TEXT_FORMAT: Final = "mummer"
"""The format that they read."""


class TextRequest(NamedTuple):
    """Which matches are written as text, and how; None where the user does not say it.

    Attributes
    ----------
    strands : str or None
        ``forward``, ``reverse`` or ``both``.
    mode : str or None
        ``maxmatch``, ``mumreference`` or ``mum``.
    style : TextStyle
        How rows are written.
    """

    strands: str | None
    mode: str | None
    style: TextStyle


def with_needs(program: str | None, asked: TextRequest, formats: Sequence[str]) -> TextRequest:
    """Return what is asked for, with what a program needs where nothing else is asked.

    Raises
    ------
    OptionClashError
        If something that is asked for, or all `formats`, make no sense for the program.
    """
    if program is None:
        return asked
    needs, (strands, mode, style) = NEEDS[program], asked
    clashes = [name for name in needs.refused if getattr(style, name)]
    if needs.both_strands and strands == "forward":
        clashes.append("strands='forward'")
    if TEXT_FORMAT not in formats:
        clashes.append(f"output as {formats[0]}")
    if clashes:
        text = f"{program!r} and {clashes[0]} exclude each other"
        raise OptionClashError(f"for_program={program}", clashes[0], text)
    return TextRequest(
        "both" if strands is None and needs.both_strands else strands,
        "mumreference" if mode is None and needs.unique_in_reference else mode,
        replace(
            style,
            forward_coordinates=style.forward_coordinates or needs.forward_coordinates,
            three_columns_for=program if needs.three_columns else "",
        ),
    )
