"""What lies on a device during a search: addresses and numbers, as the kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mummergpu.cuda.device import Program, Texture
from mummergpu.matching.tree.cuda_pages import ResidentPage


@dataclass(frozen=True)
class TreeSearchContext:
    """What all searches of a run share.

    Attributes
    ----------
    program : Program
        The kernels, compiled for the policy and the node format.
    minimum_length : int
        The fewest bases of a MEM.
    pages : sequence of ResidentPage
        The pages to search, in the order of the reference.
    joined_reference : int
        The address of the codes of all pages on the device; 0 if no page needs them.
    joined_count : int
        How many they are.
    query_texture : bool
        Whether queries are read through a texture.
    profile : bool
        Whether the kernels count the nodes they visit.
    """

    program: Program
    minimum_length: int
    pages: Sequence[ResidentPage]
    joined_reference: int
    joined_count: int
    query_texture: bool
    profile: bool


@dataclass(frozen=True)
class DeviceQueries:
    """A block of queries on the device.

    Attributes
    ----------
    count, base_count : int
        The queries, and their bases together.
    offsets : int
        The address of where each begins.
    codes : int
        The address of their bases.
    texture : Texture or None
        Reads the bases, if the policy says so.
    """

    count: int
    base_count: int
    offsets: int
    codes: int
    texture: Texture | None

    @property
    def arguments(self) -> tuple[int, int]:
        """The bases, as the kernels take them."""
        return self.codes, 0 if self.texture is None else self.texture.handle


@dataclass(frozen=True)
class DeviceCandidates:
    """Candidate matches on the device: where they are, and their number.

    Attributes
    ----------
    records : int
        The address of the candidates, those of a query from its first base on: there is room for
        one at each position.
    offsets : int
        The address of how many candidates the queries before each have, and last of all.
    queries : int
        The address of the query of each candidate.
    count : int
        How many there are.
    """

    records: int
    offsets: int
    queries: int
    count: int


@dataclass(frozen=True)
class DeviceMems:
    """MEMs on the device.

    Attributes
    ----------
    set_number : int
        Which of the sets of buffers for MEMs they are in.
    offsets : int
        The address of where those of each query begin.
    columns : tuple of int
        The addresses of query starts, reference starts and lengths.
    count : int
        How many there are.
    """

    set_number: int
    offsets: int
    columns: tuple[int, int, int]
    count: int

    @property
    def arguments(self) -> tuple[int, ...]:
        """As the kernels take them."""
        return self.offsets, *self.columns
