"""Plans without a machine: how much memory is free, and references that have no bases."""

import pytest

from mummergpu.index import kmer_index
from mummergpu.runtime import memory as runtime_memory


@pytest.fixture
def free(monkeypatch):
    """Sets how much memory is free."""

    def set_free(size):
        monkeypatch.setattr(runtime_memory, "free_memory", lambda: size)

    return set_free


@pytest.fixture
def without_bases(monkeypatch):
    """References are only as long as they say (`plans.reference_of_size`)."""
    monkeypatch.setattr(kmer_index, "kmer_likeness", lambda padded_codes: ())
