"""Tuning: successive halving over the combinations of policies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mummergpu.errors import BackendError
from mummergpu.index.options import TreeOptions
from mummergpu.index.tree.policy import DEFAULT_POLICY, Policy
from mummergpu.runtime.progress import Messages
from mummergpu.sequence.codes import Strand
from mummergpu.studies import tune as tuning
from mummergpu.studies.combinations import PlannedRun, differing_policies
from mummergpu.studies.data_set import DataSet, make_data_set
from mummergpu.studies.measurement import Measurer
from mummergpu.studies.records import SweepRun
from mummergpu.studies.searcher import ProcessorSearcher
from mummergpu.studies.tune import TunedResult, tune

QUERIES = 800


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    # The reference of the workload is too large for trees in every layout here.
    reference = tmp_path_factory.mktemp("tune") / "r.fa"
    reference.write_text(">r\n" + "ACGTTGCATCGATCGGATCAAGCTTACGACTAGCTAGGCTAACG" * 30 + "\n")
    from mummergpu.studies.data_set import read_data_set
    from mummergpu.workload.generation import generate

    folder = tmp_path_factory.mktemp("reads")
    files = generate("SSUIS", Path(folder), 0.001, reference)
    return read_data_set(
        "small", str(files.reference), [str(files.queries)], 1 << 20, 10, (Strand.FORWARD,)
    )


class Costs:
    """Replaces what runs cost by what a test says; counts the runs of each combination."""

    def __init__(self, cost_of: dict[str, float], others: float) -> None:
        self._cost_of = cost_of
        self._others = others
        self.queries: dict[str, list[int]] = {}

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        measured = Measurer.run

        def run(measurer: Measurer, planned: PlannedRun, *rest: Any) -> SweepRun:
            record = measured(measurer, planned, *rest)
            self.queries.setdefault(planned.policy, []).append(measurer._data.query_count)
            record.seconds.clear()
            record.seconds["match"] = self._cost_of.get(planned.policy, self._others)
            return record

        monkeypatch.setattr(Measurer, "run", run)


def tuned(data: DataSet) -> TunedResult:
    searcher = ProcessorSearcher()
    progress = Messages(None)
    try:
        return tune(data, TreeOptions(), 1, searcher, progress, lambda _: None)
    finally:
        searcher.close()


@pytest.mark.parametrize("best", ["rt", "n", DEFAULT_POLICY.code])
def test_the_best_is_found_with_a_small_part_of_the_runs(
    best: str, data: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = Costs({best: 1.0, "mrtn": 1.5}, 2.0)
    costs.install(monkeypatch)
    result = tuned(data)
    assert result.policy.policy == best
    assert result.runner_up == "mrtn"
    assert result.margin == pytest.approx(0.5)
    assert result.gain == pytest.approx(0.0 if best == DEFAULT_POLICY.code else 0.5)
    assert result.policy.certainty == 1.0
    policy = result.policy
    assert (policy.reference_bases, policy.query_length, policy.minimum_length) == (
        int(data.reference.record_lengths.sum()),
        data.median_query_length,
        10,
    )
    assert (policy.backend, policy.address_bits) == ("cpu", 24)
    assert result.runs == sum(map(len, costs.queries.values())) == 16 + 8 + 4 * tuning.FINAL_RUNS
    assert set(costs.queries) == set(differing_policies("cpu"))
    rounds = Counter(len(queries) for queries in costs.queries.values())
    assert rounds == {1: 8, 2: 4, 2 + tuning.FINAL_RUNS: 4}
    # Fewer queries while there are many combinations, all of them at the end.
    assert costs.queries[best][:3] == [
        data.halved().halved().query_count,
        data.halved().query_count,
        data.query_count,
    ]


def test_the_default_is_always_among_the_last(
    data: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = Costs({DEFAULT_POLICY.code: 9.0, "r": 1.0}, 2.0)
    costs.install(monkeypatch)
    result = tuned(data)
    assert result.policy.policy == "r"
    assert result.gain == pytest.approx(8 / 9)


def test_what_cannot_be_told_apart_is_not_certain(
    data: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    Costs({}, 2.0).install(monkeypatch)
    result = tuned(data)
    assert result.margin == 0.0
    assert result.policy.certainty < 0.6


def test_different_matches_are_an_error(data: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mummergpu.studies.measurement.MemDigest.text", lambda self: str(id(self)))
    with pytest.raises(BackendError, match="finds other matches than the others"):
        tuned(data)


def test_a_data_set_is_halved(data: DataSet) -> None:
    half = data.halved()
    assert half.query_count == data.query_count // 2
    assert half.minimum_length == data.minimum_length
    while half.query_count > 1:
        half = half.halved()
    assert half.halved().query_count == 1


def test_rounds_of_many_combinations() -> None:
    data = make_data_set("SSUIS", 0.0005, None, 1 << 20, None, (Strand.FORWARD,))
    rounds = tuning._rounds(data, 128)
    eighth = data.halved().halved().halved().query_count
    assert [part.query_count for part in rounds] == [
        eighth,
        eighth,
        eighth,
        data.halved().halved().query_count,
        data.halved().query_count,
    ]
    assert tuning._planned_runs(128, 5) == 128 + 64 + 32 + 16 + 8 + 4 * tuning.FINAL_RUNS
    assert Policy.from_code("m") == DEFAULT_POLICY
