"""What the programs that read MUMmer's text need of a run from Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mummergpu.api.requests import meaning
from mummergpu.errors import OptionError
from mummergpu.output.matches.mummer import TextStyle
from mummergpu.pipeline.purposes import NEEDS, TEXT_FORMAT


def with_purpose(
    purpose: str | None, strands: str, mode: str, style: TextStyle, formats: Iterable[str]
) -> tuple[str, str, TextStyle]:
    """Return the strands, the mode and the style of a run, with what its purpose needs.

    Parameters
    ----------
    purpose : str or None
        ``mgaps``, ``nucmer`` or ``mummerplot``; None changes nothing.
    strands : str
        ``both``, ``forward`` or ``reverse``.
    mode : str
        ``all`` if the user names none. ``maxmatch`` stands for all matches in spite of the purpose.
    style : TextStyle
        The options of MUMmer's text.
    formats : iterable of str
        The formats of the outputs.

    Returns
    -------
    tuple
        The same, changed.

    Raises
    ------
    OptionError
        If there is no such purpose, or something else makes no sense for it.
    """
    if purpose is None:
        return strands, mode, style
    needs = meaning("purpose", purpose, NEEDS)
    clashes = [name for name in needs.refused if getattr(style, name)]
    if needs.both_strands and strands == "forward":
        clashes.append("strands='forward'")
    if TEXT_FORMAT not in (names := list(formats)):
        clashes.append(f"output as {names[0]}")
    if clashes:
        raise OptionError("purpose", f"{purpose!r} and {clashes[0]} exclude each other")
    if needs.unique_in_reference and mode == "all":
        mode = "mumreference"
    style = replace(
        style,
        forward_coordinates=style.forward_coordinates or needs.forward_coordinates,
        three_columns_for=purpose if needs.three_columns else "",
    )
    return strands, mode, style
