"""Sweeps that nobody ran: their times are products of known effects.

`write_sweep` writes them with the functions that write real ones.
"""

import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from mummergpu.studies import records

LETTERS = "QRTmrtn"
ALL_CODES = tuple(
    "".join(letters) or "none" for count in range(8) for letters in combinations(LETTERS, count)
)
CPU_CODES = tuple(code for code in ALL_CODES if not set(code) & set("QRT"))

INPUT = records.SweepInput(
    name="LMONO",
    reference_digest="1" * 16,
    query_digest="2" * 16,
    reference_bases=2_944_528,
    reference_records=1,
    query_bases=11_900_000,
    query_count=100_000,
    median_query_length=119,
    minimum_length=20,
    strands=("forward",),
    pages=1,
    page_size=8 << 20,
    address_bits=24,
)

GPU = records.SweepMachine(
    backend="cuda",
    device="NVIDIA H200",
    architecture="sm_90",
    memory_bytes=150_000_000_000,
    multiprocessors=132,
    threads=16,
    clocks_megahertz={"sm": 1980.0, "memory": 3201.0},
    versions={"driver": "580.1", "cuda": "13.0", "python": "3.12.3"},
    gathers_per_second={"merged": 6.0e10, "split": 4.0e10},
)

PROCESSOR = replace(
    GPU,
    backend="cpu",
    device="AMD EPYC",
    architecture="x86_64",
    multiprocessors=0,
    threads=2,
    clocks_megahertz={},
    gathers_per_second={},
)


def product_of(base, effects, code):
    """Return a time that each policy, or each two that are both on, multiplies by its factor."""
    letters = set("" if code == "none" else code)
    for names, factor in effects.items():
        if set(names) <= letters:
            base *= factor
    return base


def make_setup(codes, machine=PROCESSOR, runs=1, control_runs=0, profile=False, **changes):
    """Return a setup; further words change its input, such as ``name``."""
    searched = replace(INPUT, **changes)
    counts = runs, control_runs, 1, profile
    made = "mummergpu 0.1.0", "2026-01-31", tuple(codes)
    return records.SweepSetup(*made, *counts, machine, searched)


def make_run(position, code, seconds, kind="run", repeat=0, kernels=None):
    bytes_moved = {"trees": 150_000_000, "to_device": 12_000_000, "from_device": 9_000_000}
    return records.SweepRun(
        position, code, kind, repeat, dict(seconds), dict(kernels or {}), bytes_moved, "d", 77, 99
    )


def plain_sweep(codes, times):
    """Return a sweep with one run of each code."""
    runs = tuple(make_run(position, code, times(code)) for position, code in enumerate(codes))
    return records.Sweep(Path("nowhere"), make_setup(codes), runs)


def gpu_stages(code, noise):
    """Return the stage times of a device on which some policies matter."""
    match = {"m": 0.78, "T": 0.93, "t": 1.12, "Tm": 1.15, "n": 1.04, "Q": 0.98}
    printing = {"m": 1.05, "t": 1.3, "T": 0.95, "n": 0.97}
    seconds = {
        "match": product_of(0.005, match, code) * noise,
        "print": product_of(0.0021, printing, code) * noise,
        "ordering": 0.0006 * noise,
        "download": 0.0011 * noise,
        "upload": 0.021 * noise,
    }
    wait = 0.0004 * noise
    seconds["search"] = wait + sum(seconds[name] for name in ("match", "print", "ordering"))
    return {"build": 1.9, "order": 0.2, "flatten": 0.03} | seconds


def gpu_kernels(code, seconds, profile):
    registers = {"match_kernel": 38, "find_mems": 58, "place_mems": 60, "order_rows": 30}
    shares = {"match_kernel": 1.0, "find_mems": 0.6, "place_mems": 0.4, "order_rows": 1.0}
    stages = {"match_kernel": "match", "order_rows": "ordering"}
    visits = {"match_kernel": 192_000_000, "find_mems": 8_000_000}
    kernels = {}
    for name, count in registers.items():
        count += 4 * ("t" in code) + 2 * ("T" in code) - 3 * ("m" in code)
        kernels[name] = records.KernelRecord(
            milliseconds=1000 * shares[name] * seconds[stages.get(name, "print")],
            launches=1,
            node_visits=visits.get(name) if profile else None,
            registers=count,
            local_bytes=8 * ("r" in code),
            shared_bytes=0,
            occupancy=min(1.0, 65536 // (count * 256) * 256 / 2048),
        )
    return kernels


def gpu_sweep_runs(codes, runs, controls, profile):
    """Return the runs of a GPU's sweep, with noise of about one percent, in a shuffled order."""
    some = random.Random(7)
    plan = [("run", code, repeat) for code in codes for repeat in range(runs)]
    plan += [("control", "none", repeat) for repeat in range(controls)]
    some.shuffle(plan)
    plan += [("profile", code, 0) for code in codes] * profile
    made = []
    for position, (kind, code, repeat) in enumerate(plan):
        seconds = gpu_stages(code, some.gauss(1, 0.01))
        kernels = gpu_kernels(code, seconds, kind == "profile")
        made.append(make_run(position, code, seconds, kind, repeat, kernels))
    return made


def cpu_sweep_runs(codes, runs, controls):
    """Return the runs of a processor's sweep."""
    some = random.Random(8)
    plan = [("run", code, repeat) for code in codes for repeat in range(runs)]
    plan += [("control", "none", repeat) for repeat in range(controls)]
    some.shuffle(plan)
    made = []
    for position, (kind, code, repeat) in enumerate(plan):
        noise = some.gauss(1, 0.015)
        match = product_of(2.0, {"m": 0.7, "n": 1.1, "t": 1.05}, code) * noise
        printing = product_of(0.4, {"m": 0.95, "n": 1.2, "t": 1.08}, code) * noise
        seconds = {
            "build": 1.9,
            "order": product_of(0.1, {"n": 3.0}, code),
            "flatten": 0.3,
            "match": match,
        }
        seconds |= {"print": printing, "ordering": 0.01 * noise}
        seconds["search"] = (match + printing) / 2 + 0.02
        made.append(make_run(position, code, seconds, kind, repeat))
    return made


def write_sweep(folder, setup, runs):
    """Write the two files of a sweep; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / records.SETUP_FILE).write_text(records.setup_text(setup))
    (folder / records.RUNS_FILE).write_text("".join(map(records.run_text, runs)))
    return folder


def write_gpu_sweep(folder, codes=ALL_CODES, runs=3, controls=6, profile=True, **changes):
    setup = make_setup(codes, GPU, runs, controls, profile, **changes)
    return write_sweep(folder, setup, gpu_sweep_runs(codes, runs, controls, profile))


def write_cpu_sweep(folder, runs=3, controls=6, codes=CPU_CODES):
    setup = make_setup(codes, PROCESSOR, runs, controls)
    return write_sweep(folder, setup, cpu_sweep_runs(codes, runs, controls))


def read_sweep(folder):
    """Read the folder of a sweep of trees."""
    study = records.read_study(folder)
    assert isinstance(study, records.Sweep)
    return study


def read_setup(folder):
    """Read what the runs of a sweep have in common."""
    return records.setup_and_subject(folder)[0]
