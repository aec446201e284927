"""The whole command with ``--backend cuda``, on the host's device: what ``-C`` writes, always.

What is played: the driver and the libraries that are looked for, the device, and the compiler
of the kernels. Everything between the command line and the kernels is real.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from threading import Barrier
from types import ModuleType
from typing import Any

import pytest
from helpers.host_device import everything_given_back
from helpers.options import match_options
from helpers.oracle import reverse_complement
from helpers.watched_device import WatchedCompiler, WatchedDevice

from mummergpu.cli.main import main
from mummergpu.cuda.driver import DeviceFacts, DriverFacts
from mummergpu.cuda.nvrtc import INSTALL
from mummergpu.cuda.requirements import CompilerFacts, CudaFacts
from mummergpu.errors import BackendError
from mummergpu.index.tree.policy import Policy
from mummergpu.matching import open_cuda as opening
from mummergpu.matching.backends import memory_plan as plan
from mummergpu.matching.backends import streaming
from mummergpu.matching.kmer import device_text
from mummergpu.matching.kmer.cuda_text import KmerTextBackend
from mummergpu.matching.kmer.device_text import TEXT_KERNELS
from mummergpu.matching.open_backend import open_backend
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.runtime.libraries import Library
from mummergpu.runtime.stats import Stats

GIB = 1 << 30
H200 = DeviceFacts(0, "NVIDIA H200", (9, 0), 132, 140 * GIB, 139 * GIB, None)
H200_AFTER = replace(H200, number=1)
SOUND = CudaFacts(
    DriverFacts((13, 0), (H200,), None),
    Library("pycuda", "2026.1", None),
    Library("cuda-bindings", "13.0.1", None),
    CompilerFacts((13, 5), (75, 80, 90, 100), None),
)
NO_DRIVER = replace(SOUND, driver=DriverFacts(None, (), "no NVIDIA driver (not found)"))
NO_PYCUDA = replace(SOUND, pycuda=Library("pycuda", None, "not installed"))
BARE = replace(NO_PYCUDA, driver=NO_DRIVER.driver)


@dataclass
class Machine:
    """A machine with a GPU as it looks to the command; what was done with it."""

    patch: pytest.MonkeyPatch
    memory_bytes: int = GIB
    numbers: list[int] = field(default_factory=list)
    folders: list[Path | None] = field(default_factory=list)
    devices: list[WatchedDevice] = field(default_factory=list)
    prepare: Callable[[WatchedDevice], None] = lambda device: None

    def looks(self, facts: CudaFacts) -> None:
        self.patch.setattr(opening, "driver_facts", lambda: facts.driver)
        self.patch.setattr(opening, "cuda_facts", lambda measure_memory: facts)

    def open_device(self, number: int) -> WatchedDevice:
        self.numbers.append(number)
        self.devices.append(WatchedDevice(self.memory_bytes))
        self.prepare(self.devices[-1])
        return self.devices[-1]


@pytest.fixture(scope="module")
def compiler(cxx: str, library_folder: Path) -> WatchedCompiler:
    return WatchedCompiler(library_folder)


@pytest.fixture
def machine(compiler: WatchedCompiler, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(monkeypatch)
    made.looks(SOUND)
    played: Any = ModuleType("mummergpu.cuda.pycuda_device")
    played.PycudaDevice = made.open_device
    monkeypatch.setitem(sys.modules, played.__name__, played)

    def cache(folder: Path | None, notice: Callable[[str], None]) -> WatchedCompiler:
        made.folders.append(folder)
        return compiler

    monkeypatch.setattr(opening, "KernelCache", cache)
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six records with repeats in common, reads of them, and two long queries."""
    folder = tmp_path_factory.mktemp("files")
    made = random.Random(6)

    def bases(count: int) -> str:
        return "".join(made.choices("ACGT", k=count))

    repeat = bases(70)
    turned = reverse_complement(repeat)
    records = [bases(400) + made.choice((repeat, turned)) + bases(430) for _ in range(6)]
    records[2] = records[2][:300] + "N" * 7 + records[2][300:] + "ACT" * 30
    joined = "".join(records)

    def read() -> str:
        begin = made.randrange(len(joined) - 90)
        text = list(joined[begin : begin + made.randrange(20, 90)])
        for place in range(len(text)):
            if made.random() < 0.03:
                text[place] = made.choice(["N", "", "A", "GC"])
        return made.choice((str, reverse_complement))("".join(text))

    reads = [*(read() for _ in range(60)), repeat, "ACT" * 20, "", "ACG"]
    long = list(joined)
    for place in range(0, len(long), 211):
        long[place] = made.choice("ACGTN")
    other = reverse_complement("".join(long[100:]) + repeat)
    write_fasta(folder / "r.fa", "r", records)
    write_fasta(folder / "one.fa", "single", [joined])
    write_fasta(folder / "q.fa", "q", reads)
    write_fasta(folder / "long.fa", "g", [reads[0], "".join(long), reads[1], other])
    return folder


def write_fasta(path: Path, name: str, records: list[str]) -> None:
    path.write_text("".join(f">{name}{n}\n{text}\n" for n, text in enumerate(records)))


@pytest.fixture(autouse=True)
def inside(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)


Output = Callable[..., tuple[bytes, str]]


@pytest.fixture
def output(capfdbinary: pytest.CaptureFixture[bytes]) -> Output:
    """Runs the command; returns what it wrote to standard output and error."""

    def run(*words: str) -> tuple[bytes, str]:
        code = main(words)
        out, err = capfdbinary.readouterr()
        assert code == 0, err
        return out, err.decode()

    return run


def check(
    machine: Machine, output: Output, queries: str, words: str, search: str = "tree"
) -> dict[str, Any]:
    """Run the command on both backends; return the statistics of ``cuda``."""
    given = ["r.fa", queries, "--search", search, *words.split()]
    report = Path("stats.json")
    ours, _ = output(*given, "--backend", "cuda", "--stats", str(report))
    told: dict[str, Any] = json.loads(report.read_text())
    assert told["settings"]["backend"] == "cuda"
    assert told["counts"]["matches"] > 20
    kernel = "match_kernel" if search == "tree" else "count_kmer_mems"
    assert told["kernels"][kernel]["launches"] > 0
    assert len(machine.devices) == 1 and everything_given_back(machine.devices[0])
    others, _ = output(*given, "-C")
    assert ours == others
    assert len(machine.devices) == 1
    return told


@pytest.mark.parametrize(
    "words",
    [
        "-l 12",
        "-l 12 -r",
        "-l 12 -b -c -L",
        "-l 12 -r -c -s",
        "-l 14 -mum -b",
        "-l 14 -mumreference -b -F",
        "-l 9 -b -t 3 --block-size 300",
        "-l 12 -b --policy QRTmrtn",
        "-l 12 -b --policy Tn --address-bits 32 --page-size auto",
        "-l 14 -b --page-size 700 -t 2",
        "-l 40 -b --page-size 50",
    ],
)
def test_reads_give_the_same_bytes(machine: Machine, output: Output, words: str) -> None:
    check(machine, output, "q.fa", words)


@pytest.mark.parametrize("words", ["--search sampled", "--search tree", "--page-size 900"])
def test_an_index_gives_the_same_bytes(
    machine: Machine, output: Output, words: str, tmp_path: Path
) -> None:
    index = str(tmp_path / "r.mgi")
    output("index", "r.fa", "-o", index, "-l", "12", *words.split())
    ours, _ = output(index, "q.fa", "-l", "14", "-b", "--backend", "cuda")
    assert len(machine.devices) == 1 and everything_given_back(machine.devices[0])
    others, _ = output("r.fa", "q.fa", "-l", "14", "-b", "-C")
    assert ours == others
    assert ours.count(b"\n") > 100


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ("q.fa", "-l 12 -b -c"),
        ("q.fa", "-l 14 -mum -b -t 3 --block-size 300"),
        ("q.fa", "-l 9 -mumreference -r --max-memory 1"),
        ("long.fa", "-l 12 -b"),
        ("long.fa", "-l 20 -mum -r -c -t 3"),
    ],
)
def test_the_kmer_search_gives_the_same_bytes(
    machine: Machine, output: Output, queries: str, words: str
) -> None:
    check(machine, output, queries, words, "sampled")


def check_text(machine: Machine, output: Output, *given: str) -> dict[str, int]:
    """Run the k-mer search on both backends; return the launches of the kernels of ``cuda``."""
    report = ["--stats", "stats.json"]
    ours, _ = output(*given, "--search", "sampled", "--backend", "cuda", *report)
    told = json.loads(Path("stats.json").read_text())
    assert all(map(everything_given_back, machine.devices))
    others, _ = output(*given, "--search", "sampled", "-C", *report)
    assert ours == others
    expected = json.loads(Path("stats.json").read_text())
    for name in ("counts", "files", "strands", "match_lengths"):
        assert told[name] == expected[name]
    assert told["counts"]["bases_covered"] > 0 and told["match_lengths"]
    assert ours.count(b"\n") > 20 and told["bytes"]["output"] == len(ours)
    launches = {name: kernel["launches"] for name, kernel in told["kernels"].items()}
    # Either the device makes all text, or the host does.
    assert (told["stages"]["format"]["count"] == 0) == (launches.get("write_text", 0) > 0)
    assert told["stages"]["text_kernel"]["count"] == sum(
        launches.get(name, 0) for name in TEXT_KERNELS
    )
    return launches


@pytest.mark.parametrize("reference", ["r.fa", "one.fa"])
@pytest.mark.parametrize(
    "words",
    [
        *("-l 12", "-l 12 -r", "-l 12 -r -c", "-l 12 -b -c -L", "-l 12 -b -F -L", "-l 40 -F"),
        *("-l 9 -b -t 3 --block-size 300", "-l 9 -b -L -t 2 --block-size 1"),
    ],
)
def test_the_device_makes_the_text(
    machine: Machine, output: Output, reference: str, words: str
) -> None:
    launches = check_text(machine, output, reference, "q.fa", *words.split())
    assert launches["write_text"] == launches["count_text"] > 0


@pytest.mark.parametrize(
    "words",
    [
        *("-s", "-mum", "-mumreference", "-mum -b -s"),
        *("--page-size 900", "--page-size 900 --max-memory 1"),
    ],
)
def test_what_needs_columns_gets_columns(machine: Machine, output: Output, words: str) -> None:
    launches = check_text(machine, output, "r.fa", "q.fa", "-l", "12", *words.split())
    assert launches["count_kmer_mems"] > 0 and launches["count_text"] == 0


def test_a_device_that_may_not_make_text_gives_columns(
    machine: Machine, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KmerTextBackend, "may_make_text", False)
    launches = check_text(machine, output, "r.fa", "q.fa", "-l", "12", "-b")
    assert launches["write_kmer_mems"] > 0 and launches["count_text"] == 0


def test_the_device_makes_the_text_of_an_index_that_finds_shorter_matches_too(
    machine: Machine, output: Output, tmp_path: Path
) -> None:
    index = str(tmp_path / "r.mgi")
    output("index", "r.fa", "-o", index, "-l", "12", "--search", "sampled")
    for length in ("12", "14"):
        launches = check_text(machine, output, index, "q.fa", "-l", length, "-b")
        assert launches["write_text"] > 0


def test_long_queries_have_columns_and_others_text(
    machine: Machine, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KmerTextBackend, "long_query", 2000)
    monkeypatch.setattr(KmerTextBackend, "piece_bases", 1000)
    given = ["r.fa", "long.fa", "-l", "12", "-b", "--search", "sampled", "--block-size", "1"]
    ours, _ = output(*given, "--backend", "cuda", "--stats", "stats.json")
    told = json.loads(Path("stats.json").read_text())
    # Of four blocks of one query, two are long.
    assert told["kernels"]["count_text"]["launches"] == told["stages"]["format"]["count"] == 2
    assert ours == output(*given, "-C")[0]


@pytest.mark.parametrize("limit", ["rows", "bytes", "bytes of nothing"])
def test_a_text_that_is_too_long_is_made_of_smaller_blocks(
    machine: Machine, output: Output, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    if limit == "rows":
        monkeypatch.setattr(streaming, "MOST_ROWS", 40)
    else:
        monkeypatch.setattr(device_text, "MOST_TEXT_BYTES", 2000 if limit == "bytes" else 10)
    given = ["r.fa", "q.fa", "-l", "9", "-b", "--search", "sampled"]
    ours, _ = output(*given, "--backend", "cuda", "--stats", "stats.json")
    told = json.loads(Path("stats.json").read_text())
    assert ours == output(*given, "-C")[0]
    assert (told["kernels"]["write_text"]["launches"] > 0) == (limit != "bytes of nothing")
    assert told["kernels"]["count_text"]["launches"] > 1


def test_a_text_that_does_not_fit_the_device_is_made_in_halves(
    machine: Machine, output: Output
) -> None:
    def prepare(device: WatchedDevice) -> None:
        def before_launch(kernel: str) -> None:
            if kernel == "count_text":
                device.refuse = lambda number, size: size > 20_000

        device.before_launch = before_launch

    machine.prepare = prepare
    given = ["r.fa", "q.fa", "-l", "7", "-b", "--search", "sampled"]
    ours, told = output(*given, "--backend", "cuda", "-v")
    assert "queries do not fit the device" in told and "halving" in told
    assert everything_given_back(machine.devices[0])
    assert ours == output(*given, "-C")[0]


@pytest.mark.parametrize(
    "words",
    [
        "-l 12 -b -t 3 --block-size 500",
        "-l 14 -mum -b -c",
        "-l 14 -mumreference --policy QRT",
        "-l 30 -b --page-size 50",
    ],
)
def test_pages_that_are_searched_in_groups_give_the_same_bytes(
    machine: Machine, output: Output, words: str
) -> None:
    size = "" if "--page-size" in words else " --page-size 700"
    told = check(machine, output, "q.fa", f"{words}{size} --max-memory 1")
    assert told["settings"]["page_groups"] == told["counts"]["pages"] >= 8


@pytest.mark.parametrize(
    "words",
    ["-l 12 -b", "-l 20 -mum -r -c", "-l 15 -b --page-size 2000", "-l 15 --max-memory 1 -t 3"],
)
def test_long_queries_in_pieces_give_the_same_bytes(
    machine: Machine, output: Output, words: str
) -> None:
    size = " --page-size 2000" if "--max-memory" in words else ""
    check(machine, output, "long.fa", words + size)


@pytest.mark.parametrize("words", ["-l 12 -b -t 3", "-l 15 -mum -b -t 2 --page-size 2000"])
def test_parts_of_one_query_are_the_work_of_all_threads(
    machine: Machine, output: Output, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SMALLEST_BLOCK", 16)
    memory = 2 * 3 * 1500 * plan.WORK_BYTES_PER_BASE
    launches, meeting = count(), Barrier(2, timeout=60)

    def prepare(device: WatchedDevice) -> None:
        def before_launch(kernel: str) -> None:
            # The second block is not read before all parts of the first have been searched.
            if kernel == "match_kernel" and next(launches) < 2:
                meeting.wait()

        device.before_launch = before_launch

    machine.prepare = prepare
    told = check(machine, output, "long.fa", f"{words} --gpu-memory {memory} --block-size 1500")
    # Two pieces of 1,024 starts make a part; a query has some 5,500 bases, on two strands.
    parts = -(-5_490 // 2_048)
    pages = told["counts"]["pages"]
    assert told["kernels"]["match_kernel"]["launches"] == 2 * 2 * parts * pages


def test_a_run_that_does_not_fit_the_device_gives_the_same_bytes(
    machine: Machine, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SMALLEST_BLOCK", 16)
    memory = 2 * 3 * 434 * plan.WORK_BYTES_PER_BASE
    given = ["r.fa", "q.fa", "-l", "4", "-b", "--page-size", "1000", "--search", "tree"]
    cuda = ["--backend", "cuda", "--gpu-memory", str(memory), "-v"]
    ours, told = output(*given, *cuda)
    assert ours == output(*given, "-C")[0]
    assert "blocks of 434 bases" in told
    assert "queries do not fit the device" in told and "halving" in told
    assert "6 pages in 2 groups" in told
    assert everything_given_back(machine.devices[0])


def test_a_failure_in_a_search_is_an_error_and_leaves_nothing(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    def prepare(device: WatchedDevice) -> None:
        def before_launch(kernel: str) -> None:
            device.refuse = lambda number, size: True

        device.before_launch = before_launch

    machine.prepare = prepare
    words = ["r.fa", "q.fa", "-o", "out", "-t", "2", "-l", "9", "--search", "tree"]
    assert main([*words, "--backend", "cuda"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("mummergpu: error: backend 'cuda': the matches of one query do not fit")
    assert not Path("out").exists()
    assert everything_given_back(machine.devices[0])


@pytest.mark.parametrize("search", ["tree", "kmer"])
@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ("q.fa", "-l 12 -b --device 0,1"),
        ("q.fa", "-l 9 -b -t 5 --block-size 300 --device 2,0,1"),
        ("long.fa", "-l 12 -b -t 4 --device all"),
        ("q.fa", "-l 14 -mum -b --page-size 700 --max-memory 1 --device 0,1"),
    ],
)
def test_several_devices_give_the_same_bytes(
    machine: Machine, output: Output, queries: str, words: str, search: str
) -> None:
    machine.looks(replace(SOUND, driver=DriverFacts((13, 0), (H200, H200_AFTER), None)))
    given = ["r.fa", queries, "--search", search, *words.split()]
    ours, told = output(*given, "--backend", "cuda", "--stats", "stats.json", "-v")
    count = 3 if "2,0,1" in words else 2
    assert sorted(machine.numbers) == list(range(count))
    assert all(map(everything_given_back, machine.devices))
    settings = json.loads(Path("stats.json").read_text())["settings"]
    names = [f"host ({number})" for number in machine.numbers]
    assert settings["device"] == ", ".join(names)
    assert list(settings["device_blocks"]) == [str(number) for number in machine.numbers]
    assert sum(settings["device_blocks"].values()) > 0
    assert all(f"GPU {number}: device host (sm_90)" in told for number in machine.numbers)
    machine.numbers.clear()
    assert ours == output(*given, "-C")[0]
    assert machine.numbers == []


@pytest.mark.parametrize("failing", [0, 1])
def test_a_device_that_fails_ends_the_run_with_its_name(
    machine: Machine, capfd: pytest.CaptureFixture[str], failing: int
) -> None:
    def prepare(device: WatchedDevice) -> None:
        def before_launch(kernel: str) -> None:
            raise BackendError("cuda", "the device failed: played")

        if machine.numbers[-1] == failing:
            device.before_launch = before_launch

    machine.prepare = prepare
    words = ["r.fa", "q.fa", "-o", "out", "-t", "8", "-l", "9", "--search", "tree"]
    assert main([*words, "--block-size", "300", "--backend", "cuda", "--device", "0,1"]) == 1
    out, err = capfd.readouterr()
    expected = f"error: backend 'cuda': device {failing} (host): the device failed: played"
    assert out == "" and err.splitlines()[-1] == f"mummergpu: {expected}"
    assert not Path("out").exists()
    assert len(machine.devices) == 2 and all(map(everything_given_back, machine.devices))


def test_a_number_of_no_device_is_an_error(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    def prepare(device: WatchedDevice) -> None:
        if machine.numbers[-1] == 7:
            machine.devices.pop()
            raise BackendError("cuda", "there is no device 7; the driver finds 2")

    machine.prepare = prepare
    assert main(["r.fa", "q.fa", "-o", "out", "--backend", "cuda", "--device", "0,7"]) == 1
    assert "there is no device 7; the driver finds 2" in capfd.readouterr().err
    assert len(machine.devices) == 1 and everything_given_back(machine.devices[0])


def chosen(notices: list[str], **told: Any) -> tuple[TreeCpuBackend | TreeCudaBackend, Stats]:
    stats = Stats()
    options = match_options("r.fa", ("q.fa",), **told)
    backend = open_backend(options.index.kind, options.device, stats, notices.append)
    assert isinstance(backend, TreeCpuBackend | TreeCudaBackend)
    return backend, stats


@pytest.mark.parametrize("name", ["auto", "cuda"])
def test_a_device_is_taken_where_there_is_one(machine: Machine, name: str) -> None:
    notices: list[str] = []
    backend, stats = chosen(
        notices,
        backend=name,
        devices=(3,),
        gpu_memory=GIB // 4,
        profile=True,
        policy=Policy.from_code("Tn"),
        kernel_folder="cubins",
    )
    assert isinstance(backend, TreeCudaBackend)
    assert (machine.numbers, machine.folders) == ([3], [Path("cubins")])
    assert stats.settings["device"] == "host"
    expected = plan.divide_memory(GIB, GIB // 4, 3)
    assert backend.page_memory == expected.tree_bytes
    assert backend.sizes.block_bases == expected.block_bases
    assert backend.profile
    assert [notice.split(" ")[0] for notice in notices] == ["device"]
    backend.close()
    assert everything_given_back(machine.devices[0])


def test_the_cpu_backend_asks_for_no_device(machine: Machine) -> None:
    def ask() -> DriverFacts:
        raise AssertionError("the driver was asked")

    machine.patch.setattr(opening, "driver_facts", ask)
    notices: list[str] = []
    backend, _ = chosen(notices, backend="cpu")
    assert isinstance(backend, TreeCpuBackend)
    assert notices == []


@pytest.mark.parametrize(
    ("facts", "notice"),
    [
        (BARE, "no cuda backend: no NVIDIA driver (not found)"),
        (NO_PYCUDA, f"no cuda backend: PyCUDA is not installed: {INSTALL}"),
    ],
)
def test_auto_takes_the_cpu_where_something_is_missing_and_says_so(
    machine: Machine, facts: CudaFacts, notice: str
) -> None:
    machine.looks(facts)
    notices: list[str] = []
    backend, _ = chosen(notices, backend="auto")
    assert isinstance(backend, TreeCpuBackend)
    assert len(notices) == 1 and notices[0].startswith(notice)
    assert machine.devices == []


def test_auto_takes_the_cpu_where_the_device_is_full(machine: Machine) -> None:
    machine.memory_bytes = 1 << 20
    notices: list[str] = []
    backend, _ = chosen(notices, backend="auto")
    assert isinstance(backend, TreeCpuBackend)
    assert len(notices) == 1 and "bytes of device memory are too few" in notices[0]
    assert everything_given_back(machine.devices[0])


def test_cuda_without_a_device_is_an_error(machine: Machine) -> None:
    machine.looks(NO_DRIVER)
    with pytest.raises(BackendError, match=r"no NVIDIA driver \(not found\): install NVIDIA's"):
        chosen([], backend="cuda")
    machine.looks(SOUND)
    machine.memory_bytes = 1 << 20
    with pytest.raises(BackendError, match="bytes of device memory are too few"):
        chosen([], backend="cuda")
    assert everything_given_back(machine.devices[0])


@pytest.mark.parametrize(
    ("facts", "remedies"),
    [
        (NO_DRIVER, ["install NVIDIA's driver"]),
        (NO_PYCUDA, [f"PyCUDA is not installed: {INSTALL}"]),
        (BARE, ["install NVIDIA's driver", f"PyCUDA is not installed: {INSTALL}"]),
    ],
)
def test_the_command_says_what_to_install(
    machine: Machine, capfd: pytest.CaptureFixture[str], facts: CudaFacts, remedies: list[str]
) -> None:
    machine.looks(facts)
    assert main(["r.fa", "q.fa", "--backend", "cuda", "-o", "out"]) == 1
    out, err = capfd.readouterr()
    last = err.splitlines()[-1]
    assert out == "" and last.startswith("mummergpu: error: backend 'cuda': ")
    for remedy in remedies:
        assert remedy in last
    assert not Path("out").exists()


def test_the_command_without_a_device_says_which_backend_it_takes(
    machine: Machine, output: Output
) -> None:
    machine.looks(BARE)
    out, err = output("r.fa", "q.fa", "-l", "15", "--search", "tree", "-v")
    assert "mummergpu: no cuda backend: no NVIDIA driver (not found)" in err
    assert "backend cpu" in err
    assert out == output("r.fa", "q.fa", "-l", "15", "--search", "tree", "-C")[0]
    machine.looks(SOUND)
    same, err = output("r.fa", "q.fa", "-l", "15", "--search", "tree", "-v")
    assert "mummergpu: device host (sm_90)" in err and "backend cuda" in err
    assert same == out
