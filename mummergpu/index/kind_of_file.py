"""The options that an index file was built with."""

from __future__ import annotations

from mummergpu.index.file import IndexFile
from mummergpu.index.format import is_index
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.index.tree.policy import Policy


def kind_of_file(file: IndexFile) -> KmerOptions | TreeOptions:
    """Return the kind of an index file, with the options that a search needs."""
    header = file.header
    if header.search == KmerOptions.search:
        return KmerOptions(header.page_size)
    policy = Policy.from_code(header.policy)
    return TreeOptions(header.page_size, header.address_bits, header.builder, policy)


def kind_for_reference(path: str) -> KmerOptions | TreeOptions:
    """Return the kind of index to search a reference with.

    It is that of the index file if the reference is one, which raises `InputError` if the file is
    damaged or of another version, and otherwise a k-mer index.
    """
    return kind_of_file(IndexFile(path)) if is_index(path) else KmerOptions()
