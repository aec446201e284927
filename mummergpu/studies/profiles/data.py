"""The profile and the proteins of a study, and the scores that every run must find."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from mummergpu.errors import InputError, OptionError
from mummergpu.hmm import word_filter
from mummergpu.hmm.byte_filters import LANES, filter_by_msv, find_cells, striped_bytes
from mummergpu.hmm.filter_programs import LOWEST_FLOOR, word_floor, word_overflow, words_fit
from mummergpu.hmm.filters import ProfileFilter, lengths_up_to
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.profiles import read_profiles
from mummergpu.hmm.proteins import ProteinBlock, are_marks
from mummergpu.hmm.tables import BYTE_BASE, BYTE_LEAVE, BYTE_SCALE, WORD_LEAVE, word_moves
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import ProteinFiles
from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.runtime.frozen import frozen

MapFunction = Callable[..., Iterable[Any]]

_PART_RESIDUES: Final = 1 << 18
"""About the number of residues that a task of the processor compares."""


@frozen
class ProfileData:
    """The input of a study's runs: a profile and proteins, none empty or with marks."""

    name: str
    filter: ProfileFilter
    block: ProteinBlock
    # The proteins that were left out, because only HMMER's own arithmetic handles their marks.
    left_out: int = 0

    @property
    def nodes(self) -> int:
        """The nodes of the profile."""
        return self.filter.profile.nodes

    @cached_property
    def sizes(self) -> Int64Array:
        """The lengths of the proteins."""
        return np.diff(self.block.offsets)

    @property
    def longest(self) -> int:
        """The length of the longest protein."""
        return int(self.sizes.max())

    def digest(self) -> str:
        """Return a BLAKE2b hash of the profile's numbers, the residues and their borders."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (*self.filter.words[:2], self.filter.bytes.costs, *self.block):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def check(self) -> None:
        """Refuse a profile that numbers of 16 bits do not suit."""
        lowest = word_floor(self.filter.words) + int(word_moves(self.longest)[-1])
        if not words_fit(self.filter.words) or lowest < LOWEST_FLOOR:
            raise OptionError(
                "profiles",
                f"'{self.name}' has scores too low for filters of 16 bits; a search has the "
                "processor compare it, and a study cannot",
            )

    def settled(self, kind: str, scores: Int64Array) -> Int64Array:
        """Return scores, clipped where no decision depends on them; `kind` is S, M or V.

        A device gives up a little earlier than the processor, and no cell of it falls as low.
        """
        if kind == "S":
            return np.minimum(scores, 127 - self.filter.bytes.bias)
        if kind == "M":
            moves = lengths_up_to(self.longest).move[self.sizes]
            begin = BYTE_BASE - moves - self.filter.bytes.entry
            return np.maximum(scores, begin - BYTE_LEAVE)
        overflow = scores + WORD_LEAVE > word_overflow(self.filter.words)
        lowest = word_floor(self.filter.words) + int(word_moves(self.longest)[-1]) - WORD_LEAVE
        return np.where(overflow, word_filter.OVERFLOW, np.maximum(scores, lowest))

    def expected(self, kind: str, map_function: MapFunction) -> Int64Array:
        """Return the scores of the processor's filter, settled."""
        work = processor_scores(self.filter, kind)
        parts = [*map_function(partial(work, self.block), parts_of(self.block))]
        return self.settled(kind, np.concatenate(parts))


def digest_of_scores(scores: Int64Array) -> str:
    """Return the hash of scores that a run keeps."""
    return hashlib.blake2b(scores.astype("<i4").tobytes(), digest_size=8).hexdigest()


def chosen(block: ProteinBlock, those: BoolArray) -> ProteinBlock:
    """Return a block with some of the proteins."""
    sizes = np.diff(block.offsets)
    codes = block.codes[np.repeat(those, sizes)]
    return ProteinBlock(codes, np.concatenate([[0], np.cumsum(sizes[those])]))


def suitable(block: ProteinBlock) -> BoolArray:
    """Return which proteins a study can compare: neither empty nor with marks."""
    sizes = np.diff(block.offsets)
    found: BoolArray = sizes > 0
    places = np.flatnonzero(are_marks(block.codes))
    found[np.searchsorted(block.offsets, places, side="right") - 1] = False
    return found


def parts_of(block: ProteinBlock) -> list[tuple[int, int]]:
    """Return ranges of proteins for the tasks of the processor."""
    places = np.arange(0, int(block.codes.size) + _PART_RESIDUES, _PART_RESIDUES)
    borders = np.unique(np.searchsorted(block.offsets, places))
    borders[-1] = block.offsets.size - 1
    return [*pairwise(borders.tolist())]


def processor_scores(
    one: ProfileFilter, kind: str, registers: int | None = None
) -> Callable[[ProteinBlock, tuple[int, int]], Int64Array]:
    """Return a function for the scores of a range of proteins, by a filter of the processor.

    `registers` is the most that a part of SSV's row may have; None: as in a search.
    """
    if kind == "V":

        def words(block: ProteinBlock, part: tuple[int, int]) -> Int64Array:
            longest = int(np.diff(block.offsets[part[0] : part[1] + 1]).max())
            return one.viterbi_words(block, np.arange(*part), lengths_up_to(longest))

        return words
    striped = striped_bytes(one.bytes) if registers is None else striped_bytes(one.bytes, registers)
    numbers = np.array([-np.inf, BYTE_SCALE], dtype=np.float32)

    def cells(block: ProteinBlock, part: tuple[int, int]) -> Int64Array:
        own = ProteinBlock(block.codes, block.offsets[part[0] : part[1] + 1])
        longest = int(np.diff(own.offsets).max())
        sequences, found = np.empty((2, own.offsets.size - 1), dtype=np.int64)
        borders = np.empty(longest * LANES if striped.scores.shape[0] > 1 else 0, dtype=np.uint8)
        least = np.zeros(longest + 1, dtype=np.int64)
        find_cells(own, striped, least, borders, sequences, found)
        if kind == "M":
            row = np.empty(striped.costs.shape[1], dtype=np.uint8)
            lengths = lengths_up_to(longest)
            filter_by_msv(own, striped, lengths, numbers, row, sequences, found)
        return found

    return cells


def read_profile_data(
    profiles: str,
    proteins: Sequence[str],
    any_letters: bool = False,
    warn: Callable[[str], None] = lambda line: None,
) -> list[ProfileData]:
    """Return a data set for each profile of a file, with all proteins of some files.

    `InputError` is raised if a file cannot be read, is not valid or has nothing to measure with;
    `OptionError` if filters of 16 bits do not suit a profile.
    """
    rules = ProteinRules(any_letters=any_letters, no_empty=True)
    blocks = [*ProteinFiles(proteins, rules).blocks(warn=warn)]
    sizes = np.concatenate([np.diff(block.offsets) for block in blocks])
    codes = np.concatenate([block.codes for block in blocks])
    block = ProteinBlock(codes, np.concatenate([[0], np.cumsum(sizes)]))
    those = suitable(block)
    if not those.any():
        raise InputError("has no proteins to measure with", proteins[0])
    left_out = int(np.count_nonzero(~those))
    block = chosen(block, those)
    found = [
        ProfileData(one.name, ProfileFilter(one, FilterThresholds()), block, left_out)
        for one in read_profiles(profiles)
    ]
    if not found:
        raise InputError("has no profiles", profiles)
    for data in found:
        data.check()
    return found
