"""What earlier versions had ends with a line that says what to use instead."""

import pytest

from mummergpu.cli.main import MAIN_VERB, commands, main
from mummergpu.cli.removed_options import AUTO_POLICY, REMOVED_COMMANDS, REMOVED_OPTIONS

OPTIONS = [(verb, name) for verb, options in REMOVED_OPTIONS.items() for name in options]


@pytest.mark.parametrize(("verb", "name"), OPTIONS)
def test_a_removed_option_names_what_to_use(verb, name, capsys):
    known = {spelling for option in commands.commands[verb].params for spelling in option.opts}
    assert name not in known
    # The option may stand behind the files, with a value or without one.
    value = f"{name}8" if len(name) == 2 else f"{name}=x"
    for words in (["a.fa", "b.fa", name], [name, "a.fa", "b.fa"], [value, "a.fa", "b.fa"]):
        assert main(words if verb == MAIN_VERB else [verb, *words]) == 2
        error = capsys.readouterr().err
        assert f"{name} was removed: {REMOVED_OPTIONS[verb][name]}" in error
        assert error.count("\n") == 1


@pytest.mark.parametrize("verb", REMOVED_COMMANDS)
def test_a_removed_command_names_what_to_use(verb, capsys):
    assert verb not in commands.commands
    assert main([verb, "a.fa", "b.fa"]) == 2
    assert f"'{verb}' was removed: {REMOVED_COMMANDS[verb]}" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["a.fa b.fa", "index a.fa -o a.mgi"])
def test_a_removed_value_names_what_to_use(words, capsys):
    assert main([*words.split(), "--policy", "auto"]) == 2
    error = capsys.readouterr().err
    assert AUTO_POLICY in error
    assert error.count("\n") == 1
