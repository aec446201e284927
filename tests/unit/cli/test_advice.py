"""Messages that name an option: each command that can show one has the option."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

from helpers.tables import table

import mummergpu
from mummergpu.cli.main import commands
from mummergpu.cli.option_types import written

PACKAGE: Final = Path(mummergpu.__file__).parent
ROOMS: Final = ("input", "index", "matching", "mapping", "viterbi", "cuda", "pipeline", "output")

SEARCHES: Final = ("match", "map", "align")
"""The commands that may show what a module says that is not listed below."""

SHOWN_BY = {place: verbs.split() for place, verbs in table(__file__)}
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
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    for node in joined:
        texts = (one.value if isinstance(one, ast.Constant) else "?" for one in node.values)
        yield "".join(map(str, texts))
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
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
    found, names = set(), "OptionError OptionClashError check_int check_factor check_bool".split()
    for place, path in modules():
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in names:
                first = getattr(node.args[0], "value", None)
                found |= {(place, first)} if isinstance(first, str) else set()
    return sorted(found)


def test_parameters_that_errors_name_are_options_as_well():
    found, checked = refused(), 0
    assert len(found) > 20
    for place, option in found:
        for verb in commands_of(place):
            command = commands.commands[verb]
            with command.make_context(verb, ["r", "q"], resilient_parsing=True) as context:
                name = written(option, context)
            if name.startswith("-"):
                checked += 1
                assert name.split()[0] in options_of(verb), f"{place}: '{verb}' lacks {name}"
    assert checked > 20
