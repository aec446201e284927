"""Rules of the options that say what is searched: the index to build, or that of a file.

The commands import this module when they run: it brings what reads files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import click

from mummergpu.cli.option_rules import Params
from mummergpu.cli.option_types import AUTO
from mummergpu.errors import OptionError
from mummergpu.index.format import IndexHeader, is_index, read_header
from mummergpu.index.options import IndexOptions, KmerOptions, TreeOptions
from mummergpu.index.tree.policy import DEFAULT_POLICY, LETTERS, Policy
from mummergpu.input.bytes.files import reading

_OF_TREES: Final = ("policy", *LETTERS, "address_bits", "profile")


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


def _kind_to_build(params: Params) -> KmerOptions | TreeOptions:
    of_trees = _told_of_trees(params)
    if params["search"] == KmerOptions.search and of_trees:
        raise click.UsageError(f"{of_trees[0]} speaks of trees, and --search kmer has none")
    size = params["page_size"]
    with_trees = bool(of_trees) or size is not None
    if params["search"] != AUTO:
        with_trees = params["search"] == TreeOptions.search
    if not with_trees:
        return KmerOptions(None if size == AUTO else size)
    kind = TreeOptions(policy=_policy(params, DEFAULT_POLICY))
    if size is not None:
        kind = replace(kind, page_size=None if size == AUTO else size)
    if params["address_bits"]:
        kind = replace(kind, address_bits=int(params["address_bits"]))
    return kind


def _kind_of_file(params: Params, header: IndexHeader) -> KmerOptions | TreeOptions:
    """Return the options that an index file was built with; refuse options that differ."""
    path = params["reference"]
    if params["search"] not in (AUTO, header.search):
        raise OptionError("--search", f"the index '{path}' is for '{header.search}'")
    had: dict[str, Any] = {"page_size": header.page_size}
    kind: KmerOptions | TreeOptions = KmerOptions(header.page_size)
    if header.search == KmerOptions.search:
        if of_trees := _told_of_trees(params):
            raise OptionError(of_trees[0], f"speaks of trees, and the index '{path}' has none")
    else:
        had["address_bits"] = str(header.address_bits)
        built = Policy.from_code(header.policy)
        policy = _policy(params, built)
        # An index does not depend on textures.
        textures = ("query_texture", "reference_texture", "tree_texture")
        if replace(policy, **{name: getattr(built, name) for name in textures}) != built:
            raise OptionError("--policy", f"the index '{path}' is laid out for '{built.code}'")
        kind = TreeOptions(header.page_size, header.address_bits, policy)
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


def _policy(params: Params, default: Policy) -> Policy:
    """Return the policy of the code, or the default, changed by the flags."""
    code = params["policy"]
    policy = default if code is None else Policy.from_code(code)
    flags = {name: getattr(policy, name) for name in LETTERS}
    flags.update({name: params[name] for name in LETTERS if params[name] is not None})
    return Policy(**flags)


def _written(name: str) -> str:
    """Return an option as it is written on the command line."""
    return "--" + name.replace("_", "-")
