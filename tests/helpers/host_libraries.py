"""Libraries compiled for the host, kept from one run of the tests to the next.

A library's name has a digest of all that it depends on: the sources, the options and the
compiler. So one that is there is right, whoever made it, and nobody need be told of changes.
"""

import hashlib
import os
import subprocess
import tempfile
import time
from functools import cache

MOST_BYTES = 200 << 20
"""What is kept at most, but for libraries that were used within `SAFE_SECONDS`."""

SAFE_SECONDS = 3600


def host_compiler():
    """Return the compiler: $CXX, or g++."""
    return os.environ.get("CXX", "g++")


@cache
def _version_of(compiler):
    return subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout


def _digest(compiler, options, sources):
    digest = hashlib.sha256(_version_of(compiler))
    texts = [option.encode() for option in options]
    for source in sources:
        texts += [source.name.encode(), source.read_bytes()]
    for text in texts:
        digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()[:24]


def library_of(folder, name, main, include, options):
    """Return a library, compiled unless the folder, which others may use at the same time, has it.

    Its name begins with `name`; every file in the folders `include` counts, and so do the options.
    """
    files = [file for each in include for file in sorted(each.rglob("*")) if is_source(file)]
    compiler = host_compiler()
    library = folder / f"{name}-{_digest(compiler, options, [main, *files])}.so"
    if library.exists():
        os.utime(library)
        return library
    number, unfinished = tempfile.mkstemp(suffix=".unfinished", dir=folder)
    os.close(number)
    paths = [*(f"-I{each}" for each in include), str(main), "-o", unfinished]
    done = subprocess.run([compiler, *options, *paths], capture_output=True, text=True)
    if done.returncode != 0:
        os.unlink(unfinished)
        raise AssertionError(done.stderr)
    os.replace(unfinished, library)
    return library


def is_source(path):
    """Tell whether a file can be a part of a library."""
    return path.suffix in (".cu", ".cuh", ".h", ".cpp")


def prune(folder, max_bytes=MOST_BYTES):
    """Remove the libraries that were not used for longest, until the others are few enough."""
    now, held = time.time(), 0
    found = [(file.stat(), file) for file in folder.iterdir() if file.is_file()]
    for status, file in sorted(found, key=lambda each: each[0].st_mtime, reverse=True):
        held += status.st_size
        if held > max_bytes and now - status.st_mtime > SAFE_SECONDS:
            file.unlink(missing_ok=True)
