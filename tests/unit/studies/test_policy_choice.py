"""The choice of a policy from records of tuning."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mummergpu.errors import InputError
from mummergpu.index.tree.policy import DEFAULT_POLICY
from mummergpu.studies import policy_choice
from mummergpu.studies.policy_choice import (
    TunedPolicy,
    Work,
    choose_policy,
    read_tuned,
    tuned_text,
    with_record,
)

SHORT = TunedPolicy("cuda", "GPU A", "sm_90", 24, 2_000_000, 36, 10, "Tn", 0.9, "p 1", "2026-01-02")
LONG = replace(SHORT, reference_bases=10_000_000, query_length=800, minimum_length=50, policy="m")
WORK = Work("cuda", "GPU A", "sm_90", 2_500_000, 50, 12)


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of records that comes with the package."""
    path = tmp_path / "known.json"
    path.write_text(tuned_text([]))
    monkeypatch.setattr(policy_choice, "KNOWN_DEVICES", path)
    return path


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("work", "policy"),
    [
        (WORK, "Tn"),
        (replace(WORK, reference_bases=9_000_000, query_length=500, minimum_length=30), "m"),
        (replace(WORK, reference_bases=None, query_length=None), "Tn"),
        (replace(WORK, reference_bases=None, query_length=None, minimum_length=40), "m"),
        (replace(WORK, query_length=700, minimum_length=50), "m"),
        (replace(WORK, reference_bases=0, query_length=0), "Tn"),
    ],
)
def test_the_most_similar_work_decides(work: Work, policy: str) -> None:
    for records in ([SHORT, LONG], [LONG, SHORT]):
        choice = choose_policy(work, records)
        assert choice.policy.code == policy
        assert choice.reason == "as tuned on 2026-01-02"


def test_the_users_record_comes_before_that_of_the_package(known: Path) -> None:
    known.write_text(tuned_text([replace(SHORT, policy="QR"), replace(LONG, device="GPU B")]))
    assert choose_policy(WORK, [LONG]).policy.code == "m"
    assert choose_policy(WORK, []).policy.code == "QR"
    assert choose_policy(WORK, [replace(LONG, device="GPU B")]).policy.code == "QR"
    choice = choose_policy(replace(WORK, device="GPU C"), [])
    assert choice.policy.code == "QR"
    assert choice.reason == "the best known for devices of this architecture"


def test_an_unknown_device_gets_the_default(known: Path) -> None:
    known.write_text(tuned_text([SHORT]))
    for work in (
        replace(WORK, device="GPU C", architecture="sm_75"),
        replace(WORK, backend="cpu", device="GPU A"),
        replace(WORK, backend="cpu", device="CPU"),
    ):
        choice = choose_policy(work, [LONG])
        assert (choice.policy, choice.reason) == (DEFAULT_POLICY, "the default")


def test_a_record_takes_the_place_of_one_for_the_same_work(tmp_path: Path) -> None:
    again = replace(SHORT, policy="mt", date="2026-05-05", program="p 2", certainty=0.1)
    records = with_record(with_record(with_record([], SHORT), LONG), again)
    assert records == [LONG, again]
    wide = replace(SHORT, address_bits=32)
    assert with_record(records, wide) == [LONG, again, wide]
    path = tmp_path / "policies.json"
    assert read_tuned(path) == []
    path.write_text(tuned_text(records))
    assert read_tuned(path) == records


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"policies": 3}',
        '{"policies": [{}]}',
        tuned_text([replace(SHORT, policy="x")]),
        tuned_text([SHORT])[:-20],
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policies.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is not what 'mummergpu tune' writes") as caught:
        read_tuned(path)
    assert caught.value.path == str(path)


def test_the_package_knows_only_valid_policies() -> None:
    for record in read_tuned(policy_choice.KNOWN_DEVICES):
        assert record.backend == "cuda"
        assert record.reference_bases > 0 < record.query_length
        assert record.minimum_length > 0
    assert set(json.loads(policy_choice.KNOWN_DEVICES.read_text())) == {"policies"}
