"""Which base qualities are refused, and which look like those of old programs."""

import numpy as np
import pytest

from mummergpu.errors import InputError
from mummergpu.input.records.qualities import check_qualities, looks_like_old_illumina


@pytest.mark.parametrize(
    ("qualities", "is_refused"),
    [
        ([[0, 92, 93]], False),
        ([[0, 94, 93]], True),
        # A read without qualities has 255 for each base.
        ([[0, 93], [255, 255], [93]], False),
        ([[0, 93], [], [255, 255]], False),
        ([[255, 255], [0, 94]], True),
        ([[255, 93]], True),
        ([], False),
    ],
)
def test_the_best_quality_is_read_beside_reads_without_any(qualities, is_refused):
    offsets = np.cumsum([0, *map(len, qualities)])
    joined = np.array([one for read in qualities for one in read], dtype=np.uint8)
    if is_refused:
        with pytest.raises(InputError, match="higher than 93"):
            check_qualities(joined, offsets, "r.bam")
    else:
        check_qualities(joined, offsets, "r.bam")


@pytest.mark.parametrize(
    ("least", "most", "is_old"),
    [
        (25, 60, False),
        (26, 60, True),
        (26, 45, False),
        (26, 46, True),
        (26, 72, True),
        (26, 73, False),
    ],
)
def test_qualities_of_old_programs_are_told_by_their_range(least, most, is_old):
    assert looks_like_old_illumina(np.array([least, most], dtype=np.uint8)) == is_old
