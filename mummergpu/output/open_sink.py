"""Open the sink for some files: what makes their bytes is imported only if it is asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

from mummergpu.drawing.picture import PictureStyle
from mummergpu.errors import OptionError
from mummergpu.input.reference import Reference
from mummergpu.output.bytes.compression import compressor_of
from mummergpu.output.formats import FORMATS, SAM_FORMATS, RowKind
from mummergpu.output.options import SortOptions
from mummergpu.output.sink import OpenRequest, OutputContext, SeveralSinks, Sink, writer_of
from mummergpu.output.targets import OutputTarget
from mummergpu.runtime.output_file import STANDARD_OUTPUT, OutputFile
from mummergpu.runtime.stats import Stats

CRAI: Final = ".crai"
"""What the name of the index of a CRAM ends with, after the name of the CRAM."""


def check_targets(
    targets: Sequence[OutputTarget],
    picture: PictureStyle | None = None,
    sort: SortOptions | None = None,
    gpu_compression: bool = False,
) -> None:
    """Refuse targets that cannot be made here, before anything is read.

    `LibraryError` if the library for a format or a compression is missing; `OptionError` if there
    is no such picture; a format cannot be sorted; a device is to compress and no file has blocks of
    bgzf; or there is no such folder for temporary files.
    """
    for target in targets:
        if sort is not None and target.format not in ("bam", "cram"):
            option = "sort" if sort.by_coordinate else "mark_duplicates"
            raise OptionError(option, "needs BAM or CRAM, such as -o out.bam")
        if check := FORMATS[target.format].check:
            check(target, picture)
        elif target.compression is not None:
            compressor_of(target.compression)
    if sort is not None and sort.folder is not None and not os.path.isdir(sort.folder):
        raise OptionError("temporary_folder", f"there is no folder '{sort.folder}'")
    if gpu_compression and not any(target.has_bgzf for target in targets):
        raise OptionError("gpu_compression", "needs BAM, such as -o out.bam, or .sam.gz")


def index_path(target: OutputTarget, reference: Reference, sort: SortOptions | None) -> str | None:
    """Return the path of the index of a target; None if it has none.

    It is the path of the BAM and ``.bai``, or ``.csi`` for a long record, or that of the CRAM and
    ``.crai``. What is not sorted has none, nor has standard output.
    """
    if target.format not in ("bam", "cram") or sort is None or not sort.by_coordinate:
        return None
    if target.path == STANDARD_OUTPUT:
        return None
    if target.format == "cram":
        return target.path + CRAI
    from mummergpu.output.sorting.bam_index import index_kind
    from mummergpu.output.sorting.row_tables import axis_of

    return target.path + index_kind(axis_of(reference))


def open_sink(
    targets: Sequence[OutputTarget],
    files: Sequence[OutputFile],
    facts: OutputContext,
    stats: Stats,
    rows: RowKind = RowKind.MATCHES,
    indexes: Sequence[OutputFile | None] = (),
) -> Sink[Any, Any, Any]:
    """Return the sink that writes rows to all targets, at least one (`check_targets`).

    It has written what comes before the first row. The caller closes it, and completes the open
    file and the open index (None without one) of each target. `MummergpuError` if a format cannot
    be made of this input, its library is missing, or there is no room for temporary files.
    """
    sinks: list[Sink[Any, Any, Any]] = []
    with ExitStack() as failure:
        for target, file, index in zip(
            targets, files, indexes or [None] * len(targets), strict=True
        ):
            opening = OpenRequest(target, facts, writer_of(file, stats), stats, index)
            sinks.append(FORMATS[target.format].open(opening, rows))
            failure.callback(sinks[-1].close)
        failure.pop_all()
    warn_of_names(targets, facts)
    return sinks[0] if len(sinks) == 1 else SeveralSinks(sinks)


def warn_of_names(targets: Sequence[OutputTarget], facts: OutputContext) -> None:
    """Warn once of names of records that some programs refuse in files of alignments or VCF."""
    if any(target.format in SAM_FORMATS or target.format == "vcf" for target in targets):
        from mummergpu.output.records.header import unusual_names

        if warning := unusual_names(facts.reference):
            facts.warn(warning)
