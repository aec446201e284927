"""A study on a GPU: the device is the host's, the kernels are their own source."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.host_device import HostDevice, HostMark, HostProgram, everything_given_back
from helpers.opened_backends import GENOME
from helpers.search_cases import STRANDS, SearchCase
from helpers.studies import Steps, data_of, options_of, planned_in, sweep_into, wanted
from helpers.sweeps import read_sweep
from helpers.watched_device import WatchedCompiler, WatchedDevice

from mummergpu.cuda.device import KernelResources
from mummergpu.errors import BackendError
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import NO_POLICY, Policy
from mummergpu.matching.backends.cuda_streams import STREAMS
from mummergpu.matching.options import DeviceOptions
from mummergpu.matching.tree.cuda import KERNELS, TreeCudaBackend
from mummergpu.matching.tree.cuda_program import tree_program
from mummergpu.runtime.stats import Stats
from mummergpu.studies import machine
from mummergpu.studies import searcher as searchers
from mummergpu.studies.combinations import PlannedRun
from mummergpu.studies.gathers import DEVICE_GATHERS, DEVICE_KERNELS, RECORD_BYTES, device_gathers
from mummergpu.studies.layout_sweep import TreeStore
from mummergpu.studies.measurement import ORDERING_KERNELS, Measurer
from mummergpu.studies.searcher import ONE_BLOCK, DeviceSearcher

HERE = Path(__file__).resolve().parent
CASE = replace(GENOME, page_size=200)
DATA = data_of(CASE)
COUNTED = {"match_kernel", "find_mems"}


class NumberedDevice(WatchedDevice):
    """Each program that is loaded has kernels of one more register."""

    def __init__(self):
        super().__init__()
        self.programs = 0

    def load(self, cubin):
        self.programs += 1
        program, number = super().load(cubin), self.programs
        program.resources = lambda kernel: KernelResources(number, 0, 8, 0.5)
        return program


@dataclass
class Studied:
    """A searcher on the host's device."""

    searcher: DeviceSearcher
    device: NumberedDevice
    compiler: WatchedCompiler
    asked_before: int
    pages: dict = field(default_factory=dict)

    def measure(self, runs, case=CASE, data=DATA):
        """A run for each policy, with nodes counted or not."""
        found = []
        with ThreadPoolExecutor(2) as executor:
            store = TreeStore(data.reference, case.page_plan, executor.map)
            measurer = Measurer(self.searcher, data, case.minimum_length, executor)
            assert measurer.backend_name == "cuda"
            for number, (code, profile) in enumerate(runs):
                self.pages[code], seconds = store.flatten(Layout.of(Policy.from_code(code)))
                measurer.load(code, self.pages[code], profile)
                kind = "profile" if profile else "run"
                found.append(measurer.run(PlannedRun(code, kind, 0), number, seconds))
        return found


@pytest.fixture
def studied(compiler, monkeypatch):
    kept = []
    monkeypatch.setattr(searchers, "keep_freed_memory", lambda: kept.append(True))
    device, stats = NumberedDevice(), Stats()
    given = device, compiler, Policy(), stats, lambda line: None
    backend = TreeCudaBackend(*given, max_block_bases=ONE_BLOCK, closes_device=True)
    searcher = DeviceSearcher(backend, stats, DeviceOptions(kernel_folder=None))
    assert kept == [True]
    yield Studied(searcher, device, compiler, len(compiler.asked))
    searcher.close()
    assert everything_given_back(device)


def test_every_policy_finds_the_same(studied):
    both = data_of(CASE, 1, STRANDS)
    policies = [NO_POLICY, "m", "QRT", "QRTmrt"]
    runs = studied.measure([(code, False) for code in policies], CASE, both)
    expected = sum(len(rows) for strand in STRANDS for rows in CASE.expected(strand))
    assert {run.mems for run in runs} == {expected}
    assert len({(run.digest, run.candidate_matches) for run in runs}) == 1


def test_what_a_run_costs_is_recorded(studied):
    (run,) = studied.measure([("m", False)])
    pages = len(CASE.page_plan)
    assert pages > 2 and set(KERNELS) <= set(run.kernels)
    assert run.kernels["match_kernel"].launches == pages
    # A launch on the host's device takes a millisecond by its own clock.
    for kernel in run.kernels.values():
        assert kernel.node_visits is None and kernel.milliseconds == pytest.approx(kernel.launches)
    launches = Counter({name: kernel.launches for name, kernel in run.kernels.items()})
    ordering = sum(launches[name] for name in ORDERING_KERNELS)
    assert launches["merge_pages"] > 0 and launches["sort_candidates"] > 0
    seconds = run.seconds
    assert seconds["match"] == pytest.approx(pages / 1000)
    assert seconds["ordering"] == pytest.approx(ordering / 1000)
    assert seconds["print"] == pytest.approx((launches.total() - ordering - pages) / 1000)
    assert run.kernel_seconds == pytest.approx(launches.total() / 1000)
    stages = {*("build", "order", "flatten", "upload", "match", "print", "ordering", "download")}
    assert set(seconds) == stages | {"search"} and all(value > 0 for value in seconds.values())


def test_bytes_are_those_of_the_trees_the_queries_and_the_matches(studied):
    first, again = studied.measure([("m", False), ("m", False)])
    assert first.bytes == again.bytes
    (block,) = DATA.blocks
    trees = sum(page.tree.byte_count for page in studied.pages["m"])
    assert first.bytes["trees"] == trees
    assert first.bytes["to_device"] == trees + block.codes.nbytes + block.offsets.nbytes
    assert first.bytes["from_device"] == 8 * (block.query_count + 1) + 24 * first.mems


def test_nodes_are_counted_in_profile_runs_alone(studied):
    given = [("m", False), ("m", True), ("m", False), (NO_POLICY, True), ("n", True), ("m", True)]
    plain, profile, after, split, reordered, again = studied.measure(given)
    for run in (plain, after):
        assert {kernel.node_visits for kernel in run.kernels.values()} == {None}
    visits = {name: kernel.node_visits for name, kernel in profile.kernels.items()}
    assert {name for name, count in visits.items() if count is not None} == COUNTED
    assert all((visits[name] or 0) > 0 for name in COUNTED)
    # Those of the runs before and of the warm-up do not count, and layouts do not matter.
    for run in (again, split, reordered):
        assert {name: kernel.node_visits for name, kernel in run.kernels.items()} == visits
    assert len({run.digest for run in (plain, profile, after, split, again)}) == 1


def test_each_run_is_searched_by_the_program_of_its_policy(studied):
    """And has the resources of that, whichever was loaded before."""
    order = [("m", False), ("QRT", False), (NO_POLICY, False), ("QRT", False), ("m", False)]
    order += [("m", True), ("n", False), ("m", False)]
    runs = studied.measure(order)
    programs = [tree_program(Policy.from_code(code), False, profile) for code, profile in order]
    assert studied.compiler.asked[studied.asked_before :] == list(dict.fromkeys(programs))
    assert studied.device.programs == 4
    numbers = [run.kernels["match_kernel"].registers for run in runs]
    assert numbers == [1, 2, 3, 2, 1, 4, 3, 1]
    for run, number in zip(runs, numbers, strict=True):
        for name in KERNELS:
            kernel = run.kernels[name]
            told = (kernel.registers, kernel.local_bytes, kernel.shared_bytes, kernel.occupancy)
            assert told == (number, 0, 8, 0.5)


def test_trees_take_each_others_place(studied):
    studied.measure([("QRT", False), ("m", False)])
    assert not studied.device.textures
    held = studied.device.used
    studied.measure([("QRT", False), (NO_POLICY, False), ("QRT", False), ("m", False)])
    assert studied.device.used == held


def test_what_finds_nothing_is_measured_too(studied):
    case = SearchCase("nothing", ("A" * 60,), ("C" * 30, "G" * 70), 20)
    (run,) = studied.measure([("m", True)], case, data_of(case))
    assert (run.mems, run.candidate_matches) == (0, 0)
    assert run.seconds["print"] > 0 and run.seconds["ordering"] == 0
    assert run.bytes["from_device"] == 24


def test_queries_are_searched_as_one_block(studied):
    sizes = studied.searcher.backend.sizes
    assert studied.searcher.block_size == min(ONE_BLOCK, 2 * STREAMS * sizes.block_bases)
    assert studied.searcher.is_device


def test_a_sweep_on_a_device(studied, tmp_path, monkeypatch):
    codes = [NO_POLICY, "m", "QRT"]
    loads = []
    load = Measurer.load

    def counted(measurer, code, pages, profile):
        loads.append((code, profile))
        load(measurer, code, pages, profile)

    monkeypatch.setattr(Measurer, "load", counted)
    options = options_of(codes, CASE, runs=5, control_runs=2, profile=True)
    assert sweep_into(tmp_path, DATA, options, studied.searcher) == 3 * 5 + 2 + 3
    expected = wanted(codes, 5, 2)
    expected.update(PlannedRun(code, "profile", 0) for code in codes)
    assert planned_in(tmp_path) == expected
    sweep = read_sweep(tmp_path)
    # Two visits of each combination, and of each another program that counts; the control's, of
    # which the first may have a visit for itself.
    assert Counter(profile for _, profile in loads)[True] == 3
    assert 3 * 2 + 2 <= Counter(profile for _, profile in loads)[False] <= 3 * 2 + 3
    assert sweep.setup.profile
    for run in sweep.runs:
        visits = {name: kernel.node_visits for name, kernel in run.kernels.items()}
        counted_names = {name for name, count in visits.items() if count is not None}
        assert counted_names == (COUNTED if run.kind == "profile" else set())
    told = sweep.setup.machine
    assert (told.backend, told.device, told.architecture) == ("cuda", "host", "sm_90")
    assert told.memory_bytes == 1 << 30
    assert set(told.gathers_per_second) == {"merged", "split", "half"}
    assert sweep_into(tmp_path, DATA, options, studied.searcher) == 0


def test_a_sweep_that_goes_on_makes_only_what_is_missing(studied, tmp_path):
    options = options_of([NO_POLICY, "m"], CASE, runs=3, control_runs=1)
    assert sweep_into(tmp_path, DATA, options, studied.searcher) == 7
    progress = Steps()
    more = replace(options, profile=True)
    assert sweep_into(tmp_path, DATA, more, studied.searcher, progress) == 2
    assert [step[1:] for step in progress.told] == [(8, 9), (9, 9)]
    assert [run.kind for run in read_sweep(tmp_path).runs[7:]] == ["profile"] * 2


@pytest.mark.parametrize("profile", [False, True])
def test_all_programs_are_compiled_before(studied, tmp_path, monkeypatch, profile):
    asked = []

    def cubin(sources, program, architecture):
        asked.append((program, architecture))
        return b""

    monkeypatch.setattr(studied.searcher.backend.cache, "cubin", cubin)
    codes = [NO_POLICY, "n", "m", "mn", "Tm", "QRTmrtn"]
    studied.searcher.compile_programs(codes, True, profile)
    assert asked == [], "there is no folder to keep them in"
    monkeypatch.setattr(studied.searcher, "_options", DeviceOptions(kernel_folder=str(tmp_path)))
    studied.searcher.compile_programs(codes, True, profile)
    expected = {
        (tree_program(Policy.from_code(code), True, counting), "sm_90")
        for code in codes
        for counting in ((False, True) if profile else (False,))
    }
    assert len(asked) == len(set(asked)) == 4 * (1 + profile) and set(asked) == expected


def test_a_program_that_does_not_compile_is_an_error(studied, tmp_path, monkeypatch):
    def cubin(*given):
        raise BackendError("cuda", "the compiler says no")

    monkeypatch.setattr(studied.searcher.backend.cache, "cubin", cubin)
    monkeypatch.setattr(studied.searcher, "_options", DeviceOptions(kernel_folder=str(tmp_path)))
    with pytest.raises(BackendError, match="the compiler says no"):
        studied.searcher.compile_programs(["m"], False, False)


def test_gathers_of_a_device(compiler):
    device = HostDevice(resident_blocks=5)
    rates = device_gathers(device, compiler, 1000, 4)
    # A launch takes a millisecond; there would be 256 threads in a block.
    assert rates == dict.fromkeys(DEVICE_KERNELS, 5 * 256 * DEVICE_GATHERS * 1000.0)
    expected = {"fill_table": 1, **dict.fromkeys(DEVICE_KERNELS.values(), 5)}
    assert Counter(device.launches) == expected
    assert not device.buffers and not device.streams


def test_the_median_of_all_launches_but_the_first_counts(compiler, monkeypatch):
    lengths = iter([4.0, 2.0, 50.0] * len(DEVICE_KERNELS))
    monkeypatch.setattr(HostMark, "milliseconds_since", lambda *given: next(lengths))
    rates = device_gathers(HostDevice(), compiler, 1000, 3)
    assert rates == dict.fromkeys(DEVICE_KERNELS, 3 * 256 * DEVICE_GATHERS * 1000.0 / 4.0)


def test_gathers_are_measured_on_a_table_of_the_size(compiler, monkeypatch):
    launched = {}
    run = HostProgram.run

    def noted(program, kernel, blocks, threads, arguments):
        launched[kernel] = tuple(int(value) for value in arguments)
        run(program, kernel, blocks, threads, arguments)

    monkeypatch.setattr(HostProgram, "run", noted)
    device_gathers(HostDevice(), compiler, 1000 * RECORD_BYTES + 31, 1)
    assert launched["fill_table"][1] == 1000 * RECORD_BYTES // 4
    for kernel in DEVICE_KERNELS.values():
        assert launched[kernel][0] == launched["fill_table"][0]
        assert launched[kernel][1:3] == (1000, DEVICE_GATHERS)


def test_gathers_stay_inside_the_table(sanitizing, library_folder):
    def run(*words):
        command = [sys.executable, "-W", "error", str(HERE / "sanitized_gathers.py")]
        given = [*command, str(library_folder), *words]
        return subprocess.run(given, capture_output=True, text=True, env=sanitizing, timeout=240)

    done = run()
    assert (done.returncode, done.stdout) == (0, "all inside\n"), done.stderr[:5000]
    short = run("--short")
    assert short.returncode != 0 and "heap-buffer-overflow" in short.stderr, short.stdout


def test_facts_of_a_device(studied, monkeypatch):
    one = SimpleNamespace(number=1, multiprocessors=8, clock_kilohertz=1, memory_clock_kilohertz=1)
    zero = SimpleNamespace(
        number=0, multiprocessors=132, clock_kilohertz=1_980_000, memory_clock_kilohertz=0
    )
    facts = SimpleNamespace(cuda_version=(13, 0), devices=[one, zero])
    monkeypatch.setattr(machine, "driver_facts", lambda: facts)
    found = studied.searcher.machine(4, {"merged": 1.0})
    assert (found.backend, found.device, found.threads) == ("cuda", "host", 4)
    assert (found.multiprocessors, found.memory_bytes) == (132, 1 << 30)
    assert found.clocks_megahertz == {"multiprocessors": 1980.0}
    assert found.versions["driver's CUDA"] == "13.0"
    assert found.gathers_per_second == {"merged": 1.0}
