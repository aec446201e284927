"""Pages on a device: trees and references in memory or in textures, as the policy says."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.device import AnyArray, Buffer, Device, Texture
from mummergpu.cuda.pinned_staging import Uploader
from mummergpu.errors import BackendError
from mummergpu.index.pages import Page
from mummergpu.index.tree.layout import REFERENCE_WIDTH_BITS
from mummergpu.index.tree.page import TreePage
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends.stream_searcher import PADDING_BYTES, WORD_BYTES
from mummergpu.matching.tree import cuda_program
from mummergpu.sequence.codes import CodeArray

MAX_ARRAY_ROWS: Final = 1 << 16
"""The most rows of a two-dimensional texture, on every device that CUDA supports."""


class ResidentCodes:
    """Codes in linear memory with padding after them, and optionally a texture of words.

    The device is current in the calling thread; the constructor waits for the uploader's stream.
    """

    def __init__(self, device: Device, uploader: Uploader, codes: CodeArray, texture: bool) -> None:
        size = -(-codes.size // WORD_BYTES) * WORD_BYTES + PADDING_BYTES
        self._buffer = device.allocate(size)
        self.address = self._buffer.address
        self.size = size
        self._texture: Texture | None = None
        try:
            uploader.stream.fill_zero(
                self.address + size - PADDING_BYTES - WORD_BYTES, 3 * WORD_BYTES
            )
            uploader.copy_in(self.address, codes)
            uploader.stream.synchronize()
            if texture:
                self._texture = device.linear_texture(self.address, size // WORD_BYTES, WORD_BYTES)
        except BaseException:
            self._buffer.free()
            raise

    @property
    def arguments(self) -> tuple[int, int]:
        """The kernel arguments: the address and the texture."""
        return self.address, 0 if self._texture is None else self._texture.handle

    def free(self) -> None:
        """Free the memory."""
        if self._texture is not None:
            self._texture.free()
        self._buffer.free()


class ResidentPage:
    """A page on a device, whose tree has the policy's layout.

    The constructor waits for the uploader's stream. `size` counts the bytes that were copied. If
    the page does not fit, `DeviceMemoryError` is raised and nothing stays on the device; one that
    is too large for a texture raises `BackendError`.
    """

    def __init__(
        self, device: Device, uploader: Uploader, indexed: TreePage, policy: Policy
    ) -> None:
        tree = indexed.tree
        self.page: Page = indexed.page
        self.base_count = tree.base_count
        self.size = tree.byte_count
        self._device = device
        self._uploader = uploader
        self._owned: list[Buffer | Texture | ResidentCodes] = []
        try:
            self.reference_arguments = self._place_reference(indexed, policy)
            self.tree_arguments = self._place_tree(indexed, policy)
        except BaseException:
            self.free()
            raise

    def free(self) -> None:
        """Free the memory and the textures."""
        while self._owned:
            self._owned.pop().free()

    def _place_reference(self, indexed: TreePage, policy: Policy) -> tuple[int, int]:
        reference = indexed.tree.reference
        if policy.two_dimensional_reference and policy.reference_texture:
            texture = self._device.array_texture(reference, 1 << REFERENCE_WIDTH_BITS, 1)
            self._owned.append(texture)
            return 0, texture.handle
        codes = ResidentCodes(self._device, self._uploader, reference, policy.reference_texture)
        self._owned.append(codes)
        return codes.arguments

    def _place_tree(self, indexed: TreePage, policy: Policy) -> tuple[int, ...]:
        tree = indexed.tree
        layout = tree.layout
        texel_bytes = 8 if layout.wide else 16
        width = (1 << layout.tree_width_bits) * layout.node_stride_bytes // texel_bytes
        parts = cuda_program.texture_parts(layout.wide)
        addresses: list[int] = []
        textures: list[list[int]] = []
        for array in [tree.nodes] if layout.merged_tree else [tree.nodes, tree.children]:
            handles: list[int] = []
            address = 0
            if policy.tree_texture and layout.two_dimensional_tree:
                handles.append(self._array_texture(array, width, texel_bytes))
            else:
                buffer = self._device.allocate(array.nbytes)
                self._owned.append(buffer)
                address = buffer.address
                self._uploader.copy_in(address, array)
                self._uploader.stream.synchronize()
            if policy.tree_texture and not layout.two_dimensional_tree:
                handles += self._part_textures(address, array.nbytes // texel_bytes, texel_bytes)
            if len(handles) > parts:
                raise BackendError(
                    "cuda", "the tree is too large for textures; use a smaller --page-size"
                )
            addresses.append(address)
            textures.append(handles + [0] * (parts - len(handles)))
        if layout.merged_tree:
            addresses.append(addresses[0] + layout.half_bytes if addresses[0] else 0)
            textures.append([0] * parts)
        return *addresses, *textures[0], *textures[1]

    def _array_texture(self, array: AnyArray, width: int, texel_bytes: int) -> int:
        if array.nbytes // (width * texel_bytes) > MAX_ARRAY_ROWS:
            raise BackendError(
                "cuda",
                "the tree is too large for two-dimensional textures; use a smaller --page-size",
            )
        texture = self._device.array_texture(array, width, texel_bytes)
        self._owned.append(texture)
        return texture.handle

    def _part_textures(self, address: int, texels: int, texel_bytes: int) -> list[int]:
        handles = []
        part_texels = 1 << cuda_program.TEXTURE_PART_BITS
        for first in range(0, texels, part_texels):
            texture = self._device.linear_texture(
                address + first * texel_bytes,
                min(part_texels, texels - first),
                texel_bytes,
            )
            self._owned.append(texture)
            handles.append(texture.handle)
        return handles
