"""Libraries: the sizes and orientations of templates, wherever their pairs lie in the input."""

import random
import shlex
from pathlib import Path

import pytest
from helpers.loops import each
from helpers.sequences import random_bases, reverse_complement

from mummergpu.cli.main import main
from mummergpu.pipeline import libraries

BASES = 80
PROPER, FIRST_MATE = 2, 64
Pair = tuple[str, str, str]


@pytest.fixture(autouse=True)
def genome(tmp_path, monkeypatch):
    """A genome in a file, in a folder that is the current one; and less is read ahead."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(libraries, "TEMPLATES_OF_ESTIMATE", 512)
    monkeypatch.setattr(libraries, "TEMPLATES_OF_STRIP", 64)
    bases = random_bases(random.Random(1000), 30_000)
    Path("r.fa").write_text(f">r\n{bases}\n")
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
    mates = {
        "fr": (one, reverse_complement(two)),
        "rf": (reverse_complement(one), two),
        "ff": (one, two),
        "rr": (two, one),
        "junk": (one, two),
    }[kind]
    return (name, *mates)


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
    pairs = list(pairs)
    for mate in (1, 2):
        text = "".join(f"@{one[0]}\n{one[mate]}\n+\n{'I' * len(one[mate])}\n" for one in pairs)
        Path(f"{stem}{mate}.fq").write_text(text)
    return f"{stem}1.fq {stem}2.fq"


def mapped(words):
    assert main(["map", "--backend", "cpu", "-q", "r.fa", *shlex.split(words), "-o", "o.sam"]) == 0
    return [line.split("\t") for line in Path("o.sam").read_text().splitlines() if line[0] != "@"]


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
    made = random.Random(4)
    lines = ["@HD\tVN:1.6\tSO:unsorted", *(f"@RG\tID:g{n}\tSM:s" for n in range(3))]
    for number in range(600):
        group = made.randrange(3)
        mean, kind = LIBRARIES[group]
        name, *mates = pair_of(made, genome, mean, kind, f"p{number}")
        for flag, bases in zip((77, 141), mates, strict=True):
            quality = "I" * BASES
            fields = [name, str(flag), *"*00**00", bases, quality, f"RG:Z:g{group}"]
            lines.append("\t".join(fields))
    Path("u.sam").write_text("\n".join(lines) + "\n")
    rows = mapped("u.sam")
    assert proper_share(rows, "") > 0.98
    assert mapped("u.sam --block-size 3000") == rows


def test_read_groups_that_begin_far_in(genome):
    made = random.Random(5)
    lines = ["@HD\tVN:1.6\tSO:unsorted", *(f"@RG\tID:g{n}\tSM:s" for n in (0, 1, 2, "none"))]
    for number in range(3100):
        group = 0 if number < 2500 else 1 + (number - 2500) // 300
        mean, kind = LIBRARIES[group]
        name, *mates = pair_of(made, genome, mean, kind, f"g{group}_{number}")
        for flag, bases in zip((77, 141), mates, strict=True):
            fields = [name, str(flag), *"*00**00", bases, "I" * BASES, f"RG:Z:g{group}"]
            lines.append("\t".join(fields))
    Path("u.sam").write_text("\n".join(lines) + "\n")
    rows = mapped("u.sam")
    for group in range(3):
        assert proper_share(rows, f"g{group}") > 0.98
    assert mapped("u.sam --block-size 3000 -t 1") == rows


def test_single_reads_are_not_read_ahead_for_a_group_without_reads(genome, monkeypatch):
    """They have no sizes, so that nothing would come of it."""
    lines = ["@HD\tVN:1.6\tSO:unsorted", "@RG\tID:g0\tSM:s", "@RG\tID:none\tSM:s"]
    for number in range(1200):
        fields = [f"s{number}", "4", *"*00**00", genome[number : number + BASES], "I" * BASES]
        lines.append("\t".join([*fields, "RG:Z:g0"]))
    Path("u.sam").write_text("\n".join(lines) + "\n")
    streams, open_stream = [], libraries._stream_of

    def stream_of(*arguments):
        streams.append(arguments)
        return open_stream(*arguments)

    monkeypatch.setattr(libraries, "_stream_of", stream_of)
    assert len(mapped("u.sam")) == 1200
    assert len(streams) <= 1


def test_pairs_and_single_reads_are_mapped_as_when_apart(genome):
    made = random.Random(9)
    pairs = pairs_of(genome, (300, 300, "fr"), (20, 300, "junk"))
    # Reads with many differences are mapped in the second pass.
    pairs = [
        (
            name,
            *(
                "".join(made.choice("ACGT") if made.random() < 0.08 else b for b in one)
                for one in two
            ),
        )
        for name, *two in pairs
    ]
    is_single = [made.random() < 0.3 for _ in pairs]
    write("p", [one for one, single in zip(pairs, is_single, strict=True) if not single])
    singles = [one for one, single in zip(pairs, is_single, strict=True) if single]
    write("s", singles)
    text = ""
    for (name, *mates), single in zip(pairs, is_single, strict=True):
        for mate, bases in enumerate(mates[: 1 if single else 2], 1):
            text += f"@{name}/{mate}\n{bases}\n+\n{'I' * BASES}\n"
    Path("both.fq").write_text(text)
    for more in ("", "-N 2", "--block-size 2000", "--max-xa 3"):
        options = f"-I 300,15 -R none {more}"
        mixed = mapped(f"-p both.fq {options}")
        apart = mapped(f"p1.fq p2.fq {options}") + mapped(f"s1.fq --single {options}")
        assert sorted(mixed) == sorted(apart)
        assert len({row[0] for row in mixed}) == len(pairs)
