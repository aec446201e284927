"""`map` on the processes of a Dask cluster: the bytes of one machine, whatever befalls workers."""

import gzip
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.dask_cluster import dask_cluster, wait_until
from helpers.hmmer import report, write_input
from helpers.read_pairs import PairFiles, write_pairs

import mummergpu
from mummergpu.api.mapping_requests import MapRequest
from mummergpu.cli.main import main
from mummergpu.cluster import connection, flow
from mummergpu.cluster import map_reads as on_machines
from mummergpu.cluster.joined_files import JoinedFiles
from mummergpu.cluster.options import ClusterOptions
from mummergpu.cluster.worker import threads_and_number
from mummergpu.errors import ClusterError, InputError
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.formats import RowKind, targets_of
from mummergpu.output.options import EXTRA_TAGS, RecordStyle, SortOptions
from mummergpu.pipeline import map_reads
from mummergpu.pipeline.context import RunContext

FILES = PairFiles()
PAIRS = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of `write_pairs`, plain and compressed."""
    made = tmp_path_factory.mktemp("clustered")
    write_pairs(made, PAIRS)
    for name in (FILES.first, FILES.second, FILES.both):
        content = (made / name).read_bytes()
        (made / f"{name}.gz").write_bytes(gzip.compress(content))
        compressor = BgzfCompressor()
        blocks = [compressor.compress(content[at : at + 999]) for at in range(0, len(content), 999)]
        (made / f"{name}.bgz").write_bytes(b"".join(blocks) + compressor.end())
    lines = (made / FILES.first).read_bytes().splitlines(keepends=True)
    reads = [lines[at : at + 4] for at in range(0, len(lines), 4)]
    folded = [
        # Qualities that look like a record.
        b"%b%b\n%b\n%b+\n@%b\n%b\n+%b"
        % (name, bases[:40], bases[40:80], bases[80:], quality[1:40], quality[40:80], quality[81:])
        for name, bases, _, quality in reads
    ]
    (made / "folded.fq").write_bytes(b"".join(folded))
    (made / "cut.fq").write_bytes((made / FILES.first).read_bytes()[:-30])
    (made / "1.fa").write_bytes(b"".join(b">" + name[1:] + bases for name, bases, *_ in reads))
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    """Small files are cut, too."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(on_machines, "MIN_PART_BYTES", 12_000)
    monkeypatch.setattr(on_machines, "PARTS_OF_THREAD", 16)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path_factory.mktemp("cluster"), 1) as started:
        yield started


def options_of(outputs, *reads, **told):
    request = MapRequest(
        interleaved=told.pop("interleaved", False),
        max_xa=told.pop("max_xa", 0),
        max_occurrences=300,
        backend="cpu",
        threads=2,
    )
    mates = reads[1] if len(reads) == 2 else None
    found = request.options(FILES.reference, reads[0], mates)
    return replace(found, outputs=targets_of(outputs, None, RowKind.READS), **told)


def content_of(outputs):
    return [Path(output).read_bytes() for output in outputs]


def run(options, cluster, **told):
    """Map on a cluster; return what is counted, and the lines for the user."""
    lines = []
    context = RunContext(2, notice=lines.append, warn=lines.append)
    on_machines.run(options, context, ClusterOptions(cluster.address, **told))
    return context, lines


def one_machine(options):
    context = RunContext(2)
    map_reads.run(options, context)
    return content_of([target.path for target in options.outputs]), context


def at_first_part(monkeypatch, act):
    """Do something when the first part has come."""
    write, acts = JoinedFiles.write, [act]

    def write_and_act(self, packed):
        write(self, packed)
        if acts:
            acts.pop()()

    monkeypatch.setattr(JoinedFiles, "write", write_and_act)


EVERY_FORMAT = ["o.sam", "o.bam", "o.paf.gz", "o.cram", "o.sam.zst"]
SORTED = ["s.bam", "s.cram"]
STYLE = RecordStyle(True, True, True, True, EXTRA_TAGS, ("@CO\ttold",))

CASES: dict[str, tuple[list[str], tuple[str, ...], dict[str, Any], str]] = {
    "pairs": (EVERY_FORMAT, (FILES.first, FILES.second), {"max_xa": 5}, ""),
    "styled": (["o.sam", "o.bam", "o.paf"], (FILES.first, FILES.second), {"style": STYLE}, ""),
    "sorted": (SORTED, (FILES.first, FILES.second), {"sort": SortOptions(True, True)}, ""),
    "bgzf": (["o.bam"], (f"{FILES.first}.bgz", f"{FILES.second}.bgz"), {}, ""),
    "bgzf and plain": (["o.bam"], (f"{FILES.first}.bgz", FILES.second), {}, ""),
    "interleaved": (["o.bam"], (f"{FILES.both}.bgz",), {"interleaved": True}, ""),
    "fasta": (["o.sam"], ("1.fa",), {}, ""),
    "gzip": (["o.bam"], (f"{FILES.first}.gz", FILES.second), {}, "sends them to the workers"),
    "folded": (["o.bam"], ("folded.fq",), {}, "cannot be cut"),
}
"""Outputs, reads and options, and what the user is told."""


@pytest.mark.timeout(600)
def test_processes_on_this_machine_are_numbered(cluster):
    wait_for(cluster, 1)
    told = {}
    for options in (ClusterOptions("local:2", threads=1), ClusterOptions(cluster.address)):
        with connection.open_cluster(options, lambda line: None) as opened:
            # A worker is known to the tasks that it runs.
            asked = [
                opened.client.submit(threads_and_number, workers=[address], pure=False)
                for address in opened.client.scheduler_info(n_workers=-1)["workers"]
            ]
            told[options.address] = sorted(one.result() for one in asked)
    assert told["local:2"] == [(1, 0), (1, 1)]
    assert set(told[cluster.address]) == {(1, None)}


@pytest.mark.timeout(600)
def test_all_workers_write_what_one_machine_writes(cluster, monkeypatch):
    """One test, so that the processes start once, and the last: it ends the scheduler."""
    whole = {name: check_case(name, cluster) for name in CASES}["pairs"]
    cluster.add_worker("w1")
    check_pairs(whole, cluster)
    cluster.add_worker("w2")
    cluster.add_worker("w3", file_bytes=9000)
    wait_for(cluster, 4)
    assert any("another worker gets a part again" in one for one in check_pairs(whole, cluster))
    cluster.end_worker("w3")
    wait_for(cluster, 3)

    with monkeypatch.context() as patched:
        at_first_part(patched, lambda: cluster.end_worker("w1"))
        check_pairs(whole, cluster)
    wait_for(cluster, 2)
    with monkeypatch.context() as patched:
        at_first_part(patched, lambda: cluster.end_worker("w2", signal.SIGSTOP))
        lines = check_pairs(whole, cluster, patience=1.0)
    assert any("other workers get the parts" in line for line in lines)
    cluster.end_worker("w2", signal.SIGCONT)
    check_late_workers(whole, cluster, monkeypatch)

    check_command(cluster)
    check_other_commands(cluster)
    with monkeypatch.context() as patched:
        at_first_part(patched, cluster.scheduler.kill)
        with pytest.raises(ClusterError, match="the scheduler has gone, and nothing is written"):
            run(options_of(["o.bam"], FILES.first), cluster)
    assert not Path("o.bam").exists()
    assert parts_left() == []


def check_case(name, cluster):
    """Compare a case with one machine; return the content of its files."""
    outputs, reads, told, line = CASES[name]
    options = options_of(outputs, *reads, **dict(told))
    whole, alone = one_machine(options)
    context, lines = run(options, cluster)
    assert content_of(outputs) == whole, name
    assert not line or any(line in one for one in lines), name
    assert line or context.stats.counts["blocks"] > 2, name
    assert parts_left() == []
    for count in ("queries", "query_bases", "mapped_reads", "properly_paired_reads"):
        assert context.stats.counts[count] == alone.stats.counts[count], (name, count)
    assert context.stats.mapping is not None and alone.stats.mapping is not None
    assert context.stats.mapping.as_dict() == alone.stats.mapping.as_dict()
    return whole


def check_pairs(whole, cluster, **told):
    """Map pairs again; return the lines for the user."""
    for output in EVERY_FORMAT:
        Path(output).unlink()
    options = options_of(EVERY_FORMAT, FILES.first, FILES.second, max_xa=5)
    _, lines = run(options, cluster, **told)
    assert content_of(EVERY_FORMAT) == whole
    return lines


def check_late_workers(whole, cluster, monkeypatch):
    """Workers that are all late are waited for as long as they send signs of life."""
    with monkeypatch.context() as patched:
        patched.setattr(flow, "_TIMES_LONGEST", 0)
        check_pairs(whole, cluster, patience=0.01)

        def stop_all():
            for name in cluster.workers:
                cluster.end_worker(name, signal.SIGSTOP)

        patched.setattr(connection, "SIGN_SECONDS", 2.0)
        at_first_part(patched, stop_all)
        options = options_of(["s.sam"], FILES.first)
        with pytest.raises(ClusterError, match="no worker has answered"):
            run(options, cluster, patience=0.5)
    assert not Path("s.sam").exists()
    for name in cluster.workers:
        cluster.end_worker(name, signal.SIGCONT)


def check_command(cluster):
    """Compare the command, a program, and an error that names a line, with those of one machine."""
    words = ["map", "-q", "--backend", "cpu", "--cluster", cluster.address, FILES.reference]
    assert main([*words, FILES.first, "-o", "o.paf"]) == 0
    told = mummergpu.map(FILES.reference, FILES.first, output="a.paf", cluster=cluster.address)
    assert told.mapped > 0
    whole, _ = one_machine(options_of(["p.paf"], FILES.first))
    assert content_of(["o.paf"]) == content_of(["a.paf"]) == whole
    Path("o.bam").unlink()
    with pytest.raises(InputError) as alone:
        one_machine(options_of(["o.bam"], "cut.fq"))
    with pytest.raises(InputError) as clustered:
        run(options_of(["o.bam"], "cut.fq"), cluster)
    assert str(clustered.value) == str(alone.value)
    assert not Path("o.bam").exists()


OTHER_COMMANDS = [
    f"-l 12 -b {FILES.reference} 1.fa -o @.txt -o @.paf.gz -o @.tsv",
    f"-l 15 -mum -L -s {FILES.reference} 1.fa -o @.txt -o @.arrow",
    "align r.fa contigs.fa -o @.delta -o @.paf -o @.vcf",
    "align r.fa contigs.fa --one-to-one -o @.paf.gz",
    "hmmsearch p.hmm p.faa --tblout @.tbl --domtblout @.dom -A @.sto -o @.txt",
    "hmmscan p.hmm p.faa --domtblout @.dom -o @.txt --noali",
]
"""Commands, with a name of its own for each output in place of @."""


def check_other_commands(cluster):
    """Compare the files of other commands with those of one machine."""
    profiles, proteins = write_input(Path())
    profiles.rename("p.hmm")
    proteins.rename("p.faa")
    bases = "".join(Path(FILES.reference).read_text().splitlines()[1::2])
    contigs = [bases[at : at + 1500] + bases[at + 1504 : at + 2500] for at in range(0, 20000, 2500)]
    text = "".join(f">c{number}\n{contig}\n" for number, contig in enumerate(contigs))
    Path("contigs.fa").write_text(text)
    for command in OTHER_COMMANDS:
        for place, more in (("one", []), ("many", ["--cluster", cluster.address])):
            Path(place).mkdir(exist_ok=True)
            assert main([*command.replace("@", f"{place}/x").split(), "-q", "-t", "2", *more]) == 0
        names = [word.replace("@", "x") for word in command.split() if word.startswith("@")]
        for name in names:
            whole, clustered = ((Path(place) / name).read_bytes() for place in ("one", "many"))
            assert without_command(clustered) == without_command(whole), (command, name)
            assert len(whole) > 100, (command, name)


def without_command(content):
    own = (b"# Option settings", b"# CPU time", b"# Mc/sec", b"# per-", b"# MSA of all hits")
    return b"\n".join(
        line for line in report(content).split(b"\n") if not line.startswith(own)
    ).replace(b"many/x", b"one/x")


def parts_left():
    return [name for name in os.listdir() if name.startswith(".mummergpu")]


def wait_for(cluster, workers):
    from distributed import Client

    with Client(cluster.address) as client:
        wait_until(lambda: len(client.scheduler_info()["workers"]) == workers)
