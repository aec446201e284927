"""HMMER's own programs, and small inputs for them from pyhmmer's wheel."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from helpers.requirements import do_without, program_of

EXAMPLE: Final = Path("/usr/share/doc/hmmer/examples/easel/miniapps/esl-translate.gz")

TABLES = ("tblout", "domtblout", "pfamtblout")


def data_folder():
    """The files that pyhmmer brings for its own tests."""
    pyhmmer = pytest.importorskip("pyhmmer")
    folder = Path(pyhmmer.__file__).parent / "tests/data"
    if not (folder / "hmms").is_dir():
        pytest.skip("this pyhmmer comes without its files for tests")
    return folder


def write_input(folder):
    """Write profiles, of which some have cutoffs, and proteins with long and equal names."""
    data = data_folder()
    texts = [(data / f"hmms/txt/{name}.hmm").read_text() for name in ("PF02826", "RREFam")]
    (folder / "cut.hmm").write_text(texts[0])
    profiles, proteins = folder / "some.hmm", folder / "some.faa"
    profiles.write_text("".join(texts))
    records = (data / "seqs/938293.PRJEB85.HG003687.faa").read_text().split(">")[1:]
    kept = [record for number, record in enumerate(records) if number % 12 == 0]
    kept += [f"twin of\tothers\n{kept[3].split(chr(10), 1)[1]}"] * 2
    kept += ["empty\n", "x" * 1000 + " long\n" + kept[5].split("\n", 1)[1], "odd\nXXBZ*ACD~.\n"]
    proteins.write_text("".join(f">{record}" for record in kept))
    return profiles, proteins


def need_hmmer():
    program_of("hmmsearch", "HMMER", "Debian: apt-get install hmmer")


def hmmer(verb, folder, *words):
    """Run a program of HMMER in one thread; return its tables, and the alignment."""
    kinds = [*TABLES, *(["alignment"] if verb == "hmmsearch" else [])]
    files = {kind: folder / f"theirs.{kind}" for kind in kinds}
    options = [text for kind, path in files.items() for text in (option_of(kind), str(path))]
    command = [verb, "--cpu", "0", "-o", "/dev/null", *options, *map(str, words)]
    subprocess.run(command, check=True, capture_output=True)
    return {kind: path.read_bytes() for kind, path in files.items()}


def option_of(kind):
    return "-A" if kind == "alignment" else f"--{kind}"


def rows(text):
    """Return the lines of a table or an alignment, without comments and the author."""
    lines = text.split(b"\n")
    return [line for line in lines if not (line + b" ").startswith((b"# ", b"#-", b"#=GF AU"))]


_OF_A_RUN: Final = re.compile(
    rb"^# (CPU time|Mc/sec|HMMER 3|Copyright|Freely|Computed|output dir|.*worker|multithread).*\n",
    re.MULTILINE,
)


def report(text):
    """Return a report without its times, version, files and threads."""
    return _OF_A_RUN.sub(b"", text)


ORF: Final = re.compile(r"source=(\S+) coords=(\d+)\.\.(\d+) length=\d+ frame=(\d) desc=")


def esl_translate(path, *options):
    """Return the descriptions and the residues of Easel's ORFs.

    Debian has the program among the examples of HMMER, compressed.
    """
    program = shutil.which("esl-translate")
    if program is None and EXAMPLE.is_file():
        copy = path.with_name("esl-translate")
        copy.write_bytes(gzip.decompress(EXAMPLE.read_bytes()))
        copy.chmod(0o755)
        program = str(copy)
    if program is None:
        do_without("esl-translate is not installed (Debian: hmmer-examples)", None)
    text = subprocess.run(
        [program, *options, path], check=True, capture_output=True, text=True
    ).stdout
    found = []
    for record in text.split(">")[1:]:
        header, *lines = record.split("\n")
        found.append((header.split(" ", 1)[1], "".join(lines)))
    return found
