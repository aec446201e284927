"""Searches whose proteins have hits: data from public profiles, and searches of them beside peers.

    python benchmarks/profile_hits.py make FOLDER PROFILES PROTEINS [--built 519] [--proteins 834]
    python benchmarks/profile_hits.py run FOLDER [--threads 2] [--runs 5] [--works emitted,real,...]
        [--ours-only-options="--backend cuda"] [--name profile-hits-two-cores.json]
    python benchmarks/profile_hits.py one FOLDER

`make` writes `profiles.hmm` (PROFILES, and profiles that pyhmmer builds of pieces of PROTEINS) and
proteins in FASTA, by the names of the works:

    emitted   one profile's proteins of two domains, with noise around them
    domains   1 to 12 domains of one or several profiles, whole or cut, with insertions
    real      PROTEINS
    mixed     PROTEINS, two mutated copies of those that are emitted, and shuffled ones
    shuffled  PROTEINS, each shuffled: hardly any hits
    few       138 of PROTEINS, for the memory that many profiles take

`run` searches each work with mummergpu, pyhmmer and hmmsearch in turn (`profile_search.py`: rows of
the tables of targets and domains are compared each time), and writes medians and memory. `one`
prints the seconds of one comparison to the end on a core, ours and pyhmmer's, with equal hits.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from measure import save
from profile_search import compare, versions

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
WORKS = ("emitted", "domains", "real", "mixed", "shuffled", "few")
FEW = 138
MOST_DOMAINS = 12


def read_fasta(path: str) -> list[str]:
    """Return the residues of proteins."""
    opened: Any = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt") as file:
        return ["".join(one.split("\n")[1:]) for one in file.read().split(">")[1:]]


def write_fasta(path: Path, name: str, proteins: Sequence[str]) -> None:
    with path.open("w") as file:
        file.writelines(f">{name}{number}\n{one}\n" for number, one in enumerate(proteins))


def built_profiles(proteins: Sequence[str], count: int, chance: random.Random) -> Iterator[Any]:
    """Yield profiles of pieces of proteins, of 60 to 500 residues as most of Pfam."""
    import pyhmmer

    alphabet = pyhmmer.easel.Alphabet.amino()
    builder = pyhmmer.plan7.Builder(alphabet)
    background = pyhmmer.plan7.Background(alphabet)
    long = [one for one in proteins if len(one) > 100 and set(one) <= set(RESIDUES)]
    for number, one in enumerate(chance.sample(long, count)):
        size = min(len(one), int(chance.triangular(60, 500, 150)))
        begin = chance.randrange(len(one) - size + 1)
        piece = one[begin : begin + size]
        sequence = pyhmmer.easel.TextSequence(name=f"built{number}", sequence=piece)
        yield builder.build(sequence.digitize(alphabet), background)[0]


def emitted(profile: Any, chance: random.Random) -> str:
    """Return a protein that a profile emits."""
    import pyhmmer

    # A match, or an insertion after it, at each node: HMMER's own generator is not in pyhmmer.
    found = []
    node = 1
    while node <= profile.M:
        leaving = list(profile.transition_probabilities[node - 1])
        step = chance.choices(("M", "I", "D"), leaving[:3])[0]
        if step != "D":
            odds = list(profile.match_emissions[node])
            found.append(chance.choices(RESIDUES, odds)[0])
        if step == "I":
            found.append(chance.choice(RESIDUES))
        node += 1
    assert pyhmmer.easel.Alphabet.amino().symbols.startswith(RESIDUES)
    return "".join(found)


def noise(length: int, chance: random.Random) -> str:
    return "".join(chance.choices(RESIDUES, k=length))


def mutated(protein: str, chance: random.Random) -> str:
    """Return a copy with a fifth of the residues replaced, and some left out or inserted."""
    found = []
    for residue in protein:
        draw = chance.random()
        if draw < 0.02:
            continue
        found.append(chance.choice(RESIDUES) if draw < 0.22 else residue)
        if draw > 0.98:
            found.append(chance.choice(RESIDUES))
    return "".join(found)


def with_domains(profiles: Sequence[Any], chance: random.Random) -> str:
    """Return a protein of 1 to 12 domains of a profile, some of them of others, some cut."""
    own, parts = chance.choice(profiles), []
    for _ in range(chance.randint(1, MOST_DOMAINS)):
        domain = emitted(own if chance.random() < 0.7 else chance.choice(profiles), chance)
        if chance.random() < 0.3 and len(domain) > 40:
            begin = chance.randrange(len(domain) // 2)
            domain = domain[begin : begin + chance.randint(20, len(domain) - begin)]
        parts += [domain, noise(chance.randint(0, 60), chance)]
    return "".join(parts)


def make(options: argparse.Namespace) -> None:
    import pyhmmer

    folder, chance = Path(options.folder), random.Random(options.seed)
    folder.mkdir(exist_ok=True)
    real = read_fasta(options.proteins_file)
    with pyhmmer.plan7.HMMFile(options.profiles) as file:
        profiles = [*file, *built_profiles(real, options.built, chance)]
    with (folder / "profiles.hmm").open("wb") as file:
        for one in profiles:
            one.write(file)
    usual = [one for one in profiles if one.M <= 600]

    def two() -> str:
        one, size = chance.choice(usual), chance.randint(10, 80)
        return noise(size, chance).join(emitted(one, chance) for _ in range(2))

    pairs = [two() for _ in range(options.proteins)]
    shuffled = ["".join(chance.sample(one, len(one))) for one in real]
    copies = [mutated(one, chance) for one in pairs for _ in range(2)]
    proteins = {
        "emitted": pairs,
        "domains": [with_domains(usual, chance) for _ in range(options.proteins // 4)],
        "real": real,
        "mixed": real + copies + shuffled,
        "shuffled": shuffled,
        "few": chance.sample(real, FEW),
    }
    for name, own in proteins.items():
        write_fasta(folder / f"{name}.faa", name, own)


def run(options: argparse.Namespace) -> None:
    folder, found = Path(options.folder), {}
    for work in options.works.split(","):
        words = argparse.Namespace(
            **{**vars(options), "verb": "hmmsearch", "options": [], "translate": False},
            profiles=str(folder / "profiles.hmm"),
            proteins=str(folder / f"{work}.faa"),
        )
        found[work] = compare(words)
        medians = {name: one["seconds"]["median"] for name, one in found[work]["programs"].items()}
        print(work, {name: f"{seconds:.2f} s" for name, seconds in medians.items()}, flush=True)
    save(options.name, {"versions": versions(), "threads": options.threads, "works": found})


def best_of(work: Callable[[], Any], least: float = 2.0) -> float:
    """Return the processor seconds of a function: the least of several calls."""
    times: list[float] = []
    while sum(times) < least or len(times) < 5:
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def one(options: argparse.Namespace) -> None:
    """Print what a comparison costs, alone and in the company of others of its profile."""
    import numpy as np

    from mummergpu.hmm.domains.finisher import DomainFinisher
    from mummergpu.hmm.filters import ProfileFilter
    from mummergpu.hmm.finishing import Finisher
    from mummergpu.hmm.hit_lists import HitRecords, HitWords
    from mummergpu.hmm.options import FinishingOptions
    from mummergpu.hmm.profiles import read_profiles
    from mummergpu.hmm.stage_counts import VITERBI, Reached
    from mummergpu.input.blocks.protein_rules import ProteinRules
    from mummergpu.input.blocks.proteins import ProteinFiles

    profiles = list(read_profiles(str(Path(options.folder) / "profiles.hmm")))
    chance = random.Random(options.seed)
    settings = FinishingOptions()
    finisher = Finisher(settings, profiles[0].hmm.alphabet, 1e6)
    domains = DomainFinisher(finisher, settings, 1e6)
    for nodes in (100, 200, 400, 800, 2000):
        profile = min(profiles, key=lambda one: abs(one.nodes - nodes))
        some = [emitted(profile.hmm, chance) + noise(100, chance) for _ in range(32)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "some.faa"
            write_fasta(path, "emitted", some)
            (proteins,) = ProteinFiles([str(path)], ProteinRules()).blocks()
        filters = ProfileFilter(profile, settings.thresholds)
        for count in (1, len(some)):
            numbers = np.arange(count)
            reached = Reached.of_all(numbers, VITERBI)
            ours = best_of(lambda: domains.search(filters, proteins, reached))  # noqa: B023
            theirs = best_of(lambda: finisher.search(profile, proteins, numbers))  # noqa: B023
            mine, _ = domains.search(filters, proteins, reached)
            other = HitRecords.of_hits(finisher.search(profile, proteins, numbers)[0], False)
            if [*map(HitWords.of_record, mine.records())] != [
                *map(HitWords.of_record, other.records())
            ]:
                raise SystemExit("the hits differ")
            cells = int(proteins.offsets[count]) * profile.nodes
            print(
                f"{profile.nodes} nodes, {count} at once, {cells:,} cells: ours "
                f"{1e3 * ours / count:.2f} ms, pyhmmer {1e3 * theirs / count:.2f} ms a comparison, "
                f"{ours / theirs:.2f} of its time; {1e9 * ours / cells:.1f} ns a cell"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    verbs = parser.add_subparsers(dest="do", required=True)
    making = verbs.add_parser("make")
    making.add_argument("folder")
    making.add_argument("profiles")
    making.add_argument("proteins_file", metavar="proteins")
    making.add_argument("--built", type=int, default=519)
    making.add_argument("--proteins", type=int, default=834)
    running = verbs.add_parser("run")
    running.add_argument("folder")
    running.add_argument("--works", default=",".join(WORKS))
    running.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    running.add_argument("--runs", type=int, default=5)
    running.add_argument("--ours")
    running.add_argument("--ours-only-options", type=str.split, default=[])
    running.add_argument("--peers", type=lambda text: text.split(","), default=["hmmer", "pyhmmer"])
    running.add_argument("--name", default="profile-hits-two-cores.json")
    verbs.add_parser("one").add_argument("folder")
    options = parser.parse_args()
    {"make": make, "run": run, "one": one}[options.do](options)


if __name__ == "__main__":
    sys.exit(main())
