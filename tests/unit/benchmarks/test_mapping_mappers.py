"""How mappers are called, and the whole comparison with one that is made up."""

import json
import shlex
import sys
from pathlib import Path

import mapping_accuracy
import measure
import pytest
from mapping.genomes import write_repeats
from mapping.mappers import OURS, PEERS, MappingJob, chosen_mappers, our_mapper
from mapping.tables import shortfalls
from mapping_speed import timed_command

SINGLE = MappingJob(Path("g.fa"), (Path("r1.fq"),), 3)
PAIRS = MappingJob(Path("g.fa"), (Path("r1.fq"), Path("r2.fq")), 3)

MADE_UP_MAPPER = """
import sys
reference, reads, *mates = sys.argv[1:sys.argv.index("-t")]
with open(sys.argv[sys.argv.index("-o") + 1], "w") as out:
    out.write("@PG\\tID:made-up\\tPN:made-up\\tVN:1\\n")
    for mate, path in enumerate([reads, *mates], 1):
        lines = open(path).read().splitlines()
        for number, (head, bases) in enumerate(zip(lines[::4], lines[1::4])):
            name = head[1:].rsplit("/", 1)[0]
            words = name.rsplit("_", 9)
            flag = (0x41, 0x81)[mate - 1] if mates else 0
            # Every tenth read is told to lie at the beginning, without confidence.
            place, quality = (1, 0) if number % 10 == 0 else (words[mate], 60)
            fields = [name, flag, words[0], place, quality, f"{len(bases)}M", "*", 0, 0, bases, "*"]
            out.write("\\t".join(map(str, fields)) + "\\n")
"""


@pytest.mark.parametrize("mapper", PEERS, ids=lambda mapper: mapper.name)
def test_peers_are_given_both_files_of_pairs_and_one_of_single_reads(mapper):
    assert [word for word in mapper.command(PAIRS) if word.endswith(".fq")] == ["r1.fq", "r2.fq"]
    assert [word for word in mapper.command(SINGLE) if word.endswith(".fq")] == ["r1.fq"]
    assert "3" in mapper.command(SINGLE)


def test_bowtie2_is_told_of_fasta():
    bowtie2 = next(mapper for mapper in PEERS if mapper.name == "bowtie2")
    assert "-f" in bowtie2.command(MappingJob(Path("g.fa"), (Path("reads.fa"),), 1))
    assert "-f" not in bowtie2.command(SINGLE)


def test_an_unknown_peer_is_refused():
    with pytest.raises(ValueError, match="no mapper bwa-sw"):
        chosen_mappers(["bwa-sw"], None)


def test_ours_maps_to_the_reference_or_to_its_index():
    plain, indexed = our_mapper("mummergpu map"), our_mapper("mummergpu map", "mummergpu index")
    assert plain.index(PAIRS) == []
    assert plain.command(PAIRS) == shlex.split("mummergpu map g.fa r1.fq r2.fq -t 3")
    assert indexed.index(PAIRS) == shlex.split("mummergpu index g.fa -o g.fa.mgi")
    assert indexed.command(SINGLE) == shlex.split("mummergpu map g.fa.mgi r1.fq -t 3")


def test_bam_is_written_by_us_and_by_samtools_for_the_peers():
    ours, bwa = our_mapper("mummergpu map"), PEERS[0]
    file = Path("out.bam")
    assert timed_command(ours, SINGLE, "sam", file)[-2:] == ["-t", "3"]
    assert timed_command(ours, SINGLE, "sorted", file)[-3:] == ["--sort", "-o", "out.bam"]
    assert timed_command(bwa, SINGLE, "bam", file)[-1] == (
        "bwa mem -t 3 g.fa r1.fq | samtools view -b -@ 3 -o out.bam -"
    )


def figures(right, confident, any_lead):
    counts = {"20": confident, "1": any_lead}
    return {
        "right_percent": right,
        "from_quality": {
            least: {"reads": reads, "wrong": wrong} for least, (reads, wrong) in counts.items()
        },
    }


def test_what_a_peer_does_better_is_told():
    peer = figures(86.2, (1_000, 5), (1_100, 22))
    assert shortfalls(peer, peer) == []
    assert shortfalls(figures(86.3, (1_001, 4), (1_101, 21)), peer) == []
    assert shortfalls(figures(86.1, (999, 6), (1_200, 23)), peer) == [
        "right 86.100%, not 86.200%",
        "MAPQ>=20: 999 reads, not 1,000",
        "MAPQ>=20: 6 wrong, not 5",
        "MAPQ>=1: 23 wrong, not 22",
    ]


def test_a_mapper_is_compared_from_reads_to_saved_figures(
    tmp_path, monkeypatch, capsys, dwgsim_binary
):
    mapper = tmp_path / "made_up.py"
    mapper.write_text(MADE_UP_MAPPER)
    genome = tmp_path / "genome.fa"
    # Long enough that a read at the beginning is seldom right.
    write_repeats(genome, 4, 200_000)
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    monkeypatch.setattr(
        sys,
        "argv",
        [
            *("mapping_accuracy.py", "--genome", f"tiny={genome}", "--genomes", "tiny"),
            *("--lengths", "100", "--pairs", "300", "--threads", "1", "--folder", str(tmp_path)),
            *("--ours", shlex.join([sys.executable, str(mapper)]), "--name", "figures.json"),
            # One that surely is not on the PATH is left out.
            *("--mappers", "strobealign"),
        ],
    )
    monkeypatch.setenv("PATH", str(Path(dwgsim_binary).parent))
    mapping_accuracy.main()
    saved = json.loads((tmp_path / "figures.json").read_text())["reads"]
    assert list(saved) == ["tiny.100.pairs300 pairs", "tiny.100.pairs300 single"]
    for mode, reads in (("pairs", 600), ("single", 300)):
        found = saved[f"tiny.100.pairs300 {mode}"][OURS]
        assert (found["program"], found["reads"], found["without_record"]) == (
            "made-up 1",
            reads,
            0,
        )
        assert found["from_quality"]["60"] == {"reads": reads * 9 // 10, "wrong": 0}
        assert found["from_quality"]["0"]["wrong"] >= reads // 10 - 2
    assert "| mummergpu | " in capsys.readouterr().out
