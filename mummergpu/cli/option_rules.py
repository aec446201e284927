"""Rules of the options: refuse options that clash, and make the typed options of the jobs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.cache_folders import folder_of_kernels
from mummergpu.cli.format_options import output_targets
from mummergpu.errors import OptionError
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.matching.options import DeviceOptions, SearchOptions
    from mummergpu.output.matches.mummer import TextStyle
    from mummergpu.sequence.codes import Strand

_FLAGS_OF_STYLE: Final = {
    "forward_coordinates": "-c",
    "four_columns": "-F",
    "show_sequences": "-s",
}
"""How the options of MUMmer's text are written that a program may not take."""

Params = Mapping[str, Any]
"""The options of a command line by their parameter names, as click passes them."""


def refuse_combinations(params: Params) -> None:
    """Refuse options that exclude each other, in MUMmer or in this program."""
    exclusive = (
        ("maxmatch", "mumreference", "mum"),
        ("both", "reverse"),
        ("verbose", "quiet"),
    )
    written = {"both": "-b", "reverse": "-r", "verbose": "-v", "quiet": "-q"}
    for group in exclusive:
        chosen = [written.get(name, f"-{name}") for name in group if params[name]]
        if len(chosen) > 1:
            raise click.UsageError(f"{chosen[0]} and {chosen[1]} exclude each other")
    if params["forward_coordinates"] and not (params["both"] or params["reverse"]):
        raise click.UsageError("-c requires -b or -r")
    if params["max_occurrences"] is not None:
        for name in ("mumreference", "mum"):
            if params[name]:
                # A match that repeats a lost one would seem to be unique.
                raise click.UsageError(f"--max-occurrences and -{name} exclude each other")
    if params["pair"] and len(params["query"]) % 2 and len(params["query"]) > 1:
        raise click.UsageError("--pair needs one file of pairs, or two files for each set of pairs")
    if params["cpu"] and params["backend"] == "cuda":
        raise click.UsageError("-C and --backend cuda exclude each other")


def with_program(params: Params) -> dict[str, Any]:
    """Return the options of a run, with those that the program of ``--for`` needs."""
    program = params["for_program"]
    if program is None:
        return dict(params)
    from mummergpu.pipeline.purposes import ProgramClashError, TextRequest, with_needs

    strands = next((word for word in ("reverse", "both") if params[word]), None)
    mode = next((word for word in ("maxmatch", "mumreference", "mum") if params[word]), None)
    asked = TextRequest(strands, mode, text_style(params))
    try:
        found = with_needs(program, asked, [target.format for target in output_targets(params)])
    except ProgramClashError as clash:
        raise _clash(program, _FLAGS_OF_STYLE.get(clash.other, clash.other)) from clash
    if found.mode != mode and params["max_occurrences"] is not None:
        raise _clash(program, "--max-occurrences (without -maxmatch)")
    return {
        **params,
        "both": params["both"] or found.strands == "both",
        "mumreference": params["mumreference"] or found.mode == "mumreference",
        "forward_coordinates": found.style.forward_coordinates,
        "three_columns_for": found.style.three_columns_for,
    }


def _clash(program: str, other: str) -> click.UsageError:
    return click.UsageError(f"--for {program} and {other} exclude each other")


def search_options(params: Params) -> SearchOptions:
    """Return the options that say which matches to find."""
    from mummergpu.matching.options import SearchOptions, Uniqueness

    uniqueness = Uniqueness.ALL
    if params["mumreference"]:
        uniqueness = Uniqueness.IN_REFERENCE
    elif params["mum"]:
        uniqueness = Uniqueness.IN_BOTH
    # Other modes have rows that begin at the same position.
    by_reference = params["rows_by_reference"] and params["mum"]
    return SearchOptions(
        params["min_length"], strands_of(params), uniqueness, params["block_size"], by_reference
    )


def strands_of(params: Params, usual: str = "forward") -> tuple[Strand, ...]:
    """Return the strands of the queries to search; the `usual` ones if no option names them."""
    from mummergpu.matching.options import STRANDS

    told = (word for word in ("reverse", "both", "forward") if params.get(word))
    return STRANDS[next(told, usual)]


def device_options(params: Params) -> DeviceOptions:
    """Return the options of the device."""
    from mummergpu.matching.options import DeviceOptions

    folder = folder_of_kernels(os.environ)
    return DeviceOptions(
        backend="cpu" if params["cpu"] else params["backend"],
        numbers=params["device"],
        memory=params["gpu_memory"],
        threads=params["threads"],
        profile=params.get("profile", False),
        kernel_folder=None if folder is None else str(folder),
        library=params["device_library"],
    )


def text_style(params: Params) -> TextStyle:
    """Return the options that say how to write the matches."""
    from mummergpu.output.matches.mummer import TextStyle

    return TextStyle(
        forward_coordinates=params["forward_coordinates"],
        four_columns=params["four_columns"],
        show_query_lengths=params["show_lengths"],
        show_sequences=params["show_sequences"],
        three_columns_for=params.get("three_columns_for", ""),
    )


def refuse_clashing_files(inputs: Iterable[str], outputs: Mapping[str, str | None]) -> None:
    """Refuse an output that is also an input, or two outputs to the same file."""
    inputs = list(inputs)
    if inputs.count("-") > 1:
        raise click.UsageError("standard input ('-') can be read only once")
    read = {identity: path for path in inputs if (identity := _regular_file(path))}
    seen: set[str] = set()
    for option, path in outputs.items():
        if path is None:
            continue
        if _regular_file(path) in read:
            raise OptionError(option, f"'{path}' is also an input")
        place = path if path == STANDARD_OUTPUT else os.path.realpath(path)
        if place in seen and place != os.devnull:
            raise OptionError(option, f"'{path}' is also another output")
        seen.add(place)


def _regular_file(path: str) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode):
            return found.st_dev, found.st_ino
    return None
