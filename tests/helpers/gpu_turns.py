"""Processes that share the tests share one GPU: each waits for its turn."""

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def in_turn(is_alone):
    """Let the processes that share the tests share the device, or one of them have it alone.

    Who waits for the whole device holds the gate, so that no others come in.
    """
    name = f"mummergpu-gpu-tests-{os.getuid()}"
    gate_path, room_path = (
        Path(tempfile.gettempdir()) / f"{name}-{part}" for part in ("gate", "room")
    )
    with open(gate_path, "w") as gate, open(room_path, "w") as room:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        if not is_alone:
            fcntl.flock(gate, fcntl.LOCK_UN)
        yield
