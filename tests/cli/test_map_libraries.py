"""Libraries: the sizes and orientations of templates, wherever their pairs lie in the input."""

import random
from pathlib import Path

import pytest
from helpers.loops import each
from helpers.repeat_reads import rows_of as mapped
from helpers.sequences import random_bases, reverse_complement, write_fasta, write_fastq

from mummergpu.pipeline import libraries

BASES = 80
PROPER, FIRST_MATE = 2, 64


@pytest.fixture(autouse=True)
def genome(tmp_path, monkeypatch):
    """A genome in a file, in a folder that is the current one; and less is read ahead."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(libraries, "TEMPLATES_OF_ESTIMATE", 512)
    monkeypatch.setattr(libraries, "TEMPLATES_OF_STRIP", 64)
    bases = random_bases(random.Random(1000), 30_000)
    write_fasta("r.fa", {"r": bases})
    return bases


def pair_of(made, genome, mean, kind, name):
    size = int(made.gauss(mean, mean / 20))
    begin = made.randrange(len(genome) - size)
    template = genome[begin : begin + size]
    if made.random() < 0.5:
        template = reverse_complement(template)
    one, two = template[:BASES], template[-BASES:]
    if kind == "junk":
        one, two = random_bases(made, BASES), random_bases(made, BASES)
    turned = reverse_complement(one), reverse_complement(two)
    lie = {"fr": (one, turned[1]), "rf": (turned[0], two), "rr": (two, one)}
    return (name, *lie.get(kind, (one, two)))


def pairs_of(genome, *kinds, seed=1):
    """Pairs of each kind: how many, the mean of their sizes, and how the mates lie."""
    made = random.Random(seed)
    return [
        pair_of(made, genome, mean, kind, f"{kind}{mean}_{number}")
        for count, mean, kind in kinds
        for number in range(count)
    ]


def write(stem, pairs):
    """Write two files of mates; return their names."""
    for mate in (1, 2):
        write_fastq(f"{stem}{mate}.fq", ((one[0], one[mate]) for one in pairs))
    return f"{stem}1.fq {stem}2.fq"


def write_groups(groups, reads):
    """Write reads that no place has, each with its name, flag, bases and read group."""
    lines = ["@HD\tVN:1.6\tSO:unsorted", *(f"@RG\tID:{name}\tSM:s" for name in groups)]
    for name, flag, bases, group in reads:
        fields = [name, str(flag), *"*00**00", bases, "I" * BASES, f"RG:Z:{group}"]
        lines.append("\t".join(fields))
    Path("u.sam").write_text("\n".join(lines) + "\n")


def pairs_of_groups(genome, seed, groups):
    """A pair of the library of each group that is named, by its number."""
    made = random.Random(seed)
    for number, group in enumerate(groups(made)):
        mean, kind = LIBRARIES[group]
        _, *mates = pair_of(made, genome, mean, kind, "")
        for flag, bases in zip((77, 141), mates, strict=True):
            yield f"g{group}_{number}", flag, bases, f"g{group}"


def proper_share(rows, name):
    own = [int(row[1]) & PROPER > 0 for row in rows if row[0].startswith(name)]
    return sum(own) / len(own)


@each(
    "kinds",
    [
        [(1500, 300, "junk"), (60, 300, "fr")],
        [(9, 300, "fr")],
        [(400, 170, "fr"), (60, 340, "fr")],
        [(800, 300, "fr"), (800, 1500, "fr")],
        [(300, 3000, "rf")],
        [(300, 800, "ff")],
        [(300, 800, "rr")],
    ],
)
def test_all_pairs_are_proper(genome, kinds):
    files = write("x", pairs_of(genome, *kinds))
    rows = mapped(files)
    for _, mean, kind in kinds:
        assert proper_share(rows, f"{kind}{mean}") > (-1 if kind == "junk" else 0.98)
    # Blocks and threads change nothing.
    assert mapped(f"{files} --block-size 9000 -t 1") == rows


def test_flags_and_bases_of_mates_that_are_searched_turned_around(genome):
    pairs = pairs_of(genome, (200, 1200, "rf"))
    reads = {name: {FIRST_MATE: one, 128: two} for name, one, two in pairs}
    for row in mapped(write("x", pairs)):
        flag, position = int(row[1]), int(row[3]) - 1
        assert flag & 0xF == 3
        bases = genome[position : position + BASES]
        assert row[9] == bases
        read = reads[row[0]][flag & (FIRST_MATE | 128)]
        assert read == (reverse_complement(bases) if flag & 16 else bases)
        assert bool(flag & 16) != bool(flag & 32)
        # Back to back: the mate on the reverse strand lies before the other.
        assert (position < int(row[7]) - 1) == bool(flag & 16)


def test_an_orientation_that_is_told(genome):
    files = write("x", pairs_of(genome, (40, 800, "ff"), (60, 300, "fr")))
    rows = mapped(f"{files} --orientation ff")
    assert proper_share(rows, "ff") == 1 and proper_share(rows, "fr") == 0
    rows = mapped(f"{files} -I 800,40 --orientation ff")
    assert proper_share(rows, "ff") > 0.95 and proper_share(rows, "fr") == 0
    rows = mapped(f"{files} -I 300,20")
    assert proper_share(rows, "ff") == 0 and proper_share(rows, "fr") > 0.95


LIBRARIES = ((300, "fr"), (1500, "fr"), (2500, "rf"))


def test_each_pair_of_files_is_mapped_as_when_alone(genome):
    files, alone = [], []
    for number, (mean, kind) in enumerate(LIBRARIES):
        files.append(write(f"{number}_", pairs_of(genome, (200, mean, kind), seed=number)))
        alone += mapped(f"{files[-1]} -R none")
    together = mapped(" ".join(files) + " -R none")
    assert together == alone
    assert proper_share(together, "") > 0.98


def test_read_groups_that_alternate(genome):
    def chosen(made):
        return (made.randrange(3) for _ in range(600))

    write_groups(["g0", "g1", "g2"], pairs_of_groups(genome, 4, chosen))
    rows = mapped("u.sam")
    assert proper_share(rows, "") > 0.98
    assert mapped("u.sam --block-size 3000") == rows


def test_read_groups_that_begin_far_in(genome):
    groups = [0] * 2500 + [1] * 300 + [2] * 300
    write_groups(["g0", "g1", "g2", "none"], pairs_of_groups(genome, 5, lambda _: groups))
    rows = mapped("u.sam")
    for group in range(3):
        assert proper_share(rows, f"g{group}") > 0.98
    assert mapped("u.sam --block-size 3000 -t 1") == rows


def test_single_reads_are_not_read_ahead_for_a_group_without_reads(genome, monkeypatch):
    """They have no sizes, so that nothing would come of it."""
    bases = (genome[number : number + BASES] for number in range(1200))
    write_groups(["g0", "none"], ((f"s{n}", 4, one, "g0") for n, one in enumerate(bases)))
    streams, open_stream = [], libraries._stream_of

    def stream_of(*arguments):
        streams.append(arguments)
        return open_stream(*arguments)

    monkeypatch.setattr(libraries, "_stream_of", stream_of)
    assert len(mapped("u.sam")) == 1200
    assert len(streams) <= 1


def test_pairs_and_single_reads_are_mapped_as_when_apart(genome):
    made = random.Random(9)

    def differing(bases):
        """Reads with many differences are mapped in the second pass."""
        return "".join(made.choice("ACGT") if made.random() < 0.08 else base for base in bases)

    pairs = pairs_of(genome, (300, 300, "fr"), (20, 300, "junk"))
    pairs = [(name, *map(differing, mates)) for name, *mates in pairs]
    apart, reads = {1: [], 2: []}, []
    for pair in pairs:
        count = 1 if made.random() < 0.3 else 2
        apart[count].append(pair)
        reads += [(f"{pair[0]}/{mate}", pair[mate]) for mate in range(1, count + 1)]
    write("p", apart[2])
    write("s", apart[1])
    write_fastq("both.fq", reads)
    for more in ("", "-N 2", "--block-size 2000", "--max-xa 3"):
        options = f"-I 300,15 -R none {more}"
        mixed = mapped(f"-p both.fq {options}")
        rows = mapped(f"p1.fq p2.fq {options}") + mapped(f"s1.fq --single {options}")
        assert sorted(mixed) == sorted(rows)
        assert len({row[0] for row in mixed}) == len(pairs)
