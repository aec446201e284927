"""The options of a run, given flat: tests name only what matters to them."""

from dataclasses import fields

from mummergpu.index.options import IndexOptions, KmerOptions, TreeOptions
from mummergpu.matching.options import DeviceOptions, SearchOptions
from mummergpu.output.options import TextStyle
from mummergpu.output.targets import OutputTarget
from mummergpu.pipeline.options import BuildOptions, MatchOptions

KINDS = {"kmer": KmerOptions, "tree": TreeOptions}
OF_TREES_ALONE = ("address_bits", "policy")
DEVICE_NAMES = {"device": "number", "gpu_memory": "memory", "device_library": "library"}
"""Options of a device that need another name among all others."""


def take(told, kind, *left_out):
    """Take out what is told of the fields of a class."""
    names = {field.name for field in fields(kind)} - set(left_out)
    return {name: told.pop(name) for name in names if name in told}


def index_options(search="tree", **told):
    """How an index is built, by the fields of the options of its kind and of all kinds."""
    common = take(told, IndexOptions)
    if search == "kmer":
        for name in OF_TREES_ALONE:
            told.pop(name, None)
    return IndexOptions(kind=KINDS[search](**told), **common)


def device_options(told):
    """What a search runs on; takes what is told of it, but leaves the threads, which all share."""
    found = {own: told.pop(name) for name, own in DEVICE_NAMES.items() if name in told}
    found |= {name: told[name] for name in ("threads",) if name in told}
    return DeviceOptions(**found, **take(told, DeviceOptions, "number", "memory", "threads"))


def match_options(reference, queries, output="-", **told):
    """What the main job is told, by the fields of all its options; trees unless told otherwise."""
    parts = {"style": TextStyle(**take(told, TextStyle)), "device": device_options(told)}
    length = {name: told[name] for name in ("minimum_length",) if name in told}
    parts["search"] = SearchOptions(**length, **take(told, SearchOptions, "minimum_length"))
    parts |= take(told, MatchOptions, "search")
    parts["index"] = index_options(**told)
    return MatchOptions(reference, queries, (OutputTarget(output),), **parts)


def build_options(reference, output, threads=1, **told):
    """What the making of an index is told."""
    return BuildOptions(reference, output, threads, index_options(**told))


def told_value(options, name):
    """The value of an option by the name that `match_options` takes."""
    own = DEVICE_NAMES.get(name, name)
    parts = [options, options.search, options.index, options.index.kind, options.style]
    parts = [options.device] if own != name else [*parts, options.device]
    found = [getattr(part, own) for part in parts if hasattr(part, own) and part is not None]
    assert found, f"there is no option {name}"
    return found[0]
