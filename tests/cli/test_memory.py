"""How much memory a run takes: within its limit, and no more than its bases need."""

import json
import subprocess
import sys

import numpy as np
import pytest

from mummergpu.runtime.memory import PROCESS_BYTES, PROCESS_BYTES_PER_THREAD

THREADS = 2
MIB = 1 << 20
LINE = 100


def write_fasta(path, bases, unknown=0):
    """Write a record of random bases, with so many that are unknown behind them."""
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)
    text = letters[np.random.default_rng(bases).integers(0, 4, bases, dtype=np.uint8)]
    text = np.concatenate((text, np.full(unknown, ord("N"), dtype=np.uint8)))
    lines = np.full((text.size // LINE, LINE + 1), ord("\n"), dtype=np.uint8)
    lines[:, :LINE] = text.reshape(-1, LINE)
    path.write_bytes(b">r\n" + lines.tobytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """24 Mbp, and reads of them."""
    folder = tmp_path_factory.mktemp("memory")
    write_fasta(folder / "ref.fa", 24_000_000)
    text = (folder / "ref.fa").read_bytes().split(b"\n")
    with (folder / "reads.fa").open("wb") as file:
        for number in range(1000):
            file.write(b">q%d\n%s\n" % (number, text[1 + 97 * number]))
    return folder


def run(folder, *words):
    """Return the peak of resident memory, the groups of pages, and the output."""
    command = [sys.executable, "-m", "mummergpu", "-C", "-q", "-t", str(THREADS), *words]
    files = ["-o", str(folder / "out.txt"), "--stats", str(folder / "stats.json")]
    subprocess.run([*command, *files], check=True, timeout=250)
    report = json.loads((folder / "stats.json").read_text())
    groups = report["settings"]["page_groups"]
    return report["peak_memory_bytes"], groups, (folder / "out.txt").read_bytes()


def test_a_run_keeps_to_its_limit(folder):
    files = [str(folder / "ref.fa"), str(folder / "reads.fa"), "-b"]
    whole, groups, expected = run(folder, *files)
    assert groups == 1 and expected.count(b"\n") >= 3000
    for limit, has_groups in ((60, False), (26, True)):
        peak, groups, found = run(folder, *files, "--max-memory", f"{limit}M")
        assert found == expected
        # A smaller table comes first, and only then several.
        assert (groups > 1) == has_groups
        assert peak < limit * MIB + PROCESS_BYTES + THREADS * PROCESS_BYTES_PER_THREAD
        # What a run takes besides is far less here, so that the limit is felt.
        assert peak < whole - 2 * MIB * has_groups


def test_an_index_file_is_let_go_group_by_group(folder):
    files = [str(folder / "reads.fa"), "-b"]
    index = str(folder / "ref.mgi")
    command = [sys.executable, "-m", "mummergpu", "index", str(folder / "ref.fa")]
    words = ["--search", "kmer", "--page-size", "3M", "-q", "-o", index]
    subprocess.run([*command, *words], check=True, timeout=250)
    whole, groups, expected = run(folder, index, *files)
    assert groups == 1
    peak, groups, found = run(folder, index, *files, "--max-memory", "60M")
    assert found == expected and groups == 8
    assert peak < whole - 150 * MIB


def test_unknown_bases_take_the_memory_of_their_codes_only(tmp_path):
    write_fasta(tmp_path / "few.fa", 10_000)
    few, _, expected = run(tmp_path, str(tmp_path / "few.fa"), str(tmp_path / "few.fa"))
    write_fasta(tmp_path / "many.fa", 10_000, unknown=80_000_000)
    many, groups, found = run(tmp_path, str(tmp_path / "many.fa"), str(tmp_path / "few.fa"))
    assert found == expected and groups == 1
    assert many < few + 80_000_000 + 60 * MIB
