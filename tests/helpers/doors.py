"""Cases of output, and the doors through which each of its files can be asked for.

A case is a line of the command; what Python is told for the same run follows from its words. A door
writes files of a case in the formats that it is given, and `content_of` reads what a file tells.
"""

import gzip
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pysam
import pytest

import mummergpu
from mummergpu.cli.main import main
from mummergpu.output.formats import FORMATS, RowKind, names_of

ROWS = {"match": RowKind.MATCHES, "map": RowKind.READS, "align": RowKind.GENOMES}
ENDINGS = {"plot": "html", "mummer": "txt"}
"""How files end that do not end like the names of their formats."""


def _numbers(text):
    return tuple(map(int, text.split(",")))


BUNDLES: dict[str, type] = {"scores": mummergpu.Scores, "style": mummergpu.RecordStyle}
"""Arguments that have several options together, as `scores.match` below."""

COMMON: dict[str, tuple[str, Any]] = {
    **{"-l": ("min_length", int), "-r": ("strands", "reverse"), "-f": ("strands", "forward")},
    **{"-mum": ("mode", "mum"), "-mumreference": ("mode", "mumreference")},
    **{"-maxmatch": ("mode", "all"), "-R": ("read_group", lambda text: text.replace("none", ""))},
}
ARGUMENTS: dict[str, dict[str, tuple[str, Any]]] = {
    "match": {**COMMON, "-b": ("strands", "both"), "--pair": ("pair", True)},
    "map": {
        **COMMON,
        **{"-p": ("interleaved", True), "-a": ("max_secondary", 1 << 20), "-y": ("comments", True)},
        **{"-N": ("max_secondary", int), "--max-occurrences": ("max_occurrences", int)},
        **{"--max-xa": ("max_xa", int), "-k": ("seed_length", int)},
        **{"-I": ("insert_size", _numbers), "--orientation": ("orientation", str)},
        **{"--sort": ("sort", True), "--mark-duplicates": ("mark_duplicates", True)},
        **{"--single": ("single", True)},
        **{"-A": ("scores.match", int), "-B": ("scores.mismatch", int)},
        **{"-O": ("scores.gap_open", _numbers), "-E": ("scores.gap_extend", _numbers)},
        **{"-L": ("scores.clipping", int), "-U": ("scores.unpaired", int)},
        **{"-T": ("scores.min_score", int), "-M": ("style.splits_as_secondary", True)},
        **{"-Y": ("style.soft_clips", True), "--eqx": ("style.equal_bases", True)},
        **{"--no-unal": ("style.mapped_only", True)},
        **{"--secondary-seq": ("style.secondary_bases", True)},
        **{"--tags": ("style.tags", lambda text: text.split(","))},
        **{"-H": ("style.header_lines", lambda text: [text.replace("\\t", "\t")])},
    },
    "align": {
        **COMMON,
        **{"-c": ("min_cluster", int), "-g": ("max_gap", int), "-b": ("break_length", int)},
        **{"-D": ("diagonal_difference", int), "-d": ("diagonal_factor", float)},
        **{"--gap-open": ("gap_open", int), "--gap-extend": ("gap_extend", int)},
        **{"--noextend": ("extend", False), "--nosimplify": ("simplify", False)},
        **{"--method": ("method", str), "--one-to-one": ("one_to_one", True)},
        **{"--min-identity": ("min_identity", lambda text: int(text) / 100)},
        **{"--min-alignment-length": ("min_alignment_length", int)},
    },
}
"""What a word of each verb is for Python: a value, or what makes it of the next word."""

OF_FILES = {"read_group", "sort", "mark_duplicates", "style"}
"""What is told to who writes the rows, and not to who finds them."""

OF_CHOICE = {"one_to_one", "min_identity", "min_alignment_length"}
"""What a run leaves out, and a caller chooses of the rows that an index finds."""


@dataclass(frozen=True)
class Case:
    """A run: its files, and its options in the words of the command."""

    verb: str
    words: str
    files: str = "q.fa"
    formats: tuple[str, ...] = ()
    """Those that the case is about; all of its rows, unless there are some."""

    @property
    def names(self):
        """A file in each format."""
        found = self.formats or names_of(ROWS[self.verb])
        return [f"x.{ENDINGS.get(name, name)}" for name in found]

    @property
    def inputs(self):
        """The files as arguments of Python."""
        paths = [Path(path) for path in self.files.split()]
        if self.verb == "map":
            two = len(paths) == 2 and "--single" not in self.words
            return {"reads": paths[0], "mates": paths[1]} if two else {"reads": paths}
        return {"queries": paths}

    @property
    def options(self):
        """The words, each with its value."""
        found = []
        for word in self.words.split():
            if word in ARGUMENTS[self.verb]:
                found.append(word)
            else:
                found[-1] += f" {word}"
        return found

    @property
    def has_rows_in_memory(self):
        """Whether what an index finds is what the run writes: without a choice, for any format."""
        is_one = len(self.inputs.get("queries", ())) < 2
        return is_one and not self.told(OF_CHOICE) and self.formats != ("vcf",)

    @property
    def arguments(self):
        """The options as arguments of Python; an index would take its own length for the usual."""
        has_length = self.verb == "match" or (self.verb == "align" and "--method" not in self.words)
        found = {"min_length": 20} if has_length else {}
        for option in self.options:
            word, _, text = option.partition(" ")
            name, value = ARGUMENTS[self.verb][word]
            found[name] = value(text) if callable(value) else value
        for bundle, kind in BUNDLES.items():
            fields = [name for name in found if name.startswith(f"{bundle}.")]
            if fields:
                found[bundle] = kind(**{name.split(".")[1]: found.pop(name) for name in fields})
        return found

    def told(self, wanted, others=False):
        """The arguments that are wanted, or the others."""
        return {key: it for key, it in self.arguments.items() if (key in wanted) != others}


def command(case, names, folder, more="", reference="r.fa"):
    """Let the command write all files in one run."""
    words = [case.verb, reference, *case.files.split(), "--backend", "cpu", "-q"]
    outputs = [word for name in names for word in ("-o", str(folder / name))]
    assert main([*words, *case.words.split(), *more.split(), *outputs]) == 0


def run_of_python(case, names, folder, **more):
    """Let the function of the package write all files in one run."""
    verb = getattr(mummergpu, case.verb)
    given = {**case.inputs, **case.arguments, "backend": "cpu", **more}
    return verb("r.fa", output=[folder / name for name in names], **given)


def rows_of_index(case, names, folder, index, **inputs):
    """Let the rows that an index finds be written, file by file."""
    given = {"backend": "cpu", **(inputs or case.inputs), **case.told(OF_FILES, others=True)}
    if case.verb == "match" and not inputs:
        (found,) = index.stream(*given.pop("queries"), **given)
    else:
        found = getattr(index, case.verb)(**given)
    for name in names:
        found.write(folder / name, **case.told(OF_FILES))


def content_of(path, bare=False):
    """What a file tells: the command that made it left out, and what depends on it.

    A bare content has no read group either, nor have records of SAM their header.
    """
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    kind = path.name.split(".")[1]
    if kind in ("sam", "bam", "cram"):
        with pysam.AlignmentFile(str(path), check_sq=False) as file:
            head = {key: value for key, value in file.header.to_dict().items() if key != "PG"}
            # An index has no sums of its records.
            head["SQ"] = [(one["SN"], one["LN"]) for one in head["SQ"]]
            rows = [_record(row) for row in file.fetch(until_eof=True)]
        return [[one for one in row if one[:3] != "RG:"] for row in rows] if bare else (head, rows)
    if kind in ("arrow", "parquet"):
        pyarrow = pytest.importorskip("pyarrow")
        if kind == "arrow":
            return pyarrow.ipc.open_file(pyarrow.py_buffer(data)).read_all().to_pylist()
        from pyarrow import parquet

        return parquet.read_table(pyarrow.BufferReader(data)).to_pylist()
    if kind == "delta":
        # The first line has the paths of the files.
        return data.split(b"\n", 1)[1]
    return re.sub(rb"##reference=.*", b"", data) if kind == "vcf" else data


def _record(row):
    """The fields of a record; CRAM has its tags in another order, and its CIGARs no equal bases."""
    fields = row.to_string().split("\t")
    return [*fields[:11], *sorted(fields[11:])]


def can_be_packed(name):
    """Whether a file may be compressed as a whole."""
    kind = {ending: name for name, ending in ENDINGS.items()}.get(name.split(".")[1])
    return not FORMATS[kind or name.split(".")[1]].holds_compression
