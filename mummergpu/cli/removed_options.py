"""Options and commands of earlier versions, and their replacements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

_ONE_PROCESS: Final = "'mummergpu warmup' runs in one process"
_ONE_BUILDER: Final = {"--builder": "trees are built with Ukkonen's algorithm"}
_ONLY_NUCLEOTIDES: Final = {
    "--any-letters": "'mummergpu hmmsearch' searches proteins, and 'mummergpu match --any-letters' "
    "compares any letters"
}
_NO_GROUP: Final = "write --read-group none"

REMOVED_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "match": {
        **_ONE_BUILDER,
        "-version": "write --version",
        "--dot": "trees are not drawn any more",
        "--dump-tree": "trees are not written any more",
        "--max-occurrences": "use -mumreference or -mum for matches that are not repeated",
        **{
            f"--{name}": f"write -o FILE.{name}"
            for name in ("paf", "bed", "tsv", "sam", "bam", "parquet", "arrow")
        },
        "--mummer": "write -o FILE",
        "--plot": "write -o FILE.png",
        "--cram": "write -o FILE.bam",
        "--delta": "'mummergpu align' writes .delta",
        "--no-read-group": _NO_GROUP,
    },
    "index": _ONE_BUILDER,
    "sweep": _ONE_BUILDER,
    "plot": {"--kind": "pictures are dot plots; --stats has the lengths of matches"},
    "warmup": {
        "--generic": "run 'mummergpu warmup --cpu x86-64-v3', and once more for x86-64-v2",
        "--gpu": "the first run on a GPU compiles what it needs, and keeps it",
        "-t": _ONE_PROCESS,
        "--threads": _ONE_PROCESS,
    },
    "map": {
        **_ONLY_NUCLEOTIDES,
        "-@": "write -t N",
        "--all": "write -N all",
        "--no-read-group": _NO_GROUP,
        "--preset": "write -x sr",
        "--rg": "write -R '@RG\\tID:NAME\\tSM:SAMPLE'",
        "--rg-id": "write -R '@RG\\tID:NAME'",
        "--soft-clipping": "write -Y",
    },
    "align": {
        **_ONLY_NUCLEOTIDES,
        "--min-length": "write --min-alignment-length for alignments, -l for matches",
        "--vcf": "write -o FILE.vcf",
    },
}
"""For each command, its removed options, and their replacements."""

REMOVED_COMMANDS: Final[Mapping[str, str]] = {
    "tune": "'mummergpu sweep' says at its end which policy is the fastest, and how to choose it",
    "mummer-shim": "'mummergpu' takes the words of mummer itself",
}
"""The removed commands, and their replacements."""


AUTO_POLICY: Final = (
    "--policy auto was removed: leave --policy out, or name the policy that 'mummergpu sweep' "
    "finds the fastest"
)


def refuse_removed_option(command: str, word: str) -> None:
    """Refuse an option that a command no longer has; `word` may end with ``=VALUE``."""
    removed = REMOVED_OPTIONS.get(command, {})
    name = word.partition("=")[0]
    if name not in removed and not word.startswith("--"):
        # A value may follow one letter at once.
        name = word[:2]
    if instead := removed.get(name):
        raise click.UsageError(f"{name} was removed: {instead}")


def refuse_removed_command(word: str) -> None:
    """Refuse a command that is no longer there."""
    if instead := REMOVED_COMMANDS.get(word):
        raise click.UsageError(f"'{word}' was removed: {instead}")
