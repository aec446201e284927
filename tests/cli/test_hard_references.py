"""References of one repeated letter, of unknown bases, or of very many records: all is well."""

import json
import random
import subprocess
import sys

import pytest

from mummergpu.runtime.memory import PROCESS_BYTES, PROCESS_BYTES_PER_THREAD

LIMIT = 100 << 20
THREADS = 2
SECONDS = 120
"""They take a second or two, and some more where code has to be compiled."""

MODES = {
    "maxmatch": ["-maxmatch", "-b"],
    "mumreference": ["-mumreference", "-b"],
    "mum": ["-mum", "-b"],
    "map": ["map"],
    "align": ["align"],
}


def made(folder, kind):
    """Write a reference and three reads; return the bases of its records."""
    chance = random.Random(5)
    records = {
        "letter": lambda: ["A" * 200_000],
        "unknown": lambda: ["N" * 1_000_000, "N" * 10],
        "records": lambda: ["".join(chance.choices("ACGT", k=100)) for _ in range(50_000)],
    }[kind]()
    lines = [f">r{number}\n{bases}\n" for number, bases in enumerate(records)]
    (folder / "r.fa").write_text("".join(lines))
    reads = [record[:90] for record in (records * 3)[:3]]
    text = "".join(f">q{number}\n{read}\n" for number, read in enumerate(reads))
    (folder / "q.fa").write_text(text)
    return records


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["letter", "unknown", "records"])
def test_hard_references(tmp_path, kind, mode):
    records = made(tmp_path, kind)
    queries = "r.fa" if mode == "align" and kind != "records" else "q.fa"
    name = {"map": "x.sam", "align": "x.paf"}.get(mode, "x.txt")
    words = [*MODES[mode], "r.fa", queries, "-C", "-t", str(THREADS), "-o", name]
    words += ["--backend", "cpu", "--max-memory", "100M", "--stats", "s.json"]
    line = [sys.executable, "-m", "mummergpu", *words]
    done = subprocess.run(
        line, cwd=tmp_path, timeout=SECONDS, check=True, capture_output=True, text=True
    )
    stats = json.loads((tmp_path / "s.json").read_text())
    # Compiling takes memory, too, where nothing has been compiled before.
    if "compiling" not in done.stderr:
        most = LIMIT + PROCESS_BYTES + THREADS * PROCESS_BYTES_PER_THREAD
        assert stats["peak_memory_bytes"] < most
    rows = (tmp_path / name).read_text().splitlines()
    found = [row for row in rows if row[0] not in ">@"]
    assert ("the reference holds no A, C, G or T" in done.stderr) == (kind == "unknown")
    if mode == "map":
        mapped = [row for row in found if int(row.split("\t")[1]) & 4 == 0]
        assert len(found) == 3 and len(mapped) == (0 if kind == "unknown" else 3)
        if kind == "letter":
            assert all(row.split("\t")[4] == "0" for row in mapped)
    elif kind == "unknown":
        assert found == []
    elif kind == "letter":
        # Each copy of the read, and at either end what is left of it.
        copies = len(records[0]) - 90 + 1 + 2 * (90 - 20)
        count = {"maxmatch": 3 * copies, "align": 1}.get(mode, 0)
        assert len(found) == count
    else:
        assert len(found) >= 3
