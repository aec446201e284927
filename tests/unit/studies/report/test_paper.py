"""The transcription of the paper agrees with itself."""

import pytest

from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.studies.report.paper import (
    DEFAULT_CODE,
    FIGURES,
    FINDINGS,
    FIRST_VERSION_CODE,
    TABLE_1,
    TABLE_2,
)
from mummergpu.studies.report.timings import ALL_STAGES

PRINTED_SPEEDUPS = {
    "HSILL": (1.25, 3.96),
    "LMONO": (1.20, 1.53),
    "CBRIGG": (1.20, 2.15),
    "SSUIS": (1.22, 2.80),
}
"""Match and print speedup of Table 2."""


def test_the_times_of_table_2_give_the_speedups_that_it_prints():
    assert {row.workload for row in TABLE_2} == set(PRINTED_SPEEDUPS)
    for row in TABLE_2:
        match, printing = PRINTED_SPEEDUPS[row.workload]
        assert row.first_match / row.second_match == pytest.approx(match, abs=0.006)
        assert row.first_print / row.second_print == pytest.approx(printing, abs=0.006)
    # "a nearly four-fold speedup in total GPU compute time"
    assert TABLE_2[0].speedup == pytest.approx(3.86, abs=0.01)


def test_every_figure_has_its_finding():
    assert [figure.number for figure in FIGURES] == [4, 5, 6, 7, 8, 9]
    for figure in FIGURES:
        assert f"Figure {figure.number}" in figure.finding.place
    for finding in FINDINGS:
        assert finding.letter in LETTERS.values()
        assert finding.stage in ALL_STAGES
        assert (finding.least is None) == (finding.most is None)


def test_the_layouts_of_the_paper_are_codes():
    for code in (FIRST_VERSION_CODE, DEFAULT_CODE):
        assert Policy.from_code(code).code == code
    assert {row.name for row in TABLE_1} == {row.workload for row in TABLE_2}
