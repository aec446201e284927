"""The histogram of occurrences visited by read, of what a run has counted."""

from mapping.visits import visits_of, visits_plot


def test_visits_are_plotted_in_ascending_order():
    counts = {
        "reads_visiting_4": 50,
        "reads_visiting_0": 1,
        "reads_visiting_128": 49,
        "occurrences_visited": 7000,
        "seeds_looked_up": 300,
        "reads_with_chosen_seeds": 49,
        "reads_at_spread_places": 2,
        "queries": 50,
    }
    visits = visits_of(counts)
    assert visits["mean"] == 70 and visits["searched"] == 100
    assert list(visits["reads"].items()) == [("0", 1), ("4", 50), ("128", 49)]
    lines = visits_plot(visits)
    assert [line.count("#") for line in lines] == [1, 50, 49]
    assert lines[2].split()[:2] == ["128", "49"]
