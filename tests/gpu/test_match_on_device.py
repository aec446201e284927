"""Matches that stay on a device: those of the host, in the hands of cupy, torch and numba."""

import gc
import importlib
import subprocess
import sys
import textwrap
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers.device_columns import difference
from helpers.oracle import reverse_complement
from helpers.sequences import write_fasta

import mummergpu
from mummergpu.api import index as searches
from mummergpu.api.requests import device_options
from mummergpu.cuda.device import DeviceMemoryError

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

COLUMNS = ("query", "reference", "query_start", "reference_start", "length", "reverse", "offsets")


def library(name):
    """Import a library of others, whose warnings are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError as error:
            pytest.skip(f"{name} cannot be imported: {error}")


@pytest.fixture(scope="module")
def genome():
    random = np.random.default_rng(4)
    repeat = "".join(random.choice(list("ACGT"), 300))
    records = []
    for number in range(5):
        text = "".join(random.choice(list("ACGT"), 400_000))
        for place in range(0, 400_000, 40_000):
            text = text[:place] + repeat + text[place:]
        records.append((f"chr{number}", text))
    return records


@pytest.fixture(scope="module")
def reads(genome):
    random = np.random.default_rng(5)
    made = []
    for number in range(60_000):
        _, text = genome[random.integers(len(genome))]
        begin = int(random.integers(len(text) - 150))
        bases = text[begin : begin + int(random.integers(10, 150))]
        if number % 3 == 0:
            bases = bases[: len(bases) // 2] + "N" + bases[len(bases) // 2 + 1 :]
        made.append((f"read{number}", reverse_complement(bases) if number % 2 else bases))
    return made


@pytest.fixture
def chosen(device_library, monkeypatch):
    """Has the Python interface use the devices through each library."""

    def options(backend, threads):
        return replace(device_options(backend, threads), library=device_library)

    monkeypatch.setattr(searches, "device_options", options)
    return device_library


@pytest.fixture
def index(chosen, genome):
    with mummergpu.Index.build(genome, min_length=20) as built:
        yield built


@pytest.fixture(scope="module")
def expected(genome, reads):
    with mummergpu.Index.build(genome, min_length=20) as built:
        found = built.match(reads, backend="cpu", strands="both")
    assert len(found) > 90_000
    return found


def wrong(found, expected):
    """Say where columns on the host differ from those expected, or None."""
    wanted = {name: getattr(expected, name) for name in COLUMNS}
    return difference({name: getattr(found, name) for name in COLUMNS}, wanted)


def test_they_are_what_the_processor_finds(index, genome, reads, expected):
    assert wrong(index.match_on_device(reads, strands="both").to_host(), expected) is None
    assert wrong(index.match(reads, backend="cuda", strands="both"), expected) is None
    # A long query is searched whole here, and in pieces there.
    long = [("first", genome[0][1] + "N" + reverse_complement(genome[1][1])), *reads[:7]]
    found = index.match_on_device(long, strands="reverse").to_host()
    assert wrong(found, index.match(long, strands="reverse", backend="cpu")) is None
    nothing = index.match_on_device([], strands="both").to_host()
    assert wrong(nothing, index.match([], strands="both")) is None


def test_files_give_blocks_that_are_joined(index, reads, expected, tmp_path):
    names = [tmp_path / f"{number}.fa" for number in range(3)]
    for number, path in enumerate(names):
        write_fasta(path, reads[20_000 * number : 20_000 * (number + 1)])
    found = index.match_on_device(names, strands="both")
    assert wrong(found.to_host(), expected) is None and found.query_names == expected.query_names


def current_context():
    from cuda.bindings import driver

    error, context = driver.cuCtxGetCurrent()
    assert error == driver.CUresult.CUDA_SUCCESS
    return int(context)


def test_cupy_takes_the_columns_as_they_are(index, reads, expected):
    cupy = library("cupy")
    mine = cupy.arange(1 << 20)
    before = current_context()
    assert before
    found = index.match_on_device(reads, strands="both")
    for name in COLUMNS:
        column, values = getattr(found, name), getattr(expected, name)
        taken = cupy.asarray(column)
        assert taken.data.ptr == column.address, "copied"
        assert taken.dtype == values.dtype and taken.shape == values.shape
        assert np.array_equal(cupy.asnumpy(taken), values), name
    starts = cupy.asarray(found.reference_start)
    ends = starts + cupy.asarray(found.length)
    index.close()
    del found, column, taken
    gc.collect()
    assert np.array_equal(cupy.asnumpy(starts), expected.reference_start)
    assert np.array_equal(cupy.asnumpy(ends), expected.reference_start + expected.length)
    del starts
    # What was somebody else's is as it was.
    assert current_context() == before and int(mine.sum()) == (1 << 19) * ((1 << 20) - 1)


def test_streams_of_cupy_need_not_wait(index, reads, expected):
    cupy = library("cupy")
    wanted = int(expected.length.sum())
    for stream in (
        *(cupy.cuda.Stream.null, cupy.cuda.Stream.ptds),
        *(cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)),
    ):
        with stream:
            found = index.match_on_device(reads, strands="both")
            assert int(cupy.asarray(found.length).sum()) == wanted


def test_memory_is_not_reused_while_a_kernel_reads_it(index, reads, expected):
    """The last owner goes while its kernel waits for its turn in a stream."""
    cupy = library("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    busy = cupy.ones(1 << 26, dtype=cupy.float32)
    for _ in range(5):
        length = cupy.asarray(index.match_on_device(reads, strands="both").length)
        with stream:
            for _ in range(20):
                busy = cupy.sin(busy)
            doubled = length * 2
            del length
        index.match_on_device(reads[:1000], strands="both")
        with stream:
            assert np.array_equal(cupy.asnumpy(doubled), 2 * expected.length)


@pytest.mark.usefixtures("whole_device")
def test_memory_comes_back_when_nobody_has_it(index, reads, device):
    cupy = library("cupy")

    def use():
        found = index.match_on_device(reads, strands="both")
        cupy.asarray(found.query_start).sum()
        cupy.asarray(found.query).sum()

    for _ in range(3):
        use()
    gc.collect()
    with device.current():
        before = device.memory()[0]
    for _ in range(30):
        use()
    gc.collect()
    with device.current():
        # Thirty results have some 100 MB, and a column of each some 20.
        assert device.memory()[0] > before - (8 << 20)


def test_torch_takes_the_columns_as_they_are(index, reads, expected):
    torch = library("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no device")
    mine = torch.arange(1 << 20, device="cuda")
    before = current_context()
    found = index.match_on_device(reads, strands="both")
    for name in COLUMNS:
        column, values = getattr(found, name), getattr(expected, name)
        taken = torch.as_tensor(column, device="cuda")
        assert taken.data_ptr() == column.address, "copied"
        assert np.array_equal(taken.cpu().numpy(), values), name
    length = torch.as_tensor(found.length, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        total = int(torch.as_tensor(found.length, device="cuda").sum())
    assert total == int(expected.length.sum())
    reverse = torch.as_tensor(found.reverse, device="cuda")
    assert int(length[reverse].sum()) == int(expected.length[expected.reverse].sum())
    index.close()
    del found, column, taken, length
    # The last owner may be a thread that knows nothing of this package.
    held = [reverse]
    del reverse
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert current_context() == before and int(mine.sum()) == (1 << 19) * ((1 << 20) - 1)


def test_numba_takes_the_columns_as_they_are(index, reads, expected):
    numba_cuda = library("numba.cuda")
    found = index.match_on_device(reads, strands="both")
    taken = numba_cuda.as_cuda_array(found.length)
    assert taken.__cuda_array_interface__["data"][0] == found.length.address
    assert np.array_equal(taken.copy_to_host(), expected.length)


def test_numpy_is_refused_in_words(index, reads):
    found = index.match_on_device(reads[:100], strands="both")
    with pytest.raises(mummergpu.MummergpuError, match="to_host"):
        np.asarray(found.length)
    assert found.length.to_host().size == len(found)


def test_memory_that_is_not_there_is_refused(index, reads, device, expected):
    with device.current():
        total = device.memory()[1]
    with pytest.raises(DeviceMemoryError):
        device.allocate_exported(2 * total)
    assert wrong(index.match_on_device(reads, strands="both").to_host(), expected) is None


PROGRAM = """
    import importlib, warnings
    import numpy as np
    import mummergpu
    from dataclasses import replace
    from mummergpu.api import index as searches
    from mummergpu.api.requests import device_options

    searches.device_options = lambda *given: replace(device_options(*given), library=LIBRARY)
    reads = [(str(n), "ACGTTGCATGACCTGAGTCA"[n % 9 :] * 3) for n in range(500)]
    index = mummergpu.Index.build([("r", "ACGTTGCATGACCTGAGTCA" * 9)], min_length=12)
    expected = index.match(reads, backend="cpu", strands="both").length
    kept = []
    for name in NAMES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue
            found = index.match_on_device(reads, strands="both")
            if name == "cupy":
                taken = module.asarray(found.length)
                assert taken.data.ptr == found.length.address
                values = module.asnumpy(taken)
            elif name == "torch":
                taken = module.as_tensor(found.length, device="cuda")
                assert taken.data_ptr() == found.length.address
                values = taken.cpu().numpy()
            else:
                taken, values = None, found.to_host().length
        assert np.array_equal(values, expected), name
        kept += [found, taken]
    print("well", flush=True)
    CLOSE
"""


@pytest.mark.parametrize("close", ["", "index.close()", "del index, kept"])
@pytest.mark.parametrize("names", [("cupy", "torch", "dask", "matplotlib"), ("torch", "cupy")])
def test_all_libraries_share_a_process_that_ends_well(device_library, names, close):
    """Whether arrays are left at its end or not."""
    program = textwrap.dedent(PROGRAM).replace("CLOSE", close)
    program = f"LIBRARY, NAMES = {device_library!r}, {names!r}\n" + program
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "well\n"), done.stderr
    # The first process on a machine says that it compiles.
    ours = [
        line
        for line in done.stderr.splitlines()
        if ("mummergpu" in line or "PyCUDA" in line) and "compiles for this processor" not in line
    ]
    assert ours == [], done.stderr
