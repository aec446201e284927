"""Rules of the options: refuse options that clash, and make the options of the jobs.

Modules that need numpy are imported in functions, while a device starts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.option_types import AUTO, Params, given
from mummergpu.errors import OptionError
from mummergpu.index.tree.policy import DEFAULT_POLICY, LETTERS, Policy
from mummergpu.output.formats import SAM_FORMATS, RowKind, targets_of
from mummergpu.output.targets import DEFAULT_FORMAT, OutputTarget
from mummergpu.runtime.cache_dir import cache_folder
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.index.format import IndexHeader
    from mummergpu.index.options import IndexOptions, KmerOptions, TreeOptions
    from mummergpu.matching.options import DeviceOptions, SearchOptions
    from mummergpu.output.options import SamOptions, TextStyle
    from mummergpu.pipeline.downstream_presets import TextRequest

_EXCLUSIVE: Final = (
    {"maxmatch": "-maxmatch", "mumreference": "-mumreference", "mum": "-mum"},
    {"both": "-b", "reverse": "-r"},
    {"forward": "-f", "reverse": "-r"},
    {"verbose": "-v", "quiet": "-q"},
)
"""Flags that exclude each other, as written; a command may have only some of them."""

_OF_SAM: Final = {
    "read_group": "--read-group",
    "primary_only": "--primary-only",
    "max_hits": "--max-hits",
    "secondary_seq": "--secondary-seq",
}
_OF_TEXT: Final = {"four_columns": "-F", "show_lengths": "-L", "show_sequences": "-s"}
_OF_TREES: Final = ("policy", *LETTERS, "address_bits", "profile")

NO_GROUP: Final = "none"
"""The word, in place of a read group line, for no read group."""


def refuse_exclusive(params: Params) -> None:
    """Refuse flags that exclude each other in every command that has them."""
    for group in _EXCLUSIVE:
        chosen = [word for name, word in group.items() if params.get(name)]
        if len(chosen) > 1:
            raise click.UsageError(f"{chosen[0]} and {chosen[1]} exclude each other")
    if params.get("cpu") and params["backend"] == "cuda":
        raise click.UsageError("-C and --backend cuda exclude each other")


def text_request(params: Params) -> TextRequest:
    """Return which matches are written as text, and how, including the needs of ``--for``."""
    from mummergpu.pipeline.downstream_presets import TextRequest, with_preset

    refuse_exclusive(params)
    strands = next((word for word in ("reverse", "both") if params[word]), None)
    mode = next((word for word in ("maxmatch", "mumreference", "mum") if params[word]), None)
    asked, program = TextRequest(strands, mode, text_style(params)), params["for_program"]
    # Only programs depend on formats; other files are checked later.
    formats = [] if program is None else [target.format for target in output_targets(params)]
    request = with_preset(program, asked, formats)
    if request.style.forward_coordinates and request.strands is None:
        raise click.UsageError("-c requires -b or -r")
    return request


def search_options(params: Params, strands: str, mode: str) -> SearchOptions:
    """Return the options of the search."""
    from mummergpu.matching.options import SearchOptions

    return SearchOptions.of_words(min_length_of(params), strands, mode, params["block_size"])


def min_length_of(params: Params) -> int:
    """Return the minimum length of matches."""
    from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH

    length: int | None = params["min_length"]
    return DEFAULT_MINIMUM_LENGTH if length is None else length


def strands_of(params: Params, usual: str = "forward") -> str:
    """Return the word for the strands to search; the `usual` one if no option names them."""
    asked = (word for word in ("reverse", "both", "forward") if params.get(word))
    return next(asked, usual)


def run_options(params: Params, command: str) -> dict[str, Any]:
    """Return the fields of `pipeline.options.RunOptions`."""
    same = {name: params[name] for name in ("threads", "verify", "no_empty")}
    device = device_options(params)
    return {"reference_path": params["reference"], "device": device, "command": command, **same}


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
        filter_policy=params.get("filter_policy", AUTO),
    )


def text_style(params: Params) -> TextStyle:
    """Return the options of MUMmer's text."""
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
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            return status.st_dev, status.st_ino
    return None


def sam_options(params: Params) -> SamOptions:
    """Return the options of SAM and BAM."""
    from mummergpu.output.options import SamOptions, read_group_of, usual_read_group

    given_names = [name for name in _OF_SAM if params[name] not in (None, False)]
    if params["primary_only"]:
        for name in ("max_hits", "secondary_seq"):
            if name in given_names:
                raise click.UsageError(f"--primary-only and {_OF_SAM[name]} exclude each other")
    formats = {target.format for target in output_targets(params)}
    is_sam = bool(formats & SAM_FORMATS)
    if given_names and not is_sam:
        option = _OF_SAM[given_names[0]]
        raise click.UsageError(f"{option} is for SAM and BAM, and no output is one of them")
    group, text = None, params["read_group"]
    if is_sam and text != NO_GROUP:
        group = usual_read_group(params["query"]) if text is None else read_group_of(text)
    max_hits = 1 if params["primary_only"] else params["max_hits"]
    return SamOptions(group, max_hits, params["secondary_seq"])


def output_targets(params: Params) -> tuple[OutputTarget, ...]:
    """Return the files of matches, each with its format; refuse options of text if none is text.

    ``-c`` is not refused: every other format has positions on the forward strand.
    """
    targets = main_targets(params, RowKind.MATCHES)
    if all(target.format != DEFAULT_FORMAT for target in targets):
        for name, option in _OF_TEXT.items():
            if params[name]:
                raise click.UsageError(
                    f"{option} is for MUMmer's text, and no output is in that format"
                )
    return targets


def main_targets(params: Params, rows: RowKind) -> tuple[OutputTarget, ...]:
    """Return the files of ``-o``, each with its format: standard output if there is none."""
    paths, name = params["output"] or (STANDARD_OUTPUT,), params["format_name"]
    if name is not None and len(paths) > 1:
        raise click.UsageError("--format is for one -o; several take theirs from their names")
    return targets_of(paths, name, rows)


def main_files(params: Params) -> dict[str, str | None]:
    """Return the files of ``-o``, which may be repeated, by the option's name in errors."""
    paths = params["output"] or (STANDARD_OUTPUT,)
    return {
        "--output" if number == 1 else f"--output, number {number}": path
        for number, path in enumerate(paths, 1)
    }


def index_options(params: Params) -> IndexOptions:
    """Return the options for building the index, or those that the index file was built with.

    An index file supplies the options that are not given, and refuses options that differ. A
    reference is searched with trees if an option of trees is given, otherwise with k-mers.
    """
    from mummergpu.index.format import is_index, read_header
    from mummergpu.index.options import IndexOptions
    from mummergpu.input.bytes.files import reading

    path = params["reference"]
    if is_index(path):
        with reading(path), open(path, "rb", buffering=0) as file:
            header = read_header(file, path)
        kind = _kind_of_file(params, header)
    else:
        kind = _kind_to_build(params)
    return IndexOptions(min_length_of(params), kind, params["max_memory"])


def tree_options(params: Params, policy: Policy = DEFAULT_POLICY) -> TreeOptions:
    """Return the options of the trees to build."""
    from mummergpu.index.options import TreeOptions

    bits = params["address_bits"]
    trees = TreeOptions(address_bits=int(bits) if bits else None, policy=policy)
    if (size := params["page_size"]) is None:
        return trees
    return replace(trees, page_size=None if size == AUTO else size)


def _kind_to_build(params: Params) -> KmerOptions | TreeOptions:
    from mummergpu.index.options import KmerOptions

    of_trees = _options_of_trees(params)
    if params["search"] == KmerOptions.search and of_trees:
        raise click.UsageError(f"{of_trees[0]} applies only to --search tree")
    size = params["page_size"]
    with_trees = bool(of_trees) or size is not None
    if params["search"] != AUTO:
        with_trees = params["search"] != KmerOptions.search
    if not with_trees:
        return KmerOptions(None if size == AUTO else size)
    # Flags given one by one describe the whole policy, as in MUMmerGPU 2.0.
    with_flags = params["policy"] is None and bool(given(params, *LETTERS))
    return tree_options(params, _policy(params, Policy() if with_flags else DEFAULT_POLICY))


def _kind_of_file(params: Params, header: IndexHeader) -> KmerOptions | TreeOptions:
    """Return the options that an index file was built with; refuse options that differ."""
    from mummergpu.index.options import KmerOptions, TreeOptions

    path = params["reference"]
    if params["search"] not in (AUTO, header.search):
        raise OptionError("--search", f"the index '{path}' is for '{header.search}'")
    had: dict[str, Any] = {"page_size": header.page_size}
    kind: KmerOptions | TreeOptions = KmerOptions(header.page_size)
    if header.search == KmerOptions.search:
        if of_trees := _options_of_trees(params):
            raise OptionError(of_trees[0], f"applies only to trees, and '{path}' has none")
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
            raise OptionError(_dashed(name), f"the index '{path}' was built with {value}")
    return kind


def _options_of_trees(params: Params) -> list[str]:
    """Return the given options that make sense only with trees, as written."""
    # A flag of the policy is about trees even if it is switched off.
    return [
        _dashed(name)
        for name in _OF_TREES
        if params.get(name) or (name in LETTERS and params.get(name) is False)
    ]


def _policy(params: Params, default: Policy) -> Policy:
    """Return the policy of the code, or the default, changed by the flags."""
    code = params["policy"]
    policy = default if code is None else Policy.from_code(code)
    return replace(policy, **given(params, *LETTERS))


def _dashed(name: str) -> str:
    return "--" + name.replace("_", "-")
