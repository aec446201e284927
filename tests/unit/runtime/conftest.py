"""What tests of files share."""

import os

import pytest


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)
