"""How the command writes the options that errors name by their parameters in Python."""

from __future__ import annotations

from typing import Any, Final

import click
from click.core import ParameterSource

from mummergpu.errors import OptionClashError, OptionError

_OTHER_NAMES: Final = {
    "deletion_extend": ("gap_extend",),
    "deletion_open": ("gap_open",),
    "end_bonus": ("clipping",),
    "equal_bases": ("eqx",),
    "extend": ("no_extend",),
    "format": ("format_name",),
    "header_lines": ("header",),
    "insertion_extend": ("gap_extend",),
    "insertion_open": ("gap_open",),
    "max_secondary": ("all_placements",),
    "mode": ("mum", "mumreference", "maxmatch"),
}
"""The options of the command that stand for a parameter with another name."""


def written(option: str, context: click.Context) -> str:
    """Return an option of an error as its user may have written it.

    Parameters
    ----------
    option : str
        The parameter, and its value after ``=`` if that matters; or what stands for itself.
    context : click.Context
        That of the command which the user gave.
    """
    name, equals, value = option.partition("=")
    names = (name, *_OTHER_NAMES.get(name, ()))
    known = [one for one in context.command.params if one.name in names]
    if not known:
        return "--" + option.replace("_", "-") if "_" in option else option
    told = (
        one
        for one in known
        if context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
    )
    found = next(told, known[0])
    if isinstance(found, click.Argument):
        return name.upper()
    if name == "min_length":
        # MUMmer and all advice write -l.
        return found.opts[0]
    return max(found.opts, key=lambda text: (text.startswith("--"), len(text))) + (
        f" {value}" if equals else ""
    )


class WordedCommand(click.Command):
    """A command whose errors name the options as it has them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except OptionClashError as clash:
            both = f"{written(clash.first, ctx)} and {written(clash.other, ctx)}"
            raise click.UsageError(f"{both} exclude each other", ctx) from clash
        except OptionError as error:
            error.option = written(error.option, ctx)
            raise
