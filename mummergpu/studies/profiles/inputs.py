"""The files of a study of profile filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mummergpu.errors import InputError
from mummergpu.hmm.filters import FilterThresholds, ProfileFilter
from mummergpu.hmm.profiles import read_profiles
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.input.blocks.proteins import ProteinFiles, ProteinRules
from mummergpu.studies.profiles.data import ProfileData, chosen, suitable


def read_profile_data(
    profiles: str,
    proteins: Sequence[str],
    any_letters: bool = False,
    warn: Callable[[str], None] = lambda line: None,
) -> list[ProfileData]:
    """Return a data set for each profile of a file, with all proteins of some files.

    `InputError` says that a file cannot be read, is not valid or has nothing to measure with;
    `OptionError` that filters of 16 bits do not suit a profile.
    """
    rules = ProteinRules(any_letters=any_letters, no_empty=True)
    blocks = [*ProteinFiles(proteins, rules).blocks(warn=warn)]
    sizes = np.concatenate([np.diff(block.offsets) for block in blocks])
    codes = np.concatenate([block.codes for block in blocks])
    block = ProteinBlock(codes, np.concatenate([[0], np.cumsum(sizes)]))
    those = suitable(block)
    if not those.any():
        raise InputError("has no proteins to measure with", proteins[0])
    left_out = int(np.count_nonzero(~those))
    block = chosen(block, those)
    found = [
        ProfileData(one.name, ProfileFilter(one, FilterThresholds()), block, left_out)
        for one in read_profiles(profiles)
    ]
    if not found:
        raise InputError("has no profiles", profiles)
    for data in found:
        data.check()
    return found
