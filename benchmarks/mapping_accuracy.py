"""Mappers beside each other on simulated reads: how many they place rightly, and know so.

    python benchmarks/mapping_accuracy.py [--references DIR] [--genome NAME=FILE]... [--genomes ...]
        [--lengths 50,100,150] [--modes pairs,single] [--mappers bwa,...] [--ours COMMAND]
        [--seed 7] [--pairs 200000] [--threads N] [--folder DIR] [--again] [--name FILE]
    python benchmarks/mapping_accuracy.py --sam FILE... [--reads N] [--wrong FILE] [--least MAPQ]
        [--steps]
    python benchmarks/mapping_accuracy.py --compare FILE FILE [--output FILE] [--least MAPQ]

The first makes the reads with `dwgsim`, maps them with the peers that are on the PATH (bwa mem,
minibwa, strobealign, minimap2, bowtie2) and with ours, judges all by one evaluator, and writes
`results/mapping-accuracy.json`. References are read from a folder, an option or the variable
MAPPING_REFERENCES; a synthetic genome rich in repeats needs none. Reads, indexes and SAM stay in
the folder of `--folder` or MAPPING_FOLDER, where there is one; what is there is not made again
(but by ours), unless `--again` has the peers map again.
The second judges files that are there, and lists what is wrong in them; the third lists the reads
that one of two files has right and the other not. Both take SAM, BAM and CRAM.

A read is right if its primary alignment and the bases it comes from share over a tenth of what
they cover together. For each mapping quality, reads of at least that quality are counted, and
wrong ones among them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mapping.genomes import genome_file, genome_sources
from mapping.judge import Verdict, accuracy_of, verdicts
from mapping.listing import differing_lines, wrong_lines
from mapping.mappers import OURS, PEERS, Mapper, MappingJob, chosen_mappers, our_mapper
from mapping.sam import primary_records, program_version, read_lines
from mapping.simulation import DEFAULT_PAIRS, DEFAULT_SEED, SIMULATION, ReadSet, read_set
from mapping.tables import shortfalls, steps, table
from measure import save

MODES = {"pairs": 2, "single": 1}
"""How many files of reads each mode maps; single ends are the first mates."""


def judged(path: Path) -> Iterator[Verdict]:
    return verdicts(primary_records(read_lines(path)))


def figures_of(path: Path, reads: int | None) -> dict[str, Any]:
    return {"program": program_version(path), **accuracy_of(judged(path), reads).figures()}


def mapped(mapper: Mapper, reads: ReadSet, mode: str, options: argparse.Namespace) -> Path:
    """Return the SAM of a mapper; a peer's may be there already."""
    words = [reads.name, *(["single"] if mode == "single" else []), mapper.name, "sam"]
    path: Path = options.folder / ".".join(words)
    if options.again or mapper.name == OURS or not path.exists():
        job = MappingJob(reads.reference, reads.mates[: MODES[mode]], options.threads)
        mapper.make_index(job)
        mapper.map(job, path)
    return path


def compare_mappers(options: argparse.Namespace) -> None:
    """Map all sets of reads with all mappers; print a table of each, and save all figures."""
    sources = genome_sources(options.references, options.genome)
    ours = our_mapper(options.ours) if options.ours else None
    mappers = chosen_mappers(options.mappers, ours)
    results: dict[str, Any] = {
        "simulation": {"pairs": options.pairs, "seed": options.seed, "dwgsim": [*SIMULATION]},
        "reads": {},
    }
    for genome in options.genomes or sources:
        if genome not in sources:
            raise ValueError(f"no genome {genome} (there are: {', '.join(sources)})")
        reference = genome_file(genome, sources[genome], options.folder, options.seed)
        for read_bases in options.lengths:
            reads = read_set(
                genome, reference, read_bases, options.pairs, options.seed, options.folder
            )
            for mode in options.modes:
                title = f"{reads.name} {mode}"
                found = results["reads"][title] = {
                    mapper.name: figures_of(
                        mapped(mapper, reads, mode, options), reads.pairs * MODES[mode]
                    )
                    for mapper in mappers
                }
                print(f"\n{title}\n\n{table(found)}", flush=True)
                print_shortfalls(found)
                # What is measured stays, whatever becomes of the next.
                save(options.name, results)


def print_shortfalls(found: dict[str, dict[str, Any]]) -> None:
    """Tell what each peer does better than we do."""
    ours = found.get(OURS)
    for name, figures in found.items():
        if ours is not None and name != OURS:
            print(f"beside {name}:", "; ".join(shortfalls(ours, figures)) or "reached", flush=True)


def judge_files(options: argparse.Namespace) -> None:
    """Print the figures of files that are there, and list the wrong reads of all of them."""
    found = {path.name: figures_of(path, options.reads) for path in options.sam}
    print(table(found))
    if options.steps:
        for path in options.sam:
            print(f"{path.name}\n{steps(accuracy_of(judged(path)))}")
    if options.wrong:
        texts = (line for path in options.sam for line in wrong_lines(judged(path), options.least))
        write_lines(texts, options.wrong)


def write_lines(lines: Iterable[str], path: Path | None) -> None:
    """Write lines to a file, or to standard output."""
    if path is None:
        for line in lines:
            print(line)
        return
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{line}\n" for line in lines)


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def words(text: str) -> list[str]:
    return text.split(",")


def modes(text: str) -> list[str]:
    if unknown := [word for word in words(text) if word not in MODES]:
        raise argparse.ArgumentTypeError(f"no mode {unknown[0]} (there are: {', '.join(MODES)})")
    return words(text)


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    references, folder = (
        Path(text) if (text := os.environ.get(name)) else None
        for name in ("MAPPING_REFERENCES", "MAPPING_FOLDER")
    )
    peers = [mapper.name for mapper in PEERS]
    parser.add_argument("--references", type=Path, default=references)
    parser.add_argument("--genome", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--genomes", type=words, help="by default all that are there")
    parser.add_argument("--lengths", type=numbers, default=[50, 100, 150])
    parser.add_argument("--modes", type=modes, default=[*MODES])
    parser.add_argument("--mappers", type=words, default=peers)
    parser.add_argument("--ours", help="the command, such as 'python -m mummergpu map'")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--pairs", type=int, default=DEFAULT_PAIRS)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--folder", type=Path, default=folder, help="where reads, indexes and SAM are kept"
    )
    parser.add_argument("--again", action="store_true", help="have the peers map again")
    parser.add_argument("--name", default="mapping-accuracy.json", help="the file of the results")
    parser.add_argument("--sam", type=Path, nargs="+", help="judge these files")
    parser.add_argument("--reads", type=int, help="how many reads each of them was made from")
    parser.add_argument("--wrong", type=Path, help="list their wrong and unmapped reads here")
    parser.add_argument("--steps", action="store_true", help="tell of each mapping quality")
    parser.add_argument("--compare", type=Path, nargs=2, help="list reads that two differ in")
    parser.add_argument("--output", type=Path, help="the file of that list")
    parser.add_argument("--least", type=int, default=0, help="list from this mapping quality on")
    return parser


def main() -> None:
    options = option_parser().parse_args()
    try:
        if options.compare:
            first, second = (judged(path) for path in options.compare)
            write_lines(differing_lines(first, second, options.least), options.output)
        elif options.sam:
            judge_files(options)
        else:
            with tempfile.TemporaryDirectory() as temporary:
                options.folder = options.folder or Path(temporary)
                options.folder.mkdir(parents=True, exist_ok=True)
                compare_mappers(options)
    except ValueError as error:
        sys.exit(f"mapping_accuracy.py: {error}")


if __name__ == "__main__":
    main()
