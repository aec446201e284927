"""The command ``plot``: draw the matches of two genomes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import click
from click.core import ParameterSource

from mummergpu.cli.match import run_match
from mummergpu.cli.option_names import WordedCommand
from mummergpu.cli.option_rules import refuse_clashing_files
from mummergpu.cli.option_types import HELP_OPTIONS, MAIN_OPTIONS, Session, complete_files
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
        help="Draw the queries in the order of where they lie on the reference, and turn around "
        "those that match mostly on the reverse strand, with * before their names; or leave them "
        "as they are.  [default: --order for several queries]",
    ),
    click.Option(
        ["--colour", "--color", "colouring"],
        type=click.Choice(COLOURINGS),
        default=COLOURINGS[0],
        show_default=True,
        help="Colour matches by strand, or alignments of a .paf or .delta by the percentage of "
        "equal columns (identity).",
    ),
    click.Option(
        ["--line-width"],
        type=click.FloatRange(0.1, 20),
        metavar="POINTS",
        help="The width of lines; short matches are dots of this size.  [default: 1.2]",
    ),
    click.Option(
        ["--size"],
        callback=_size,
        metavar="INCHES",
        help="Width and height of the picture in inches, such as 8x6, or one number for both; a "
        "PNG has 150 pixels to the inch.  [default: 7x7]",
    ),
    click.Option(
        ["--title"], metavar="TEXT", help="Write TEXT above.  [default: the names of the files]"
    ),
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
"""The parameters that make sense without a search."""

_LEAST_LENGTH: Final = 20
_CHANCE_MATCHES: Final = 1000
"""About this many chance matches do not hide the others."""


def _optional_length(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | None:
    if text is None:
        return None
    callback = MAIN_OPTIONS["min_length"].callback
    assert callback is not None
    length: int = callback(context, parameter, text)
    return length


@click.command(
    "plot",
    cls=WordedCommand,
    context_settings=HELP_OPTIONS,
    params=[
        click.Argument(["reference"], shell_complete=complete_files),
        click.Argument(["query"], nargs=-1, shell_complete=complete_files),
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            required=True,
            shell_complete=complete_files,
            help="Write the picture to FILE, whose name ends in .png, .svg, .pdf, or .html for a "
            "page to move and zoom in.",
        ),
        *_PICTURE_OPTIONS,
        click.Option(
            ["-l", "--min-length", "min_length"],
            callback=_optional_length,
            metavar="N",
            help="Draw matches of at least N bases.  [default: 20, and more where genomes are so "
            "large that chance matches would fill the picture]",
        ),
        click.Option(
            ["-mum", "--mum", "mum"],
            is_flag=True,
            help="Draw only matches whose bases occur once in the reference and once in the "
            "query.  [default]",
        ),
        click.Option(
            ["-maxmatch", "--maxmatch", "maxmatch"], is_flag=True, help="Draw all matches."
        ),
        MAIN_OPTIONS["mumreference"],
        click.Option(["-b", "both"], is_flag=True, help="Search both strands.  [always on]"),
        *(MAIN_OPTIONS[name] for name in _SHARED),
    ],
)
@click.pass_context
def plot(context: click.Context, /, **params: Any) -> None:
    """Draw the matches of two genomes, on both strands, or those of an existing file.

    REFERENCE is a FASTA file, or an index of one; QUERY is one or more FASTA, FASTQ, SAM, BAM or
    CRAM files. The main job draws dot plots, too, beside its other files: 'mummergpu REFERENCE
    QUERY -mum -b -o x.paf -o x.png'.

    A file of matches that ends in .paf or .delta, of whatever program, can stand alone: 'mummergpu
    plot x.paf -o x.png'. It takes the options of pictures, and -l. MUMmer's text is of no use: it
    does not tell the lengths of the records.

    A dot plot shows the reference from left to right and the queries from the bottom to the top.
    Positions count from the start of each record. Pictures need matplotlib (mummergpu[plot]),
    pages (.html) do not.
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
    """Draw the matches of the file that stands in the place of the reference."""
    from mummergpu.drawing.match_files import format_of_matches, read_matches

    path = params["reference"]
    if format_of_matches(path) is None:
        raise click.UsageError(
            "name a file of queries after the reference, or a file of matches that ends in .paf or "
            ".delta"
        )
    for parameter in context.command.params:
        name = parameter.name or ""
        is_told = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_told and name not in _OF_FILES:
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
    """Return the least length of matches with which a picture is neither empty nor full.

    It is 20, or the least length of which genomes of the size of the files are expected to share
    some thousand matches by chance; for standard input and index files always 20.
    """
    from mummergpu.index.format import is_index
    from mummergpu.pipeline.query_volume import estimate_query_bases

    sizes = [None if is_index(reference) else estimate_query_bases([reference])]
    sizes.append(estimate_query_bases(queries))
    if not all(sizes):
        return _LEAST_LENGTH
    # Two strands; a place matches by chance in one of four cases for each base.
    pairs = 2 * math.prod(size for size in sizes if size)
    return max(_LEAST_LENGTH, math.ceil(math.log(max(1.0, pairs / _CHANCE_MATCHES), 4)))


def _defaults_of_the_main_job(
    context: click.Context, reference: str, queries: Sequence[str]
) -> dict[str, Any]:
    """Return the options of the main job as they are if none is given."""
    from mummergpu.cli.main_group import MAIN_VERB

    session = context.find_object(Session)
    assert session is not None
    is_verbose = session.verbose
    group = context.find_root().command
    assert isinstance(group, click.Group)
    command = group.commands[MAIN_VERB]
    with command.make_context(MAIN_VERB, ["--", reference, *queries], parent=context) as inner:
        defaults = dict(inner.params)
    # Reading the options of the main job has set it anew.
    session.verbose = is_verbose
    return defaults
