"""Numbers with their nouns."""

from mummergpu.runtime.progress import Phase, Work
from mummergpu.runtime.words import pluralize


def test_one_thing_has_a_singular():
    assert [pluralize(number, "read") for number in (0, 1, 2000)] == [
        "0 reads",
        "1 read",
        "2,000 reads",
    ]
    assert [pluralize(number, "run is", "runs are") for number in (1, 2)] == [
        "1 run is",
        "2 runs are",
    ]


def test_progress_of_one_thing_has_a_singular():
    assert Work(Phase.READS, (1,)).text == "1 read done"
    assert Work(Phase.READS, (4096,)).text == "4,096 reads done"
    assert Work(Phase.PAGES, (0, 1)).text == "0 of 1 page ready"
    assert Work(Phase.READS_OF_GROUP, (1, 2, 3)).text == "1 read searched in pages of group 2 of 3"
    assert Work(Phase.WRITING_FILE, ("x",)).text == "writing x"
