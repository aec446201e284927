"""Rules of the options: refuse options that clash, and make the typed options of the jobs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.cache_folders import folder_of_kernels
from mummergpu.cli.format_options import output_targets
from mummergpu.cli.option_types import AUTO
from mummergpu.errors import OptionError
from mummergpu.index.format import IndexHeader, is_index, read_header
from mummergpu.index.options import IndexOptions, KmerOptions, TreeOptions
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.input.bytes.files import reading
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.matching.options import DeviceOptions, SearchOptions
    from mummergpu.output.matches.mummer import TextStyle
    from mummergpu.sequence.codes import Strand
    from mummergpu.studies.policy_choice import Choice

_FLAGS_OF_STYLE: Final = {
    "forward_coordinates": "-c",
    "four_columns": "-F",
    "show_sequences": "-s",
}
"""How the options of MUMmer's text are written that a program may not take."""

Params = Mapping[str, Any]
"""The options of a command line by their parameter names, as click passes them."""

_OF_TREES: Final = (
    *("policy", *LETTERS, "address_bits", "builder"),
    *("profile", "dot", "dump_tree"),
)


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


def index_options(params: Params) -> IndexOptions:
    """Return the options for building the index, or those that the index file was built with.

    An index file supplies the options that are not told, and refuses others than its own. A
    reference is searched with trees if an option is told that is about trees, else with k-mers.
    """
    path = params["reference"]
    if is_index(path):
        with reading(path), open(path, "rb", buffering=0) as file:
            header = read_header(file, path)
        kind = _kind_of_file(params, header)
    else:
        kind = _kind_to_build(params)
    return IndexOptions(params["min_length"], kind, params["max_memory"])


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


def _kind_to_build(params: Params) -> KmerOptions | TreeOptions:
    of_trees = _told_of_trees(params)
    if params["search"] == KmerOptions.search and of_trees:
        raise click.UsageError(f"{of_trees[0]} speaks of trees, and --search kmer has none")
    size, most = params["page_size"], params.get("max_occurrences")
    if most is not None and (of_trees or params["search"] == TreeOptions.search):
        told = of_trees[0] if of_trees else "--search tree"
        raise click.UsageError(f"--max-occurrences and {told} exclude each other")
    with_trees = bool(of_trees) or (size is not None and most is None)
    if params["search"] != AUTO:
        with_trees = params["search"] == TreeOptions.search
    if not with_trees:
        return KmerOptions(None if size == AUTO else size, max_occurrences=most)
    kind = TreeOptions(policy=_policy(params, lambda: _chosen(params).policy))
    if size is not None:
        kind = replace(kind, page_size=None if size == AUTO else size)
    if params["address_bits"]:
        kind = replace(kind, address_bits=int(params["address_bits"]))
    return replace(kind, builder=params["builder"]) if params["builder"] else kind


def _kind_of_file(params: Params, header: IndexHeader) -> KmerOptions | TreeOptions:
    """Return the options that an index file was built with; refuse options that differ."""
    path = params["reference"]
    if params["search"] not in (AUTO, header.search):
        raise OptionError("--search", f"the index '{path}' is for '{header.search}'")
    had: dict[str, Any] = {"page_size": header.page_size}
    most = params.get("max_occurrences")
    kind: KmerOptions | TreeOptions = KmerOptions(header.page_size, max_occurrences=most)
    if header.search == KmerOptions.search:
        if of_trees := _told_of_trees(params):
            raise OptionError(of_trees[0], f"speaks of trees, and the index '{path}' has none")
    else:
        if most is not None:
            raise OptionError("--max-occurrences", f"the index '{path}' has trees, not k-mers")
        had |= {"address_bits": str(header.address_bits), "builder": header.builder}
        built = Policy.from_code(header.policy)
        policy = _policy(params, lambda: built)
        # An index does not depend on textures.
        textures = ("query_texture", "reference_texture", "tree_texture")
        if replace(policy, **{name: getattr(built, name) for name in textures}) != built:
            raise OptionError("--policy", f"the index '{path}' is laid out for '{built.code}'")
        kind = TreeOptions(header.page_size, header.address_bits, header.builder, policy)
    for name, value in had.items():
        if params[name] not in (None, value):
            raise OptionError(_written(name), f"the index '{path}' was built with {value}")
    return kind


def _told_of_trees(params: Params) -> list[str]:
    """Return the given options that make sense only with trees, as written."""
    # A flag of the policy is about trees even if it is switched off.
    told = [
        name
        for name in _OF_TREES
        if params.get(name) or (name in LETTERS and params.get(name) is False)
    ]
    return [_written(name) for name in told]


def policy_reason(params: Params) -> str | None:
    """Return where the policy of the trees is from, or None if the user has named it."""
    if params["policy"] not in (None, AUTO):
        return None
    return "that of the index" if is_index(params["reference"]) else _chosen(params).reason


def _chosen(params: Params) -> Choice:
    """Return the policy for a run whose options name none."""
    from mummergpu.cli.tuned_policies import choose_for

    return choose_for(
        "cpu" if params.get("cpu") else params.get("backend", AUTO),
        _first_device(params),
        params.get("device_library", AUTO),
        params["reference"],
        tuple(params.get("query", ())),
        params["min_length"],
    )


def _first_device(params: Params) -> int:
    """Return the number of the first GPU, whose tuned policy the others take too."""
    numbers: tuple[int, ...] | None = params.get("device")
    return 0 if numbers is None else numbers[0]


def _policy(params: Params, default: Callable[[], Policy]) -> Policy:
    """Return the policy of the code, or the default, changed by the flags."""
    code = params["policy"]
    policy = default() if code in (None, AUTO) else Policy.from_code(code)
    flags = {name: getattr(policy, name) for name in LETTERS}
    flags.update({name: params[name] for name in LETTERS if params[name] is not None})
    return Policy(**flags)


def _written(name: str) -> str:
    """Return an option as it is written on the command line."""
    return "--" + name.replace("_", "-")


def _regular_file(path: str) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode):
            return found.st_dev, found.st_ino
    return None
