"""Workers with other versions or files are refused, and the error says which and why."""

import subprocess
import sys
from dataclasses import replace

import pytest
from helpers.played_machine import H200

from mummergpu.cluster import connection, worker
from mummergpu.cluster.connection import WorkerFacts, check_files, check_folders, check_versions
from mummergpu.cluster.options import ClusterOptions
from mummergpu.cluster.worker import device_of_process
from mummergpu.cuda.driver import DriverFacts
from mummergpu.errors import ClusterError, OptionError
from mummergpu.matching.options import DeviceOptions

ADDRESS = "tcp://10.0.0.2:4001"

SILENT = """
import logging, sys
from mummergpu.cluster import connection
assert "distributed" not in sys.modules
connection._silence()
import distributed
sys.exit(logging.getLogger("distributed.client").isEnabledFor(logging.ERROR))
"""


def test_errors_of_dask_are_told_in_one_line():
    """Dask's log has a traceback where a scheduler ends; its import sets what the log tells."""
    pytest.importorskip("distributed")
    subprocess.run([sys.executable, "-c", SILENT], check=True)


class Answering:
    """A cluster whose one worker answers so, in place of what it is asked."""

    def __init__(self, answer):
        self.answer = answer

    def on_all(self, function, *arguments):
        return {ADDRESS: self.answer(function, *arguments)}


def test_a_worker_like_this_process_passes(tmp_path):
    path, folder = tmp_path / "r.fa", tmp_path / "parts"
    path.write_text(">a\nACGT\n")
    folder.mkdir()
    same = Answering(lambda function, *arguments: function(*arguments))
    check_versions(same)
    check_files(same, [str(path)])
    check_folders(same, [str(folder)])
    assert [one.name for one in folder.iterdir()] == ["shared"]


@pytest.mark.parametrize("name", ["mummergpu", "python", "numpy", "isal"])
def test_another_version_is_refused(name):
    def older(function):
        facts = function()
        assert isinstance(facts, WorkerFacts)
        return WorkerFacts("b", tuple((one, "0.1" if one == name else v) for one, v in facts[1]))

    with pytest.raises(ClusterError, match=f"worker {ADDRESS} on b: has {name} 0.1, and this"):
        check_versions(Answering(older))


def test_a_worker_without_the_package_is_refused():
    failed = ModuleNotFoundError("No module named 'mummergpu'")
    with pytest.raises(ClusterError, match="does not run there: No module named 'mummergpu'"):
        check_versions(Answering(lambda function: failed))


def test_a_file_that_a_worker_does_not_see_is_refused(tmp_path):
    path, other = tmp_path / "r.fa", tmp_path / "other.fa"
    path.write_text(">a\nACGT\n")
    other.write_text(">a\nACGA\n")
    for found, message in (
        (tmp_path / "none", rf"{ADDRESS}: does not see '{path}' \(No such file"),
        (other, "it is another file"),
    ):
        cluster = Answering(lambda function, _, found=found: function([str(found)]))
        with pytest.raises(ClusterError, match=message):
            check_files(cluster, [str(path)])


def test_a_folder_that_is_not_shared_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "_SECONDS_TO_APPEAR", 0.1)
    folder, elsewhere = tmp_path / "x" / "parts", tmp_path / "y"
    folder.mkdir(parents=True)
    cluster = Answering(lambda function, _: function(str(elsewhere)))
    with pytest.raises(ClusterError, match=rf"cannot write parts into '{folder.parent}' \(No such"):
        check_folders(cluster, [str(folder)])
    elsewhere.mkdir()
    (elsewhere / "shared").touch()
    with pytest.raises(ClusterError, match="what it writes there does not appear here"):
        check_folders(cluster, [str(folder)])


@pytest.mark.parametrize("address", ["", "host:8786", "local:", "local:0", "local:-1", "local:two"])
def test_what_is_no_cluster(address):
    with pytest.raises(OptionError):
        ClusterOptions(address)


def test_processes_share_the_threads():
    assert ClusterOptions.shared("local:4", 9).threads == 2
    assert ClusterOptions.shared("local:4", 2).threads == 1
    assert ClusterOptions.shared("tcp://host:1", 9).threads is None


def test_processes_take_turns_at_the_gpus(monkeypatch):
    two = DriverFacts((13, 0), (H200, replace(H200, number=1)), None)
    monkeypatch.setattr(worker, "driver_facts", lambda: two)

    def number(of, process, backend="cuda"):
        found = device_of_process(DeviceOptions(backend, of), 3, process)
        assert found.threads == 3
        return found.number

    assert [number(0, process) for process in range(5)] == [0, 1, 0, 1, 0]
    assert [number(1, process) for process in range(3)] == [1, 0, 1]
    # A worker that somebody else has started is told which GPU is its own.
    assert number(0, None) == 0 and number(1, None) == 1
    # There is no such GPU, which whoever opens it says.
    assert number(7, 1) == 7
    monkeypatch.setattr(worker, "driver_facts", lambda: DriverFacts(None, (), "no driver"))
    assert number(0, 1, "auto") == 0
    assert number(0, 1, "cpu") == 0
