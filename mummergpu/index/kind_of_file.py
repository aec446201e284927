"""The options that an index file was built with."""

from __future__ import annotations

from mummergpu.index.file import IndexFile
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.index.tree.policy import Policy


def kind_of_file(file: IndexFile) -> KmerOptions | TreeOptions:
    """Return the kind of an index file, with the options that a search needs.

    Parameters
    ----------
    file : IndexFile
        The open file.

    Returns
    -------
    KmerOptions or TreeOptions
        The options of its kind.
    """
    header = file.header
    if header.search == KmerOptions.search:
        return KmerOptions(header.page_size)
    policy = Policy.from_code(header.policy)
    return TreeOptions(header.page_size, header.address_bits, header.builder, policy)
