import numpy as np
import pytest

from mummergpu.mapping.placing.choice import Names, hash_of_name, mix


@pytest.mark.parametrize(
    ("name", "expected"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_names_are_hashed_by_fnv(name, expected):
    letters = np.frombuffer(b"before" + name + b"after", dtype=np.uint8).copy()
    names = Names(letters, np.array([6, 6 + len(name)], dtype=np.int64))
    assert int(hash_of_name(names, 0)) == expected


def test_each_of_a_few_equals_is_chosen_about_as_often():
    places = [(17, 0), (17, 1), (90_000_000_000, 0), (-4, 1)]
    chosen = [0] * len(places)
    for name in range(400):
        ranks = [int(mix(np.uint64(name * 0x9E3779B1), *place)) for place in places]
        assert len(set(ranks)) == len(places)
        chosen[ranks.index(max(ranks))] += 1
    assert min(chosen) > 60
