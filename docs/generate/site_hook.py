"""The hook of mkdocs: it adds the pages that are made from the program."""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

DOCS = str(Path(__file__).resolve().parent.parent)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference that are made from the program to the files of the site."""
    if DOCS not in sys.path:
        sys.path.insert(0, DOCS)
    from generate.api_page import api_page
    from generate.command_page import command_page

    pages = {"command-line": command_page(), "python": api_page()}
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files
