"""A scheduler that takes only those with a certificate, by Dask's own configuration."""

import subprocess
from pathlib import Path

import pytest
from helpers.dask_cluster import dask_cluster
from helpers.read_pairs import write_pairs
from helpers.requirements import program_of

from mummergpu.cli.main import main

pytestmark = pytest.mark.slow


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


def test_certificates_of_dask_are_taken(files, cluster, tmp_path, monkeypatch, capsys):
    import dask

    write_pairs(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["map", "-q", "--backend", "cpu", "r.fa", "1.fq", "2.fq"]
    assert cluster.address.startswith("tls://")
    tls = "distributed.comm.tls"
    client = {f"{tls}.client.{name}": path for name, path in files.items()}
    with dask.config.set({f"{tls}.ca-file": files["cert"], **client}):
        assert main([*words, "--cluster", cluster.address, "-o", "many.paf"]) == 0
    assert main([*words, "-o", "one.paf"]) == 0
    assert Path("many.paf").read_bytes() == Path("one.paf").read_bytes()
    assert main([*words, "--cluster", cluster.address, "-o", "none.paf"]) == 1
    assert cluster.address in capsys.readouterr().err
    assert not Path("none.paf").exists()
