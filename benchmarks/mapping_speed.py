"""Mappers beside each other on the clock: whole processes, with their indexes ready.

    python benchmarks/mapping_speed.py [--ours COMMAND] [--our-index COMMAND] [--reads 1000000]
        [--modes single,pairs] [--outputs sam,bam,sorted] [--mappers bwa,...] [--threads N]
        [--runs 3] [--folder DIR] [--reference FILE --files FILE [FILE]] [--name FILE]

Single reads are the workload HS100's, 150 bases each of a genome of 100 Mbp; pairs are made of that
genome by `dwgsim`, half as many as reads. With --reference and --files, other reads are mapped.
Peers are the mappers on the PATH. SAM goes to standard output and nowhere; BAM to a file in the
folder: ours by itself, the peers' through `samtools`, with as many threads. `sorted` is BAM by
position with its index. How many occurrences of seeds ours compares with a read is plotted, too.
Each turn runs every mapper once; medians are kept. What the folder (an option or the variable
MAPPING_FOLDER) has of reads and indexes is not made again. Writes `results/mapping-speed.json`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mapping.mappers import OURS, PEERS, Mapper, MappingJob, chosen_mappers, our_mapper
from mapping.simulation import DEFAULT_SEED, read_set
from mapping.visits import measure_visits, visits_plot
from measure import in_turn, run_process, save

PROGRAM = [sys.executable, "-m", "mummergpu"]
WORKLOAD, WORKLOAD_READS, READ_BASES = "HS100", 10_000_000, 150
MODES = ("single", "pairs")
OUTPUTS = ("sam", "bam", "sorted")


def reads_of(mode: str, options: argparse.Namespace) -> tuple[Path, tuple[Path, ...]]:
    """Return the genome and the files of reads, made if they are not there."""
    if options.reference:
        return options.reference, tuple(options.files)
    made = options.folder / f"{WORKLOAD}-{options.reads}"
    reference = made / "reference.fa"
    if not reference.exists():
        scale = str(options.reads / WORKLOAD_READS)
        run_process([*PROGRAM, "workload", WORKLOAD, "--scale", scale, "-q", "-o", str(made)])
    if mode == "single":
        return reference, (made / "reads.fa",)
    pairs = options.reads // 2
    return reference, read_set(WORKLOAD, reference, READ_BASES, pairs, DEFAULT_SEED, made).mates


def timed_command(mapper: Mapper, job: MappingJob, output: str, file: Path) -> list[str]:
    """Return the command from reads to an output.

    Parameters
    ----------
    mapper : Mapper
        The mapper.
    job : MappingJob
        What it maps.
    output : str
        One of `OUTPUTS`.
    file : Path
        Where BAM goes.
    """
    words = mapper.command(job)
    if output == "sam":
        return words
    threads = str(job.threads)
    if mapper.name == OURS:
        return [*words, *(["--sort"] if output == "sorted" else []), "-o", str(file)]
    if output == "bam":
        writer = ["samtools", "view", "-b", "-@", threads, "-o", str(file), "-"]
    else:
        writer = ["samtools", "sort", "-@", threads, "--write-index", "-o", str(file), "-"]
    return ["bash", "-o", "pipefail", "-c", f"{shlex.join(words)} | {shlex.join(writer)}"]


def index_figures(mapper: Mapper, job: MappingJob) -> dict[str, float] | None:
    """Make the index of a mapper, if need be; return what that cost."""
    known, words = mapper.index_file(job), mapper.index(job)
    if not words or (known is not None and known.exists()):
        return None
    return run_process(words)


def mode_figures(
    mode: str, mappers: list[Mapper], options: argparse.Namespace, keep: Callable[[Any], None]
) -> None:
    """Time all mappers in turn on one kind of reads, to each output."""
    reference, files = reads_of(mode, options)
    job = MappingJob(reference, files, options.threads)
    made = {mapper.name: index_figures(mapper, job) for mapper in mappers}
    results: dict[str, Any] = {
        "files": [f"{path.name}, {path.stat().st_size:,} bytes" for path in files],
        "threads": options.threads,
        "index_build": {name: figures for name, figures in made.items() if figures},
    }
    for mapper in mappers:
        if mapper.name == OURS:
            visits = results["occurrences_visited"] = measure_visits(mapper, job, options.folder)
            print(
                mode, f"occurrences visited by a read on a strand, {visits['mean']:.1f} on average"
            )
            print(*visits_plot(visits), sep="\n")
    for output in options.outputs:
        file = options.folder / "output.bam"
        found = results[output] = in_turn(
            options.runs,
            **{
                mapper.name: partial(run_process, timed_command(mapper, job, output, file))
                for mapper in mappers
            },
        )
        for path in (file, Path(f"{file}.bai"), Path(f"{file}.csi")):
            path.unlink(missing_ok=True)
        medians = {name: figures["seconds"]["median"] for name, figures in found.items()}
        if OURS in medians:
            results[f"{output}_times_of_ours"] = {
                name: seconds / medians[OURS] for name, seconds in medians.items()
            }
        print(mode, output, {name: f"{seconds:.2f} s" for name, seconds in medians.items()})
        keep(results)


def chosen(known: tuple[str, ...], text: str) -> list[str]:
    """Return the words of an option, all of which must be known."""
    if unknown := [word for word in text.split(",") if word not in known]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(known)}")
    return text.split(",")


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    peers = tuple(mapper.name for mapper in PEERS)
    folder = os.environ.get("MAPPING_FOLDER")
    parser.add_argument("--ours", help="the command, such as 'python -m mummergpu map'")
    parser.add_argument("--our-index", default="", help="the command that makes our index")
    parser.add_argument("--reads", type=int, default=1_000_000)
    parser.add_argument("--modes", type=partial(chosen, MODES), default=[*MODES])
    parser.add_argument("--outputs", type=partial(chosen, OUTPUTS), default=["sam"])
    parser.add_argument("--mappers", type=partial(chosen, peers), default=[*peers])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(folder) if folder else None)
    parser.add_argument("--reference", type=Path, help="map to this FASTA")
    parser.add_argument("--files", type=Path, nargs="+", help="these reads, or both files of mates")
    parser.add_argument("--name", default="mapping-speed.json", help="the file of the results")
    return parser


def main() -> None:
    parser = option_parser()
    options = parser.parse_args()
    if bool(options.reference) != bool(options.files):
        parser.error("--reference and --files go together")
    if options.files:
        options.modes = ["pairs" if len(options.files) == 2 else "single"]
    ours = our_mapper(options.ours, options.our_index) if options.ours else None
    mappers = chosen_mappers(options.mappers, ours)
    results: dict[str, Any] = {"modes": {}}
    with tempfile.TemporaryDirectory() as temporary:
        options.folder = options.folder or Path(temporary)
        options.folder.mkdir(parents=True, exist_ok=True)
        for mode in options.modes:

            def keep(figures: dict[str, Any], mode: str = mode) -> None:
                # What is measured stays, whatever becomes of the next.
                results["modes"][mode] = figures
                save(options.name, results)

            mode_figures(mode, mappers, options, keep)


if __name__ == "__main__":
    main()
