"""MUMmer 3.23 and this program on the same files, and what their texts must share."""

import gzip
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from helpers.oracle import reverse_complement
from mummergpu.cli.main import main


@dataclass
class RealData:
    """Real genomes and reads in the one form that MUMmer 3.23 reads: plain FASTA.

    The folder takes the converted files of the source, each made once.
    """

    source: Path
    folder: Path
    made: dict[tuple[str, int], str] = field(default_factory=dict)

    def path(self, data):
        """Return the path of a whole genome, or of a part of a file: see `part`."""
        return self.part(*data) if isinstance(data, tuple) else self.reference(data)

    def reference(self, name):
        """Return the path of a genome, decompressed."""
        if (name, 0) not in self.made:
            self._make(name, 0, self._read("references", name))
        return self.made[name, 0]

    def part(self, name, every):
        """Return the path of every n-th read of a FASTQ file, or of pieces of a genome.

        The pieces begin every n bases, are 150 bases long, and differ from the genome in
        one base of 60; every second is of the reverse strand.
        """
        if (name, every) not in self.made:
            if ".fastq" in name:
                self._make(name, every, fasta_of(self._read("reads", name), every))
            else:
                self._make(name, every, pieces_of(self._read("references", name), every))
        return self.made[name, every]

    def _read(self, kind, name):
        data = (self.source / kind / name).read_bytes()
        return gzip.decompress(data) if name.endswith(".gz") else data

    def _make(self, name, every, fasta):
        path = self.folder / f"{every}.{name}.fa"
        path.write_bytes(fasta)
        self.made[name, every] = str(path)


def fasta_of(fastq, every):
    """Convert FASTQ of four lines a record; naive, and by other code than the program's."""
    lines = fastq.splitlines()
    records = zip(lines[0::4], lines[1::4], strict=True)
    chosen = [record for number, record in enumerate(records) if number % every == 0]
    return b"".join(b">" + name[1:] + b"\n" + bases + b"\n" for name, bases in chosen)


def pieces_of(fasta, every):
    """Return mutated pieces of a genome as FASTA, across the borders of its records too."""
    bases = "".join(line for line in fasta.decode().splitlines() if not line.startswith(">"))
    text = []
    for number, begin in enumerate(range(0, len(bases) - 150, every)):
        piece = bases[begin : begin + 150]
        for place in range(number % 60, 150, 60):
            piece = piece[:place] + "CGTA"["ACGT".find(piece[place])] + piece[place + 1 :]
        text.append(f">piece{begin}\n{reverse_complement(piece) if number % 2 else piece}\n")
    return "".join(text).encode()


def record_names(path):
    """Return the names of the records of a FASTA file, in order."""
    with open(path, "rb") as file:
        return [line[1:].split()[0] for line in file if line.startswith(b">")]


def mummer_text(binary, reference, queries, flags):
    """Return what MUMmer 3.23 prints with ``-n``."""
    command = [binary, "-n", *flags.split(), reference, *queries]
    return subprocess.run(command, capture_output=True, check=True).stdout


OF_TREES = ("--search", "--policy", "--address-bits")
"""Options that choose a search, or speak of trees."""


def our_text(folder, reference, queries, flags, setting=""):
    """Return what this program writes; MUMmer's flags first, then our own.

    Both searches must write the same, unless the setting chooses one.
    """
    words = ["--any-letters", *flags.split(), *setting.split()]  # As MUMmer takes any.
    chosen = any(option in words for option in OF_TREES)
    searches = [[]] if chosen else [["--search", "tree"], ["--search", "kmer"]]
    texts = [written(folder, [*words, *search, reference, *queries]) for search in searches]
    if not chosen:
        # Told apart from what else may be wrong.
        assert not difference(texts[1], texts[0]), "the searches differ"
    return texts[0]


def written(folder, words):
    """Return what this program writes."""
    output = folder / "ours.txt"
    assert main(["-q", "-o", str(output), *words]) == 0
    text = output.read_bytes()
    output.unlink()
    return text


def in_our_order(text, names, flipped=False):
    """Sort the rows under each header of MUMmer's text: by start, then record, then position.

    They are sorted by start in the query's strand, then record, whose names are in order and
    each there once, then position; `flipped` is for the option ``-c``.
    """
    lines = text.splitlines()
    first = np.array([line[:1] for line in lines], dtype="S1")
    is_header = first == b">"
    # Rows begin with a blank or a digit; with -s a line of bases follows each.
    is_bases = (first >= b"a") & (first <= b"z")
    places = np.flatnonzero(~is_header & ~is_bases)
    if places.size == 0:
        return text
    columns = len(lines[places[0]].split())
    tokens = np.array(b" ".join([lines[place] for place in places]).split())
    rows = tokens.reshape(places.size, columns)
    ranks = np.zeros(places.size, dtype=np.int64)
    if columns == 4:
        found, inverse = np.unique(rows[:, 0], return_inverse=True)
        ranks = np.array([names.index(bytes(name)) for name in found])[inverse.reshape(-1)]
    positions = rows[:, -3].astype(np.int64)
    starts = rows[:, -2].astype(np.int64)
    blocks = np.cumsum(is_header)[places] - 1
    if flipped:
        headers = [line for line in lines if line.startswith(b">")]
        on_reverse = np.array([b" Reverse" in header for header in headers])
        starts = np.where(on_reverse[blocks], -starts, starts)
    origins = places[np.lexsort((positions, ranks, starts, blocks))]
    ordered = list(lines)
    for offset in range(2 if is_bases.any() else 1):
        for place, origin in zip(places.tolist(), origins.tolist(), strict=True):
            ordered[place + offset] = lines[origin + offset]
    return b"".join([line + b"\n" for line in ordered])


def difference(found, expected):
    """Tell where two texts begin to differ; empty where they do not."""
    if found == expected:
        return ""
    ours, theirs = found.splitlines(), expected.splitlines()
    pairs = enumerate(zip(ours, theirs, strict=False))
    differ = (n for n, (one, other) in pairs if one != other)
    place = next(differ, min(len(ours), len(theirs)))
    header = next((line for line in reversed(ours[: place + 1]) if line.startswith(b">")), b"")
    return (
        f"{len(ours)} lines, expected {len(theirs)}; line {place + 1}, under {header!r}: "
        f"{ours[place : place + 3]}, expected {theirs[place : place + 3]}"
    )


def count_rows(text):
    """Return how many lines are rows: neither headers nor, with ``-s``, bases."""
    return sum(line[:1] == b" " or line[:1].isdigit() for line in text.splitlines())
