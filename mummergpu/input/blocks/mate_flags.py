"""The flags of SAM, BAM and CRAM that tell which reads are mates."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.blocks.mate_names import name_of
from mummergpu.input.records.record_arrays import Records
from mummergpu.input.records.tags import Tags
from mummergpu.sequence.codes import BREAK, MARGIN

PAIRED: Final = 0x1
FIRST: Final = 0x40
LAST: Final = 0x80
_BOTH: Final = FIRST | LAST


def are_pairs(records: Records) -> bool:
    """Return whether a file has pairs, as the flag of its first record says.

    Parameters
    ----------
    records : Records
        The first block of a file.

    Returns
    -------
    bool
        False for FASTA and FASTQ too, which have no flags.
    """
    return records.flags.size > 0 and bool(records.flags[0] & PAIRED)


def check_single(records: Records, path: str) -> None:
    """Check that all reads are single ones, if they have flags.

    Parameters
    ----------
    records : Records
        The reads of a file whose first one is single.
    path : str
        The file, for the error.

    Raises
    ------
    InputError
        If one has a mate.
    """
    paired = np.flatnonzero(records.flags & PAIRED)
    if paired.size:
        raise _mixed("a read of a pair among single reads", path, records, int(paired[0]))


def count_flagged_pairs(records: Records) -> int:
    """Return how many of the first pairs have the flags of one first and one last read.

    Parameters
    ----------
    records : Records
        An even number of reads, with flags.

    Returns
    -------
    int
        The number of the first pair whose flags are others, or that of all pairs.
    """
    one, other = records.flags[0::2], records.flags[1::2]
    kinds = (one & _BOTH, other & _BOTH)
    is_pair = (one & other & PAIRED > 0) & (kinds[0] ^ kinds[1] == _BOTH)
    # One of the two may have both flags, and the other none.
    is_pair &= (kinds[0] == FIRST) | (kinds[0] == LAST)
    wrong = np.flatnonzero(~is_pair)
    return int(wrong[0]) if wrong.size else one.size


def first_mates_first(records: Records) -> Records:
    """Return pairs in the order first mate, second mate, next pair.

    Parameters
    ----------
    records : Records
        Pairs with the flags of pairs; the mates of each are in any order.

    Returns
    -------
    Records
        The same object if no mates have to be exchanged.
    """
    swapped = records.flags[0::2] & LAST > 0
    if not swapped.any():
        return records
    order = np.arange(records.flags.size)
    order[0::2] += swapped
    order[1::2] -= swapped
    bases, offsets = _gather(records.offsets, order)
    letters, name_offsets = _gather(records.name_offsets, order)
    tags = records.tags
    if tags.are_kept:
        content, tag_offsets = _gather(tags.offsets, order)
        tags = Tags(tags.content[content], tag_offsets)
    padded = np.full(bases.size + 2 * MARGIN, BREAK, dtype=np.uint8)
    padded[MARGIN:-MARGIN] = records.codes[bases]
    return Records(
        padded[MARGIN:-MARGIN],
        offsets,
        records.names[letters],
        name_offsets,
        padded,
        records.qualities[bases],
        records.flags[order],
        tags,
    )


def _gather(offsets: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the items of spans in another order, and the offsets of these."""
    sizes = np.diff(offsets)[order]
    after = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
    return np.arange(after[-1]) + np.repeat(offsets[order] - after[:-1], sizes), after


def no_pair(records: Records, pair: int, path: str) -> InputError:
    """Return the error for two reads whose flags are not those of a pair.

    Parameters
    ----------
    records : Records
        The reads.
    pair : int
        The number of the pair.
    path : str
        The file.

    Returns
    -------
    InputError
        With the name of one of them.
    """
    flags = records.flags[2 * pair : 2 * pair + 2]
    for mate, flag in enumerate(flags.tolist()):
        if not flag & PAIRED:
            return _mixed("a single read among pairs", path, records, 2 * pair + mate)
    stems = {
        name_of(records, number).removesuffix("/1").removesuffix("/2")
        for number in (2 * pair, 2 * pair + 1)
    }
    if len(stems) > 1:
        return mates_are_apart(records, 2 * pair, path)
    message = "the flags of mates must tell which one is the first and which the second"
    return InputError(message, path, record=name_of(records, 2 * pair))


def mates_are_apart(records: Records, number: int, path: str) -> InputError:
    """Return the error for a read that does not follow its mate.

    Parameters
    ----------
    records : Records
        The reads.
    number : int
        The number of the read.
    path : str
        The file.

    Returns
    -------
    InputError
        With the name of the read.
    """
    message = "mates must follow each other (see samtools collate)"
    return InputError(message, path, record=name_of(records, number))


def _mixed(message: str, path: str, records: Records, number: int) -> InputError:
    advice = "to part them: samtools view -f 1, and -F 1"
    return InputError(f"{message} ({advice})", path, record=name_of(records, number))
