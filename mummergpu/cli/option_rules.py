"""Rules of the options: refuse options that clash, and make the typed options of the jobs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.option_types import AUTO
from mummergpu.cli.purposes import three_columns_for
from mummergpu.errors import OptionError
from mummergpu.index.format import IndexHeader, is_index, read_header
from mummergpu.index.options import IndexOptions, KmerOptions, TreeOptions
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.input.bytes.files import reading
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.matching.options import DeviceOptions, SearchOptions
    from mummergpu.output.matches.mummer import TextStyle
    from mummergpu.studies.policy_choice import Choice

Given = Mapping[str, Any]
"""The options of a command line by their parameter names, as click passes them."""

_OF_TREES: Final = (
    *("policy", *LETTERS, "address_bits", "builder"),
    *("profile", "dot", "dump_tree"),
)


def refuse_combinations(given: Given) -> None:
    """Refuse options that exclude each other, in MUMmer or in this program.

    Parameters
    ----------
    given : mapping
        The options.

    Raises
    ------
    click.UsageError
        If two options exclude each other; the message names both.
    """
    exclusive = (
        ("maxmatch", "mumreference", "mum"),
        ("both", "reverse"),
        ("verbose", "quiet"),
    )
    written = {"both": "-b", "reverse": "-r", "verbose": "-v", "quiet": "-q"}
    for group in exclusive:
        chosen = [written.get(name, f"-{name}") for name in group if given[name]]
        if len(chosen) > 1:
            raise click.UsageError(f"{chosen[0]} and {chosen[1]} exclude each other")
    if given["forward_coordinates"] and not (given["both"] or given["reverse"]):
        raise click.UsageError("-c requires -b or -r")
    if given["max_occurrences"] is not None:
        for name in ("mumreference", "mum"):
            if given[name]:
                # A match that repeats a lost one would seem to be unique.
                raise click.UsageError(f"--max-occurrences and -{name} exclude each other")
    if given["pair"] and len(given["query"]) % 2 and len(given["query"]) > 1:
        raise click.UsageError("--pair needs one file of pairs, or two files for each set of pairs")
    if given["cpu"] and given["backend"] == "cuda":
        raise click.UsageError("-C and --backend cuda exclude each other")


def index_options(given: Given) -> IndexOptions:
    """Return the options for building the index, or those that the index file was built with.

    Parameters
    ----------
    given : mapping
        The options. If the reference is an index file, it supplies those that are not given.

    Returns
    -------
    IndexOptions
        Options of trees if a given option is about trees or the index file has trees; else
        options of k-mers.

    Raises
    ------
    click.UsageError
        If an option of trees is given together with ``--search kmer``.
    OptionError
        If the policy is not valid, or an option does not agree with the index file.
    InputError
        If the index file cannot be read.
    """
    path = given["reference"]
    if is_index(path):
        with reading(path), open(path, "rb", buffering=0) as file:
            header = read_header(file, path)
        kind = _kind_of_file(given, header)
    else:
        kind = _kind_to_build(given)
    return IndexOptions(given["min_length"], kind, given["max_memory"])


def search_options(given: Given) -> SearchOptions:
    """Return the options that say which matches to find."""
    from mummergpu.matching.options import SearchOptions, Uniqueness
    from mummergpu.sequence.codes import Strand

    strands: tuple[Strand, ...] = (Strand.FORWARD,)
    if given["reverse"]:
        strands = (Strand.REVERSE,)
    elif given["both"]:
        strands = (Strand.FORWARD, Strand.REVERSE)
    uniqueness = Uniqueness.ALL
    if given["mumreference"]:
        uniqueness = Uniqueness.IN_REFERENCE
    elif given["mum"]:
        uniqueness = Uniqueness.IN_BOTH
    # Other modes have rows that begin at the same position.
    by_reference = given["rows_by_reference"] and given["mum"]
    return SearchOptions(
        given["min_length"], strands, uniqueness, given["block_size"], by_reference
    )


def device_options(given: Given, kernel_folder: str | None) -> DeviceOptions:
    """Return the options of the device; `kernel_folder` keeps compiled kernels, unless None."""
    from mummergpu.matching.options import DeviceOptions

    return DeviceOptions(
        backend="cpu" if given["cpu"] else given["backend"],
        numbers=given["device"],
        memory=given["gpu_memory"],
        threads=given["threads"],
        profile=given.get("profile", False),
        kernel_folder=kernel_folder,
        library=given["device_library"],
    )


def text_style(given: Given) -> TextStyle:
    """Return the options that say how to write the matches."""
    from mummergpu.output.matches.mummer import TextStyle

    return TextStyle(
        forward_coordinates=given["forward_coordinates"],
        four_columns=given["four_columns"],
        show_query_lengths=given["show_lengths"],
        show_sequences=given["show_sequences"],
        three_columns_for=three_columns_for(given),
    )


def refuse_clashing_files(inputs: Iterable[str], outputs: Mapping[str, str | None]) -> None:
    """Refuse an output that is also an input, or two outputs to the same file.

    Parameters
    ----------
    inputs : iterable of str
        The files to read.
    outputs : mapping of str to str or None
        The file of each output option; None if the option is not given.

    Raises
    ------
    OptionError
        If files clash; the message names the option of the output.
    click.UsageError
        If standard input is named twice.
    """
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


def _kind_to_build(given: Given) -> KmerOptions | TreeOptions:
    of_trees = _told_of_trees(given)
    if given["search"] == KmerOptions.search and of_trees:
        raise click.UsageError(f"{of_trees[0]} speaks of trees, and --search kmer has none")
    size, most = given["page_size"], given.get("max_occurrences")
    if most is not None and (of_trees or given["search"] == TreeOptions.search):
        told = of_trees[0] if of_trees else "--search tree"
        raise click.UsageError(f"--max-occurrences and {told} exclude each other")
    with_trees = bool(of_trees) or (size is not None and most is None)
    if given["search"] != AUTO:
        with_trees = given["search"] == TreeOptions.search
    if not with_trees:
        return KmerOptions(None if size == AUTO else size, max_occurrences=most)
    kind = TreeOptions(policy=_policy(given, lambda: _chosen(given).policy))
    if size is not None:
        kind = replace(kind, page_size=None if size == AUTO else size)
    if given["address_bits"]:
        kind = replace(kind, address_bits=int(given["address_bits"]))
    return replace(kind, builder=given["builder"]) if given["builder"] else kind


def _kind_of_file(given: Given, header: IndexHeader) -> KmerOptions | TreeOptions:
    """Return the options that an index file was built with; refuse options that differ."""
    path = given["reference"]
    if given["search"] not in (AUTO, header.search):
        raise OptionError("--search", f"the index '{path}' is for '{header.search}'")
    had: dict[str, Any] = {"page_size": header.page_size}
    most = given.get("max_occurrences")
    kind: KmerOptions | TreeOptions = KmerOptions(header.page_size, max_occurrences=most)
    if header.search == KmerOptions.search:
        if of_trees := _told_of_trees(given):
            raise OptionError(of_trees[0], f"speaks of trees, and the index '{path}' has none")
    else:
        if most is not None:
            raise OptionError("--max-occurrences", f"the index '{path}' has trees, not k-mers")
        had |= {"address_bits": str(header.address_bits), "builder": header.builder}
        built = Policy.from_code(header.policy)
        policy = _policy(given, lambda: built)
        # An index does not depend on textures.
        textures = ("query_texture", "reference_texture", "tree_texture")
        if replace(policy, **{name: getattr(built, name) for name in textures}) != built:
            raise OptionError("--policy", f"the index '{path}' is laid out for '{built.code}'")
        kind = TreeOptions(header.page_size, header.address_bits, header.builder, policy)
    for name, value in had.items():
        if given[name] not in (None, value):
            raise OptionError(_written(name), f"the index '{path}' was built with {value}")
    return kind


def _told_of_trees(given: Given) -> list[str]:
    """Return the given options that make sense only with trees, as written."""
    # A flag of the policy is about trees even if it is switched off.
    told = [
        name
        for name in _OF_TREES
        if given.get(name) or (name in LETTERS and given.get(name) is False)
    ]
    return [_written(name) for name in told]


def policy_reason(given: Given) -> str | None:
    """Return where the policy of the trees is from, or None if the user has named it."""
    if given["policy"] not in (None, AUTO):
        return None
    return "that of the index" if is_index(given["reference"]) else _chosen(given).reason


def _chosen(given: Given) -> Choice:
    """Return the policy for a run whose options name none."""
    from mummergpu.cli.tuned_policies import choose_for

    return choose_for(
        "cpu" if given.get("cpu") else given.get("backend", AUTO),
        _first_device(given),
        given.get("device_library", AUTO),
        given["reference"],
        tuple(given.get("query", ())),
        given["min_length"],
    )


def _first_device(given: Given) -> int:
    """Return the number of the first GPU, whose tuned policy the others take too."""
    numbers: tuple[int, ...] | None = given.get("device")
    return 0 if numbers is None else numbers[0]


def _policy(given: Given, default: Callable[[], Policy]) -> Policy:
    """Return the policy of the code, or the default, changed by the flags."""
    code = given["policy"]
    policy = default() if code in (None, AUTO) else Policy.from_code(code)
    flags = {name: getattr(policy, name) for name in LETTERS}
    flags.update({name: given[name] for name in LETTERS if given[name] is not None})
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
