"""The records of a sweep of profile filters; their files are those of all sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from mummergpu.runtime.frozen import frozen
from mummergpu.studies.subject import StudyRun, StudySetup, Subject

STAGES: Final = ("filter", "again", "search")
"""The stages of a run: ``filter`` is the kernel of the policy, ``again`` that of the proteins which
tiles leave to a warp each, ``search`` the wall-clock time with the scores' copy to the host. On the
processor ``filter`` is the time of all threads together, summed over them."""


@frozen
class ProfileRun(StudyRun):
    """One measured run of one policy of profile filters.

    Attributes
    ----------
    again : int
        The proteins that tiles left to another filter.
    """

    KERNEL_STAGES: ClassVar[tuple[str, ...]] = ("filter", "again")

    again: int


@frozen
class ProfileInput:
    """The profile and the proteins that all runs of a sweep compare.

    Attributes
    ----------
    name : str
        The name of the profile.
    digest : str
        The hash of its scores and of the proteins.
    nodes, proteins, residues : int
        The size of both.
    longest, median_length : int
        The length of the longest protein, and the median.
    left_out : int
        The proteins that were left out: empty ones, and those with marks.
    """

    name: str
    digest: str
    nodes: int
    proteins: int
    residues: int
    longest: int
    median_length: int
    left_out: int

    @property
    def cells(self) -> int:
        """The residues times the nodes."""
        return self.nodes * self.residues


@frozen
class ProfileSetup(StudySetup):
    """All that the runs of a sweep of profile filters have in common."""

    input: ProfileInput


@frozen
class ProfileSweep:
    """A sweep of profile filters as it was read from its folder, its runs in their order."""

    folder: Path
    setup: ProfileSetup
    runs: tuple[ProfileRun, ...]


def _every_policy() -> Sequence[str]:
    # Studies of trees need no filters.
    from mummergpu.studies.profiles.policies import every_policy

    return every_policy()


def _checked_policy(code: str) -> str:
    from mummergpu.studies.profiles.policies import policy_of

    return policy_of(code).code


PROFILES: Final = Subject(
    "profiles",
    _every_policy,
    _checked_policy,
    # `policies.CONTROLS`.
    {"cuda": "g1crggg", "cpu": "S16"},
    ProfileInput,
    ProfileSetup,
    ProfileRun,
)
"""The filters of profiles."""
