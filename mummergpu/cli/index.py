"""The command ``index``: make an index file, or describe an existing one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.option_rules import index_options, refuse_clashing_files, refuse_exclusive
from mummergpu.cli.option_types import (
    HELP_OPTIONS,
    MAIN_OPTIONS,
    MESSAGE_OPTIONS,
    NUMBER,
    WordedCommand,
    choice,
    file_option,
    files,
    flag,
    option,
)
from mummergpu.cli.run_verb import (
    RunMessages,
    announce_compilation,
    progress_shown,
    report_cache_trouble,
)
from mummergpu.index.tree.policy import LETTERS

if TYPE_CHECKING:
    from mummergpu.index.format import IndexHeader
    from mummergpu.index.options import IndexOptions
    from mummergpu.pipeline.options import BuildOptions
    from mummergpu.runtime.progress import Messages

_MOST_USED: Final = "reads"

_SHARED: Final = (
    *("any_letters", "search", "page_size", "address_bits", "max_memory", "threads"),
    *("policy", *LETTERS),
)


@click.command(
    "index",
    cls=WordedCommand,
    context_settings=HELP_OPTIONS,
    params=[
        files("reference", metavar="FILE"),
        files("compared", required=False, metavar="[REFERENCE]"),
        file_option("-o --output", "Write the index to FILE."),
        option(
            "-l --min-length min_length",
            "Minimum length of the matches that the index is built for.",
            of="index.options:IndexOptions.minimum_length",
            type=NUMBER,
        ),
        choice(
            "--for index_for",
            ("reads", "genomes", "memory"),
            "Purpose of a k-mer index: many reads; genomes, that is queries about as long as the "
            "reference; or little memory, up to three times as slow.  [default: reads]",
        ),
        option(
            "--circular",
            "This record is circular, for 'mummergpu map' with this index. May be repeated; 'all' "
            "for all records.",
            "NAME",
            multiple=True,
        ),
        *(MAIN_OPTIONS[name] for name in _SHARED),
        flag("--info", "Show what the index FILE holds."),
        flag(
            "--json as_json",
            "With --info: show it as a JSON object, with the names and lengths of records.",
        ),
        flag(
            "--check",
            "Read the whole index FILE and report whether it is intact, and whether it is of "
            "REFERENCE if that is given.",
        ),
        *MESSAGE_OPTIONS,
    ],
)
def index(**params: Any) -> None:
    """Build an index of a reference, or show what an index holds.

    FILE is a FASTA file, or an index with --info and --check; --check takes a FASTA file as
    REFERENCE, too. Use the index in place of the reference: 'mummergpu INDEX QUERY...'. Nothing is
    built again, and processes that use it at the same time share its memory.

    A k-mer index (--search kmer, the default) serves every -l from the one given here on, and some
    shorter ones, which --info shows. An index of suffix trees serves every -l, and is fastest up to
    the -l given here.
    """
    refuse_exclusive(params)
    compared = params.pop("compared")
    if compared is not None and not params["check"]:
        raise click.UsageError(f"Got unexpected extra argument ({compared})")
    if params["as_json"] and (params["check"] or not params["info"]):
        raise click.UsageError("--json goes with --info alone")
    if params["info"] or params["check"]:
        if params["output"] is not None:
            raise click.UsageError("-o makes an index; --info and --check read one")
        _show(params, compared)
        return
    if params["output"] is None:
        raise click.UsageError("Missing option '-o' / '--output'")
    from mummergpu.pipeline.options import BuildOptions

    options = _with_use(index_options(params), params["index_for"])
    refuse_clashing_files([params["reference"]], {"--output": params["output"]})

    build = BuildOptions(
        *(params["reference"], params["output"], params["threads"], options),
        *(params["any_letters"], params["circular"]),
    )
    hidden = params["quiet"] or params["no_progress"]
    with progress_shown(hidden, params["verbose"]) as progress:
        _make(build, progress, params["verbose"], params["quiet"])


def _with_use(options: IndexOptions, index_for: str | None) -> IndexOptions:
    """Return the options of an index file, including its purpose (``--for``)."""
    from mummergpu.index.options import KmerOptions

    if isinstance(options.kind, KmerOptions):
        return replace(options, kind=replace(options.kind, purpose=index_for or _MOST_USED))
    if index_for is not None:
        raise click.UsageError("--for applies only to --search kmer")
    return options


def _show(params: dict[str, Any], compared: str | None) -> None:
    """Print the description of an index file, or that it is undamaged, or both."""
    path = params["reference"]
    if params["as_json"]:
        click.echo(_described_as_json(path))
    elif params["info"]:
        for line in _described(path):
            click.echo(line)
    if params["check"]:
        click.echo(_checked(path, compared, params["threads"]))


def _make(options: BuildOptions, progress: Messages, verbose: bool, quiet: bool) -> None:
    from mummergpu.pipeline.build_index import make_index
    from mummergpu.runtime.stats import Stats

    if not quiet:
        announce_compilation()
    messages, stats = RunMessages(progress, verbose, quiet), Stats()
    report_cache_trouble(messages.notice)
    make_index(options, messages.context(options.threads, stats))
    for line in stats.summary():
        messages.notice(line)


def _described(path: str) -> Iterator[str]:
    """Yield a description of an index file, one line for each fact."""
    from mummergpu.index.format import FORMAT_VERSION, read_header
    from mummergpu.input.bytes.files import reading

    with reading(path), open(path, "rb", buffering=0) as file:
        header = read_header(file, path)
        size = os.fstat(file.fileno()).st_size
    facts = {
        "file": path,
        "format version": f"{FORMAT_VERSION}, written by {header.program}",
        "bytes": f"{size:,}, {size / max(1, header.bases):.2f} a base",
        "reference": header.reference_path,
        "records": f"{header.records:,}" + _circular(header),
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


def _circular(header: IndexHeader) -> str:
    """Return a text with the number of circular records, empty if there are none."""
    from mummergpu.index.format import CIRCULAR_SECTION

    counts = [one.count for one in header.sections if one.name == CIRCULAR_SECTION]
    return f", {counts[0]:,} of them circular" if counts else ""


def _facts_of_tables(header: IndexHeader) -> dict[str, str]:
    sampling = header.sampling
    return {
        "k-mers": f"of {sampling.kmer_length} bases, {sampling.describe_places()}; "
        f"for -l {sampling.shortest_match} and more"
    }


def _facts_of_trees(header: IndexHeader) -> dict[str, str]:
    return {
        "overlap": f"{header.search_length - 1} bases",
        "policy": header.policy,
        "address bits": str(header.address_bits),
        "nodes": f"{sum(page.node_count for page in header.pages):,}",
    }


def _described_as_json(path: str) -> str:
    """Return a description of an index file as one JSON object.

    It always has all keys of ``docs/reference/index-files.md``; those that this kind of index
    lacks are null. Bytes of names that are not UTF-8 become lone surrogates (Python's
    ``surrogateescape``).
    """
    from mummergpu.index.file import IndexFile
    from mummergpu.index.format import FORMAT_VERSION

    index = IndexFile(path)
    header, reference = index.header, index.original
    circular = index.circular.tolist()
    has_trees = header.search == "tree"
    facts: dict[str, Any] = {
        "file": path,
        "format_version": FORMAT_VERSION,
        "program": header.program,
        "bytes": index.byte_count,
        "reference": header.reference_path,
        "digest": header.digest,
        "bases": header.bases,
        "search": header.search,
        "minimum_length": header.minimum_length,
        "kmer_length": None if has_trees else header.kmer_length,
        "reference_step": None if has_trees else header.reference_step,
        "is_picked": None if has_trees else header.is_picked,
        "page_count": len(header.pages),
        "page_size": header.page_size,
        "overlap": header.search_length - 1 if has_trees else None,
        "policy": header.policy if has_trees else None,
        "address_bits": header.address_bits if has_trees else None,
        "node_count": sum(page.node_count for page in header.pages) if has_trees else None,
        "record_count": header.records,
        "records": [
            {
                "name": name.decode("utf-8", "surrogateescape"),
                "length": length,
                "is_circular": number in circular,
            }
            for number, (name, length) in enumerate(
                zip(reference.names, reference.record_lengths.tolist(), strict=True)
            )
        ],
    }
    return json.dumps(facts)


def _checked(path: str, reference_path: str | None, threads: int) -> str:
    """Read an index file completely, and return the message that it is undamaged.

    `reference_path` is a FASTA file that must have the same records, or None.
    """
    from concurrent.futures import ThreadPoolExecutor

    from mummergpu.index.file import IndexFile
    from mummergpu.index.verification import require_reference, verify
    from mummergpu.input.reference import read_reference

    index = IndexFile(path)
    with ThreadPoolExecutor(threads) as executor:
        verify(index, executor.map)
        if reference_path is None:
            return f"{path} is as it was written"
        require_reference(index, read_reference(reference_path), executor.map)
    return f"{path} is as it was written, and is of {reference_path}"
