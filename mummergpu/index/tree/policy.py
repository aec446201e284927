"""The seven yes-or-no data policies of MUMmerGPU 2.0 (paper, section 3)."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.runtime.frozen import frozen

NO_POLICY: Final = "none"
"""The code of the paper's control configuration, in which every policy is off."""


@frozen
class Policy:
    """The seven policies, each on or off.

    The letters are the ones that MUMmerGPU 2.0 prints. Textures exist only on a GPU. The
    cpu backend accepts the three texture flags, and does the same work with and without them.

    Attributes
    ----------
    query_texture : bool
        ``Q``: queries are read through a texture.
    reference_texture : bool
        ``R``: the reference is read through a texture.
    tree_texture : bool
        ``T``: the tree is read through textures.
    merged_tree : bool
        ``m``: the two halves of a node lie side by side, not in two arrays.
    two_dimensional_reference : bool
        ``r``: the reference is laid out in two dimensions.
    two_dimensional_tree : bool
        ``t``: the nodes are laid out in two dimensions.
    node_reordering : bool
        ``n``: nodes are numbered breadth first at the top of the tree and depth first
        below, not in the order of their construction.
    """

    query_texture: bool = False
    reference_texture: bool = False
    tree_texture: bool = False
    merged_tree: bool = False
    two_dimensional_reference: bool = False
    two_dimensional_tree: bool = False
    node_reordering: bool = False

    @classmethod
    def from_code(cls, code: str) -> Policy:
        """Return the policy for a code: letters of ``QRTmrtn``, each at most once, or ``none``.

        `OptionError` is raised if a letter is unknown or occurs twice, or if the code is empty.
        """
        if code == NO_POLICY:
            return cls()
        unknown = sorted(set(code) - set(LETTERS.values()))
        if unknown or not code:
            raise OptionError(
                "policy", f"'{code}' is not made of the letters QRTmrtn, and is not 'none'"
            )
        if len(set(code)) < len(code):
            raise OptionError("policy", f"a letter stands twice in '{code}'")
        return cls(**{name: letter in code for name, letter in LETTERS.items()})

    @property
    def code(self) -> str:
        """The letters of the flags that are on, in the order ``QRTmrtn``, or ``none``."""
        letters = [letter for name, letter in LETTERS.items() if getattr(self, name)]
        return "".join(letters) or NO_POLICY


LETTERS: Final = dict(zip((field.name for field in fields(Policy)), "QRTmrtn", strict=True))
"""The letter of each flag, by the flag's name."""

DEFAULT_POLICY: Final = Policy.from_code("m")
"""The policy of a run that names none; its layout is the fastest on the cpu backend. A node
whose halves share a cache line costs one access instead of two. In the order of construction
the leaves of neighbouring suffixes lie side by side, and a match visits them one after the
other. The paper's own default is ``Tn``."""
