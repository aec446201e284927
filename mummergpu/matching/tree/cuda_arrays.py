"""The data on a device during a tree search: addresses and sizes for the kernels."""

from __future__ import annotations

from collections.abc import Sequence

from mummergpu.cuda.device import Program, Texture
from mummergpu.matching.tree.cuda_pages import ResidentPage
from mummergpu.runtime.frozen import frozen


@frozen
class TreeSearchContext:
    """The data that all searches of a run share.

    Attributes
    ----------
    program : Program
        The kernels, compiled for the policy and the node format.
    pages : sequence of ResidentPage
        The pages to search, in the order of the reference.
    joined_reference : int
        The address of the codes of all pages on the device; 0 if no page needs them.
    query_texture : bool
        Whether kernels read queries through a texture.
    profile : bool
        Whether the kernels count the nodes that they visit.
    """

    program: Program
    minimum_length: int
    pages: Sequence[ResidentPage]
    joined_reference: int
    joined_count: int
    query_texture: bool
    profile: bool


@frozen
class DeviceQueries:
    """A block of queries on the device.

    Attributes
    ----------
    offsets : int
        The address of the array that says where each query begins.
    texture : Texture or None
        The texture through which the codes are read, if the policy says so.
    """

    count: int
    base_count: int
    offsets: int
    codes: int
    texture: Texture | None

    @property
    def arguments(self) -> tuple[int, int]:
        """The kernel arguments for the codes."""
        return self.codes, 0 if self.texture is None else self.texture.handle


@frozen
class DeviceCandidates:
    """Candidate matches on the device.

    Attributes
    ----------
    records : int
        The address of the candidates. The buffer has one slot for each base of the block; the
        candidates of a query begin at the slot of its first base.
    offsets : int
        The address of the number of candidates before each query, with the total at the end.
    queries : int
        The address of the array that names the query of each candidate.
    """

    records: int
    offsets: int
    queries: int
    count: int
