"""The files about a run: ``--stats`` and ``--multiqc``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from mummergpu.errors import OptionError
from mummergpu.runtime.output_file import OutputFile

if TYPE_CHECKING:
    from mummergpu.runtime.stats import Stats

    Content = Callable[[Stats], bytes]
    """A function that makes the content of a file when the run has ended."""


class RunReports:
    """The files of the reports of a run: named first, opened before it, and written after it."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._contents: list[tuple[str, str, Content]] = []
        if (path := params["stats"]) is not None:
            self._contents.append(("--stats", path, lambda stats: stats.as_json()))
        if (path := params.get("multiqc")) is not None:
            from mummergpu.output import multiqc

            sample = multiqc.sample_of(path)
            if not path.endswith(multiqc.SUFFIX) or not sample:
                message = (
                    f"MultiQC finds a file if it is named SAMPLE{multiqc.SUFFIX}, and not '{path}'"
                )
                raise OptionError("--multiqc", message)
            content = partial(multiqc.general_statistics, sample)
            self._contents.append(("--multiqc", path, content))
        self._files: list[tuple[OutputFile, Content]] = []

    @property
    def paths(self) -> dict[str, str | None]:
        """The files, by the options that name them."""
        return {option: path for option, path, _ in self._contents}

    def open(self, stack: ExitStack) -> None:
        """Open the files; they appear when the stack is closed."""
        for _, path, content in self._contents:
            self._files.append((stack.enter_context(OutputFile(path)), content))

    def write(self, stats: Stats) -> None:
        """Write the files."""
        for file, content in self._files:
            file.write(content(stats))
