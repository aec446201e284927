"""An axis with records: round ticks within each, and labels that do not overlap."""

from itertools import combinations

import numpy as np
import pytest
from helpers.loops import each
from matplotlib.figure import Figure

from mummergpu.drawing.dots import label_axis, length_text, record_ticks, tick_step
from mummergpu.drawing.segments import Chromosomes
from mummergpu.drawing.style import plain_settings, shortened


def records_of(*lengths, names=None, **more):
    names = names or [f"record_{number}" for number in range(len(lengths))]
    return Chromosomes(names, np.array(lengths, dtype=np.int64), "genome", **more)


def test_a_single_record_has_a_tick_at_its_start():
    places, numbers = record_ticks(records_of(1050), 500)
    assert places.tolist() == numbers.tolist() == [0, 500, 1000]


def test_ticks_count_within_their_record():
    places, numbers = record_ticks(records_of(1050, 100, 0, 600), 500)
    assert places.tolist() == [500, 1000, 1650]
    assert numbers.tolist() == [500, 1000, 500]


def test_ticks_of_a_turned_record_count_from_its_other_end():
    made = records_of(1050, 600, turned=np.array([True, False]))
    places, numbers = record_ticks(made, 500)
    assert places.tolist() == [550, 50, 1550]
    assert numbers.tolist() == [500, 1000, 500]


@pytest.mark.parametrize(
    ("total", "most", "step"),
    [(4_639_675, 10, 500_000), (10, 10, 1), (11, 10, 2), (16_569, 14, 2000), (3, 20, 1)],
)
def test_steps_are_round(total, most, step):
    assert tick_step(total, most) == step


def test_lengths_in_words():
    told = [length_text(bases) for bases in (1, 999, 4640, 48_502, 4_639_675, 3_100_000_000)]
    assert told == ["1 bp", "999 bp", "4.64 kb", "48.5 kb", "4.64 Mb", "3,100 Mb"]


def test_a_long_name_keeps_its_end():
    name = "gi|49175990|ref|NC_000913.2|"
    assert shortened(name, 24) == "gi|49175990|…C_000913.2|" and shortened(name, 28) == name
    assert len(shortened(name, 7)) == 7 and shortened(name, 7) == "gi|….2|"
    assert shortened("a\nb") == "a b"


CASES = {
    "one": records_of(4_639_675, names=["NC_000913.2"]),
    "a plasmid": records_of(5_845_528, 94_000, names=["NZ_CP016625.1", "NZ_CP016626.1"]),
    "chromosomes": records_of(*(230_000 + 97_000 * n % 1_300_000 for n in range(16))),
    "contigs": records_of(*(300 + 7919 * n % 43_000 for n in range(33))),
    "many contigs": records_of(*(500 + 104_729 * n % 90_000 for n in range(3000))),
    "long names": records_of(*[10_000] * 5, names=["a_name_that_never_ends_" * 3] * 5),
    "reads": records_of(*[100] * 20_000),
    "no bases": records_of(0, 0),
    "nothing": records_of(names=[]),
}


@each("case", list(CASES))
@pytest.mark.parametrize("size", [(7.0, 7.0), (3.0, 3.0), (12.0, 4.0)])
def test_labels_do_not_overlap(size, case):
    with plain_settings():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        label_axis(axes, "x", CASES[case])
        label_axis(axes, "y", CASES[case])
        figure.draw_without_rendering()
        for axis in (axes.xaxis, axes.yaxis):
            labels = [*axis.get_ticklabels(), *axis.get_ticklabels(minor=True), axis.label]
            boxes = [label.get_window_extent() for label in labels if label.get_text()]
            assert boxes and not any(a.overlaps(b) for a, b in combinations(boxes, 2))
            # They are inside the picture.
            edges = figure.bbox
            for box in boxes:
                assert edges.x0 - 1 <= box.x0 and box.x1 <= edges.x1 + 1
                assert edges.y0 - 1 <= box.y0 and box.y1 <= edges.y1 + 1


def test_there_are_names_and_borders():
    with plain_settings():
        axes = Figure(figsize=(7, 7)).add_subplot()
        label_axis(axes, "x", CASES["chromosomes"])
        label_axis(axes, "y", CASES["a plasmid"])
        assert axes.get_xlabel() == "genome, 16 records (12.7 Mb)"
        assert axes.get_ylabel() == "genome, 2 records (Mb)"
        assert len(axes.lines) == 15 + 1
        names = [label.get_text() for label in axes.yaxis.get_ticklabels(minor=True)]
        assert names == ["NZ_CP016625.1"]
        names = [label.get_text() for label in axes.xaxis.get_ticklabels(minor=True)]
        assert len(names) >= 10
