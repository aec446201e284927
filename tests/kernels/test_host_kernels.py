"""The kernels' own source on the host, under the sanitizers: the oracle's matches, always."""

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from helpers.pairwise import name_of, pairwise_policies

HERE = Path(__file__).resolve().parent
MINUTES = 60

LAYOUTS = [
    f"{letters}{wide}".replace("none", "") or "none"
    for wide in ("", "W")
    for letters in ("none", "m", "r", "t", "mr", "mt", "rt", "mrt")
]


def run(sanitizing, folder, *words):
    command = [sys.executable, "-W", "error", str(HERE / "sanitized_search.py"), str(folder)]
    return subprocess.run(
        [*command, *words], capture_output=True, text=True, env=sanitizing, timeout=4 * MINUTES
    )


def check(sanitizing, folder, names):
    """Have all cases searched under some policies."""
    done = run(sanitizing, folder, *names)
    report = done.stdout + done.stderr[:5000]
    assert done.returncode == 0, report
    *lines, last = done.stdout.splitlines()
    assert last == "0 differences"
    told = [re.fullmatch(r"(\w+): (\d+) matches in (\d+) cases", line) for line in lines]
    assert [found and found[1] for found in told] == names, report
    for found in told:
        assert found is not None
        assert int(found[2]) > 6_000
        assert int(found[3]) >= (15 if "t" in found[1] and "W" in found[1] else 24)


@pytest.mark.parametrize("part", [0, 1])
def test_each_pair_of_policies_and_formats_gives_the_matches_of_the_definition(
    sanitizing, library_folder, part
):
    names = [name_of(choice) for choice in pairwise_policies()]
    check(sanitizing, library_folder, names[part::2])


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_textures_and_layouts_give_the_matches_of_the_definition(
    sanitizing, library_folder, layout
):
    """Each set of textures; each with one of the orders of nodes, of which kernels do not know."""
    names = []
    for textures in product(("", "Q"), ("", "R"), ("", "T")):
        letters = "".join(textures) + layout.replace("none", "").replace("W", "")
        letters += "n" * (sum(map(bool, textures)) % 2)
        names.append((letters or "none") + "W" * ("W" in layout))
    check(sanitizing, library_folder, names)


@pytest.mark.parametrize(
    "buffer", ["reverse codes", "mem counts", "candidate offsets", "mem offsets", "lengths 0"]
)
def test_memory_that_is_one_byte_short_is_noticed(sanitizing, library_folder, buffer):
    done = run(sanitizing, library_folder, "--short", buffer)
    assert done.returncode != 0, done.stdout
    assert "heap-buffer-overflow" in done.stderr
    # What lies after the reversed codes is zeroed before a kernel comes to it.
    where = "memset" if buffer == "reverse codes" else r"kernels/\w+/\w+\.cu"
    assert re.search(rf"#0 .*{where}", done.stderr)


def test_what_the_language_does_not_define_is_noticed(sanitizing, tmp_path):
    done = run(sanitizing, tmp_path, "--overflow")
    assert done.returncode != 0, done.stdout
    assert "signed integer overflow" in done.stderr
