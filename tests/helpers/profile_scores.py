"""The numbers that filters of proteins compute, on the processor and on a device."""

import math

import numpy as np

from helpers.profiles import block_of, sequences_like
from mummergpu.hmm.byte_filters import LANES, best_passes, find_cells, striped_bytes
from mummergpu.hmm.filter_programs import word_floor, word_overflow
from mummergpu.hmm.filters import lengths_up_to
from mummergpu.hmm.proteins import CODES
from mummergpu.hmm.tables import WORD_LEAVE, word_moves
from mummergpu.hmm.word_filter import OVERFLOW
from mummergpu.runtime.jit import jit


@jit
def _fill_passes(block, costs, row, registers, bias, steps, left):
    for number in range(left.size):
        row[:] = 0
        begin = block.offsets[number]
        length = block.offsets[number + 1] - begin
        left[number] = best_passes(
            block.codes, begin, length, costs, row, registers, bias, steps[number]
        )


def numbers_of_the_processor(one, block):
    """The cells of SSV, the bytes of MSV and the words of Viterbi of all sequences."""
    striped, sizes = striped_bytes(one.bytes), np.diff(block.offsets)
    lengths = lengths_up_to(int(sizes.max()))
    sequences, cells, left = np.empty((3, sizes.size), dtype=np.int64)
    least = np.zeros(int(sizes.max()) + 1, dtype=np.int64)
    borders = np.empty(int(sizes.max()) * LANES, dtype=np.uint8)
    assert find_cells(block, striped, least, borders, sequences, cells) == sizes.size
    steps = lengths.move[sizes] + one.bytes.entry
    registers = striped.scores.shape[0] * striped.registers
    row = np.empty(striped.costs.shape[1], dtype=np.uint8)
    _fill_passes(block, striped.costs, row, registers, striped.bias, steps, left)
    return [cells, left, one.viterbi_words(block, np.arange(sizes.size), lengths)]


def numbers_of_the_device(found, block):
    """The same for the only profile, from the kernels or where those do not suit."""
    count = block.offsets.size - 1
    with found._worker() as worker:
        placed = worker.place(block, found._sequence_program)
        found._constants.limits["score"] = -np.inf
        found._limits = found._upload(found._constants.limits)
        pairs, cells = found._passing_cells(worker, placed, 0, 1)
        assert pairs.sequences.tolist() == list(range(count))
        costs = worker.upload("costs", found._constants.costs)
        left = found._scores(worker, placed, found._bytes, "score_passes", pairs, costs)
        words = found._viterbi_words(worker, placed, block, pairs)
    numbers = []
    for array in (cells, left, words):
        numbers.append(np.empty_like(array))
        numbers[-1][placed.order] = array
    return numbers


def tried(profile, count):
    """Sequences like a profile's, of any length, some of marks and of single residues."""
    random = np.random.default_rng(profile.nodes)
    every = [one[:700] for one in sequences_like(profile, count) if one.size]
    every += [np.full(1, code, dtype=np.uint8) for code in range(CODES)]
    every += [np.full(size, 27, dtype=np.uint8) for size in (2, 9)]
    whole = np.tile(profile.matches.argmax(axis=1).astype(np.uint8), 3)[:2500]
    every += [whole, np.concatenate([whole[:400], every[4], whole[:900]])]
    return [every[number] for number in random.permutation(len(every))]


def decisive(one, numbers, longest):
    """The numbers as far as decisions depend on them."""
    cells, left, words = numbers
    # The device gives up a little earlier, and no word falls below its floor.
    words = np.where(words + WORD_LEAVE > word_overflow(one.words), OVERFLOW, words)
    floor = word_floor(one.words) + int(word_moves(longest)[-1])
    # From higher cells SSV cannot tell.
    return [np.minimum(cells, 127 - one.bytes.bias), left, np.maximum(words, floor - WORD_LEAVE)]


def check_numbers(found, sequences):
    block, one = block_of(sequences), found._own[0]
    longest = max(sequence.size for sequence in sequences)
    numbers = numbers_of_the_processor(one, block), numbers_of_the_device(found, block)
    both = zip(
        ("SSV", "MSV", "Viterbi"), *(decisive(one, own, longest) for own in numbers), strict=True
    )
    for name, here, there in both:
        differ = np.nonzero(here != there)[0]
        shown = [(sequences[n].size, int(here[n]), int(there[n])) for n in differ[:5]]
        assert not shown, f"{name} of {found._own[0].profile.nodes} nodes: {differ.size} {shown}"


def gumbel_tail(score, mu, rate):
    """Return the chance of a score in bits or a higher one among random sequences."""
    try:
        events = math.exp(-rate * (score - mu))
    except OverflowError:
        return 1.0
    return events if events < 5e-9 else 1 - math.exp(-events)
