"""The facts about the command line that the end of the process needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Session:
    """The words of the command line, and whether it asks for more messages.

    Attributes
    ----------
    arguments : list of str
        The words that the user wrote after the name of the program.
    verbose : bool
        True if an internal error is shown with its traceback.
    """

    arguments: list[str]
    verbose: bool = False
