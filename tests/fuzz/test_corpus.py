"""Every kept input of the fuzz targets, and some thousands of its mutations, with each change."""

from itertools import chain

import pytest

from fuzz import run
from fuzz.corpus import CORPUS, TARGETS, kept_inputs, mutations, target_of
from mummergpu.errors import ModelError
from mummergpu.hmm.language.parser import _Words
from mummergpu.index import format as index_format
from mummergpu.input.bytes.files import TextStream
from mummergpu.input.records.record_reader import RecordReader

MUTATIONS = 2000
MOST_CORPUS_BYTES = 300_000


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_and_their_mutations_find_nothing(name):
    target, kept = target_of(name), kept_inputs(name)
    assert len(kept) >= 15
    for data in chain(kept, mutations(kept, MUTATIONS)):
        try:
            target.one_input(data)
        except BaseException as error:
            error.add_note(f"the input was {data!r}")
            raise


def test_the_corpus_is_small():
    folders = {folder.name for folder in CORPUS.iterdir()}
    assert folders == set(TARGETS)
    assert sum(file.stat().st_size for file in CORPUS.rglob("*")) < MOST_CORPUS_BYTES


def test_mutations_are_the_same_every_time_and_others_each_time():
    kept = kept_inputs("records")
    made = list(mutations(kept, 500))
    assert made == list(mutations(kept, 500)) != list(mutations(kept, 500, 1))
    assert len(set(made) - set(kept)) > 400


def _fail_nowhere(self, message, token=None):
    raise ModelError(message, "program.hmm")


FAULTS = {
    "records": (RecordReader, "_check_end", lambda self: None),
    "detection": (TextStream, "skip", lambda self, count: None),
    "index_header": (index_format, "_check_sections", lambda header, end: None),
    "programs": (_Words, "fail", _fail_nowhere),
}
"""Something of each kind that a target must notice if it is not done."""


@pytest.mark.parametrize("name", TARGETS)
def test_a_fault_is_found_and_kept(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "WORK", tmp_path / "work")
    with monkeypatch.context() as broken:
        broken.setattr(*FAULTS[name])
        with pytest.raises(AssertionError):
            run.fuzz_by_mutation(name, 60)
    crash = tmp_path / "work" / f"{name}-crash"
    assert str(crash) in capsys.readouterr().err
    target_of(name).one_input(crash.read_bytes())


def test_without_the_fuzzer_mutations_are_tried(monkeypatch, capsys):
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["fuzz.run", "detection", "--seconds", "1"])
    assert run.main() == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("atheris is not installed (pip install mummergpu[fuzz])")
    assert last.endswith(" inputs, nothing found")
    monkeypatch.setattr("sys.argv", ["fuzz.run", "detection", "--minimise"])
    with pytest.raises(SystemExit):
        run.main()
