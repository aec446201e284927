"""The files of a report: a page, the same as Markdown, and the figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mummergpu.errors import OutputError
from mummergpu.runtime.output_file import OutputFile
from mummergpu.studies.report.blocks import Report

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE_FILE: Final = "report.html"
MARKDOWN_FILE: Final = "report.md"
FIGURE_FOLDER: Final = "figures"

_TEMPLATES: Final = Path(__file__).resolve().parent.parent / "templates"
_MARKDOWN_SIGNS: Final = "\\`*_{}[]<>#|~"


def write_report(report: Report, folder: Path) -> Path:
    """Write a report into a folder, which is made if need be; return its page.

    The page comes last, so that all that is beside it is there when it appears. A file or folder
    that cannot be written raises `OutputError`.
    """
    figures = folder / FIGURE_FOLDER
    try:
        figures.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot be made: {os.strerror(error.errno or 0)}"
        raise OutputError(message, str(figures)) from error
    for drawing in report.drawings:
        _write(figures / f"{drawing.name}.svg", drawing.svg)
        _write(figures / f"{drawing.name}.png", drawing.png)
    _write(folder / MARKDOWN_FILE, markdown_text(report).encode())
    _write(folder / PAGE_FILE, page_text(report).encode())
    return folder / PAGE_FILE


def page_text(report: Report) -> str:
    """Return the page of a report, which needs no other file and no network."""
    from markupsafe import Markup

    environment = _environment()
    environment.autoescape = True
    # The SVG of a figure is our own; matplotlib has escaped the names in it.
    environment.filters["own_svg"] = Markup
    return environment.get_template("report.html.j2").render(report=report)


def markdown_text(report: Report) -> str:
    """Return a report as Markdown; its figures are files beside it."""
    environment = _environment()
    environment.filters["plain"] = _plain
    template = environment.get_template("report.md.j2")
    return template.render(report=report, figure_folder=FIGURE_FOLDER)


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    line = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in _MARKDOWN_SIGNS else sign for sign in line)


def _write(path: Path, content: bytes) -> None:
    with OutputFile(str(path)) as file:
        file.write(content)
