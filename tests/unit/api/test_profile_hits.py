"""Searches with profiles from Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.hmmer import TABLES, write_input

import mummergpu
from mummergpu.cli.main import main
from mummergpu.input.blocks.proteins import ProteinFiles, ProteinRules
from mummergpu.pipeline import search_profiles
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.profile_options import ProfileSearchOptions


def test_searches_and_scans_are_those_of_the_command(tmp_path: Path) -> None:
    pyhmmer = pytest.importorskip("pyhmmer")
    profiles, proteins = write_input(tmp_path)
    with pyhmmer.plan7.HMMFile(profiles) as file:
        hmms = list(file)
    for verb, search in (("hmmsearch", mummergpu.hmmsearch), ("hmmscan", mummergpu.hmmscan)):
        table = tmp_path / "table"
        files = ["--domtblout", str(table), str(profiles), str(proteins)]
        assert main([verb, "-q", "-E", "1e-3", *files]) == 0
        lines = [line.split() for line in table.read_text().splitlines() if line[0] != "#"]
        hits = search(profiles, proteins, E=1e-3, threads=2)
        assert [(hit.target, hit.query) for hit in hits] == [(row[0], row[3]) for row in lines]
        assert [f"{score:.1f}" for score in hits.domain_score] == [row[13] for row in lines]
        again = search(hmms, str(proteins), E=1e-3)
        assert list(again) == list(hits) and len(hits) > 3
        assert list(hits[hits.included]) == [hit for hit in hits if hit.included]
        assert repr(hits).startswith(f"{len(hits)} domains\n")
        assert list(hits.to_pandas()["target"]) == [row[0] for row in lines]


def test_options_and_sequences_in_memory(tmp_path: Path) -> None:
    profiles, _ = write_input(tmp_path)
    hits = mummergpu.hmmsearch([profiles], [("none", ""), ("some", "MKLVRAW" * 9)], max=True)
    assert hits.query_names[0] and set(hits.target_names) <= {"some"}
    with pytest.raises(TypeError, match="no such option: domains"):
        mummergpu.hmmsearch(profiles, [("a", "MKL")], domains=3)
    with pytest.raises(mummergpu.MummergpuError, match="is not a sequence character"):
        mummergpu.hmmsearch(profiles, [("a", "M-KL")])


@pytest.mark.parametrize("scans", [False, True])
def test_blocks_and_passes_change_nothing(
    scans: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles, proteins = write_input(tmp_path)
    tables = []
    for block_residues, at_once in ((1 << 20, 2000), (5000, 3)):
        monkeypatch.setattr(search_profiles, "PROFILES_AT_ONCE", at_once)
        source = ProteinFiles([str(proteins)], ProteinRules(), block_residues)
        outputs = tuple((kind, str(tmp_path / kind)) for kind in TABLES)
        options = ProfileSearchOptions(
            (str(profiles),), source, scans=scans, outputs=outputs, threads=2
        )
        search_profiles.run(options, RunContext(2))
        tables.append([(tmp_path / kind).read_bytes() for kind in TABLES])
    assert tables[0] == tables[1]
