"""The job that draws the matches of an existing file."""

from __future__ import annotations

import os
from dataclasses import replace

from mummergpu.drawing.coverage import CoverageCounter
from mummergpu.drawing.lengths import LengthCounter
from mummergpu.drawing.match_files import FileMatches, read_matches
from mummergpu.drawing.picture import (
    PAGE,
    PictureStyle,
    coverage_file,
    dots_file,
    lengths_file,
    require_matplotlib,
)
from mummergpu.drawing.segments import reference_positions_of, reference_records, segments_of
from mummergpu.drawing.style import hush
from mummergpu.errors import OptionError
from mummergpu.output.targets import OutputTarget
from mummergpu.runtime.output_file import OutputFile


def plot_file(path: str, target: OutputTarget, style: PictureStyle, min_length: int = 1) -> None:
    """Draw the matches of a file."""
    file_format = os.path.splitext(target.path)[1].lower().removeprefix(".")
    if file_format != PAGE:
        hush()
        require_matplotlib("a picture")
    elif style.kind != "dots":
        raise OptionError("kind", f"a page shows dots; write {style.kind} to .png, .svg or .pdf")
    with OutputFile(target.path) as output:
        matches = read_matches(path).longer(min_length)
        title = style.title or os.path.basename(path)
        shown = replace(style, title=title, what="alignments")
        output.write(_picture(matches, shown, file_format))


def _picture(matches: FileMatches, style: PictureStyle, file_format: str) -> bytes:
    if style.kind == "lengths":
        lengths = LengthCounter()
        lengths.add(matches.length)
        return lengths_file(lengths, style, file_format)
    if style.kind == "coverage":
        references = reference_records(matches)
        counter = CoverageCounter(references)
        counter.add(reference_positions_of(matches, references), matches.length, matches.reverse)
        return coverage_file(counter, style, file_format)
    segments = replace(segments_of(matches), identities=matches.identity)
    return dots_file(segments, style, file_format)
