"""The hook of mkdocs: it adds the pages that are made from the program."""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

DOCS = str(Path(__file__).resolve().parent.parent)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of the command line to the files of the site."""
    if DOCS not in sys.path:
        sys.path.insert(0, DOCS)
    from generate.command_page import command_page

    page = File.generated(config, "reference/command-line.md", content=command_page())
    files.append(page)
    return files
