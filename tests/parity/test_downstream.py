"""The programs that read MUMmer's output make the same of ours."""

import os
import shutil
import subprocess

import pytest
from helpers.mummer_comparison import count_rows, mummer_text, our_text

from mummergpu.cli.main import main

PYLORI_26695 = "H_pylori26695_Eslice.fasta"
PYLORI_J99 = "H_pyloriJ99_Eslice.fasta"
SLICE = "B_anthracis_Mslice.fasta"
CONTIGS = "B_anthracis_contigs.fasta"
PNEUMONIAE = "streptococcus_pneumoniae.GCF_001457635.fna.gz"
PNEUMONIAE_READS = ("spneumoniae_ERR1438863.R1.fastq.gz", 50)

NUCMER_PARTS = "/usr/lib/mummer"
"""Where Debian keeps the programs that only nucmer starts."""


def program(name):
    path = shutil.which(name, path=f"{os.environ['PATH']}:{NUCMER_PARTS}")
    if path is None:
        pytest.skip(f"{name} of MUMmer 3.23 is not installed")
    return path


def piped(words, text=b"", **settings):
    return subprocess.run(words, input=text, capture_output=True, check=True, **settings).stdout


def clusters(text, *options):
    return piped([program("mgaps"), *options], text)


@pytest.mark.parametrize("mode", ["-maxmatch", "-mumreference", "-mum"])
@pytest.mark.parametrize(
    ("reference", "query"),
    [(PYLORI_26695, PYLORI_J99), (SLICE, CONTIGS)],
    ids=["pylori", "anthrax"],
)
def test_mgaps_makes_the_same_clusters(reference, query, mode, real, mummer_binary, tmp_path):
    files = real.reference(reference), [real.reference(query)]
    flags = f"{mode} -b -L -l 16"
    options = ("-l", "65", "-s", "90", "-d", "5", "-f", ".12")
    expected = clusters(mummer_text(mummer_binary, *files, flags), *options)
    assert count_rows(expected) > 50
    assert clusters(our_text(tmp_path, *files, flags), *options) == expected


GENOMES = {
    "pylori": (PYLORI_26695, PYLORI_J99, "mumreference"),
    "contigs as reference": (CONTIGS, SLICE, "mum"),
    "contigs as queries": (SLICE, CONTIGS, "maxmatch"),
    "reads": (PNEUMONIAE, PNEUMONIAE_READS, "mum"),
}
"""References, queries, and the mode of each by day; the others are tried at night."""


@pytest.mark.parametrize(
    ("reference", "query", "mode"),
    [
        pytest.param(
            *(reference, query, mode),
            id=f"{name}-{mode}",
            marks=() if mode == by_day else pytest.mark.slow,
        )
        for name, (reference, query, by_day) in GENOMES.items()
        for mode in ("maxmatch", "mumreference", "mum")
    ],
)
def test_nucmer_gives_the_same_delta(reference, query, mode, real, mummer_binary, tmp_path):
    """nucmer's own run, and its steps one by one with our matches."""
    reference, query = real.reference(reference), real.path(query)
    piped([program("nucmer"), f"--{mode}", "-p", "theirs", reference, query], cwd=tmp_path)
    expected = (tmp_path / "theirs.delta").read_bytes()
    assert expected.count(b"\n") > 20

    joined = tmp_path / "ours.ntref"
    joined.write_bytes(piped([program("prenuc"), reference]))
    matches = our_text(tmp_path, str(joined), [query], f"-{mode} -b -l 20")
    chained = clusters(matches, "-l", "65", "-s", "90", "-d", "5", "-f", ".12")
    piped([program("postnuc"), "-b", "200", reference, query, "ours"], chained, cwd=tmp_path)
    assert (tmp_path / "ours.delta").read_bytes() == expected


def test_run_mummer3_gives_the_same_alignments(real, mummer_binary, tmp_path):
    files = real.reference(SLICE), [real.reference(CONTIGS)]
    flags = "-mumreference -b -l 20"
    made = []
    for text in (mummer_text(mummer_binary, *files, flags), our_text(tmp_path, *files, flags)):
        (tmp_path / "gaps").write_bytes(clusters(text, "-l", "100", "-f", ".12", "-s", "600"))
        options = ["-x", "-e", ".10", "-W", "errors", files[0], *files[1], "gaps"]
        aligned = piped([program("combineMUMs"), *options], cwd=tmp_path)
        made.append((aligned, (tmp_path / "errors").read_bytes()))
    assert made[0][0].count(b"\n") > 50
    assert made[1] == made[0]


@pytest.mark.parametrize(
    ("reference", "query"),
    [
        pytest.param(PYLORI_26695, PYLORI_J99, id="three columns"),
        pytest.param(CONTIGS, SLICE, id="four columns"),
    ],
)
@pytest.mark.parametrize("lengths", ["", "-L"])
def test_mummerplot_plots_the_same(reference, query, lengths, real, mummer_binary, tmp_path):
    files = real.reference(reference), [real.reference(query)]
    flags = f"-mumreference -b -c -l 20 {lengths}"
    (tmp_path / "theirs").write_bytes(mummer_text(mummer_binary, *files, flags))
    (tmp_path / "ours").write_bytes(our_text(tmp_path, *files, flags))
    # Where gnuplot cannot be found, mummerplot stops after the files that we want.
    environment = {**os.environ, "PATH": str(tmp_path)}
    plots = []
    for name in ("theirs", "ours"):
        words = [program("mummerplot"), "-p", "plot", name]
        piped(words, cwd=tmp_path, env=environment)
        lines = [(tmp_path / f"plot.{kind}plot").read_bytes().splitlines() for kind in "fr"]
        script = (tmp_path / "plot.gp").read_bytes()
        plots.append(([sorted(of_strand) for of_strand in lines], script))
    assert min(map(len, plots[0][0])) > 10
    assert plots[1] == plots[0]


def test_mummerplot_plots_alignments_as_those_of_nucmer(real, mummer_binary, tmp_path):
    files = [real.reference(SLICE), real.reference(CONTIGS)]
    piped([program("nucmer"), "-p", "theirs", *files], cwd=tmp_path)
    assert main(["align", "-q", "-C", *files, "-o", str(tmp_path / "ours.delta")]) == 0
    environment = {**os.environ, "PATH": str(tmp_path)}
    plots = []
    for name in ("theirs", "ours"):
        words = [program("mummerplot"), "-p", name, f"{name}.delta"]
        piped(words, cwd=tmp_path, env=environment)
        texts = [(tmp_path / f"{name}.{kind}plot").read_bytes() for kind in "fr"]
        plots.append([sorted(text.splitlines()) for text in texts])
    assert min(map(len, plots[0])) > 20
    assert plots[1] == plots[0]
