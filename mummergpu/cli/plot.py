"""The command ``plot``: draw the matches of two genomes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import click

from mummergpu.cli.match import run_match
from mummergpu.cli.option_rules import refuse_clashing_files
from mummergpu.cli.option_types import (
    HELP_OPTIONS,
    MAIN_OPTIONS,
    NUMBER,
    Session,
    WordedCommand,
    choice,
    file_option,
    files,
    flag,
    is_given,
    option,
)
from mummergpu.drawing.colours import COLOURINGS
from mummergpu.drawing.picture import PictureStyle, picture_bytes, picture_format
from mummergpu.output.formats import target_of
from mummergpu.runtime.output_file import OutputFile

_LEAST_INCHES: Final = 2.0
_MOST_INCHES: Final = 60.0


def _size(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[float, float] | None:
    """Return the width and the height that a text such as ``8x6`` or ``7`` spells."""
    if text is None:
        return None
    try:
        sides = [float(word) for word in text.lower().split("x")]
    except ValueError:
        sides = []
    if len(sides) not in (1, 2) or not all(_LEAST_INCHES <= one <= _MOST_INCHES for one in sides):
        raise click.BadParameter(
            f"'{text}' is not a size such as 7 or 8x6, of {_LEAST_INCHES:g} to {_MOST_INCHES:g} "
            "inches"
        )
    return sides[0], sides[-1]


_PICTURE_OPTIONS: Final = (
    click.Option(
        ["--order/--no-order"],
        default=None,
        help="Draw the queries in the order in which they align to the reference, and those that "
        "match mostly on the reverse strand as their reverse complement, with * before their "
        "names.  [default: --order for several queries]",
    ),
    choice(
        "--colour --color colouring",
        COLOURINGS,
        "Colour matches by strand, or alignments of a .paf or .delta by their percent identity.",
        COLOURINGS[0],
    ),
    option(
        "--line-width",
        "Line width; short matches are dots of this size.  [default: 1.2]",
        "POINTS",
        type=click.FloatRange(0.1, 20),
    ),
    option(
        "--size",
        "Width and height of the picture in inches, such as 8x6, or one number for both; a PNG has "
        "150 pixels per inch.  [default: 7x7]",
        "INCHES",
        callback=_size,
    ),
    option("--title", "Title of the picture.  [default: the names of the files]", "TEXT"),
)
"""The options that fill a `PictureStyle`."""

_SHARED: Final = (
    *("any_letters", "threads", "backend", "cpu", "device", "gpu_memory", "max_memory", "stats"),
    *("verbose", "quiet", "no_progress"),
)

_OF_FILES: Final = frozenset(
    {"reference", "output", "min_length", "verbose", "quiet", "no_progress"}
    | {option.name for option in _PICTURE_OPTIONS}
)
"""The parameters that apply without a search."""

_LEAST_LENGTH: Final = 20
_CHANCE_MATCHES: Final = 1000
"""About this many chance matches do not hide the others."""


@click.command(
    "plot",
    cls=WordedCommand,
    context_settings=HELP_OPTIONS,
    params=[
        files("reference"),
        files("query", several=True, required=False),
        file_option(
            "-o --output",
            "Write the picture to FILE: .png, .svg, .pdf, or .html for a page with pan and zoom.",
            required=True,
        ),
        *_PICTURE_OPTIONS,
        option(
            "-l --min-length min_length",
            "Minimum length of a match.  [default: 20, or more for genomes so large that chance "
            "matches would fill the picture]",
            type=NUMBER,
        ),
        flag(
            "-mum --mum mum",
            "Draw only matches that are unique in the reference and in the query.  [default]",
        ),
        flag("-maxmatch --maxmatch maxmatch", "Draw all matches."),
        MAIN_OPTIONS["mumreference"],
        flag("-b both", "Search both strands.  [always on]"),
        *(MAIN_OPTIONS[name] for name in _SHARED),
    ],
)
@click.pass_context
def plot(context: click.Context, /, **params: Any) -> None:
    """Draw a dot plot of two genomes, on both strands, or of the matches in a file.

    REFERENCE is a FASTA file or an index; QUERY files are FASTA, FASTQ, SAM, BAM or CRAM. The main
    job draws dot plots, too, beside its other files: 'mummergpu REFERENCE QUERY -mum -b -o x.paf -o
    x.png'.

    A .paf or .delta file of any program can stand alone, with the options of pictures and -l:
    'mummergpu plot x.paf -o x.png'. MUMmer's text cannot, as it lacks the lengths of the records.

    A dot plot shows the reference from left to right and the queries from bottom to top. Positions
    are relative to each record. Pictures need matplotlib (mummergpu[plot]), pages (.html) do not.
    """
    style = PictureStyle(**{option.name: params.pop(option.name) for option in _PICTURE_OPTIONS})
    if not params["query"]:
        _plot_file(context, params, style)
        return
    params["mum"] = params["mum"] or not (params["maxmatch"] or params["mumreference"])
    if params["min_length"] is None:
        params["min_length"] = usual_length(params["reference"], params["query"])
    others = _defaults_of_the_main_job(context, params["reference"], params["query"])
    outputs = {"output": (params["output"],), "format_name": "plot", "picture": style}
    run_match(**(others | params | outputs | {"both": True}))


def _plot_file(context: click.Context, params: dict[str, Any], style: PictureStyle) -> None:
    """Draw the matches of a file that is given as the reference."""
    from mummergpu.drawing.match_files import format_of_matches, read_matches

    path = params["reference"]
    if format_of_matches(path) is None:
        raise click.UsageError(
            "name a file of queries after the reference, or a file of matches that ends in .paf or "
            ".delta"
        )
    for parameter in context.command.params:
        name = parameter.name or ""
        if is_given(context, name) and name not in _OF_FILES:
            raise click.UsageError(f"{parameter.opts[0]} is for a search, and '{path}' has matches")
    refuse_clashing_files([path], {"--output": params["output"]})
    target = target_of(params["output"], "plot")
    from mummergpu.drawing.segments import segments_of

    file_format = picture_format(target.path)
    with OutputFile(target.path) as output:
        matches = read_matches(path, params["min_length"] or 1)
        segments = replace(segments_of(matches), identities=matches.identity)
        title = style.title or os.path.basename(path)
        style = replace(style, title=title, what="alignments")
        output.write(picture_bytes(segments, style, file_format))


def usual_length(reference: str, queries: Sequence[str]) -> int:
    """Return the minimum match length with which a picture is neither empty nor full.

    It is 20, or the shortest length at which genomes of this size share about `_CHANCE_MATCHES`
    matches by chance; for standard input and index files always 20.
    """
    from mummergpu.index.format import is_index
    from mummergpu.pipeline.backend_choice import estimate_query_bases

    sizes = [None if is_index(reference) else estimate_query_bases([reference])]
    sizes.append(estimate_query_bases(queries))
    if not all(sizes):
        return _LEAST_LENGTH
    # Two strands; each base matches by chance with a probability of 1/4.
    pairs = 2 * math.prod(size for size in sizes if size)
    return max(_LEAST_LENGTH, math.ceil(math.log(max(1.0, pairs / _CHANCE_MATCHES), 4)))


def _defaults_of_the_main_job(
    context: click.Context, reference: str, queries: Sequence[str]
) -> dict[str, Any]:
    """Return the default options of the main job."""
    from mummergpu.cli.main_group import MAIN_VERB

    session = context.find_object(Session)
    assert session is not None
    is_verbose = session.verbose
    group = context.find_root().command
    assert isinstance(group, click.Group)
    command = group.commands[MAIN_VERB]
    with command.make_context(MAIN_VERB, ["--", reference, *queries], parent=context) as inner:
        defaults = dict(inner.params)
    # Parsing the options of the main job has reset it.
    session.verbose = is_verbose
    return defaults
