"""Checks before any work that all workers have the same programs, and see the same files."""

from __future__ import annotations

import os
import platform
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from importlib import metadata
from typing import Final, NamedTuple

from mummergpu.cluster.connection import OpenCluster
from mummergpu.cluster.faults import DIGEST
from mummergpu.errors import ClusterError
from mummergpu.version import __version__

_LIBRARIES: Final = ("numpy", "isal", "pysam", "pyhmmer", "distributed")
"""The libraries on whose versions the bytes of the output may depend, or what travels."""

_LOOKED_AT: Final = 1 << 16
"""The first and last bytes of a file that tell whether it is the same."""

_SIGN: Final = "shared"
_SECONDS_TO_APPEAR: Final = 20.0
"""How long a file that one machine has made may take to be seen by another one."""


class WorkerFacts(NamedTuple):
    """A worker's machine and its programs, each with its version."""

    host: str
    versions: tuple[tuple[str, str], ...]


class FileFacts(NamedTuple):
    """What tells whether two machines see the same file; the reason if it cannot be read."""

    size: int
    digest: str
    problem: str = ""


def worker_facts() -> WorkerFacts:
    """Return the facts of this process."""
    own = f"{__version__} ({(DIGEST or 'unknown')[:12]})"
    python = ".".join(platform.python_version_tuple()[:2])
    libraries = [(name, _version_of(name)) for name in _LIBRARIES]
    return WorkerFacts(socket.gethostname(), (("mummergpu", own), ("python", python), *libraries))


def _version_of(library: str) -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(library)
    return "none"


def check_versions(cluster: OpenCluster) -> None:
    """Refuse a worker that has not the programs of this process.

    Raises
    ------
    ClusterError
        It names the worker and what differs.
    """
    own = dict(worker_facts().versions)
    for address, facts in sorted(cluster.on_all(worker_facts).items()):
        if isinstance(facts, Exception):
            raise ClusterError(f"worker {address}", f"mummergpu does not run there: {facts}")
        for name, version in facts.versions:
            if version != own[name]:
                raise ClusterError(
                    f"worker {address} on {facts.host}",
                    f"has {name} {version}, and this process {own[name]}: install the same "
                    "versions everywhere",
                )


def file_facts(paths: Sequence[str]) -> list[FileFacts]:
    """Return the facts of some files, as this machine sees them."""
    return [_facts_of(path) for path in paths]


def _facts_of(path: str) -> FileFacts:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            seen = file.read(_LOOKED_AT) + os.pread(
                file.fileno(), _LOOKED_AT, max(0, size - _LOOKED_AT)
            )
    except OSError as error:
        return FileFacts(0, "", error.strerror or str(error))
    return FileFacts(size, blake2b(seen, digest_size=16).hexdigest())


def check_files(cluster: OpenCluster, paths: Sequence[str]) -> None:
    """Refuse a worker that does not see a file, or another one by its path.

    Raises
    ------
    ClusterError
        It names the worker and the path.
    """
    own = file_facts(paths)
    for address, seen in sorted(cluster.on_all(file_facts, tuple(paths)).items()):
        if isinstance(seen, Exception):
            raise ClusterError(f"worker {address}", str(seen))
        for path, ours, theirs in zip(paths, own, seen, strict=True):
            if ours.problem:
                continue
            if theirs != ours:
                problem = theirs.problem or "it is another file"
                message = f"does not see '{path}' ({problem}): put it where all machines see it"
                raise ClusterError(f"worker {address}", message)


def sign_folder(folder: str, name: str) -> str:
    """Leave a file in a folder of parts, if this machine sees the driver's; return the problem."""
    try:
        os.stat(os.path.join(folder, _SIGN))
        with open(os.path.join(folder, name), "wb"):
            pass
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _sign(folder: str) -> tuple[str, str]:
    name = f"sign-{socket.gethostname()}-{os.getpid()}"
    return name, sign_folder(folder, name)


def check_folders(cluster: OpenCluster, folders: Sequence[str]) -> None:
    """Refuse a worker that cannot write where this process reads; one of those beside each other.

    Raises
    ------
    ClusterError
        It names the worker and the folder.
    """
    for folder in {os.path.dirname(folder): folder for folder in folders}.values():
        _check_folder(cluster, folder)


def _check_folder(cluster: OpenCluster, folder: str) -> None:
    with open(os.path.join(folder, _SIGN), "wb"):
        pass
    shared = os.path.dirname(folder)
    deadline = time.monotonic() + _SECONDS_TO_APPEAR
    for address, told in sorted(cluster.on_all(_sign, folder).items()):
        if isinstance(told, Exception):
            raise ClusterError(f"worker {address}", str(told))
        name, problem = told
        path = os.path.join(folder, name)
        while not problem and not os.path.exists(path):
            if time.monotonic() > deadline:
                problem = "what it writes there does not appear here"
            time.sleep(0.1)
        if problem:
            message = f"cannot write parts into '{shared}' ({problem}): write to where all see it"
            raise ClusterError(f"worker {address}", message)
        with suppress(OSError):
            os.unlink(path)
