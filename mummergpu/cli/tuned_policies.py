"""The policies that the user has tuned: where they are kept, and which a run takes."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mummergpu.errors import MummergpuError, OutputError
from mummergpu.runtime.output_file import OutputFile

if TYPE_CHECKING:
    from mummergpu.hmm.filter_schemes import FilterScheme
    from mummergpu.matching.options import DeviceOptions
    from mummergpu.studies.policy_choice import Choice, TunedPolicy, Work

_BASES_PER_COMPRESSED_BYTE: Final = 4


def tuned_file() -> Path:
    """Return the file that keeps the tuned policies of this user; it may not exist yet."""
    import platformdirs

    from mummergpu.studies.policy_choice import FILE_NAME

    return Path(platformdirs.user_config_dir("mummergpu", appauthor=False), FILE_NAME)


def prepare_tuned_file() -> None:
    """Make sure, before any work is done, that the file of tuned policies can be extended."""
    from mummergpu.studies.policy_choice import read_tuned

    path = tuned_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot be made: {error.strerror}", str(path.parent)) from error
    read_tuned(path)


def add_tuned(record: TunedPolicy) -> None:
    """Keep a tuned policy, in place of an earlier one for the same work."""
    from mummergpu.studies.policy_choice import read_tuned, tuned_text, with_record

    path = tuned_file()
    records = with_record(read_tuned(path), record)
    with OutputFile(str(path)) as file:
        file.write(tuned_text(records).encode())


def tuned_filters() -> Path:
    """Return the file that keeps what was tuned for filters of profiles; it may not exist yet."""
    return tuned_file().with_name("filters.json")


def add_schemes(schemes: Sequence[FilterScheme], device: str) -> None:
    """Keep the schemes of a device, in place of those that were tuned for it earlier."""
    from mummergpu.hmm.filter_schemes import read_schemes, schemes_text

    path = tuned_filters()
    kept = [one for one in read_schemes(path) if one.device != device]
    with OutputFile(str(path)) as file:
        file.write(schemes_text([*kept, *schemes], "mummergpu tune").encode())


def with_filter_policy(options: DeviceOptions, policy: str) -> DeviceOptions:
    """Return the options of a device with the policy of its filters, which is checked."""
    if policy != options.filter_policy:
        from mummergpu.hmm.filter_schemes import FilterChoice

        FilterChoice(policy)
    return replace(options, filter_policy=policy, filter_schemes=str(tuned_filters()))


@cache
def choose_for(
    backend: str,
    device_number: int,
    device_library: str,
    reference_path: str,
    query_paths: Sequence[str],
    minimum_length: int,
) -> Choice:
    """Choose the policy of a run from what is known before it begins.

    The size of the file of the reference stands for its bases, and the first query of a regular
    file for all.
    """
    from mummergpu.studies.policy_choice import choose_policy, read_tuned

    work = _work(
        backend,
        device_number,
        device_library,
        _bases_in(reference_path),
        _first_query_length(query_paths),
        minimum_length,
    )
    return choose_policy(work, read_tuned(tuned_file()))


def _work(
    backend: str,
    device_number: int,
    device_library: str,
    reference_bases: int | None,
    query_length: int | None,
    minimum_length: int,
) -> Work:
    from mummergpu.studies.machine import processor_name
    from mummergpu.studies.policy_choice import Work

    rest = (reference_bases, query_length, minimum_length)
    if backend != "cpu":
        from mummergpu.cuda.driver import driver_facts
        from mummergpu.cuda.requirements import cuda_facts, obstacles

        for facts in driver_facts().devices:
            if facts.number != device_number:
                continue
            if not obstacles(cuda_facts(False, device_library), device_library):
                major, minor = facts.capability
                return Work("cuda", facts.name, f"sm_{major}{minor}", *rest)
    return Work("cpu", processor_name(), os.uname().machine, *rest)


def _bases_in(path: str) -> int | None:
    """Return about how many bases a file has, from its size; None for what is no regular file."""
    with suppress(OSError, ValueError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode):
            compressed = path.endswith((".gz", ".bgz", ".bgzf", ".bz2", ".xz", ".zst"))
            return found.st_size * (_BASES_PER_COMPRESSED_BYTE if compressed else 1)
    return None


def _first_query_length(paths: Sequence[str]) -> int | None:
    """Return the length of the first query in bases; None if it cannot be read twice."""
    if not paths or _bases_in(paths[0]) is None:
        return None
    from mummergpu.input.blocks.reader import query_reader

    # An invalid file is reported when it is read for the search.
    with suppress(MummergpuError), query_reader(paths[:1], 1) as reader:
        block = next(reader, None)
        if block is not None and block.query_count:
            return int(block.offsets[1] - block.offsets[0])
    return None
