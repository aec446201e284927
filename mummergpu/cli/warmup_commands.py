"""The commands that a warm-up runs, and their small input.

Each compiled function is compiled for the types of its arguments, and these follow from the search,
the format of the nodes, and the formats of the files. So a run of each of these on a few bases
compiles all that a run on a genome needs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from mummergpu.cli.main_group import MAIN_VERB
from mummergpu.cli.option_types import PROGRAM
from mummergpu.cli.session import Session

Word = str | Path
"""A word of a command line; a path is relative to the folder of the input."""

_SEARCH: Final = (MAIN_VERB, "-C", "-q")
_GENOME, _INDEX, _PARTS = Path("genome.fa"), Path("genome.mgi"), Path("parts.mgi")
_FASTA, _FASTQ, _BAM = (Path(f"reads.{suffix}") for suffix in ("fa", "fq", "bam"))
_LONG: Final = Path("long.fa")
_TAGGED: Final = Path("tagged.fq")
_COPY: Final = Path("copy.fa")
_GROUPS: Final = Path("groups.sam")
_MATES: Final = (Path("mates.1.fq"), Path("mates.2.fq"))
_INDEXING: Final[list[Word]] = ["index", "-q", _GENOME, "-o", _INDEX]

_SEED: Final = 20

_RECORD_BASES: Final = 6000
_REPEAT_BASES: Final = 40_000
"""So many that a list of positions is long enough to be sorted."""
_READ_BASES: Final = 100
_READ_COUNT: Final = 20
_PAIR_COUNT: Final = 60
_TEMPLATE_BASES: Final = 250
_COPY_STEP: Final = 200
"""How far apart errors are in the copy of the genome, in bases."""
_COMPLEMENTS: Final = str.maketrans("ACGT", "TGCA")
_LONG_QUERY_BASES: Final = 300_000
"""So many that the query is searched in pieces."""


_WITH_LIBRARIES: Final = frozenset({"arrow", "parquet", "plot"})
"""Formats that need other libraries, and no compiled code that a page with a plot does not need."""


PARTS: Final = ("mapping", "aligning", "matching", "trees", "models")
"""What is run, in parts that need little of each other: the one that takes longest comes first."""


_ENDS: Final = {"map": "sam", "align": "delta", "hmm": "tsv"}
"""How names of files end that are not said, for verbs that take no others."""


def run_parts(commands: click.Group, folder: Path, parts: Sequence[str] = PARTS) -> None:
    """Run what is compiled for the processor, or some parts of it, on a small input."""
    _write_input(folder)
    lines = [words for part in parts for words in _commands(commands, part)]
    for number, words in enumerate(lines):
        end = _ENDS.get(str(words[0]), "txt")
        output: list[Word] = [] if "-o" in words else ["-o", Path(f"{number}.{end}")]
        line = [str(folder / word) if isinstance(word, Path) else word for word in words + output]
        _run(commands, line)
    if "aligning" in parts:
        _search_minimizers()
        _serve_devices()
    if "matching" in parts:
        _serve_python()
    if "trees" in parts:
        # A sweep also searches trees in each layout, which takes long, and compiles nothing else.
        from mummergpu.studies.gathers import processor_gathers

        processor_gathers(1 << 16, 1, 1, map)
    if "models" in parts:
        _filter_proteins()
        _evaluate_models(folder, commands)


def _run(commands: click.Group, line: list[str]) -> None:
    with commands.make_context(PROGRAM, list(line), obj=Session(line)) as context:
        commands.invoke(context)


def _serve_devices() -> None:
    """Run what the processor does for a device that aligns, or finds the candidates of reads."""
    import numpy as np

    from mummergpu.mapping.candidates.candidates import NUMBERS, Candidates
    from mummergpu.mapping.candidates.found_candidates import CANDIDATE, FoundCandidates
    from mummergpu.mapping.genomes.anchors import Anchors, Sequences
    from mummergpu.mapping.genomes.device_tiles import list_tiles
    from mummergpu.mapping.genomes.options import NUCMER_COSTS
    from mummergpu.viterbi.device.device_tiles import copy_ends, gather_codes, gather_ends
    from mummergpu.viterbi.device.traceback_store import trace_stored
    from mummergpu.viterbi.recurrence.model import Costs

    none, codes = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.uint8)
    words = np.zeros(1, dtype=np.uint32)
    anchors, sequences = Anchors(none, none, none), Sequences(codes, codes)
    list_tiles(none, anchors, sequences, NUCMER_COSTS, none)
    gather_codes(codes, none, none, none, codes)
    copy_ends(words, none, none, none, words, none)
    gather_ends(words, none, none, words)
    trace_stored(words, none, (1, 1, 1), 0, 0, words)
    start = np.zeros(1, dtype=np.int64)
    bytes_of_none = np.zeros(0, dtype=np.uint8)
    table = Candidates(start, none, none, np.zeros((0, NUMBERS), dtype=np.int32), bytes_of_none)
    FoundCandidates(start, np.zeros(0, dtype=CANDIDATE), bytes_of_none).spread(0, Costs(), table)


def _serve_python() -> None:
    """Run what only the Python interface runs: CIGARs for tables, and reads without read groups."""
    import numpy as np

    from mummergpu.input.records.tags import Tags
    from mummergpu.output.genomes.operation_text import cigar_texts

    cigar_texts(np.zeros(0, dtype=np.uint32), np.zeros(1, dtype=np.int64))
    Tags(np.zeros(0, dtype=np.uint8), np.zeros(2, dtype=np.int64)).without_groups()


def _filter_proteins() -> None:
    """Run the filters of a profile, which need no pyhmmer, on a protein."""
    import numpy as np

    from mummergpu.hmm.filters import FilterThresholds, ProfileFilter, lengths_up_to
    from mummergpu.hmm.profiles import Profile, Statistics
    from mummergpu.hmm.proteins import ProteinBlock
    from mummergpu.hmm.translation import find_orfs
    from mummergpu.runtime.stats import Stats

    find_orfs(np.zeros(60, dtype=np.uint8), np.array([0, 60], dtype=np.int64))
    matches, transitions = (np.full((5, states), 1 / states, np.float32) for states in (20, 7))
    # The profile likes the protein so well that it may be there twice: SSV leaves that to MSV.
    matches[1:, 0] = 1
    statistics = Statistics(*(0.0, 1.0) * 3)
    profile = Profile("", "", "", matches[1:], transitions, matches[0], statistics, None)
    block = ProteinBlock(np.zeros(9, dtype=np.uint8), np.array([0, 9]))
    own = ProfileFilter(profile, FilterThresholds(F1=0.9))
    own.survivors(block, Stats())
    # It may pass before it comes to Viterbi.
    own.viterbi_words(block, np.array([0]), lengths_up_to(9))
    own.pass_forward(block, np.array([0]), Stats())


def _evaluate_models(folder: Path, commands: click.Group) -> None:
    """Compute models with few states, with many, and with more steps than a program of its own has.

    Paths of each of them have bits in words of another size. Long sequences are computed in pieces.
    """
    import numpy as np

    from mummergpu.hmm.language.device_pieces import ends_of_pieces
    from mummergpu.hmm.language.evaluation import CompiledModel
    from mummergpu.hmm.language.node_paths import NodeVisits, WalkedPieces
    from mummergpu.hmm.language.parser import parse_program
    from mummergpu.hmm.language.pieces import LongSequence
    from mummergpu.hmm.language.posteriors import LongPosteriors
    from mummergpu.hmm.language.traces import joined_runs

    def misled(function: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[Any]:
        """Map, and let pieces be walked again as if another node were behind them."""
        for found in map(function, pieces):
            if isinstance(found, WalkedPieces):
                found.guessed[:] += 1
            yield found

    path_alone, bed = "main() { m = new model(); print viterbi(m).traceback; }", folder / "hmm.bed"
    for states in (3, 8, 12):
        names = [f"s{number}" for number in range(states)]
        text = "".join(f"state {name} emits e; start -> {name} 0.05; " for name in names)
        if states > 3:
            text += "".join(f"{one} -> {other} 0.05; " for one in names for other in names)
        # A silent state that is kept, as it has many ways in and out.
        text += "state hub; " + "".join(f"{one} -> hub 0.05; hub -> {one} 0.05; " for one in names)
        prints = "print viterbi(m).traceback; print viterbi(m).score&; print forward(m).score&; "
        prints += "print backward(m).score&; print posterior(m).traceback; "
        plain = "print viterbi(m).score; print viterbi(m).traceback; print forward(m).score; "
        for number, printed in enumerate((prints, plain)):
            program = folder / f"{states}-{number}.hmm"
            declared = "alphabet [A, C, G, T]; startstate start; emission e = [.25, .25, .25, .25];"
            main = f"main() {{ m = new model(); {printed} }}"
            _write(program, f"hmm model {{ {declared} {text} }} {main}")
            line = ["hmm", "-q", str(program), str(folder / _FASTA), "-o", str(folder / "hmm.tsv")]
            _run(commands, line)
        model = CompiledModel(parse_program(program.read_text()).models["model"])
        codes = np.zeros(9, dtype=np.uint8)
        sequence = LongSequence(model.best, codes, False, map)
        found = sequence.runs(model.visits, sequence.score()[1])
        LongSequence(model.forward, codes, True, map).score()
        # What sequences need whose states have no common scale.
        both = model.forward.exact, model.backward.exact
        LongPosteriors(both, codes, map).of_group([0], model.node_states)
        sequence = LongSequence(model.best.exact, codes, False, map)
        sequence.runs(model.visits, sequence.score()[1])
        ends_of_pieces(np.zeros((2, states), dtype=np.uint32), 0)
        joined_runs([(np.array([number]), found) for number in (1, 0)], 2)
        # Without the silent state, the node of each symbol tells the path.
        _write(program, f"hmm model {{ {declared} {text.partition('state hub')[0]} }} {path_alone}")
        model = CompiledModel(parse_program(program.read_text()).models["model"])
        sequence = LongSequence(model.best, codes, False, misled)
        visits = NodeVisits(codes, model.visits.node_visits, 0)
        sequence.node_runs(visits, sequence.score()[1])
        _run(commands, ["hmm", "-q", str(program), str(folder / _FASTA), "--bed", "-o", str(bed)])


def _search_minimizers() -> None:
    """Find unique matches of a few bases by minimizers: a run takes these for large genomes."""
    import numpy as np

    from mummergpu.index.minimizer_index import MinimizerPage
    from mummergpu.index.minimizer_order import MAX_UNSORTED_OCCURRENCES
    from mummergpu.index.minimizer_table import build_minimizer_table
    from mummergpu.index.pages import Page
    from mummergpu.input.blocks.queries import QueryBlock
    from mummergpu.matching.kmer.unique import UniqueSearch
    from mummergpu.runtime.stats import Stats
    from mummergpu.sequence.codes import Strand, encode, with_margins

    # The list of a repeat is sorted.
    repeat = "A" * (2 * MAX_UNSORTED_OCCURRENCES)
    bases = "".join([*random.Random(_SEED).choices("ACGT", k=_READ_BASES), repeat]).encode()
    padded = with_margins(encode(bases))
    page = MinimizerPage(
        Page(0, 0, len(bases), len(bases)), build_minimizer_table(padded, 9, 8), padded
    )
    offsets = np.array([0, len(bases)], dtype=np.int64)
    names = np.empty(0, dtype=np.uint8)
    block = QueryBlock(0, padded, offsets, names, np.zeros(2, dtype=np.int64))
    search = UniqueSearch(page, 16, Stats())
    search.find(block, tuple(Strand), len(bases), map, lambda searched: None)


def _commands(commands: click.Group, part: str) -> Iterator[list[Word]]:
    """Yield the commands of a part, most of them without an output."""
    if part == "mapping":
        yield from _mapping()
    elif part == "aligning":
        yield from _aligning()
    elif part == "matching":
        yield from _matching(commands)
    elif part == "trees":
        yield from _searching_trees()


def _matching(commands: click.Group) -> Iterator[list[Word]]:
    """Yield the commands that search by k-mers, and make workloads."""
    kmers: list[Word] = [*_SEARCH, "--search", "kmer", _GENOME]
    for queries in (_FASTQ, _FASTA, _BAM):
        yield [*kmers, queries, "-b"]
    for options in (("-mum",), ("--page-size", "8k")):
        yield [*kmers, _FASTQ, "-b", *options]
    yield [*kmers, _LONG, "-b", "-c", "-L", "-s"]
    yield [*kmers, *_MATES, "--pair"]
    yield _INDEXING
    yield [*_SEARCH, _INDEX, _FASTQ, "-b"]
    for name in _format_names(commands):
        yield [*kmers, _FASTQ, "-b", "--format", name]
    yield [*kmers, _FASTQ, "-b", "--plot", Path("page.html"), "--stats", Path("stats.json")]
    # Of the workloads, the first one has the shortest reads, and the other one has pairs and a
    # genome whose copies are laid by compiled code.
    made: list[Word] = ["-q", "-o", Path("made"), "--scale"]
    yield ["workload", "HSILL", *made, "0.0001", "--reference", _GENOME]
    yield ["workload", "REPEATS", *made, "0.0002"]


def _searching_trees() -> Iterator[list[Word]]:
    """Yield the commands that search trees."""
    for address_bits in ("24", "32"):
        trees: list[Word] = [*_SEARCH, _GENOME, "--address-bits", address_bits, "--policy"]
        yield [*trees, "m", _FASTQ, "-b", "-mum"]
        yield [*trees, "n", _LONG, "-b", "--page-size", "8k"]
        yield [*trees, "rt", _FASTQ]


def _mapping() -> Iterator[list[Word]]:
    """Yield the commands that map reads."""
    start: list[Word] = ["map", "--backend", "cpu", "-q"]
    yield _INDEXING
    for options in (("--all",), ("--max-xa", "5")):
        yield [*start, _GENOME, *_MATES, *options]
    for reads in (_FASTQ, _FASTA, _BAM):
        yield [*start, _GENOME, reads]
    # Of parts of a reference, which seeds are rare is told by the matches.
    yield ["index", "-q", "--search", "kmer", _GENOME, "--page-size", "8k", "-o", _PARTS]
    yield [*start, _PARTS, *_MATES]
    yield [*start, _PARTS, *_MATES, "--all"]
    yield [*start, "--comments", _GENOME, _TAGGED]
    yield [*start, _GENOME, _FASTQ, "--interleaved"]
    yield [*start, _GENOME, _GROUPS]
    yield [*start, _GENOME, *_MATES, "--circular", "all"]
    yield [*start, _GENOME, _FASTQ, "--format", "paf"]
    yield [*start, _GENOME, _FASTQ, "--eqx", "--tags", "cs"]
    for number, sorting in enumerate(((), ("--sort", "--mark-duplicates"))):
        yield [*start, _INDEX, *_MATES, *sorting, "-o", Path(f"mapped{number}.bam")]
    yield [*start, _INDEX, _GROUPS, "--unmapped", Path("unmapped.fq"), "-o", Path("mapped.sam")]


def _aligning() -> Iterator[list[Word]]:
    """Yield the commands that align genomes."""
    start: list[Word] = ["align", "-C", "-q"]
    yield _INDEXING
    yield [*start, _INDEX, _COPY]
    for name in ("delta", "paf", "vcf", "sam", "bam"):
        yield [*start, _GENOME, _COPY, "--format", name]
    yield [*start, _GENOME, _COPY, "--format", "paf", "--cs"]
    yield [*start, _GENOME, _COPY, "--one-to-one", "-maxmatch", "--nosimplify"]
    for method in ("wavefront", "streaming"):
        yield [*start, _GENOME, _COPY, "--method", method]


def _format_names(commands: click.Group) -> Iterator[str]:
    """Yield the output formats of the main job, besides the usual one, if there is a choice."""
    for option in commands.commands[MAIN_VERB].params:
        if option.name == "format_name" and isinstance(option.type, click.Choice):
            yield from (str(name) for name in option.type.choices if name not in _WITH_LIBRARIES)


def _write_input(folder: Path) -> None:
    """Write a reference, and reads of it in each format that has a parser of its own."""
    chosen = random.Random(_SEED)
    first, second = ("".join(chosen.choices("ACGT", k=_RECORD_BASES)) for _ in range(2))
    # A letter for two bases, which a read has too.
    first = first[: _READ_BASES // 2] + "R" + first[_READ_BASES // 2 + 1 :]
    repeat = "AC" * (_REPEAT_BASES // 2)
    _write(folder / _GENOME, f">first\n{first}\n>second\n{second}\n>repeat\n{repeat}\n")
    starts = chosen.choices(range(_RECORD_BASES - _READ_BASES), k=_READ_COUNT)
    reads = [first[start : start + _READ_BASES] for start in starts]
    named = [(f"read{number}", bases) for number, bases in enumerate(reads)]
    _write(folder / _FASTA, "".join(f">{name}\n{bases}\n" for name, bases in named))
    _write(
        folder / _FASTQ,
        "".join(f"@{name}\n{bases}\n+\n{'I' * len(bases)}\n" for name, bases in named),
    )
    tagged = f"@tagged BC:Z:ACGT\tXF:f:0.5\n{first[:_READ_BASES]}\n+\n{'I' * _READ_BASES}\n"
    _write(folder / _TAGGED, tagged)
    groups = "".join(f"@RG\tID:{group}\tSM:s\n" for group in "ab")
    mates = (f"p\t{flag}\t*\t0\t0\t*\t*\t0\t0\tA\tI\tRG:Z:a\n" for flag in (77, 141))
    _write(folder / _GROUPS, groups + "".join(mates))
    _write_mates(folder, first, chosen)
    _write_copy(folder, first, second)
    long_query = "".join(chosen.choices("ACGT", k=_LONG_QUERY_BASES)) + second
    _write(folder / _LONG, f">long\n{long_query}\n")
    _write_bam(str(folder / _BAM), named)


def _write_mates(folder: Path, genome: str, chosen: random.Random) -> None:
    """Write pairs, most of them without errors: so many that their sizes can be estimated.

    A mate of each second pair has a base that differs, and one more that is left out; and one mate
    of each fifth pair has so many that it is found by its mate only.
    """
    texts: list[list[str]] = [[], []]
    for number in range(_PAIR_COUNT):
        start = chosen.randrange(_RECORD_BASES - _TEMPLATE_BASES - _PAIR_COUNT)
        template = genome[start : start + _TEMPLATE_BASES + chosen.randrange(_PAIR_COUNT)]
        reverse = template[::-1].translate(_COMPLEMENTS)
        mates = [template[:_READ_BASES], reverse[:_READ_BASES]]
        if number % 2:
            mates[number // 2 % 2] = _with_errors(mates[number // 2 % 2], (30,), 60)
        if number % 5 == 0:
            mates[number % 2] = _with_errors(mates[number % 2], range(9, _READ_BASES, 12), None)
        for text, bases in zip(texts, mates, strict=True):
            text.append(f"@pair{number}\n{bases}\n+\n{'I' * len(bases)}\n")
    for path, text in zip(_MATES, texts, strict=True):
        _write(folder / path, "".join(text))


def _write_copy(folder: Path, first: str, second: str) -> None:
    """Write genomes like those of the reference, one of them reversed, with errors and gaps."""
    places = range(_COPY_STEP, _RECORD_BASES, _COPY_STEP)
    turned = second[::-1].translate(_COMPLEMENTS)
    copies = [_with_errors(one, places, _RECORD_BASES // 2 + 1) for one in (first, turned)]
    _write(folder / _COPY, "".join(f">copy{n}\n{bases}\n" for n, bases in enumerate(copies)))


def _with_errors(bases: str, places: Sequence[int], left_out: int | None) -> str:
    """Return a read in which some bases differ, and one is left out."""
    changed = list(bases)
    for place in places:
        changed[place] = changed[place].translate(_COMPLEMENTS)
    if left_out is not None:
        del changed[left_out]
    return "".join(changed)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="ascii")


def _write_bam(path: str, reads: list[tuple[str, str]]) -> None:
    import pysam

    with pysam.AlignmentFile(path, "wb", header={"HD": {"VN": "1.6"}}) as file:
        for name, bases in reads:
            record = pysam.AlignedSegment()
            record.query_name, record.query_sequence, record.flag = name, bases, 4
            file.write(record)
