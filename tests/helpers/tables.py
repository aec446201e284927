"""Tables of tests as text: a row a line, with bars between its cells."""

import ast
from pathlib import Path


def table(test, title=None, *kinds):
    """The rows of the text beside a test, without empty lines and comments.

    Parameters
    ----------
    test : str
        The test's file; the text has its name without ``test_``.
    title : str, optional
        The title of a part, a line that begins with ``##``; by default, all rows are taken.
    *kinds : callable
        What makes a value of each cell; further cells are texts.
    """
    path = Path(test)
    text = path.with_name(f"{path.stem.removeprefix('test_')}.txt").read_text()
    if title is not None:
        (text,) = (part for part in text.split("## ") if part.startswith(f"{title}\n"))
        text = text.removeprefix(f"{title}\n")
    lines = [line for line in text.splitlines() if line and line[0] != "#"]
    rows = [[cell.strip() for cell in f" {line} ".split(" | ")] for line in lines]
    made = [[*(kind(cell) for kind, cell in zip(kinds, row, strict=False)), *row[len(kinds) :]]
            for row in rows]  # fmt: skip
    assert len({len(row) for row in made}) == 1
    return [tuple(row) if len(row) > 1 else row[0] for row in made]


def keywords(text):
    """The arguments of a call, as in ``a=1, b="c"``."""
    call = ast.parse(f"f({text})", mode="eval").body
    return {one.arg: ast.literal_eval(one.value) for one in call.keywords}
