"""Real data in MUMmer's form, made once for a run of the tests."""

import pytest
from helpers.mummer_comparison import RealData


@pytest.fixture(scope="session")
def real(shared_data, tmp_path_factory):
    """Real genomes and reads as plain FASTA."""
    return RealData(shared_data, tmp_path_factory.mktemp("real"))
