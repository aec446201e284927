"""Which searches can leave their matches on a GPU, and how a backend is asked to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from mummergpu.errors import BackendError, OptionError
from mummergpu.index.options import IndexOptions, KmerOptions
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.matching.backends.interface import Backend, ColumnsBackend
from mummergpu.matching.options import SearchOptions, Uniqueness
from mummergpu.sequence.codes import Strand

if TYPE_CHECKING:
    from mummergpu.matching.device_columns import DeviceColumns

_REST: Final = "'match' and 'stream' find these matches, and return them on the host"


def refuse_several_steps(index: IndexOptions, search: SearchOptions) -> None:
    """Raise `OptionError` if the matches of a search are put together or filtered by the host."""
    if not isinstance(index.kind, KmerOptions):
        text = "this index has suffix trees, and only tables of k-mers leave matches on a device"
        raise OptionError("match_on_device", f"{text}; {_REST}")
    if search.uniqueness is not Uniqueness.ALL:
        text = f"{search.uniqueness.value!r} is filtered on the host; only 'all' stays on a device"
        raise OptionError("mode", f"{text}; {_REST}")


def refuse_several_parts(groups: Sequence[Sequence[object]]) -> None:
    """Raise `OptionError` if an index has several groups of pages, or several pages."""
    count = sum(map(len, groups))
    if len(groups) > 1:
        text = f"the index is searched in {len(groups)} steps, which a larger max_memory would join"
    elif count > 1:
        text = f"the reference is in {count} parts, whose matches the host puts together"
    else:
        return
    raise OptionError("match_on_device", f"{text}; {_REST}")


def offer_records(backend: Backend[Any], reference: Reference) -> None:
    """Tell a backend that can leave columns on a device where the records of the reference are."""
    if isinstance(backend, ColumnsBackend):
        backend.set_records(record_lookup(reference.record_starts, reference.codes.size))


def columns_of(
    backend: Backend[Any], blocks: Iterable[QueryBlock], strands: tuple[Strand, ...]
) -> DeviceColumns:
    """Return the columns that a backend leaves on its device.

    Parameters
    ----------
    backend : Backend
        Has the pages of the index loaded.
    blocks : iterable of QueryBlock
        The queries.
    strands : tuple of Strand
        The strands of the queries to search.

    Returns
    -------
    DeviceColumns
        The matches of all blocks, in order.

    Raises
    ------
    BackendError
        If too little memory is free on the device.
    """
    if not isinstance(backend, ColumnsBackend) or not backend.leaves_columns:
        text = "the places of the records do not fit the device's memory beside the index"
        raise BackendError("cuda", f"{text}; {_REST}")
    return backend.find_columns(blocks, strands)
