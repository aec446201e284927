"""Several devices of the host, opened as one backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helpers.opened_backends import FORWARD, GENOME
from helpers.search_cases import ANY, SearchCase, find_on, rows_of
from helpers.watched_device import WatchedDevice
from mummergpu.errors import BackendError
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends.several_devices import SeveralDevices
from mummergpu.runtime.stats import Stats

POLICY = Policy.from_code("m")


class NamedDevice(WatchedDevice):
    """A device with a name, whose closing can fail."""

    def __init__(self, number: int, memory_bytes: int = 1 << 30) -> None:
        super().__init__(memory_bytes)
        self.name = f"card {number}"
        self.closing_fails = False

    def close(self) -> None:
        super().close()
        if self.closing_fails:
            raise BackendError("cuda", "the device failed: closing")


@dataclass
class Several:
    """A backend of several devices, and what it said."""

    backend: SeveralDevices[Any]
    devices: dict[int, NamedDevice]
    stats: Stats
    notices: list[str]

    def load_pages(self, case: SearchCase = GENOME) -> None:
        self.backend.load_pages(case.pages(Layout.of(POLICY)), case.minimum_length)

    def find(self, case: SearchCase = GENOME) -> object:
        columns = find_on(self.backend, case.block(), FORWARD, ANY)
        return None if columns is None else rows_of(columns)

    def launches(self) -> dict[int, int]:
        """How many blocks each device has matched, of one page."""
        return {
            number: Counter(device.launches)["match_kernel"]
            for number, device in self.devices.items()
        }

    def fail_on(self, number: int) -> None:
        """Let every search on a device fail."""

        def before_launch(kernel: str) -> None:
            raise BackendError("cuda", "the device failed: played")

        self.devices[number].before_launch = before_launch


OpenDevices = Callable[..., Several]

WHOLE = SearchCase("one page", GENOME.records, GENOME.queries, 6)
"""The genome on one page."""
