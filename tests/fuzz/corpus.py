"""The kept inputs of each target, and mutations of them that are the same every time."""

import random
from importlib import import_module
from pathlib import Path
from typing import Final

TARGETS: Final = ("records", "detection", "index_header", "programs")
CORPUS: Final = Path(__file__).resolve().parent / "corpus"

_TOKENS: Final = (
    *(b"\n", b"\r\n", b"\r", b"\n\n", b" ", b"\t", b"\v", b">", b"@", b"+", b"\n+\n", b"*"),
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\x1f\x8b\x08", b"A" * 31, b"I" * 32, b"ACGTacgtNn"),
    *(b'"', b"[", b"]", b"{", b"}", b",", b"-1", b"0", b"4096", b"9" * 20, b"null", b"1e9"),
)


def target_of(name):
    """Return the module of a target.

    It has EXAMPLES, inputs made by the package's own words, which change with it; `instrument`,
    which gives each function whose branches matter to a function that changes it; and `one_input`,
    which raises an exception if the package does with some bytes what it should not.
    """
    return import_module(f"fuzz.{name}")


def kept_inputs(name):
    """Return the examples of a target, and its corpus in the order of the files' names."""
    files = sorted((CORPUS / name).iterdir())
    return [*target_of(name).EXAMPLES, *(file.read_bytes() for file in files)]


def mutations(inputs, count, seed=0):
    """Make inputs of others: each of one of them, changed in a few places."""
    choice = random.Random(seed)
    for _ in range(count):
        data = bytearray(choice.choice(inputs))
        for _ in range(choice.randint(1, 4)):
            _change(data, choice, inputs)
        yield bytes(data)


def _change(data, choice, inputs):
    """Change one place: a byte or a piece, inserted, overwritten, left out or doubled."""
    begin = choice.randint(0, len(data))
    end = min(len(data), begin + choice.choice((0, 0, 1, 2, 8, 40)))
    kind = choice.randrange(5)
    if kind == 0:
        data[begin:end] = choice.choice(_TOKENS)
    elif kind == 1:
        del data[begin : begin + choice.choice((1, 2, 20))]
    elif kind == 2:
        data[begin:begin] = data[begin:end]
    elif kind == 3:
        other = choice.choice(inputs)
        start = choice.randint(0, len(other))
        data[begin:end] = other[start : start + choice.randint(0, 60)]
    elif begin < len(data):
        data[begin] = choice.randrange(256)
