"""What stays in memory of an index, and of the backends that search it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mummergpu.index.reference_index import ReferenceIndex
from mummergpu.matching.backends.interface import Backend

Plan = TypeVar("Plan", bound=ReferenceIndex[Any])


@dataclass
class KeptIndex(Generic[Plan]):
    """The plan of an index, with its pages if they stay in memory together.

    Attributes
    ----------
    plan : KmerIndex, MinimizerIndex or TreeIndex
        The plan.
    pages : list or None
        The pages of the only group, once they are built or opened; None if there are several
        groups.
    """

    plan: Plan
    pages: list[Any] | None = None

    @property
    def has_one_group(self) -> bool:
        """Whether all pages are in memory together, so that searches can share them."""
        return len(self.plan.groups) == 1


@dataclass
class OpenSearch:
    """A backend that searches an index for matches of one minimum length.

    Attributes
    ----------
    index : KeptIndex
        The index.
    backend : Backend
        The backend.
    search_length : int
        The fewest bases of a match that the backend finds.
    is_loaded : bool
        Whether the backend has the pages of the only group.
    lock : threading.RLock
        Held while pages are loaded; and during a search, if there are several groups.
    """

    index: KeptIndex[Any]
    backend: Backend[Any]
    search_length: int
    is_loaded: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)
