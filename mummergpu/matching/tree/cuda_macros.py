"""What the kernels are compiled for: the policies that they see, and the node format."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from mummergpu.index.tree.policy import LETTERS, NO_POLICY, Policy

_OTHER_LETTERS: Final = {"wide": "W", "profile": "P", "sampled": "S"}


@dataclass(frozen=True)
class Specialisation:
    """The macros of the kernels, each of them on or off.

    Six of the seven policies are among them. Node reordering is not: it moves nodes, and
    the kernels follow addresses, whatever the order.

    Attributes
    ----------
    query_texture, reference_texture, tree_texture : bool
        What is read through textures.
    merged_tree : bool
        The halves of a node lie side by side.
    two_dimensional_reference, two_dimensional_tree : bool
        What is laid out in two dimensions.
    wide : bool
        Nodes have 32-bit addresses, not the paper's 24-bit ones.
    profile : bool
        The kernels count the nodes that they visit.
    sampled : bool
        The kernels are those of the sampled search, which knows no policies.
    """

    query_texture: bool
    reference_texture: bool
    tree_texture: bool
    merged_tree: bool
    two_dimensional_reference: bool
    two_dimensional_tree: bool
    wide: bool
    profile: bool
    sampled: bool = False

    @classmethod
    def of_sampled_search(cls) -> Specialisation:
        """Return what a sampled search needs of the kernels."""
        return cls(False, False, False, False, False, False, False, False, True)

    @classmethod
    def of(cls, policy: Policy, wide: bool, profile: bool) -> Specialisation:
        """Return what a run needs of the kernels.

        Parameters
        ----------
        policy : Policy
            All of its flags but node reordering are taken over.
        wide : bool
            Nodes have 32-bit addresses.
        profile : bool
            Count visited nodes.

        Returns
        -------
        Specialisation
            The same for policies that differ in the order of nodes alone.
        """
        return cls(
            policy.query_texture,
            policy.reference_texture,
            policy.tree_texture,
            policy.merged_tree,
            policy.two_dimensional_reference,
            policy.two_dimensional_tree,
            wide,
            profile,
        )

    @property
    def name(self) -> str:
        """The letters of what is on, ``W`` wide, ``P`` profile, ``S`` sampled; or ``none``."""
        known = LETTERS | _OTHER_LETTERS
        letters = [known[field.name] for field in fields(self) if getattr(self, field.name)]
        return "".join(letters) or NO_POLICY

    def definitions(self) -> list[str]:
        """Return the compiler's options that define every macro as 0 or 1.

        Returns
        -------
        list of str
            In the order of the attributes, such as ``-DQUERY_TEXTURE=1``.
        """
        return [f"-D{field.name.upper()}={getattr(self, field.name):d}" for field in fields(self)]
