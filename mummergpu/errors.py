"""The exceptions that the input, the options or the machine can cause.

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

    Parameters
    ----------
    message : str
        What is wrong, without the file and the line.
    path : str
        The file as the user named it ("-" is standard input).
    line : int, optional
        The line, counted from 1, if the parser knows it.
    record : str, optional
        The name of the record, if it is known.
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

    Parameters
    ----------
    message : str
        What is wrong, without the place.
    path : str
        The file as the user named it.
    line, column : int, optional
        The place, both counted from 1, if the fault has one.
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
    """An output cannot be opened, written, flushed or renamed.

    Parameters
    ----------
    message : str
        What is wrong, without the file.
    path : str
        The output as the user named it ("-" is standard output).
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message, path)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class OptionError(MummergpuError):
    """An option, or a combination of options, makes no sense.

    Parameters
    ----------
    option : str
        The parameter in Python; the command writes its own option for it, as ``--seed-length`` for
        ``seed_length``. What is only an option of the command may be written as it is.
    message : str
        What is wrong with it.
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

    Parameters
    ----------
    option : str
        The parameter in Python; its value may follow after ``=``.
    other : str
        That of the other option, in the same way.
    message : str
        Why, for programs: the command says only that they exclude each other.
    """

    def __init__(self, option: str, other: str, message: str) -> None:
        super().__init__(option.partition("=")[0], message)
        self.args = (option, other, message)
        self.first = option
        self.other = other


class MummerUsageError(MummergpuError):
    """A command line of MUMmer's ``mummer`` or ``nucmer`` is one that the program refuses.

    Its exit code is the program's, which has no other for wrong usage. A command line of ``nucmer``
    is refused, too, if it asks for what cannot be done.

    Parameters
    ----------
    message : str
        What is wrong with it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BackendError(MummergpuError):
    """The user asked for a backend that does not work on this machine.

    Parameters
    ----------
    backend : str
        The name of the backend, as in ``--backend``.
    message : str
        What is missing and how to get it.
    """

    def __init__(self, backend: str, message: str) -> None:
        super().__init__(backend, message)
        self.backend = backend
        self.message = message

    def __str__(self) -> str:
        return f"backend '{self.backend}': {self.message}"


class ExportError(MummergpuError):
    """An array on a device cannot be handed to another library in the way that it asks for.

    Parameters
    ----------
    message : str
        What is asked for, and what there is.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"an array on a device: {self.message}"


class LibraryError(MummergpuError):
    """A library that only some commands need is not installed, or does not work.

    Parameters
    ----------
    purpose : str
        What needs it.
    library : str
        The name of the library for pip.
    extra : str
        The extra of this package that installs it.
    problem : str
        Why it cannot be used, in one line.
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
    """Variables of the environment set a library up in a way that this package cannot use.

    Parameters
    ----------
    names : list of str
        The variables, or the file of settings.
    problem : str
        What is wrong, in one line.
    """

    def __init__(self, names: list[str], problem: str) -> None:
        super().__init__(names, problem)
        self.names = names
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem}: unset {', '.join(self.names)}"


class ClusterError(MummergpuError):
    """The machines of a cluster cannot be used, or have not done their work.

    Parameters
    ----------
    cluster : str
        The cluster as the user named it, or the address of one of its workers.
    message : str
        What is wrong.
    """

    def __init__(self, cluster: str, message: str) -> None:
        super().__init__(cluster, message)
        self.cluster = cluster
        self.message = message

    def __str__(self) -> str:
        return f"{self.cluster}: {self.message}"
