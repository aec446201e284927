"""What the programs that read MUMmer's text need of a run (``--for``)."""

from __future__ import annotations

from typing import Final, NamedTuple


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
