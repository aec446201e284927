"""Write the list of what is compiled, mummergpu/runtime/compiled/signatures.tsv.

    python packaging/list_signatures.py

It runs the commands of a warm-up, and notes which functions each of them calls, and with which
types. Run it where a compiled function, its arguments or the commands of the warm-up have changed.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from mummergpu.cli.main import commands
from mummergpu.cli.warmup_commands import run_all
from mummergpu.runtime.compiled.native import function
from mummergpu.runtime.compiled.native.values import UnsuitedValueError, flatten
from mummergpu.runtime.compiled.signatures import PATH, Signature, common_marks, marks_of

Runs = dict[tuple[str, str, str], set[frozenset[str]]]


def record() -> list[Signature]:
    """Run the warm-up, and return what it has called that can be kept, the largest code first."""
    runs: Runs = defaultdict(set)
    sizes: dict[tuple[str, str, str], int] = {}
    marks: frozenset[str] = frozenset()
    call = function.NativeFunction.__call__

    def noting(self: Any, *arguments: Any, **named: Any) -> Any:
        result = call(self, *arguments, **named)
        try:
            types = flatten(arguments, [])
        except UnsuitedValueError:
            return result
        code = self.keeper.load(types)
        if code:
            key = (self.function.__module__, self.function.__qualname__, types)
            runs[key].add(marks)
            sizes[key] = len(code)
        return result

    def before(line: list[str]) -> None:
        nonlocal marks
        marks = marks_of(line)

    function.NativeFunction.__call__ = noting  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder:
            run_all(commands, Path(folder), before)
    finally:
        function.NativeFunction.__call__ = call  # type: ignore[method-assign]
    return sorted(common_marks(runs), key=lambda one: -sizes[one[1:]])


def text_of(signatures: list[Signature]) -> str:
    """Return the text of the list."""
    return "".join(
        f"{' '.join(sorted(one.marks))}\t" + "\t".join(one[1:]) + "\n" for one in signatures
    )


if __name__ == "__main__":
    PATH.write_text(text_of(record()), encoding="ascii")
