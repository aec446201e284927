"""Shortcuts: what makes the result of a block where its matches are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.block_text import BlockText
from mummergpu.matching.search import BlockSearch

Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)


class Shortcut(Protocol[Made]):
    """Searches a block and prepares its result in one step; many threads may call it at once."""

    def suits(self, block: QueryBlock) -> bool:
        """Return whether a block can be searched in this way on the loaded pages."""

    def prepared(self, block: QueryBlock) -> tuple[Made] | None:
        """Return the result of a block.

        Parameters
        ----------
        block : QueryBlock
            The queries, for which `suits` is true.

        Returns
        -------
        tuple or None
            The result alone in a tuple; None if the block has too many matches: then it must be
            cut, or its matches be found and prepared in two steps if it has only one query.
        """


class TextShortcut(Generic[Result]):
    """Prepares the text that a backend makes of the matches (`Shortcut`)."""

    def __init__(
        self, search: BlockSearch, prepare: Callable[[QueryBlock, BlockText], Result]
    ) -> None:
        self._search = search
        self._prepare = prepare

    def suits(self, block: QueryBlock) -> bool:
        """Return whether the backend makes the text of a block (`Shortcut`)."""
        return self._search.makes_text(block)

    def prepared(self, block: QueryBlock) -> tuple[Result] | None:
        """Return what is prepared of a block's text (`Shortcut`)."""
        text = self._search.find_text(block)
        return None if text is None else (self._prepare(block, text),)
