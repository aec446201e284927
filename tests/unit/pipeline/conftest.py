"""How much memory is free, as tests want it."""

from __future__ import annotations

from typing import Any

import pytest

from mummergpu.runtime import memory as runtime_memory


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets how much memory is free."""

    def set_free(size: int) -> None:
        monkeypatch.setattr(runtime_memory, "free_memory", lambda: size)

    return set_free
