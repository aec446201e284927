"""Chooses how a device computes the Viterbi filter: a warp for each sequence, or threads in tiles.

A warp suits few sequences, and threads many of them and short profiles. `SCHEMES_FILE` has what was
measured; ``mummergpu tune`` adds what it finds on the user's device.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Final

from mummergpu.errors import InputError, OptionError
from mummergpu.hmm.thread_filter import ThreadPolicy
from mummergpu.input.bytes.files import reading
from mummergpu.runtime.frozen import frozen

SCHEMES_FILE: Final = Path(__file__).with_name("filter_schemes.json")
"""The schemes that come with the package, and where their figures are from."""

AUTO: Final = "auto"
WARP: Final = "warp"


@frozen
class FilterScheme:
    """When threads in tiles are better than a warp for each sequence.

    Attributes
    ----------
    device, architecture : str
        Where it was measured, as in ``NVIDIA H200`` and ``sm_90``.
    max_nodes : int
        The longest profile.
    min_sequences : int
        The fewest sequences.
    policy : str
        The code of the policy of threads.
    """

    device: str
    architecture: str
    max_nodes: int
    min_sequences: int
    policy: str


@frozen
class FilterChoice:
    """What decides about the Viterbi filter of a search.

    Attributes
    ----------
    asked : str
        ``auto``, ``warp``, or the code of a policy of threads.
    schemes : tuple of FilterScheme
        For ``auto``: the user's own, which go before those of the package.
    """

    asked: str = AUTO
    schemes: tuple[FilterScheme, ...] = ()

    def __post_init__(self) -> None:
        if self.asked not in (AUTO, WARP):
            checked_tiles(self.asked)

    def tiles_for(
        self, device: str, architecture: str, nodes: int, sequences: int
    ) -> ThreadPolicy | None:
        """Return the policy of threads for a profile and so many sequences; None: warps."""
        if self.asked == WARP:
            return None
        if self.asked != AUTO:
            return ThreadPolicy.from_code(self.asked)
        own = [one for one in self.schemes if one.device == device]
        known = own or [one for one in known_schemes() if one.architecture == architecture]
        for scheme in known:
            if nodes <= scheme.max_nodes and sequences >= scheme.min_sequences:
                return ThreadPolicy.from_code(scheme.policy)
        return None


def checked_tiles(code: str) -> ThreadPolicy:
    """Return the policy of a code that a search can take; raise `OptionError` for another."""
    try:
        policy = ThreadPolicy.from_code(code)
    except OptionError as error:
        raise OptionError("filter_policy", error.message) from error
    if not policy.is_tiled or policy.sequences != "r" or policy.steps == "c":
        raise OptionError(
            "filter_policy",
            f"'{code}' is for studies; searches take auto, warp, or tiles of sequences as they "
            "were read without constant memory, such as t8hrrrs",
        )
    return policy


@cache
def known_schemes() -> tuple[FilterScheme, ...]:
    """Return the schemes that come with the package, which are read once: every profile asks."""
    return tuple(read_schemes(SCHEMES_FILE))


def read_schemes(path: Path) -> list[FilterScheme]:
    """Read the schemes of a file; one that does not exist has none.

    `InputError` is raised if the file cannot be read, or holds something else.
    """
    if not path.exists():
        return []
    with reading(str(path)), open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        names = [field.name for field in fields(FilterScheme)]
        found = [
            FilterScheme(**{name: value[name] for name in names})
            for value in json.loads(text)["schemes"]
        ]
        for scheme in found:
            checked_tiles(scheme.policy)
            int(scheme.max_nodes), int(scheme.min_sequences)
    except (ValueError, KeyError, TypeError, OptionError) as error:
        raise InputError(
            f"is not what 'mummergpu tune' writes ({error}); remove it", str(path)
        ) from error
    return found


def schemes_text(schemes: Sequence[FilterScheme], source: str) -> str:
    """Return the text of a file of schemes, which says where they are from."""
    value = {"source": source, "schemes": [asdict(scheme) for scheme in schemes]}
    return json.dumps(value, indent=2) + "\n"
