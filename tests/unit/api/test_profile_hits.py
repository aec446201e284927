"""Searches with profiles from Python."""

import weakref
from pathlib import Path

import numpy as np
import pytest
from helpers.hmmer import TABLES, write_input
from helpers.sequences import reverse_complement

import mummergpu
from mummergpu.cli.main import main
from mummergpu.errors import OptionError
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import ProteinFiles
from mummergpu.pipeline import profile_job, search_profiles
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.profile_job import ProfileJob
from mummergpu.pipeline.profile_options import ProfileSearchOptions
from mummergpu.runtime.progress import Messages

CODONS = "AAA AAC ACA CGC AGC ATA ATG CAA CAC CCA CTA GAA GAC GCA GGA GTA TAC TGC TGG TTC"


@pytest.fixture
def inputs(tmp_path):
    """A file of profiles and a file of proteins."""
    return write_input(tmp_path)


def test_searches_and_scans_are_those_of_the_command(inputs, tmp_path):
    pyhmmer = pytest.importorskip("pyhmmer")
    profiles, proteins = inputs
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
        lengths = zip(hits.target_length.tolist(), hits.query_length.tolist(), strict=True)
        assert [*lengths] == [(int(row[2]), int(row[5])) for row in lines]
        assert [f"{hit.accuracy:.2f}" for hit in hits] == [row[21] for row in lines]
        told = [(hit.target_accession, hit.query_accession, hit.description) for hit in hits]
        words = [tuple(" ".join(one.split()) or "-" for one in row) for row in told]
        assert words == [(row[1], row[4], " ".join(row[22:])) for row in lines]
        again = search(hmms, str(proteins), E=1e-3)
        assert list(again) == list(hits) and len(hits) > 3
        assert list(hits[hits.included]) == [hit for hit in hits if hit.included]
        assert repr(hits).startswith(f"{len(hits)} domains\n")
        assert list(hits.to_pandas()["target"]) == [row[0] for row in lines]
        assert list(hits.to_pandas()["description"]) == [hit.description for hit in hits]


def test_names_and_descriptions_of_any_bytes(inputs, tmp_path):
    profiles, proteins = inputs
    hits = mummergpu.hmmsearch(profiles, proteins, E=1e-9)
    text = proteins.read_bytes()
    proteins.write_bytes(text.replace(b"HG00", b"HG\xff\xe9").replace(b"ID=", b"\xfe"))
    odd = mummergpu.hmmsearch(profiles, str(proteins), E=1e-9)
    expected = [hit.target.replace("HG00", "HG\udcff\udce9") for hit in hits]
    assert [hit.target for hit in odd] == expected != [hit.target for hit in hits]
    assert any("\udcfe" in hit.description for hit in odd)
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "hits.parquet"
    words = ["-E", "1e-9", "--parquet", str(path), str(profiles), str(proteins)]
    assert main(["hmmsearch", "-q", *words]) == 0
    found = parquet.read_table(path).to_pandas()
    tables = odd.to_pandas()
    for field in ("target", "description", "accuracy", "target_length", "query_accession"):
        assert list(found[field]) == list(tables[field])
    assert found["target"][0] == hits[0].target.replace("HG00", r"HG\xff\xe9")


def test_sequences_in_memory(inputs):
    profiles, proteins = inputs
    hits = mummergpu.hmmsearch([profiles], [("none", ""), ("some", "MKLVRAW" * 9)], max=True)
    assert hits.query_names[0] and set(hits.target_names) <= {"some"}
    with pytest.raises(mummergpu.MummergpuError, match="is not a sequence character"):
        mummergpu.hmmsearch(profiles, [("a", "M-KL")])
    with pytest.raises(TypeError, match="no such option: domains"):
        mummergpu.hmmsearch(profiles, [("a", "MKL")], domains=3)
    for search in (mummergpu.hmmsearch, mummergpu.hmmscan):
        assert list(search([], proteins)) == []


NO_NUMBERS = [
    ({name: value}, f"{name}: .* is not a number")
    for name in ("E", "T", "incE", "domZ", "F1")
    for value in (True, False, np.True_)
]
WRONG = [{"E": 0}, {"T": "a"}, {"seed": -1}, {"E": 1, "T": 1}, {"max": 3}, {"F1": 1, "max": True}]


@pytest.mark.parametrize(("told", "message"), [*NO_NUMBERS, *((told, None) for told in WRONG)])
def test_options_that_are_refused(inputs, told, message):
    with pytest.raises(OptionError, match=message):
        mummergpu.hmmsearch(inputs[0], [("a", "MKL")], **told)


def test_translated_hits_lie_on_the_nucleotides(inputs):
    profiles, proteins = inputs
    codons = dict(zip("KNTRSIMQHPLEDAGVYCWF", CODONS.split(), strict=True))
    hits = mummergpu.hmmsearch(profiles, proteins, E=1e-9)
    assert hits[0].record is None and hits[0].frame == hits[0].nucleotide_start == -1
    assert hits.to_pandas()["record"].isna().all()
    text = proteins.read_text().split(f">{hits[0].target} ")[1].split("\n", 1)[1].split(">")[0]
    bases = "".join(codons.get(one, "NNN") for one in text.replace("\n", ""))
    turned = reverse_complement(bases)
    sequences = [("forward words", "C" + bases), ("reverse", turned + "CC")]
    found = mummergpu.hmmsearch(profiles, sequences, E=1e-9, translate=True)
    first = [hit for hit in found if (hit.query, hit.domain) == (hits[0].query, hits[0].domain)]
    places = {hit.record: (hit.frame, hit.nucleotide_start, hit.nucleotide_end) for hit in first}
    begin, end = 3 * hits[0].start, 3 * hits[0].end
    assert places == {
        "forward": (2, begin + 1, end + 1),
        "reverse": (6, len(bases) - end, len(bases) - begin),
    }
    assert list(found.to_pandas()["record"]) == [hit.record for hit in found]
    assert list(found[found.frame == 2]) == [hit for hit in found if hit.frame == 2]
    with pytest.raises(mummergpu.MummergpuError, match="neither bases nor IUPAC codes"):
        mummergpu.hmmsearch(profiles, [("a", "MKLVRAWEF" * 9)], translate=True)


@pytest.mark.parametrize("scans", [False, True])
def test_blocks_and_passes_change_nothing(scans, inputs, tmp_path, monkeypatch):
    profiles, proteins = inputs
    tables = []
    monkeypatch.setattr(profile_job, "_FEW_OF_THREAD", 1)
    for block_residues, at_once, few, kept in (
        *((1 << 20, 2000, 128, 1 << 25), (5000, 3, 2, 10)),
        *((5000, 2000, 3, 1 << 25), (5000, 5, 3, 20_000)),
    ):
        monkeypatch.setattr(profile_job, "PROFILES_AT_ONCE", at_once)
        monkeypatch.setattr(profile_job, "FEW_PROFILES", few)
        monkeypatch.setattr(profile_job, "KEPT_RESIDUES", kept)
        source = ProteinFiles([str(proteins)], ProteinRules(), block_residues)
        outputs = tuple((kind, str(tmp_path / kind)) for kind in TABLES)
        options = ProfileSearchOptions(
            (str(profiles),), source, scans=scans, outputs=outputs, threads=2
        )
        search_profiles.run(options, RunContext(2))
        tables.append([(tmp_path / kind).read_bytes() for kind in TABLES])
    assert tables == [tables[0]] * 4


@pytest.mark.parametrize("scans", [False, True])
def test_few_profiles_are_in_memory(scans, inputs, monkeypatch):
    profiles, proteins = inputs
    seen, alive, prepare = [], [], ProfileJob.prepare

    def noted(job, group):
        seen.extend(map(weakref.ref, group))
        alive.append(sum(one() is not None for one in seen))
        return prepare(job, group)

    monkeypatch.setattr(ProfileJob, "prepare", noted)
    monkeypatch.setattr(profile_job, "_FEW_OF_THREAD", 1)
    monkeypatch.setattr(profile_job, "FEW_PROFILES", 2)
    (mummergpu.hmmscan if scans else mummergpu.hmmsearch)(profiles, proteins, threads=1)
    # While proteins are compared with those of a pass, those of the next one are ready, and one
    # more pass of a search is being prepared.
    assert len(alive) == 6 and len(seen) == 11 and max(alive) <= (4 if scans else 6)


@pytest.mark.parametrize("scans", [False, True])
def test_progress_grows_to_the_end(scans, inputs):
    profiles, proteins = inputs
    told = []
    progress = Messages(None)
    progress.tell = told.append  # type: ignore[method-assign]
    source = ProteinFiles([str(proteins)], ProteinRules(), 20_000)
    options = ProfileSearchOptions((str(profiles),), source, scans=scans)
    search_profiles.run(options, RunContext(2, progress=progress))
    shares = [work.share or 0 for work in told]
    assert shares == sorted(shares) and shares[-1] == 1 and len(set(shares)) > 2
    count = proteins.read_text().count(">")
    end = f"{count} sequences" if scans else f"11 of 11 profiles searched in {count} sequences"
    assert told[-1].text.startswith(end)


def test_sequences_of_pyhmmer_and_biopython_are_searched(inputs):
    easel = pytest.importorskip("pyhmmer.easel")
    profiles, proteins = inputs
    # A gap of the last record is another letter in pyhmmer.
    proteins.write_text(proteins.read_text().replace("*ACD~.", "ACD"))
    expected = list(mummergpu.hmmsearch(profiles, proteins))
    with easel.SequenceFile(proteins, digital=True, alphabet=easel.Alphabet.amino()) as file:
        found = mummergpu.hmmsearch(profiles, file)
        assert list(found) == expected and len(expected) > 3
    with easel.SequenceFile(proteins) as file:
        texts = list(file)
    assert list(mummergpu.hmmsearch(profiles, texts)) == expected
    one = next(text for text in texts if text.name == expected[0].target)
    (alone, *_) = mummergpu.hmmsearch(profiles, one, Z=len(texts))
    assert alone.target == one.name
    assert list(mummergpu.hmmsearch(bytes(profiles), bytes(proteins))) == expected


def test_what_is_no_profile_of_proteins_is_told(inputs):
    pyhmmer = pytest.importorskip("pyhmmer")
    profiles, proteins = inputs
    for alphabet in (pyhmmer.easel.Alphabet.dna(), pyhmmer.easel.Alphabet.rna()):
        hmm = pyhmmer.plan7.HMM(alphabet, 3, "some")
        for given in (hmm, [profiles, hmm]):
            with pytest.raises(OptionError, match=r"'some' is of [DR]NA, not of proteins"):
                mummergpu.hmmsearch(given, [("a", "MKL")])
    with pyhmmer.plan7.HMMFile(profiles) as file:
        hmm = next(file)
    hmm.match_emissions[3, 2] = float("nan")
    with pytest.raises(mummergpu.MummergpuError, match="no number where HMMER needs one"):
        mummergpu.hmmsearch(hmm, proteins)
    for search in (mummergpu.hmmsearch, mummergpu.hmmscan):
        for wrong in (5, None, [5], [b"x\0y"], [None], object()):
            with pytest.raises(OptionError, match="profiles: "):
                search(wrong, [("a", "MKL")])
    for missing in (b"none.hmm", "none.hmm", Path("none.hmm")):
        for files in ((missing, [("a", "MKL")]), (profiles, missing)):
            with pytest.raises(mummergpu.MummergpuError, match=r"none\.hmm"):
                mummergpu.hmmsearch(*files)
