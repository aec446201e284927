"""Pages that are ready, and how much of the reference that is."""

from __future__ import annotations

import pytest

from mummergpu.index.pages import plan_pages
from mummergpu.pipeline.page_progress import PageProgress
from mummergpu.runtime.progress import Phase, Work

PAGES = plan_pages(25, 12, 2)
"""Pages that own 10, 10 and 5 bases."""


@pytest.mark.parametrize("writes", [False, True])
def test_pages_and_their_bases_are_counted(writes: bool) -> None:
    told: list[Work] = []
    done = PageProgress(told.append, PAGES, writes)
    done.begin()
    done.page_is_ready()
    done.share_of_next(0.5)
    done.page_is_ready()
    done.share_of_next(0.2)
    expected = [(0, 0), (1, 10), (1, 15), (2, 20), (2, 21)]
    assert told == [Work(Phase.PAGES, (n, 3), bases, bases / 25) for n, bases in expected]
    done.page_is_ready()
    all_ready = Work(Phase.PAGES, (3, 3), 25, 1.0)
    assert told[-1] == (Work(Phase.WRITING_INDEX) if writes else all_ready)
    done.end()
    assert told[-1] == all_ready
