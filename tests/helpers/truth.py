"""Generated reads, and where they say that they come from."""

import dataclasses

from helpers.sequences import reverse_complement


@dataclasses.dataclass(frozen=True)
class Read:
    name: str
    record: str
    position: int
    span: int
    strand: str
    bases: str
    quality: str


def parse(text):
    lines = text.decode().splitlines()
    reads = []
    for title, bases, plus, quality in zip(*[iter(lines)] * 4, strict=True):
        assert title[0] == "@" and plus == "+"
        name, *words = title[1:].split(" ")
        truth = dict(word.split("=", 1) for word in words)
        assert list(truth) == ["record", "pos", "span", "strand"]
        place = truth["record"], int(truth["pos"]), int(truth["span"]), truth["strand"]
        reads.append(Read(name, *place, bases, quality))
    return reads


def fragment(records, read):
    """The bases of the reference that a read says it was read from, in its direction."""
    begin = read.position - 1
    bases = records[read.record][begin : begin + read.span]
    assert len(bases) == read.span
    if read.strand == "+":
        return bases
    return reverse_complement(bases)


def edit_distance(one, other):
    previous = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(other, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (left != right)))
        previous = row
    return previous[-1]
