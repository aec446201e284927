"""A warm start needs no compiler, and a run leaves nothing in the way of other libraries."""

import importlib.util
import os
import sys

import pytest
from helpers.children import printed_by

from mummergpu.runtime.compiled.levels import usable_levels

OUTPUTS = ("paf", "bed", "tsv", "sam", "bam")
PROGRAM = """
import os, sys
from mummergpu.cli import main as cli
sys.argv = ["mummergpu", "-C", "-b", "-l", "4", "-o", os.devnull, *sys.argv[1:]]
os._exit = lambda code: print(code, *sys.modules)
cli.run()
"""

NEIGHBOUR = """
import os, sys
from mummergpu.cli.main import run
finders, absent = list(sys.meta_path), {name for name in sys.modules if sys.modules[name] is None}
codes, path, library = [], *sys.argv[1:]
os._exit = codes.append
sys.argv = ["mummergpu", "-q", "-C", "-l", "4", path, path]
run()
assert sys.meta_path == finders
assert {name for name in sys.modules if sys.modules[name] is None} == absent
exec(library)
run()
assert codes == [0, 0]
"""

NEIGHBOURS = {
    "numpy.ma": "import numpy.ma as ma; assert ma.masked_equal([1, 2], 2).sum() == 1",
    "scipy": "import scipy.linalg; assert scipy.linalg.det([[2.0]]) == 2",
    "matplotlib": "import matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as plt; "
    "plt.plot([1, 2]); plt.savefig(os.devnull, format='png')",
    "dask": "import dask; assert dask.delayed(sum)([1, 2]).compute() == 3",
    "yaml": "import yaml; assert yaml.safe_load('a: 1') == {'a': 1}",
    "coverage": "import coverage; coverage.Coverage(data_file=None)",
}


def run_child(program, *arguments):
    return printed_by("-c", program, *arguments, env={"PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.fa"
    path.write_text(">t\nACGGTCATTGCA\n")
    return str(path)


@pytest.mark.skipif(not usable_levels(), reason="there are no images here")
@pytest.mark.parametrize("name", ["mummer", *OUTPUTS])
def test_a_warm_start_needs_no_numba(text, name):
    for _ in range(2):
        code, *modules = run_child(PROGRAM, "--format", name, text, text).split()
    assert code == "0" and "mummergpu.pipeline.match" in modules
    assert not {"numba", "llvmlite", "pysam", "importlib.metadata"} & set(modules)
    others = {f"mummergpu.output.matches.{other}" for other in OUTPUTS if other != name}
    assert not others & set(modules)


@pytest.mark.parametrize("library", NEIGHBOURS)
def test_other_libraries_work_in_the_process_of_a_search(library, text):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    rows = run_child(NEIGHBOUR, text, NEIGHBOURS[library])
    assert rows == 2 * "> t\n       1         1        12\n"
