"""Clusters that ask for a certificate, by Dask's own configuration, and jobs that SLURM starts."""

import os
import subprocess
from pathlib import Path

import pytest
from helpers.dask_cluster import dask_cluster
from helpers.read_pairs import write_pairs
from helpers.requirements import program_of

from mummergpu.cli.main import main

SBATCH = """#!/bin/bash
cp "$1" "{folder}/$$.sh"
setsid bash "{folder}/$$.sh" > "{folder}/$$.log" 2>&1 &
echo $! > "{folder}/$$.pid"
echo "Submitted batch job $$"
"""

SCANCEL = """#!/bin/bash
for job in "$@"; do
    kill -- -$(cat "{folder}/$job.pid")
    touch "{folder}/$job.cancelled"
done
"""

JOBS = """jobs: 2
cores: 1
processes: 1
memory: 2GB
queue: short
interface: lo
walltime: "00:05:00"
"""

WORDS = ["map", "-q", "--backend", "cpu", "r.fa", "1.fq", "2.fq"]


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path)


def check(address):
    """Compare a cluster's file with that of one machine."""
    assert main([*WORDS, "--cluster", address, "-o", "many.paf"]) == 0
    assert main([*WORDS, "-o", "one.paf"]) == 0
    assert Path("many.paf").read_bytes() == Path("one.paf").read_bytes()


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    pytest.importorskip("dask_jobqueue")
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text.format(folder=tmp_path))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.slow
@pytest.mark.usefixtures("slurm")
def test_jobs_are_started_and_ended(tmp_path):
    Path("jobs.yaml").write_text(JOBS)
    check("slurm:jobs.yaml")
    scripts = list(tmp_path.glob("*.sh"))
    assert len(scripts) == 2
    assert all("#SBATCH -p short" in script.read_text() for script in scripts)
    assert len(list(tmp_path.glob("*.cancelled"))) == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cores: 1\n", "it must say jobs: N"),
        ("jobs: many\n", "it must say jobs: N"),
        (None, "No such file"),
    ],
)
@pytest.mark.usefixtures("slurm")
def test_wrong_files_of_options_are_named(text, told, tmp_path, capsys):
    if text is not None:
        Path("jobs.yaml").write_text(text)
    assert main([*WORDS, "--cluster", "slurm:jobs.yaml", "-o", "x.paf"]) in (1, 2)
    error = capsys.readouterr().err
    assert told in error and "jobs.yaml" in error and error.count("\n") == 1
    assert not Path("x.paf").exists() and not list(tmp_path.glob("*.sh"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A certificate that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    found = {"cert": str(folder / "cert.pem"), "key": str(folder / "key.pem")}
    words = [program_of("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=localhost", "-keyout", found["key"], "-out", found["cert"]]
    subprocess.run(words, check=True, capture_output=True)
    return found


@pytest.fixture(scope="module")
def cluster(files, tmp_path_factory):
    pytest.importorskip("distributed")
    environment = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": files["cert"]}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        for name, path in files.items():
            environment[f"DASK_DISTRIBUTED__COMM__TLS__{role}__{name.upper()}"] = path
    folder = tmp_path_factory.mktemp("cluster")
    with dask_cluster(folder, 1, environment=environment, protocol="tls") as started:
        yield started


@pytest.mark.slow
def test_certificates_of_dask_are_taken(files, cluster, capsys):
    import dask

    assert cluster.address.startswith("tls://")
    tls = "distributed.comm.tls"
    client = {f"{tls}.client.{name}": path for name, path in files.items()}
    with dask.config.set({f"{tls}.ca-file": files["cert"], **client}):
        check(cluster.address)
    assert main([*WORDS, "--cluster", cluster.address, "-o", "none.paf"]) == 1
    assert cluster.address in capsys.readouterr().err
    assert not Path("none.paf").exists()
