"""Damage to index files, and searches of damaged ones in a process of their own.

    python -m helpers.damage INDEX QUERIES SEED CASES SECONDS

makes `CASES` damaged copies of an index file, one after the other, and searches each. It writes a
line of JSON for each case before its search and one behind it, so that the process that started
it knows what was searched when this one crashed. A search that takes longer than `SECONDS` ends
the process by a signal.
"""

import json
import os
import random
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

OPTIONS = (["-l", "12", "-b", "-s"], ["-l", "20", "-b", "-c"], ["-l", "15", "-mum", "-r", "-L"])

_SEARCH = ("-C", "-q", "-t", "1")


@dataclass(frozen=True)
class Damage:
    """Bytes that are written to an index file, and where."""

    offset: int
    data: bytes


def damages(path, seed, count):
    """Return damage to the large sections of an index file: the same for the same seed."""
    from mummergpu.index.file import RECORD_SECTIONS
    from mummergpu.index.format import read_header

    with open(path, "rb", buffering=0) as file:
        header = read_header(file, str(path))
    sound = path.read_bytes()
    large = [section for section in header.sections if section.name not in RECORD_SECTIONS]
    some = random.Random(seed)
    made = []
    for number in range(count):
        section = large[number % len(large)]
        size = min(some.choice((1, 1, 4, 4, 64, 4096)), section.byte_count)
        offset = section.offset + some.randrange(section.byte_count - size + 1)
        if size == 1:
            data = bytes([sound[offset] ^ some.randrange(1, 256)])
        else:
            data = some.choice((some.randbytes(size), bytes(size), b"\xff" * size))
        made.append(Damage(offset, data))
    return made


def write_damaged(sound, damage, path):
    """Write a damaged copy of a file."""
    behind = damage.offset + len(damage.data)
    path.write_bytes(sound[: damage.offset] + damage.data + sound[behind:])


def search_each(index, queries, seed, count, seconds):
    """Search damaged copies of an index, one after the other."""
    from mummergpu.cli.main import main

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    sound = index.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        damaged, output = Path(folder, "damaged.mgi"), Path(folder, "output")
        errors = os.open(Path(folder, "errors"), os.O_RDWR | os.O_CREAT)
        os.dup2(errors, 2)
        for words in OPTIONS:
            # What has to be compiled for the first time counts against no limit.
            assert main([*_SEARCH, *words, "-o", str(output), str(index), queries]) == 0
        for number, damage in enumerate(damages(index, seed, count)):
            write_damaged(sound, damage, damaged)
            words = OPTIONS[number % len(OPTIONS)]
            case = {"offset": damage.offset, "data": damage.data.hex()[:40], "words": words}
            print(json.dumps(case), flush=True)
            os.ftruncate(errors, 0)
            os.lseek(errors, 0, os.SEEK_SET)
            signal.setitimer(signal.ITIMER_REAL, seconds)
            code = main([*_SEARCH, *words, "-o", str(output), str(damaged), queries])
            signal.setitimer(signal.ITIMER_REAL, 0)
            text = os.pread(errors, 1 << 16, 0).decode()
            print(json.dumps({"code": code, "error": text}), flush=True)
    # As the command does: threads may still run.
    os._exit(0)


if __name__ == "__main__":
    search_each(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:5]), float(sys.argv[5]))
