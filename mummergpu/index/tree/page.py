"""A page of a reference with its flat suffix tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mummergpu.index.pages import Page
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.codes import CodeArray

if TYPE_CHECKING:
    from mummergpu.index.tree.flatten import FlatTree


@frozen
class TreePage:
    """A page of a reference and its tree: the input of a tree search.

    Attributes
    ----------
    joined_reference : ndarray, dtype=uint8, shape=(n_bases,)
        The codes of the whole reference, shared by all pages. They let the search follow a
        match beyond the end of its page.
    index_path : str
        The index file that the page is from, or ``""`` if it was built in memory.
    """

    page: Page
    tree: FlatTree
    joined_reference: CodeArray
    index_path: str = ""
