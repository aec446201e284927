"""The exceptions caused by the input, the options or the machine.

Each exception keeps its data in attributes and formats itself as one line. Only the command
line catches these exceptions, prints them and chooses the exit code.
"""

from __future__ import annotations


class MummergpuError(Exception):
    """Base of all errors that are reported in one line, without a traceback.

    Attributes
    ----------
    exit_code : int
        The exit code of the process: 1, or 2 for wrong usage.
    """

    exit_code = 1


class InputError(MummergpuError):
    """A file cannot be read, or its content is wrong.

    `path` is the file as the user named it, "-" for standard input. `line` counts from 1; it and
    the name of the `record` are None where the parser does not know them.
    """

    def __init__(
        self, message: str, path: str, line: int | None = None, record: str | None = None
    ) -> None:
        super().__init__(message, path, line, record)
        self.message = message
        self.path = path
        self.line = line
        self.record = record

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        record = "" if self.record is None else f" (record '{self.record}')"
        return f"{place}: {self.message}{record}"


class ModelError(InputError):
    """A program in the language of hidden Markov models is wrong, or a model cannot be computed.

    `line` and `column` count from 1.
    """

    def __init__(
        self, message: str, path: str, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message, path, line)
        self.args = (message, path, line, column)
        self.column = column

    def __str__(self) -> str:
        places = (self.path, self.line, self.column)
        return ":".join(str(place) for place in places if place is not None) + f": {self.message}"


class OutputError(MummergpuError):
    """An output cannot be opened, written, flushed or renamed."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message, path)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class OptionError(MummergpuError):
    """An option, or a combination of options, makes no sense.

    `option` is the Python parameter, for which the command writes its own option, such as
    ``--seed-length`` for ``seed_length``. Options of the command alone are written as they are.
    """

    exit_code = 2

    def __init__(self, option: str, message: str) -> None:
        super().__init__(option, message)
        self.option = option
        self.message = message

    def __str__(self) -> str:
        return f"{self.option}: {self.message}"


class OptionClashError(OptionError):
    """Two options exclude each other.

    Both are Python parameters, perhaps with a value after ``=``. Python programs see the reason in
    `message`; the command says only that they exclude each other.
    """

    def __init__(self, option: str, other: str, message: str) -> None:
        super().__init__(option.partition("=")[0], message)
        self.args = (option, other, message)
        self.first = option
        self.other = other


class MummerUsageError(MummergpuError):
    """A command line of MUMmer's ``mummer`` or ``nucmer`` is invalid.

    The exit code is that of the MUMmer program, which has no other code for wrong usage. Command
    lines of ``nucmer`` are also refused if they need unsupported features.
    """


class BackendError(MummergpuError):
    """The user asked for a backend that does not work on this machine.

    `message` names the missing part and how to get it.
    """

    def __init__(self, backend: str, message: str) -> None:
        super().__init__(backend, message)
        self.backend = backend
        self.message = message

    def __str__(self) -> str:
        return f"backend '{self.backend}': {self.message}"


class ExportError(MummergpuError):
    """An array on a device cannot be passed to another library as that library requests."""

    def __str__(self) -> str:
        return f"an array on a device: {super().__str__()}"


class LibraryError(MummergpuError):
    """A library that only some commands need is not installed, or does not work.

    `purpose` needs `library`, a pip name, which `extra` of this package installs.
    """

    def __init__(self, purpose: str, library: str, extra: str, problem: str) -> None:
        super().__init__(purpose, library, extra, problem)
        self.purpose = purpose
        self.library = library
        self.extra = extra
        self.problem = problem

    def __str__(self) -> str:
        remedy = f"pip install 'mummergpu[{self.extra}]'"
        return f"{self.purpose} needs {self.library} ({remedy}): {self.problem}"


class VariableError(MummergpuError):
    """Environment variables, or a settings file, make a library unusable."""

    def __init__(self, names: list[str], problem: str) -> None:
        super().__init__(names, problem)
        self.names = names
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem}: unset {', '.join(self.names)}"


class ClusterError(MummergpuError):
    """The machines of a cluster cannot be used, or failed.

    `cluster` is as the user named it, or the address of one of its workers.
    """

    def __init__(self, cluster: str, message: str) -> None:
        super().__init__(cluster, message)
        self.cluster = cluster
        self.message = message

    def __str__(self) -> str:
        return f"{self.cluster}: {self.message}"
