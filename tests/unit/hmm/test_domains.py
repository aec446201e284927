"""Each step from a sequence that passed the filters to its domains has HMMER's bits."""

import numpy as np
import pytest
from helpers.hmmer_domains import domains_of
from helpers.hmmer_library import some_profiles

from mummergpu.hmm.domains.odds import odds_of

pytest.importorskip("pyhmmer")


def assert_same(ours, theirs):
    """Compare float32 by their bits."""
    np.testing.assert_array_equal(
        np.ascontiguousarray(ours).view(np.int32), np.ascontiguousarray(theirs).view(np.int32)
    )


def test_the_odds_of_profiles(tmp_path):
    for profile in some_profiles((1, 2, 3, 4, 5, 63, 64, 65, 2405)):
        ours = odds_of(profile)
        emissions, steps = domains_of(profile, tmp_path).odds
        assert_same(ours.emissions, emissions)
        assert_same(ours.steps, steps)
