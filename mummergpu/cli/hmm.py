"""The command ``hmm``: compute hidden Markov models that a program describes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import click

from mummergpu.cli.option_rules import device_options
from mummergpu.cli.option_types import (
    GPU_OPTIONS,
    INFORMATION,
    MAIN_OPTIONS,
    MESSAGE_OPTIONS,
    SectionedCommand,
    Sections,
    choice,
    file_option,
    files,
    flag,
    option,
)
from mummergpu.cli.run_verb import CommandRun
from mummergpu.runtime.output_file import STANDARD_OUTPUT

_FORMATS: Final = {
    "tsv": "Write a line of tab-separated values for each sequence; default on standard output.",
    "json": "Write a line of JSON for each sequence, null for an impossible one.",
    "parquet": "Write Parquet.",
    "bed": "Write the segments of the states of the first traceback as BED.",
}


def _format_of(output: str) -> str:
    """Return the format for the ending of a name."""
    suffix = os.path.splitext(output)[1].lower()
    if suffix in ("", ".txt"):
        return "tsv"
    if suffix[1:] not in _FORMATS:
        known = ", ".join(f".{name}" for name in _FORMATS)
        text = f"no format has names that end in '{suffix}': choose {known}, or one with --tsv"
        raise click.UsageError(f"-o {output}: {text} and the like")
    return suffix[1:]


def _letters(
    _context: click.Context, _option: click.Parameter, values: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Return letters, and the symbols that each of them stands for."""
    letters = []
    for value in values:
        letter, _, symbols = value.partition("=")
        if len(letter) != 1 or not letter.isascii() or not symbols:
            raise click.BadParameter(f"'{value}' is no letter and its symbols, as N=* or R=AG")
        letters.append((letter, symbols))
    return tuple(letters)


def _convert(params: dict[str, Any]) -> None:
    """Convert profiles to a program, or a program to profiles."""
    given = [name for name in ("from_profile", "to_profile") if params[name] is not None]
    words = ["--" + name.replace("_", "-") for name in given]
    if len(given) > 1:
        raise click.UsageError(f"{words[0]} and {words[1]} exclude each other")
    if params["program"] is not None:
        raise click.UsageError(f"{words[0]} computes nothing: leave PROGRAM and SEQUENCES out")
    source, output = params[given[0]], params["output"]
    run = CommandRun({**params, "cpu": False}, [source], {"-o": output})
    from mummergpu.pipeline import convert_profiles

    with run.reported("hmm") as (context, _):
        if given[0] == "from_profile":
            convert_profiles.profiles_to_program(source, output)
        else:
            convert_profiles.program_to_profile(source, output)
        context.executor.shutdown()


_SECTIONS: Final[Sections] = {
    "Output": [
        file_option(
            "-o --output output",
            "Write to FILE, in the format of its suffix.  [default: standard output]",
            default=STANDARD_OUTPUT,
            show_default=False,
        ),
        *(flag(f"--{name} as_{name}", text) for name, text in _FORMATS.items()),
        option(
            "--null",
            "Report scores as log-odds: minus the forward score of this model of the program.",
            "MODEL",
        ),
    ],
    "Search": [
        option(
            "--any-letter",
            "LETTER is any of SYMBOLS, '*' for all of them: 'N=*', 'R=AG'. May be repeated.",
            "LETTER=SYMBOLS",
            callback=_letters,
            multiple=True,
        ),
        MAIN_OPTIONS["threads"],
        choice("--backend", ("cpu", "cuda"), "Compute scores and best paths on CPU or GPU.", "cpu"),
        *GPU_OPTIONS,
        flag("--double", "Compute sums on a GPU with 64 bits instead of 32."),
    ],
    "Conversion": [
        file_option(
            "--from-profile",
            "Write the profiles of a HMMER file as a program to -o, and compute nothing.",
        ),
        file_option(
            "--to-profile", "Write such a program as a HMMER file to -o, and compute nothing."
        ),
    ],
    "Reports": [MAIN_OPTIONS["stats"], *MESSAGE_OPTIONS],
    INFORMATION: [],
}


@click.command(
    "hmm",
    cls=SectionedCommand,
    arguments=[
        files("program", required=False, metavar="PROGRAM"),
        files("sequences", several=True, required=False, metavar="SEQUENCES..."),
    ],
    sections=_SECTIONS,
)
def hmm_command(**params: Any) -> None:
    """Run hidden Markov models that a program describes.

    PROGRAM declares models, and prints their viterbi, forward, backward or posterior for each of
    SEQUENCES: FASTA, FASTQ or one sequence per line, which may be compressed; '-' is standard
    input.

    Scores are natural logarithms: 'mummergpu hmm casino.hmm throws.txt'. The documentation
    describes the language, under "The language of hidden Markov models".
    """
    if params["from_profile"] is not None or params["to_profile"] is not None:
        _convert(params)
        return
    if params["program"] is None or not params["sequences"]:
        missing = "PROGRAM" if params["program"] is None else "SEQUENCES..."
        raise click.UsageError(f"Missing argument '{missing}'.")
    chosen = [name for name in _FORMATS if params[f"as_{name}"]]
    if len(chosen) > 1:
        raise click.UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other")

    inputs = [params["program"], *params["sequences"]]
    run = CommandRun(params, inputs, {"-o": params["output"]})
    from mummergpu.pipeline import evaluate_models

    options = evaluate_models.ModelRunOptions(
        params["program"],
        params["sequences"],
        params["output"],
        chosen[0] if chosen else _format_of(params["output"]),
        params["null"],
        params["threads"],
        device_options(params) if params["backend"] == "cuda" else None,
        params["double"],
        params["any_letter"],
    )
    with run.reported("hmm") as (context, _):
        evaluate_models.run(options, context)
