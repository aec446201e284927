"""The list of faults is one of the tree as it is: `mutations/run.py` puts them in at night."""

import ast

import pytest
from mutations.faults import ROOT, faults, node_of

FAULTS = faults()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_put_in_and_its_tests_are_there(fault, tmp_path):
    copy = tmp_path / fault.file
    copy.parent.mkdir(parents=True)
    copy.write_text((ROOT / fault.file).read_text())
    sound = fault.put_into(tmp_path)
    assert copy.read_text() != sound
    if fault.file.endswith(".py"):
        ast.parse(copy.read_text())
    assert fault.tests and len(fault.nodes(ROOT)) == len(fault.tests)


def test_faults_are_in_every_room():
    assert len(FAULTS) == len({fault.name for fault in FAULTS}) >= 32
    rooms = {fault.file.removeprefix("mummergpu/").split("/")[0] for fault in FAULTS}
    assert rooms >= {"matching", "index", "input", "output", "viterbi", "hmm", "kernels", "mapping"}


def test_a_test_is_found_once(tmp_path):
    folder = tmp_path / "tests/unit/room"
    folder.mkdir(parents=True)
    (folder / "test_one.py").write_text(
        "def test_it(x):\n    pass\n\n\ndef test_it_too():\n    pass\n"
    )
    assert node_of(tmp_path, "unit::test_it") == "tests/unit/room/test_one.py::test_it"
    (folder / "test_two.py").write_text("def test_it():\n    pass\n")
    for name in ("test_it", "test_other"):
        with pytest.raises(ValueError):
            node_of(tmp_path, f"unit::{name}")
