"""A reference of which index files are built."""

import random

import pytest
from helpers.sequences import random_bases


@pytest.fixture(scope="module")
def fasta(tmp_path_factory):
    """Records of all kinds: repeats, unknown bases, nothing at all, a name of many bytes."""
    made = random.Random(4)
    repeat = random_bases(made, 60)
    text = random_bases(made, 2500)
    path = tmp_path_factory.mktemp("reference") / "ref.fa"
    path.write_text(
        f">a first\n{text}{repeat}\n>empty\n>b\nNNN{text[:300]}NNNN{repeat}{text[900:1200]}N\n"
        f">nothing\nNNNNNNNN\n>{'x' * 300}\n{repeat}\n>last\n"
    )
    return path
