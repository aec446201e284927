"""Programs that make and check alignments; a test without one is skipped."""

import shutil
import subprocess
from pathlib import Path

from helpers.requirements import program_of
from mummergpu.output.options import read_group_of

GROUP = read_group_of("@RG\\tID:lane 1\\tSM:sample\\tLB:library\\tPL:ILLUMINA")

NO_QUALITIES = ("-IGNORE", "QUALITY_NOT_STORED")
"""What Picard is told about sequences without qualities: they are allowed, and it warns of them."""


def samtools(*words):
    """Run samtools, which must be installed and succeed; return what it prints."""
    return output_of(program_of("samtools"), *words)


def sam_rows(path):
    """The fields of each row of a file of SAM."""
    lines = Path(path).read_text().splitlines()
    return [line.split("\t") for line in lines if line[0] != "@"]


def picard_errors(path, reference=None, *more):
    """Return the lines in which Picard's ValidateSamFile tells of an error."""
    program = _picard()
    words = [program, "ValidateSamFile", "-I", str(path), "-MODE", "VERBOSE", *more]
    if reference is not None:
        dictionary = reference.with_suffix(".dict")
        if not dictionary.exists():
            output_of(program, "CreateSequenceDictionary", "-R", reference, "-O", dictionary)
        words += ["-R", str(reference)]
    done = subprocess.run(words, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("ERROR")]
    if done.returncode and not found:
        found = [done.stdout + done.stderr]
    return found


def picard_marked(path):
    """Let Picard's MarkDuplicates flag the duplicates of a sorted BAM; return another BAM."""
    program = _picard()
    marked = path.with_suffix(".picard.bam")
    metrics = path.with_suffix(".metrics")
    output_of(program, "MarkDuplicates", "-I", path, "-O", marked, "-M", metrics)
    return marked


def bwa_alignments(reference, *words):
    """Index a reference and map reads with bwa mem; return the SAM."""
    program = program_of("bwa")
    if not Path(f"{reference}.bwt").exists():
        output_of(program, "index", reference)
    return output_of(program, "mem", *words[:-2], reference, *words[-2:])


def output_of(*words):
    """Run a program, which must succeed; return what it prints."""
    return subprocess.run([str(word) for word in words], check=True, capture_output=True).stdout


def _picard():
    source = "Debian: apt-get install picard-tools"
    return shutil.which("picard") or program_of("PicardCommandLine", source=source)
