"""Rules of the options: refuse options that clash, and make the typed options of the jobs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.format_options import output_targets
from mummergpu.errors import OptionError
from mummergpu.runtime.cache_dir import cache_folder
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.matching.options import DeviceOptions, SearchOptions
    from mummergpu.output.options import TextStyle
    from mummergpu.pipeline.downstream_presets import TextRequest

Params = Mapping[str, Any]
"""The options of a command line by their parameter names, as click passes them."""


_EXCLUSIVE: Final = (
    {"maxmatch": "-maxmatch", "mumreference": "-mumreference", "mum": "-mum"},
    {"both": "-b", "reverse": "-r"},
    {"forward": "-f", "reverse": "-r"},
    {"verbose": "-v", "quiet": "-q"},
)
"""Flags that exclude each other, as they are written; a command may have some of them."""


def refuse_exclusive(params: Params) -> None:
    """Refuse flags that exclude each other in every command that has them."""
    for group in _EXCLUSIVE:
        chosen = [word for name, word in group.items() if params.get(name)]
        if len(chosen) > 1:
            raise click.UsageError(f"{chosen[0]} and {chosen[1]} exclude each other")
    if params.get("cpu") and params["backend"] == "cuda":
        raise click.UsageError("-C and --backend cuda exclude each other")


def text_request(params: Params) -> TextRequest:
    """Return which matches are written as text, and how, with what ``--for`` needs."""
    from mummergpu.pipeline.downstream_presets import TextRequest, with_preset

    refuse_exclusive(params)
    strands = next((word for word in ("reverse", "both") if params[word]), None)
    mode = next((word for word in ("maxmatch", "mumreference", "mum") if params[word]), None)
    asked, program = TextRequest(strands, mode, text_style(params)), params["for_program"]
    # Formats matter to programs alone, and other files are looked at later.
    formats = [] if program is None else [target.format for target in output_targets(params)]
    found = with_preset(program, asked, formats)
    if found.style.forward_coordinates and found.strands is None:
        raise click.UsageError("-c requires -b or -r")
    return found


def search_options(params: Params, request: TextRequest) -> SearchOptions:
    """Return the options that say which matches to find."""
    from mummergpu.matching.options import SearchOptions

    words = request.strands or "forward", request.mode or "all"
    return SearchOptions.of_words(params["min_length"], *words, params["block_size"])


def strands_of(params: Params, usual: str = "forward") -> str:
    """Return the word for the strands to search; the `usual` one if no option names them."""
    told = (word for word in ("reverse", "both", "forward") if params.get(word))
    return next(told, usual)


def run_options(params: Params, command: str) -> dict[str, Any]:
    """Return what every job is told (`pipeline.run_options.RunOptions`), by its names."""
    told = {name: params[name] for name in ("threads", "verify", "any_letters", "no_empty")}
    device = device_options(params)
    return {"reference_path": params["reference"], "device": device, "command": command, **told}


FIRST_GPU: Final = {"device": 0, "gpu_memory": None, "device_library": "cuda-bindings"}
"""The options of the device for commands that do not ask for them."""


def device_options(params: Params) -> DeviceOptions:
    """Return the options of the device."""
    from mummergpu.matching.options import DeviceOptions

    folder = cache_folder(os.environ)
    return DeviceOptions(
        backend="cpu" if params.get("cpu") else params["backend"],
        number=params["device"],
        memory=params["gpu_memory"],
        threads=params["threads"],
        profile=params.get("profile", False),
        kernel_folder=None if folder is None else str(folder),
        library=params["device_library"],
        filter_policy=params.get("filter_policy", "auto"),
    )


def text_style(params: Params) -> TextStyle:
    """Return the options that say how to write the matches."""
    from mummergpu.output.options import TextStyle

    return TextStyle(
        forward_coordinates=params["forward_coordinates"],
        four_columns=params["four_columns"],
        show_query_lengths=params["show_lengths"],
        show_sequences=params["show_sequences"],
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
