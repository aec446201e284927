"""Converts files of profile HMMs to programs of models, and back."""

from __future__ import annotations

from mummergpu.errors import ModelError
from mummergpu.hmm.language.profile_programs import profile_text, program_of_profiles
from mummergpu.hmm.profiles import read_profiles
from mummergpu.pipeline.evaluate_models import read_program
from mummergpu.runtime.output_file import OutputFile


def profiles_to_program(path: str, output: str) -> None:
    """Write the profiles of a file as a program; raise `InputError` or `LibraryError`."""
    profiles = list(read_profiles(path))
    if not profiles:
        raise ModelError("no profile", path)
    with OutputFile(output) as file:
        file.write(program_of_profiles(profiles).encode())


def program_to_profile(path: str, output: str) -> None:
    """Write the models of a program as profiles, all but those named ``null``.

    `ModelError` is raised if one has another shape than `profiles_to_program` writes.
    """
    program = read_program(path)
    models = [model for name, model in program.models.items() if name != "null"]
    if not models:
        raise ModelError("no model of a profile", path)
    texts = [profile_text(model) for model in models]
    with OutputFile(output) as file:
        for text in texts:
            file.write(text)
