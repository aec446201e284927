"""Chooses the policies of a run from what was tuned: by the user, or for a known device.

`mummergpu tune` writes `TunedPolicy` records to a file in the user's configuration. Measured
records for known devices come with the package. The record for the most similar work decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from mummergpu.errors import InputError, OptionError
from mummergpu.index.tree.policy import DEFAULT_POLICY, Policy
from mummergpu.input.bytes.files import reading
from mummergpu.runtime.frozen import frozen

KNOWN_DEVICES: Final = Path(__file__).with_name("known_devices.json")
"""The records that come with the package."""

FILE_NAME: Final = "policies.json"


@frozen
class Work:
    """What is known about a run before it begins.

    Attributes
    ----------
    backend : str
        ``cpu`` or ``cuda``.
    device : str
        The name of the device.
    architecture : str
        The architecture of the device, such as ``sm_90``.
    reference_bases : int or None
        About the length of the reference in bases.
    query_length : int or None
        About the length of a query in bases.
    minimum_length : int
        The fewest bases of a match.
    """

    backend: str
    device: str
    architecture: str
    reference_bases: int | None
    query_length: int | None
    minimum_length: int


@frozen
class TunedPolicy:
    """The best policy that was measured for a device and a kind of work.

    Attributes
    ----------
    backend, device, architecture : str
        The device, as in `Work`.
    address_bits : int
        The format of the nodes: 24 or 32.
    reference_bases, query_length, minimum_length : int
        The work, as in `Work`.
    policy : str
        The code of the policies.
    certainty : float
        How sure it is that no other is better, from 0 to 1.
    program, date : str
        By what and when it was measured.
    """

    backend: str
    device: str
    architecture: str
    address_bits: int
    reference_bases: int
    query_length: int
    minimum_length: int
    policy: str
    certainty: float
    program: str
    date: str

    def is_like(self, other: TunedPolicy) -> bool:
        """Return whether another record is about the same device and the same work."""
        return _identity(self) == _identity(other)


@frozen
class Choice:
    """A chosen policy.

    Attributes
    ----------
    reason : str
        Where it is from, for the user.
    """

    policy: Policy
    reason: str


def choose_policy(work: Work, tuned: Sequence[TunedPolicy]) -> Choice:
    """Choose the policy of a run.

    The user's record for the most similar work on the same device decides; without one, that of the
    package for the device or its architecture; without one, the default.
    """
    own = [record for record in tuned if _same_device(record, work)]
    if own:
        record = min(own, key=lambda record: _distance(record, work))
        return Choice(Policy.from_code(record.policy), f"as tuned on {record.date}")
    known = read_tuned(KNOWN_DEVICES)
    for what, matching in (
        ("this device", [record for record in known if _same_device(record, work)]),
        ("devices of this architecture", [record for record in known if _same_kind(record, work)]),
    ):
        if matching:
            record = min(matching, key=lambda record: _distance(record, work))
            return Choice(Policy.from_code(record.policy), f"the best known for {what}")
    return Choice(DEFAULT_POLICY, "the default")


def read_tuned(path: Path) -> list[TunedPolicy]:
    """Read the records of a file, the oldest first; one that does not exist has none.

    `InputError` is raised if the file cannot be read, or holds something else.
    """
    if not path.exists():
        return []
    with reading(str(path)), open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return [_record(value) for value in json.loads(text)["policies"]]
    except (ValueError, KeyError, TypeError, OptionError) as error:
        raise InputError(
            f"is not what 'mummergpu tune' writes ({error}); remove it", str(path)
        ) from error


def with_record(records: Iterable[TunedPolicy], new: TunedPolicy) -> list[TunedPolicy]:
    """Return records with a new one, which takes the place of one about the same work."""
    return [*(record for record in records if not record.is_like(new)), new]


def tuned_text(records: Iterable[TunedPolicy]) -> str:
    """Return the text of a file of records."""
    return json.dumps({"policies": [asdict(record) for record in records]}, indent=2) + "\n"


def _record(value: dict[str, Any]) -> TunedPolicy:
    known = {field.name for field in fields(TunedPolicy)}
    record = TunedPolicy(**{name: value[name] for name in known})
    Policy.from_code(record.policy)
    return record


def _identity(record: TunedPolicy) -> tuple[Any, ...]:
    return (
        record.backend,
        record.device,
        record.address_bits,
        record.reference_bases,
        record.query_length,
        record.minimum_length,
    )


def _same_device(record: TunedPolicy, work: Work) -> bool:
    return (record.backend, record.device) == (work.backend, work.device)


def _same_kind(record: TunedPolicy, work: Work) -> bool:
    return work.backend == "cuda" and record.architecture == work.architecture


def _distance(record: TunedPolicy, work: Work) -> float:
    """Return how different the work of a record is: the sum of the logarithms of the ratios."""
    pairs = (
        (record.reference_bases, work.reference_bases),
        (record.query_length, work.query_length),
        (record.minimum_length, work.minimum_length),
    )
    return sum(abs(math.log2(ours / theirs)) for ours, theirs in pairs if theirs and ours)
