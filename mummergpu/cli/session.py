"""What is kept of the command line until the process ends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Session:
    """What the end of the process needs to know about the command line.

    Attributes
    ----------
    arguments : list of str
        What the user wrote after the name of the program.
    verbose : bool
        True if an error of the program's own is to be shown with its traceback.
    """

    arguments: list[str]
    verbose: bool = False
