"""Where genome alignments are written, and in which format."""

from __future__ import annotations

from typing import Final

from mummergpu.errors import OptionError
from mummergpu.output.targets import DEFAULT_FORMAT, OutputTarget, suffix_of, target_of

GENOME_FORMATS: Final = ("delta", "paf", "sam", "bam", "vcf")
"""The formats of genome alignments; the first is the usual one."""


def genome_target(path: str, format_name: str | None, option: str = "--output") -> OutputTarget:
    """Return where genome alignments go: as .delta, unless the format or the name says otherwise.

    Parameters
    ----------
    path : str
        The file; its name also decides on the compression.
    format_name : str or None
        One of `GENOME_FORMATS`; None for the one of the name.
    option : str
        The option that names the file, for errors.

    Raises
    ------
    OptionError
        If genome alignments are not written in this format.
    """
    if format_name is None and suffix_of(path) == ".vcf":
        # A format of alignments only: matches have no differences.
        format_name = "vcf"
    target = target_of(path, format_name, option)
    if target.format == DEFAULT_FORMAT:
        return target_of(path, GENOME_FORMATS[0], option)
    if target.format not in GENOME_FORMATS:
        known = f"{', '.join(GENOME_FORMATS[:-1])} or {GENOME_FORMATS[-1]}"
        raise OptionError(
            option, f"genome alignments are written as {known}, and not as {target.format}"
        )
    return target
