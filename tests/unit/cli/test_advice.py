"""Messages that name an option: each command that can show one has the option."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import mummergpu
from mummergpu.cli.main import commands
from mummergpu.cli.option_types import written

PACKAGE: Final = Path(mummergpu.__file__).parent
ROOMS: Final = ("input", "index", "matching", "mapping", "viterbi", "cuda", "pipeline", "output")

SEARCHES: Final = ("match", "map", "align")
"""The commands that may show what a module says that is not listed below."""

SHOWN_BY: Final = {
    "index/tree/policy.py": ("match", "index"),
    "index/tree": ("match", "index", "sweep"),
    "index/tree_index.py": ("match", "index"),
    "matching/tree": ("match", "sweep"),
    "index/kmer_index.py": ("match", "align"),
    "mapping/genomes": ("align",),
    "mapping/options.py": ("map",),
    "input/blocks/protein_rules.py": ("hmmsearch", "hmmscan"),
    "input/blocks/proteins.py": ("hmmsearch", "hmmscan"),
    "input/records/file_records.py": ("hmmsearch", "hmmscan"),
    "output/model_values.py": ("hmm",),
    "pipeline/evaluate_models.py": ("hmm",),
    "pipeline/profile_options.py": ("hmmsearch", "hmmscan"),
    "output/alignments": ("map",),
    "output/genomes/sink.py": ("align",),
    "output/open_sink.py": ("map",),
    "output/options.py": ("map",),
    "output/sorting": ("map",),
    "output/matches/mummer.py": ("match",),
    "output/formats.py": ("align",),
    "output/matches/picture_sink.py": ("plot",),
    "pipeline/align_options.py": ("align",),
    "pipeline/build_index.py": ("index",),
    "pipeline/align_genomes.py": ("align",),
    "pipeline/map_options.py": ("map",),
    "pipeline/options.py": ("match",),
    "pipeline/map_reads.py": ("map",),
    "pipeline/matrix_opening.py": ("align",),
}
"""The commands that may show what a module, or those of a folder, say."""

ADVICE: Final = re.compile(r"(?<![\w'-])--[a-z][a-z_-]+")
OF_A_COMMAND: Final = re.compile(r"'mummergpu [a-z]+[^']*'|pip install [^;]*")


@cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


def modules():
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            yield path.relative_to(PACKAGE).as_posix(), path


def messages_of(path):
    """All texts of a module; those that are formatted have a question mark for each value."""
    nodes = nodes_of(path)
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def docstrings_of(path):
    """The texts that describe a module, and what comes before them in it."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return {
        str(one.value.value)
        for node in nodes_of(path)
        if isinstance(node, kinds)
        for one in node.body
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
    }


def commands_of(path):
    known = [verbs for place, verbs in SHOWN_BY.items() if f"{path}/".startswith(f"{place}/")]
    return known[0] if known else SEARCHES


def options_of(verb):
    command = commands.commands[verb]
    return {name for option in command.params for name in (*option.opts, *option.secondary_opts)}


def advised():
    """The modules and the options that their messages name."""
    found = set()
    for place, path in modules():
        for text in set(messages_of(path)) - docstrings_of(path):
            found |= {(place, option) for option in ADVICE.findall(OF_A_COMMAND.sub("", text))}
    return sorted(found)


def test_each_command_has_the_options_that_its_messages_name():
    found = advised()
    assert len(found) > 10
    for place, option in found:
        # Those of nvrtc.py are options of the compiler.
        for verb in commands_of(place) if place != "cuda/nvrtc.py" else ():
            assert option in options_of(verb), f"{place} advises {option}, which '{verb}' lacks"


def refused():
    """The modules, and the parameters that they name first in an error of options."""
    found = set()
    for place, path in modules():
        for node in nodes_of(path):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in (
                "OptionError",
                "OptionClashError",
                "check_int",
                "check_factor",
                "check_bool",
            ):
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add((place, first.value))
    return sorted(found)


def test_parameters_that_errors_name_are_options_as_well():
    found = refused()
    assert len(found) > 20
    for place, option in found:
        for verb in commands_of(place):
            command = commands.commands[verb]
            with command.make_context(verb, ["r", "q"], resilient_parsing=True) as context:
                name = written(option, context)
            if name.startswith("-"):
                assert name.split()[0] in options_of(verb), f"{place}: '{verb}' lacks {name}"
