// Merges the matches of a read that lie on one diagonal, and scores each diagonal without gaps.
//
// The kernel reads keys and values of `list_diagonals`, the reads and the reference as bit planes;
// it writes candidates. A read of 150 bases takes six words of the reference for each candidate.
#pragma once

#include "mapping/diagonals.cu"
#include "mapping/flanks.cuh"

// Return whether a read has unknown bases. All lanes of a warp must call.
__device__ __forceinline__ bool has_breaks(const Reads& reads, uint64 read) {
    const long long begin = static_cast<long long>(reads.offsets[read]);
    const uint32 length = static_cast<uint32>(read_length(reads, read));
    bool found = false;
    for (uint32 base = lane_number() * WORD_BASES; base < length;
         base += WARP_LANES * WORD_BASES) {
        const uint32 inside = lowest_bits(min(length - base, WORD_BASES));
        found |= (bases_from(reads.forward, begin + base).breaks & inside) != 0;
    }
    return __ballot_sync(ALL_LANES, found) != 0;
}

// Return how many windows of a read from `first` to before `end`, which have no match, must have an
// edit. A window with an unknown base may have no match without an edit.
__device__ __forceinline__ int edited_windows(const StrandOfRead& read, int first, int end,
                                              const SeedFreeFlank& beside) {
    if (beside.length < static_cast<int>(NO_MATCH_KNOWN)) {
        return max(0, end - first);
    }
    int edited = 0;
    for (int window = first; window < end; ++window) {
        uint32 breaks = 0;
        for (int done = 0; done < beside.window; done += WORD_BASES) {
            const uint32 inside = min(static_cast<uint32>(beside.window - done), WORD_BASES);
            const long long at = read.begin + window * beside.window + done;
            breaks |= bases_from(read.words, at).breaks & lowest_bits(inside);
        }
        edited += breaks == 0 ? 1 : 0;
    }
    return edited;
}

// Return the candidate of a diagonal with the given seed.
__device__ __forceinline__ Candidate score_candidate(const Reads& reads, uint64 read,
                                                     const Target& target, const Scoring& scoring,
                                                     uint32 strand, long long diagonal,
                                                     int seed_begin, int seed_bases,
                                                     const SeedFreeFlank& beside) {
    const StrandOfRead bases = strand_of_read(reads, read, strand);
    const int seed_end = seed_begin + seed_bases;
    const long long at = diagonal + seed_begin;
    const long long behind = diagonal + seed_end;
    const uint32 record = last_record_at(target.starts, 0u, target.records - 1, at);
    const Flank left = score_flank<true>(bases, seed_begin, seed_begin, target.words, at,
                                       at - target.starts[record], scoring);
    const Flank right = score_flank<false>(bases, seed_end, bases.length - seed_end, target.words,
                                         behind, target.ends[record] - behind, scoring);
    int left_windows = 0;
    int right_windows = 0;
    if (beside.window > 0) {
        left_windows = edited_windows(bases, 0, seed_begin / beside.window, beside);
        right_windows = edited_windows(bases, (seed_end + beside.window - 1) / beside.window,
                                       bases.length / beside.window, beside);
    }
    const int left_bound =
        max(left.score, bound_of_flank(seed_begin, left_windows, scoring, beside));
    const int right_bound =
        max(right.score, bound_of_flank(bases.length - seed_end, right_windows, scoring, beside));
    const int bound = left_bound + seed_bases * scoring.cost(MATCH) + right_bound;
    return {diagonal,    strand,     record,     seed_begin,  seed_bases, left.score,
            left.taken,  right.score, right.taken, bound,     left.credit + right.credit};
}

// Write the candidates of each read, sorted by strand and diagonal.
//
// reads             the reads
// target            the reference
// scoring           the scores
// strands           the matches of the reads on both strands
// match_counts      uint32[reads.count], how many keys each read has
// keys              uint64[matches], as `list_diagonals` writes them, sorted
// values            uint64[matches], as `list_diagonals` writes them
// beside            what is known about the bases next to a match that has no others near it
// candidates        Candidate[matches], receives the candidates of each read from `first_row` on
// candidate_counts  uint32[reads.count], receives how many each read has
//
// Grid: one warp for each read, or fewer warps that take several reads in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    score_diagonals(Reads reads, Target target, Scoring scoring, Strands strands,
                    const uint32* match_counts, const uint64* keys, const uint64* values,
                    SeedFreeFlank beside, Candidate* candidates, uint32* candidate_counts) {
    const uint64 max_gap = static_cast<uint64>(scoring.cost(MAX_GAP));
    for (uint64 read = grid_warp(); read < reads.count; read += grid_warps()) {
        const uint64 place = first_row(strands, read);
        const uint32 count = match_counts[read];
        const bool is_unknown = has_breaks(reads, read);
        const uint64* const own = keys + place;
        uint32 filled = 0;
        for (uint32 first = 0; first < count; first += WARP_LANES) {
            const uint32 row = first + lane_number();
            const bool is_first = row < count && (row == 0 || own[row - 1] != own[row]);
            const uint32 lanes = __ballot_sync(ALL_LANES, is_first);
            if (is_first) {
                const uint64 key = own[row];
                uint32 seed_begin = 0;
                uint32 seed_bases = 0;
                uint32 end = row;
                for (; end < count && own[end] == key; ++end) {
                    const uint32 begin = static_cast<uint32>(values[place + end] >> 32);
                    const uint32 length = static_cast<uint32>(values[place + end]);
                    if (length > seed_bases || (length == seed_bases && begin < seed_begin)) {
                        seed_begin = begin;
                        seed_bases = length;
                    }
                }
                const bool is_alone = end - row == 1 &&
                                      (row == 0 || key - own[row - 1] > max_gap) &&
                                      (end == count || own[end] - key > max_gap);
                const uint32 strand = static_cast<uint32>(key >> STRAND_SHIFT);
                const uint64 offset = key - (static_cast<uint64>(strand) << STRAND_SHIFT);
                const uint64 to = place + filled + __popc(lanes & lowest_bits(lane_number()));
                const SeedFreeFlank known = {
                    is_alone && !is_unknown ? beside.length : static_cast<int>(NO_MATCH_KNOWN),
                    is_alone ? beside.window : 0};
                candidates[to] = score_candidate(
                    reads, read, target, scoring, strand,
                    static_cast<long long>(offset) - DIAGONAL_OFFSET,
                    static_cast<int>(seed_begin), static_cast<int>(seed_bases), known);
            }
            filled += __popc(lanes);
        }
        if (lane_number() == 0) {
            candidate_counts[read] = filled;
        }
    }
}
