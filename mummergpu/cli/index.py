"""The command ``index``: make an index file, or tell what one holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.cache_folders import announce_compilation, find_place_for_compiled_code
from mummergpu.cli.option_rules import index_options, refuse_clashing_files
from mummergpu.cli.option_types import HELP_OPTIONS, PROGRAM, SECTIONS, complete_files
from mummergpu.errors import InputError
from mummergpu.index.format import FORMAT_VERSION, IndexHeader, read_header
from mummergpu.index.tree.policy import LETTERS
from mummergpu.input.files import reading

if TYPE_CHECKING:
    from mummergpu.pipeline.options import BuildOptions

_OF_THE_MAIN_JOB: Final = {
    option.name: option for options in SECTIONS.values() for option in options
}

_SHARED: Final = (
    *("search", "page_size", "address_bits", "builder", "max_memory", "threads"),
    *("policy", *LETTERS),
)


@click.command(
    "index",
    context_settings=HELP_OPTIONS,
    params=[
        click.Argument(["reference"], metavar="FILE", shell_complete=complete_files),
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            shell_complete=complete_files,
            help="Write the index to FILE.",
        ),
        click.Option(
            ["-l", "--min-length", "min_length"],
            callback=_OF_THE_MAIN_JOB["min_length"].callback,
            metavar="N",
            default="20",
            show_default=True,
            help="Make the index for matches of at least N bases.",
        ),
        *(_OF_THE_MAIN_JOB[name] for name in _SHARED),
        click.Option(["--info"], is_flag=True, help="Show what the index FILE holds."),
        click.Option(
            ["--check"],
            is_flag=True,
            help="Read all of the index FILE, and say whether it is as it was written.",
        ),
        _OF_THE_MAIN_JOB["verbose"],
        _OF_THE_MAIN_JOB["quiet"],
    ],
)
def index(**given: Any) -> None:
    """Make an index of a reference, or show what an index holds.

    FILE is a FASTA file, or with --info and --check an index. An index takes the place of its
    reference, in 'mummergpu INDEX QUERY...': nothing is built again, and processes that use it
    at the same time share its memory.

    An index of k-mers (--search kmer, the default) serves every -l that is not shorter than
    its k-mers, whose length follows from -l here; --info shows it. An index of suffix trees
    serves every -l, and is fastest up to the -l given here.
    """
    if given["verbose"] and given["quiet"]:
        raise click.UsageError("-v and -q exclude each other")
    if given["info"] or given["check"]:
        if given["output"] is not None:
            raise click.UsageError("-o makes an index; --info and --check read one")
        find_place_for_compiled_code(os.environ)
        if given["info"]:
            for line in _told(given["reference"]):
                click.echo(line)
        if given["check"]:
            _check(given["reference"], given["threads"])
        return
    if given["output"] is None:
        raise click.UsageError("Missing option '-o' / '--output'")
    options = index_options(given)
    refuse_clashing_files([given["reference"]], {"--output": given["output"]})
    find_place_for_compiled_code(os.environ)
    from mummergpu.pipeline.options import BuildOptions

    build = BuildOptions(given["reference"], given["output"], given["threads"], options)
    _make(build, given["verbose"], given["quiet"])


def _make(options: BuildOptions, verbose: bool, quiet: bool) -> None:
    from mummergpu.pipeline.build_index import make_index
    from mummergpu.runtime.stats import Stats

    if not quiet:
        announce_compilation()

    def notice(text: str) -> None:
        if verbose:
            click.echo(f"{PROGRAM}: {text}", err=True)

    stats = Stats()
    make_index(options, stats, notice)
    for line in stats.summary():
        notice(line)


def _told(path: str) -> Iterator[str]:
    """Yield what an index file holds, a line for each thing."""
    with reading(path), open(path, "rb", buffering=0) as file:
        header = read_header(file, path)
        size = os.fstat(file.fileno()).st_size
    facts = {
        "file": path,
        "format version": f"{FORMAT_VERSION}, written by {header.program}",
        "bytes": f"{size:,}, {size / max(1, header.bases):.2f} a base",
        "reference": header.reference_path,
        "records": f"{header.records:,}",
        "bases": f"{header.bases:,}",
        "digest": header.digest,
        "search": header.search,
        "least length": f"{header.minimum_length}, which it was made for",
        "pages": f"{len(header.pages):,} of at most {header.page_size:,} bases",
        **(_facts_of_trees(header) if header.search == "tree" else _facts_of_tables(header)),
    }
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        yield f"{name:<{width}}{value}"


def _facts_of_tables(header: IndexHeader) -> dict[str, str]:
    length = header.kmer_length
    return {"k-mer length": f"{length}, so for -l {length} and more"}


def _facts_of_trees(header: IndexHeader) -> dict[str, str]:
    return {
        "overlap": f"{header.search_length - 1} bases",
        "policy": header.policy,
        "address bits": str(header.address_bits),
        "builder": header.builder,
        "nodes": f"{sum(page.node_count for page in header.pages):,}",
    }


def _check(path: str, threads: int) -> None:
    """Read an index file whole; say that it is sound."""
    from concurrent.futures import ThreadPoolExecutor

    from mummergpu.index.checksums import digest_of
    from mummergpu.index.file import IndexFile

    opened = IndexFile(path)
    with ThreadPoolExecutor(threads) as executor:
        damaged = opened.damaged_sections(executor.map)
        if damaged:
            raise InputError(f"the index is damaged in its sections {', '.join(damaged)}", path)
        if digest_of(opened.reference, executor.map) != opened.header.digest:
            raise InputError("the index is not of the reference that it names", path)
    click.echo(f"{path} is as it was written")
