"""Settings for programs that read MUMmer's text (``--for``, ``for_program``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mummergpu.errors import OptionClashError
from mummergpu.output.targets import DEFAULT_FORMAT

if TYPE_CHECKING:
    from mummergpu.output.options import TextStyle


class TextRequest(NamedTuple):
    """Which matches are written as text, and how; None where the user gave no option.

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


class Preset(NamedTuple):
    """The needs of a program: defaults of a request, and attributes of a `TextStyle`.

    `refused` are the attributes that the program cannot read.
    """

    strands: str | None
    mode: str | None
    forward_coordinates: bool
    three_columns: bool
    refused: tuple[str, ...]


PRESETS: Final = {
    "mgaps": Preset(None, None, False, True, ("forward_coordinates", "four_columns")),
    "nucmer": Preset("both", "mumreference", False, True, ("forward_coordinates", "four_columns")),
    "mummerplot": Preset("both", None, True, False, ("show_sequences",)),
}


def with_preset(program: str | None, asked: TextRequest, formats: Sequence[str]) -> TextRequest:
    """Return a request with the settings that a program needs where the user gave none.

    Raises
    ------
    OptionClashError
        If a requested setting, or all `formats`, make no sense for the program.
    """
    if program is None:
        return asked
    preset, style = PRESETS[program], asked.style
    clashes = [name for name in preset.refused if getattr(style, name)]
    if preset.strands == "both" and asked.strands == "forward":
        clashes.append("strands='forward'")
    if DEFAULT_FORMAT not in formats:
        clashes.append(f"output as {formats[0]}")
    if clashes:
        text = f"{program!r} and {clashes[0]} exclude each other"
        raise OptionClashError(f"for_program={program}", clashes[0], text)
    style = replace(
        style,
        forward_coordinates=style.forward_coordinates or preset.forward_coordinates,
        three_columns_for=program if preset.three_columns else "",
    )
    return TextRequest(asked.strands or preset.strands, asked.mode or preset.mode, style)
