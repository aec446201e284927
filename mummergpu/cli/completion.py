"""Completion in a shell: the command ``completion``, and the answers to its scripts.

A completion script runs this program. One environment variable names the shell, and others hold
the words typed so far. The protocol is click's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from mummergpu.cli.endings import PROGRAM
from mummergpu.cli.option_types import HELP_OPTIONS

if TYPE_CHECKING:
    from click.shell_completion import ShellComplete

VARIABLE: Final = f"_{PROGRAM.upper()}_COMPLETE"
"""The environment variable that a script sets, for example to ``bash_complete``."""

SHELLS: Final = ("bash", "zsh", "fish")

# click's own script offers files only if it has nothing else to offer, but the first word can be
# a command or a file.
_BASH: Final = """\
%(complete_func)s() {
    local IFS=$'\\n' kind value
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            file) compopt -o filenames; COMPREPLY+=($(compgen -f -- "$value")) ;;
            dir) compopt -o filenames; COMPREPLY+=($(compgen -d -- "$value")) ;;
        esac
    done < <(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
        %(complete_var)s=bash_complete "$1" 2> /dev/null)
}
complete -F %(complete_func)s %(prog_name)s
"""


@click.command("completion", context_settings=HELP_OPTIONS)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete mummergpu's commands, options and files.

    For bash, add this line to ~/.bashrc (for zsh the same with zsh, to ~/.zshrc):

        source <(mummergpu completion bash)

    For fish: mummergpu completion fish > ~/.config/fish/completions/mummergpu.fish
    """
    source = _shell_complete(shell, context.find_root().command)
    # click's own script for bash is not used: click would first run bash to ask for its version.
    click.echo(_BASH % source.source_vars() if shell == "bash" else source.source(), nl=False)


def answer(commands: click.Command, instruction: str) -> None:
    """Print the words that can complete what the user has typed."""
    shell, _, what = instruction.partition("_")
    if shell not in SHELLS or what != "complete":
        raise click.UsageError(f"{VARIABLE}: '{instruction}' is not a shell and '_complete'")
    asked = _shell_complete(shell, commands)
    words, incomplete = asked.get_completion_args()
    items = asked.get_completions(_joined(words), incomplete)
    click.echo("\n".join(map(asked.format_completion, items)))


def _joined(words: list[str]) -> list[str]:
    """Return the words with each option joined to its value again; bash splits them at '='.

    The last word loses its '=' if it is an option without a value, because the value is what the
    user wants to complete.
    """
    joined: list[str] = []
    for word in words:
        if joined and joined[-1].startswith("--") and (word == "=" or joined[-1].endswith("=")):
            joined[-1] += word
        else:
            joined.append(word)
    return [*joined[:-1], *(word.removesuffix("=") for word in joined[-1:])]


def _shell_complete(shell: str, commands: click.Command) -> ShellComplete:
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    classes = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    return classes[shell](commands, {}, PROGRAM, VARIABLE)
