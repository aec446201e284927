"""The options of runs on other machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from mummergpu.errors import OptionError
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import keep_values, positive

LOCAL: Final = "local:"
SLURM: Final = "slurm:"
SCHEMES: Final = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
"""The beginnings of addresses of Dask schedulers."""

OF_LOCAL: Final = "mummergpu_local"
"""A Dask resource that only the processes of ``local:N`` have."""

PATIENCE: Final = 60.0
"""The seconds after which a late part also goes to another worker, if other parts took less."""


@frozen
class ClusterOptions:
    """A Dask cluster, and how it is used.

    Attributes
    ----------
    address : str
        The address of a running scheduler, such as ``tcp://host:8786``; ``local:N`` for N processes
        on this machine; or ``slurm:FILE`` for SLURM jobs, with a file of dask-jobqueue's options.
    client : distributed.Client or None
        The client of a Python program, in place of an address.
    threads : int or None
        The threads of each process of ``local:N``; None to share the processors.
    patience : float
        The seconds after which a late part goes to another worker, too; or four times the longest
        time of a part so far, if that is more. A run ends if no worker is in time and none sends a
        heartbeat.
    """

    address: str = ""
    client: Any = None
    threads: int | None = None
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        if self.client is None:
            known = (LOCAL, SLURM, *SCHEMES)
            if not isinstance(self.address, str) or not self.address.startswith(known):
                raise OptionError(
                    "cluster",
                    f"'{self.address}' is no tcp://HOST:PORT of a scheduler, local:N, slurm:FILE",
                )
            if self.address.startswith(LOCAL):
                number = self.address[len(LOCAL) :]
                count = int(number) if number.isascii() and number.isdigit() else 0
                keep_values(self, address=f"{LOCAL}{positive('cluster', count)}")

    @classmethod
    def shared(cls, address: str, threads: int) -> ClusterOptions:
        """Return a cluster by its address; its processes here share some threads."""
        asked = cls(address)
        if asked.processes is None:
            return asked
        return replace(asked, threads=max(1, threads // asked.processes))

    @property
    def processes(self) -> int | None:
        """The number of processes on this machine; None for a remote cluster."""
        return int(self.address[len(LOCAL) :]) if self.address.startswith(LOCAL) else None

    @property
    def name(self) -> str:
        """The cluster in errors."""
        return self.address or "cluster"
