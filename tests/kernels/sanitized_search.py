"""Run the kernels under the sanitizers, and hold them to the definition of a match.

A program of its own, because the sanitizers' runtime must be the first library of the
process. It is given a folder and policies (their letters, then ``W`` for the wide format, or
``none``), and searches all cases under each of them. It prints what differs, and ends with 1
if anything does.

With ``--short BUFFER`` the kernels get one byte less than that buffer needs, with ``--overflow``
a program beside them does what C++ does not define: a check of the sanitizers themselves.
"""

import argparse
import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from helpers import host_device
from helpers.search_cases import ANY, CASES, STRANDS, rows_of

from mummergpu.cuda import stream_worker
from mummergpu.cuda.stream_worker import Workspace
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import NO_POLICY, Policy
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.matching.tree.cuda_program import tree_program
from mummergpu.runtime.stats import Stats

MOST_STRIPS = {False: 12, True: 2}
"""A page in strips takes 4 MiB, in the wide format 24 MiB, however small: cases of more pages
go without them."""

PLENTY = 1 << 34


class ExactWorkspace(Workspace):
    """Its buffers are never larger than asked for, so that nothing hides behind their ends."""

    short: str | None = None
    was_short = False

    def buffer(self, name, size):
        if name == self.short:
            ExactWorkspace.was_short = True
            size -= 1
        found = self._buffers.get(name)
        if found is not None and found.size != max(size, 1):
            self._buffers.pop(name).free()
        return super().buffer(name, size)


def choice_of(name):
    """A policy, and whether nodes are wide, by their letters."""
    return Policy.from_code(name.removesuffix("W") or NO_POLICY), name.endswith("W")


def cases_for(policy, wide):
    """The cases that a policy is tried on."""
    most = MOST_STRIPS[wide] if policy.two_dimensional_tree else PLENTY
    return [case for case in CASES if len(case.page_plan) <= most]


def check_policies(names, compiler):
    """Search under each policy, and print how many matches were found; return what was wrong."""
    found, wrong = dict.fromkeys(names, 0), []
    choices = {name: choice_of(name) for name in names}
    for case in CASES:
        pages = {}
        for number, (name, (policy, wide)) in enumerate(choices.items()):
            if case not in cases_for(policy, wide):
                continue
            layout = Layout.of(policy, wide)
            if layout not in pages:
                pages[layout] = case.pages(layout)
            count, differences = check(case, pages[layout], policy, compiler, 1 + number % 3)
            found[name] += count
            wrong += [f"{case.name}, {name}: {text}" for text in differences]
    for name, choice in choices.items():
        print(f"{name}: {found[name]} matches in {len(cases_for(*choice))} cases")
    print(f"{len(wrong)} differences")
    return wrong


def check(case, pages, policy, compiler, threads):
    """Search both strands of a case under a policy."""
    found, wrong = 0, []
    device = host_device.HostDevice(PLENTY, threads)
    backend = TreeCudaBackend(
        device, compiler, policy, Stats(), lambda line: None, closes_device=True
    )
    backend.load_pages(pages, case.minimum_length)
    both = backend.find_mems(case.block(), STRANDS, ANY)
    for strand, columns in both.items():
        found += columns.count
        if rows_of(columns) != case.expected(strand):
            wrong.append(f"{strand}: {rows_of(columns)}, not {case.expected(strand)}")
    backend.close()
    if not host_device.everything_given_back(device):
        wrong.append("something was not given back")
    return found, wrong


def compile_all(names, compiler):
    """Compile what the policies need, on all processors that are there for us."""
    wanted = {tree_program(*choice_of(name), False) for name in names}
    sharing = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)) // sharing)) as pool:
        list(pool.map(partial(compiler.cubin, {}, architecture="host"), wanted))


def overflow(folder):
    """Add one to the largest number."""
    source = folder / "overflow.cpp"
    source.write_text('extern "C" int more(int number) { return number + 1; }\n')
    library = folder / "overflow.so"
    command = ["g++", "-shared", "-fPIC", *host_device.SANITIZERS, str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    return int(ctypes.CDLL(str(library)).more((1 << 31) - 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("policies", nargs="*")
    parser.add_argument("--short")
    parser.add_argument("--overflow", action="store_true")
    given = parser.parse_args()
    if given.overflow:
        print("nobody minds", overflow(given.folder))
        return 0
    ExactWorkspace.short = given.short
    stream_worker.SMALLEST_BUFFER = 1
    stream_worker.SLACK = PLENTY
    stream_worker.Workspace = ExactWorkspace
    compiler = host_device.HostCompiler(
        given.folder, (*host_device.SANITIZERS, host_device.UNOPTIMISED)
    )
    if given.short is not None:
        check(CASES[0], CASES[0].pages(Layout.of(Policy())), Policy(), compiler, 1)
        print("nobody minds" if ExactWorkspace.was_short else f"there is no buffer {given.short}")
        return 0
    compile_all(given.policies, compiler)
    wrong = check_policies(given.policies, compiler)
    for line in wrong[:20]:
        print(line[:2000])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
