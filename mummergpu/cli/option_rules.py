"""What the options mean together: what is refused, and what one leaves to another."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from mummergpu.cli.option_types import AUTO
from mummergpu.errors import OptionError
from mummergpu.index.format import is_index, read_header
from mummergpu.index.tree.policy import DEFAULT_POLICY, LETTERS, Policy
from mummergpu.input.files import reading
from mummergpu.runtime.output_file import STANDARD_OUTPUT

PAGES_OF_TREES = 8 << 20
"""The paper's pages: the most bases that its addresses of 24 bits allow."""


def refuse_combinations(given: dict[str, Any]) -> None:
    """Refuse what MUMmer refuses to take together, and our own options that clash.

    Parameters
    ----------
    given : dict
        The options by their parameter names.

    Raises
    ------
    click.UsageError
        Names the two options.
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
    if given["cpu"] and given["backend"] == "cuda":
        raise click.UsageError("-C and --backend cuda exclude each other")


def take_from_index(given: dict[str, Any]) -> None:
    """Where the reference is an index file, let it say what was not said; refuse the rest.

    Parameters
    ----------
    given : dict
        The options by their parameter names. Those that say how an index is built become what
        the index has.

    Raises
    ------
    OptionError
        If an option asks for something else than the index has.
    InputError
        If the index cannot be read.
    """
    path = given["reference"]
    if not is_index(path):
        return
    with reading(path), open(path, "rb", buffering=0) as file:
        header = read_header(file, path)
    if given["search"] not in (AUTO, header.search):
        raise OptionError("--search", f"the index '{path}' is for '{header.search}'")
    if header.search == "sampled" and (told := options_of_trees(given)):
        raise OptionError(told[0], f"speaks of trees, and the index '{path}' has none")
    had: dict[str, Any] = {"page_size": header.page_size}
    if header.search == "tree":
        had |= {"address_bits": str(header.address_bits), "builder": header.builder}
        built = Policy.from_code(header.policy)
        policy = policy_of(given, built)
        # Textures are no part of an index.
        textures = ("query_texture", "reference_texture", "tree_texture")
        if replace(policy, **{name: getattr(built, name) for name in textures}) != built:
            raise OptionError("--policy", f"the index '{path}' is laid out for '{built.code}'")
        given.update(dict.fromkeys(LETTERS), policy=policy.code)
    for name, value in had.items():
        if given[name] not in (None, value):
            option = "--" + name.replace("_", "-")
            raise OptionError(option, f"the index '{path}' was built with {value}")
    given.update(had, search=header.search)


def options_of_trees(given: dict[str, Any]) -> list[str]:
    """Return the options among those given that make sense with trees alone.

    Parameters
    ----------
    given : dict
        The options by their parameter names.

    Returns
    -------
    list of str
        As they are written on the command line.
    """
    of_trees = ("policy", *LETTERS, "address_bits", "builder", "profile", "dot", "dump_tree")
    # A policy's flag that is switched off speaks of trees as well.
    told = [name for name in of_trees if given[name] or (name in LETTERS and given[name] is False)]
    return ["--" + name.replace("_", "-") for name in told]


def search_of(given: dict[str, Any]) -> str:
    """Return what is searched: ``tree`` or ``sampled``.

    Parameters
    ----------
    given : dict
        The options by their parameter names.

    Returns
    -------
    str
        What ``--search`` says; for ``auto``, ``tree`` just if an option speaks of trees.

    Raises
    ------
    click.UsageError
        If an option of trees is given although none is built.
    """
    told = options_of_trees(given)
    if given["search"] == "sampled" and told:
        raise click.UsageError(f"{told[0]} speaks of trees, and --search sampled has none")
    if given["search"] != AUTO:
        return str(given["search"])
    return "tree" if told or given["page_size"] is not None else "sampled"


def page_size_of(given: dict[str, Any], search: str) -> int | None:
    """Return the most bases of a page, or None for as many as memory allows.

    Parameters
    ----------
    given : dict
        The options by their parameter names.
    search : str
        What is searched (`search_of`).

    Returns
    -------
    int or None
        What was asked for; else the paper's pages for trees, and the largest for tables.
    """
    size = given["page_size"]
    if size is None:
        return PAGES_OF_TREES if search == "tree" else None
    return None if size == AUTO else int(size)


def policy_of(given: dict[str, Any], default: Policy = DEFAULT_POLICY) -> Policy:
    """Return the policy that the code and the flags make together.

    Parameters
    ----------
    given : dict
        The options by their parameter names.
    default : Policy
        What there is without a code.

    Returns
    -------
    Policy
        The code's, overruled by the flags.

    Raises
    ------
    OptionError
        If the code is not one.
    """
    code = given["policy"]
    policy = default if code is None else Policy.from_code(code)
    flags = {name: getattr(policy, name) for name in LETTERS}
    flags.update({name: given[name] for name in LETTERS if given[name] is not None})
    return Policy(**flags)


def refuse_clashing_files(given: dict[str, Any]) -> None:
    """Refuse to write over an input, or two outputs to the same place.

    Parameters
    ----------
    given : dict
        The options and files by their parameter names.

    Raises
    ------
    OptionError
        Names the output.
    click.UsageError
        If standard input is named twice.
    """
    inputs = [given["reference"], *given["query"]]
    if inputs.count("-") > 1:
        raise click.UsageError("standard input ('-') can be read only once")
    read = {identity: path for path in inputs if (identity := _regular_file(path))}
    seen: set[str] = set()
    for option in ("output", "stats", "dot", "dump_tree"):
        path = given[option]
        if path is None:
            continue
        name = "--" + option.replace("_", "-")
        if _regular_file(path) in read:
            raise OptionError(name, f"'{path}' is also an input")
        place = path if path == STANDARD_OUTPUT else os.path.realpath(path)
        if place in seen and place != os.devnull:
            raise OptionError(name, f"'{path}' is also another output")
        seen.add(place)


def _regular_file(path: str) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode):
            return found.st_dev, found.st_ino
    return None
