"""The ``mummer`` that is installed beside this program: find it, and let it do a job."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NoReturn

from mummergpu.errors import MummergpuError

NAME: Final = "mummer"

CHOSEN: Final = "MUMMERGPU_MUMMER"
"""The variable that names MUMmer's own ``mummer``, where it is not in ``PATH``."""

PASSED: Final = "MUMMERGPU_MUMMER_PASSED"
"""The variable that lists the programs which a job has come through, so that it never comes back.

A ``mummer`` in ``PATH`` may be this program again: as a link, in another environment, or inside a
shell script. Only the first of these can be seen beforehand.
"""


def find_mummer(environment: Mapping[str, str], program: str) -> str | None:
    """Return the path of MUMmer's own ``mummer``, or None if there is none.

    It is neither this program, under whatever name, nor one that the job has already come through.
    """
    passed = {os.path.realpath(program), *_passed(environment)}
    for path in _candidates(environment):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            if os.path.realpath(path) not in passed:
                return path
    return None


def hand_over(path: str, words: Sequence[str]) -> NoReturn:
    """Replace this process by another program."""
    passed = [os.path.realpath(sys.argv[0]), os.path.realpath(path), *_passed(os.environ)]
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these two, and the program would inherit that.
    handlers = {number: signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGXFSZ)}
    for number in handlers:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(path, [path, *words], {**os.environ, PASSED: os.pathsep.join(passed)})
    except OSError as error:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        raise MummergpuError(f"{path}: cannot be started: {error.strerror}") from error


def _candidates(environment: Mapping[str, str]) -> Iterator[str]:
    if chosen := environment.get(CHOSEN):
        yield chosen
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        yield os.path.join(folder or os.curdir, NAME)


def _passed(environment: Mapping[str, str]) -> list[str]:
    return [path for path in environment.get(PASSED, "").split(os.pathsep) if path]
