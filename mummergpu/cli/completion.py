"""The command ``completion``: the scripts of shells, which ask this program for words."""

from __future__ import annotations

import click

from mummergpu.cli.exit_on_signal import COMPLETION_VARIABLE, PROGRAM
from mummergpu.cli.option_types import HELP_OPTIONS


@click.command("completion", context_settings=HELP_OPTIONS)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete mummergpu's commands, options and files.

    For bash, add this line to ~/.bashrc (for zsh the same with zsh, to ~/.zshrc):

        source <(mummergpu completion bash)

    For fish: mummergpu completion fish > ~/.config/fish/completions/mummergpu.fish
    """
    context.exit(answer(context.find_root().command, f"{shell}_source"))


def answer(commands: click.Command, instruction: str) -> int:
    """Print a script, or the words that can complete what the user has typed."""
    from click.shell_completion import shell_complete

    return shell_complete(commands, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
