"""A process that has everything compiled and imported, and forks a child for each request.

Started with the library of `faults.c` preloaded. It reads requests as lines of JSON, runs each
in a child in which one call of the system fails, and answers with a line of JSON. A child takes
some hundredths of a second, a new interpreter half a second.
"""

import ctypes
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import numpy as np

from mummergpu.cli.main import main
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.program import ProgramSource
from mummergpu.runtime.compiled.store import code_places, keep_code_in, on_cache_trouble
from mummergpu.sequence import codes

MOST_SECONDS = 60
faults = ctypes.CDLL(None)
faults.faults_hit.restype = faults.faults_told.restype = ctypes.c_char_p
faults.faults_arm.argtypes = (
    *(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_int),
)


def tell(line):
    print(line, file=sys.stderr)


def keep_kernels(arguments):
    """Use a cache of compiled kernels, with a compiler that takes no time."""
    folder = Path(arguments[0])

    def compile(_sources, _program, target):
        return target.encode() * 20_000

    program = ProgramSource("none", "program.cu")
    for _ in range(2):
        cache = KernelCache(folder, tell, 1 << 20, lambda: (13, 0))
        for target in ("sm_80", "sm_90", "sm_80"):
            image = cache.cubin({"program.cu": ""}, program, target, compile)
            if image != target.encode() * 20_000:
                print("a wrong kernel")
                return 1
    return 0


def keep_code(arguments):
    """Use a store of code for the processor, with code that takes no time to make."""
    from mummergpu.runtime.compiled.store import CodeStore

    for _ in range(2):
        store = CodeStore((os.path.abspath(arguments[0]),), ("0" * 32,), tell)
        for key in (b"first", b"second", b"first"):
            content = key * 10_000
            found = store.load(key)
            if found is None:
                store.save(key, content)
            elif found != content:
                print("wrong code")
                return 1
    return 0


def compile_function(arguments):
    """Call a function whose machine code is kept in a folder, or has to be compiled."""

    on_cache_trouble(tell)
    keep_code_in((os.path.abspath(arguments[0]),))
    # What the parent has compiled is left aside.
    fresh = importlib.reload(codes)
    sequence = fresh.encode(b"ACCGT" * 20 + b"GATTACA")
    reverse = fresh.reverse_complement_each(sequence, np.array([0, 100, 107], dtype=np.int64))
    expected = fresh.encode(b"ACGGT" * 20 + b"TGTAATC")
    if not np.array_equal(reverse, expected):
        print("a wrong result")
        return 1
    return 0


TASKS = {
    "main": main,
    "keep_kernels": keep_kernels,
    "keep_code": keep_code,
    "compile_function": compile_function,
}


def warm_up(request):
    """Do a task in this process, so that its children need not compile or import."""
    before, places = os.dup(1), code_places()
    os.dup2(2, 1)
    code = TASKS[request["task"]](request["arguments"])
    sys.stdout.flush()
    os.dup2(before, 1)
    os.close(before)
    # Other tasks need not compile what is kept elsewhere.
    keep_code_in(places)
    until = time.monotonic() + MOST_SECONDS
    while threading.active_count() > 1 and time.monotonic() < until:
        time.sleep(0.001)
    # What children only read is not copied for them.
    gc.collect()
    gc.freeze()
    return {"status": code, "threads": threading.active_count()}


def run(request):
    """Do a task in a child; tell how it ended, what it said and what was made to fail."""
    out, err = os.memfd_create("out"), os.memfd_create("err")
    faults.faults_reset()
    child = os.fork()
    if child == 0:
        be_the_child(request, out, err)
    _, status = os.waitpid(child, 0)
    answer = {
        "status": os.waitstatus_to_exitcode(status),
        "out": os.pread(out, 1 << 20, 0).decode(),
        "err": os.pread(err, 1 << 20, 0).decode(),
        "calls": faults.faults_told().decode().split(),
        "hit": faults.faults_hit().decode(),
    }
    os.close(out)
    os.close(err)
    return answer


def be_the_child(request, out, err):
    """Do a task with one call that fails, and end."""
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        signal.alarm(MOST_SECONDS)
        where = request["folder"].encode(), request["name"].encode()
        faults.faults_arm(*where, *(request[one] for one in ("call", "error", "kill", "halves")))
        code = TASKS[request["task"]](request["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def serve():
    """Answer requests until there are no more."""
    # The search for a folder for temporary files writes there; here it is told.
    tempfile.tempdir = os.environ["TMPDIR"]
    for line in sys.stdin:
        request = json.loads(line)
        answer = warm_up(request) if request["warm"] else run(request)
        print(json.dumps(answer), flush=True)


serve()
