"""The command ``warmup``: compile the code of most runs, by small commands."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Final

import click

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.option_types import HELP_OPTIONS, Session
from mummergpu.errors import OptionError, OutputError
from mummergpu.runtime.compiled.levels import LEVELS, compile_for, machine_levels

_COMMANDS: Final = """
workload LMONO --scale 0.0005 -o one
workload REPEATS --scale 0.0002 -o two
index two/reference.fa -o two.mgi
index two/reference.fa --search kmer --page-size 200k -o parts.mgi

map two.mgi two/reads_1.fq two/reads_2.fq -o pairs.bam --sort --mark-duplicates
map two.mgi two/reads_1.fq two/reads_2.fq -o pairs.sam --max-xa 5 --unmapped unmapped.fq
map two.mgi two/reads_1.fq two/reads_2.fq -o all.sam -N all
map two/reference.fa two/reads_1.fq two/reads_2.fq -o circular.bam --circular all
map parts.mgi two/reads_1.fq two/reads_2.fq -o parts.paf -N all
map one/reference.fa one/reads.fq -o one.sam --eqx --tags cs
map one/reference.fa one.sam -o again.bam
map two.mgi circular.bam -o again.paf
map two.mgi two/reference.fa -o long.sam
map two.mgi two/reads_1.fq -o interleaved.sam --interleaved

align one/reference.fa changed.fa -o one.delta
align one/reference.fa changed.fa -o one.vcf
align one/reference.fa changed.fa -o one.bam
align one/reference.fa changed.fa -o all.sam --one-to-one -maxmatch --nosimplify
align two.mgi two/reference.fa -o two.paf --cs
align bases.fa bases.fa -o wave.delta --method wavefront
align bases.fa bases.fa -o streaming.delta --method streaming

match one/reference.fa one/reads.fq -b -o all.txt --search kmer --stats stats.json
match one/reference.fa one/reads.fq -b -o parts.txt --search kmer --page-size 1M
match one/reference.fa one/reads.fq -b -o one.sam
match one/reference.fa one/reads.fq -b -o one.paf
match one/reference.fa one/reads.fq -b -o one.bed
match one/reference.fa one/reads.fq -b -o one.tsv
match one/reference.fa one/reads.fq -b -o page.html
match two.mgi circular.bam -b -o two.bam
match two.mgi two/reads_1.fq two/reads_2.fq -o pairs.txt --pair
match two.mgi two/reference.fa -b -o unique.txt -mum -c -L -s
index copies.fa -o copies.mgi
match copies.fa copies.fa -b -mum -o copies.txt
match two/reference.fa two/reads_1.fq -b -o m.txt --policy m --address-bits 24 -mum
match two/reference.fa two/reads_1.fq -o n.txt --policy n --address-bits 24 --page-size 200k
match two/reference.fa two/reads_1.fq -b -o rt.txt --policy rt --address-bits 32
match two/reference.fa two/reference.fa -o nm.txt --policy nm --address-bits 32

hmm 3.hmm bases.fa -o 3.tsv
hmm 8.hmm bases.fa -o 8.tsv
hmm 12.hmm bases.fa -o 12.tsv
hmm 8.hmm bases.fa --bed -o 8.bed
"""
_PROFILE_COMMANDS: Final = """
hmmsearch profile.hmm proteins.fa -o proteins.txt
hmmsearch --translate profile.hmm bases.fa -o translated.txt
"""
_STATES_OF_MODELS: Final = (3, 8, 12)
"""The numbers of states of the models; the paths of each have words of another size."""


@click.command("warmup", context_settings=HELP_OPTIONS)
@click.option(
    "--cpu",
    "level",
    metavar="LEVEL",
    type=click.Choice(tuple(LEVELS)),
    help="Compile for a processor level: x86-64-v4, x86-64-v3 or x86-64-v2.  [default: the highest "
    "of this machine]",
)
@click.option("-q", "--quiet", is_flag=True, help="Write only errors to standard error.")
@click.pass_context
def warmup(context: click.Context, level: str | None, quiet: bool) -> None:
    """Compile everything that most runs need, so that they do not wait for it.

    This takes about a minute. The code is stored in MUMMERGPU_CACHE_DIR, or in the usual cache
    folder. In the recipe of a container, set that variable to a folder of the image, and run this
    command for x86-64-v3 and for x86-64-v2: the container then compiles nothing on most machines,
    for any user, and with a read-only file system.
    """
    from mummergpu.runtime.compiled.announcement import compilation
    from mummergpu.runtime.compiled.store import code_places, process_store

    if level is not None:
        if level not in machine_levels():
            raise OptionError("--cpu", f"this machine cannot run code for {level}")
        compile_for(level)
        # An already open store would keep the code under the name of another level.
        process_store.cache_clear()
    folder = process_store().folder()
    place = folder or "; ".join(code_places()) or "no folder"
    before = os.getcwd()
    if folder is not None:
        with tempfile.TemporaryDirectory(prefix=f"{PROGRAM}-") as inputs:
            os.chdir(inputs)
            try:
                _run_commands(context)
            finally:
                os.chdir(before)
    if folder is None or process_store().folder() != folder:
        raise OutputError("compiled code cannot be kept there", place)
    if not quiet:
        text = f"{compilation.functions} functions were compiled, and are kept in {place}"
        click.echo(f"{PROGRAM}: {text}", err=True)


def _run_commands(context: click.Context) -> None:
    """Run all commands in the working folder."""
    commands = _COMMANDS + (_PROFILE_COMMANDS if _write_profile() else "")
    _write_models()
    group = context.find_root().command
    for line in filter(None, commands.splitlines()):
        if "changed.fa" in line and not os.path.exists("changed.fa"):
            _write_changed_genome()
        words = [*line.split(), "-q"]
        with group.make_context(PROGRAM, list(words), obj=Session(words)) as inner:
            group.invoke(inner)


def _write_changed_genome() -> None:
    """Write a genome with some bases left out, others changed, and a part that is reversed."""
    lines = Path("one/reference.fa").read_text().splitlines()[1:]
    for number in range(0, len(lines), 5):
        lines[number] = lines[number][:20] + lines[number][20:40].lower()[::-1] + lines[number][41:]
    part = len(lines) // 3
    complements = str.maketrans("ACGTacgt", "TGCATGCA")
    turned = "".join(lines[part : 2 * part])[::-1].translate(complements)
    text = "\n".join([">changed", *lines[:part], turned, ">rest", *lines[2 * part :]])
    Path("changed.fa").write_text(text.upper() + "\n")


def _write_models() -> None:
    """Write programs of models with several numbers of states, and files of bases and copies."""
    bases = "".join(random.Random(1).choices("ACGT", k=3000))
    Path("bases.fa").write_text(f">bases\n{bases}\n>few\n{bases[:90]}\n")
    # More copies than an index leaves unsorted (`MAX_UNSORTED_OCCURRENCES` of both kinds).
    Path("copies.fa").write_text(f">copies\n{bases[:100] * 1200}\n")
    for count in _STATES_OF_MODELS:
        names = [f"s{number}" for number in range(count)]
        states = "".join(f"state {name} emits e; start -> {name} 0.05; " for name in names)
        states += "".join(f"{one} -> {other} 0.05; " for one in names for other in names)
        prints = "print viterbi(m).traceback; print viterbi(m).score; print forward(m).score; "
        prints += "print posterior(m).traceback; " if count < max(_STATES_OF_MODELS) else ""
        declared = "alphabet [A, C, G, T]; startstate start; emission e = [.25, .25, .25, .25];"
        main = f"main() {{ m = new model(); {prints} }}"
        Path(f"{count}.hmm").write_text(f"hmm model {{ {declared} {states} }} {main}")


def _write_profile() -> bool:
    """Write a profile HMM and proteins; return false without pyhmmer.

    Some have overlapping parts of it twice, whose domains sampled paths tell apart. They are so
    many that they are compared in groups of all sizes.
    """
    try:
        from pyhmmer import easel, plan7
    except ImportError:
        return False
    residues = random.Random(1).choices("ACDEFGHIKLMNPQRSTVWY", k=3000)
    proteins = ["".join(residues[place : place + 100]) for place in range(0, len(residues), 100)]
    proteins += 3 * [proteins[0]] + 5 * [proteins[0][:70] + proteins[0][30:]]
    Path("proteins.fa").write_text("".join(f">{n}\n{one}\n" for n, one in enumerate(proteins)))
    alphabet = easel.Alphabet.amino()
    sequence = easel.TextSequence(name=b"profile", sequence=proteins[0]).digitize(alphabet)
    profile, *_ = plan7.Builder(alphabet).build(sequence, plan7.Background(alphabet))
    with open("profile.hmm", "wb") as file:
        profile.write(file)
    return True
