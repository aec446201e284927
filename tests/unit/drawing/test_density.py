"""The image of very many matches: every base in its pixel."""

from unittest.mock import patch

import numpy as np
from helpers.made_matches import made_matches
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.drawing import dots
from mummergpu.drawing.dots import bases_in_pixels, density_image
from mummergpu.drawing.segments import segments_of

COLOURS = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))


def image_of(matches, pixels):
    segments = segments_of(matches)
    members = [~segments.is_reverse, segments.is_reverse]
    return density_image(segments, pixels, pixels, COLOURS, members)


@given(st.data(), st.integers(1, 5))
def test_pixels_hold_all_bases_where_they_lie(data, max_steps):
    size, pixels = 60, 6
    rows = []
    for _ in range(data.draw(st.integers(1, 6))):
        query, place = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
        length = data.draw(st.integers(1, size - max(query, place)))
        rows.append((0, 0, query, place, length, data.draw(st.booleans())))
    segments = segments_of(made_matches(rows, [size], [size]))
    with patch.object(dots, "_MAX_STEPS", max_steps):
        for way in (0, 1):
            found = bases_in_pixels(segments, pixels, pixels, segments.is_reverse == way)
            chosen = [row for row in rows if row[5] == bool(way)]
            assert np.isclose(found.sum(), sum(row[4] for row in chosen))
            reached = np.zeros((pixels, pixels), dtype=bool)
            for _, _, query, place, length, reverse in chosen:
                for at in range(length):
                    y = query + (length - 1 - at if reverse else at)
                    row, column = y * pixels // size, (place + at) * pixels // size
                    reached[max(0, row - 1) : row + 2, max(0, column - 1) : column + 2] = True
            assert not found[~reached].any()


def test_directions_and_colours():
    rows = [(0, 0, 0, 0, 40, False), (0, 0, 60, 60, 40, True)]
    image = image_of(made_matches(rows, [100], [100]), 10)
    for at in range(4):
        assert image[at, at].tolist() == [0, 0, 1, 1]
        assert image[9 - at, 6 + at].tolist() == [1, 0, 0, 1]
    assert image[9, 0, 3] == 0 and image[0, 9, 3] == 0


def test_a_short_match_is_fainter_than_a_long_one_but_seen():
    rows = [(0, 0, 0, 0, 500, False), (0, 0, 100, 900, 20, False)]
    image = image_of(made_matches(rows, [1000], [1000]), 100)
    assert image[5, 5, 3] == 1
    assert 0.3 < image[10, 90, 3] <= 1 and image[10, 91, 3] == image[10, 90, 3]
    # Where two strands meet, their colours mix by the bases.
    rows = [(0, 0, 0, 0, 30, False), (0, 0, 0, 0, 10, True)]
    image = image_of(made_matches(rows, [1000], [1000]), 10)
    assert np.allclose(image[0, 0, :3], [0.25, 0, 0.75])
