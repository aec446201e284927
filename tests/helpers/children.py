"""Python in processes of its own: programs, and the command."""

import os
import subprocess
import sys

COMMAND = ("-m", "mummergpu")


def child(*words, env=(), **more):
    """Run Python with some words; return the process, whose output is text unless told otherwise.

    Variables of the environment are added to those of this process.
    """
    given = {"capture_output": True, "text": True, "env": os.environ | dict(env), **more}
    return subprocess.run([sys.executable, *map(str, words)], **given)


def printed_by(*words, **more):
    """Run Python with some words, which must succeed; return what it prints."""
    done = child(*words, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout
