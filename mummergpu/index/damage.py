"""The error that ends a search when a page contains an impossible value."""

from __future__ import annotations

from mummergpu.errors import InputError
from mummergpu.index.pages import Page


def damage_error(page: Page, index_path: str) -> Exception:
    """Return the error for a page that contains an impossible value.

    It is an `InputError` that names the index file. For a page that was built in memory, where
    `index_path` is empty, it is a `RuntimeError`: no input of a user can damage such a page.
    """
    if not index_path:
        return RuntimeError(f"page {page.index} was built with a value that cannot be")
    return InputError(
        f"the index is damaged: its page {page.index} holds a value that cannot be "
        "('mummergpu index --check' reads all of it)",
        index_path,
    )
