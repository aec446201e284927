// Scores what a read has before and after an exact match, without gaps.
#pragma once

#include "common/warp.cuh"
#include "mapping/candidates.cuh"

// What is known about the bases next to a seed: no match of `length` bases lies there, and no match
// contains a whole window of `window` bases; 0 if that is not known.
struct SeedFreeFlank {
    int length;
    int window;
};

// The best part of a flank that begins next to the match.
struct Flank {
    int score;
    int taken;   // its bases
    int credit;  // the credits of its bases that differ
};

// A read on one strand.
struct StrandOfRead {
    const BitPlanes* words;
    long long begin;       // where the read begins among them
    const uint8* quality;  // the quality of the read's first base on this strand
    int step;              // from one base's quality to the next one's
    int length;            // the bases of the read
    bool has_qualities;
};

// Return a read on a strand.
__device__ __forceinline__ StrandOfRead strand_of_read(const Reads& reads, uint64 read,
                                                       uint32 strand) {
    const long long begin = static_cast<long long>(reads.offsets[read]);
    const int length = read_length(reads, read);
    const bool is_reverse = strand != 0;
    return {is_reverse ? reads.reverse : reads.forward, begin,
            reads.qualities + (is_reverse ? begin + length - 1 : begin), is_reverse ? -1 : 1,
            length, reads.qualities != nullptr};
}

// Return the best part of a flank, and of two parts with one score the longer one.
//
// read       the read
// from       the bases of the read before the flank's first base, which leftwards is the last one
// length     the bases of the flank
// words      the reference
// position   the first base of the reference to compare, or leftwards the one after it
// most       the bases of the reference from there to the end of the record
// scoring    the scores
template <bool leftwards>
__device__ __forceinline__ Flank score_flank(const StrandOfRead& read, int from, int length,
                                           const BitPlanes* words, long long position,
                                           long long most, const Scoring& scoring) {
    const int match = scoring.cost(MATCH);
    const int bonus = scoring.cost(END_BONUS);
    int best = 0;
    int taken = 0;
    int best_credit = 0;
    int score = 0;
    int credit = 0;
    const int end = static_cast<int>(min(static_cast<long long>(length), most));
    for (int done = 0; done < end;) {
        BitPlanes bases, others;
        if constexpr (leftwards) {
            bases = bases_before(read.words, read.begin + from - done);
            others = bases_before(words, position - done);
        } else {
            bases = bases_from(read.words, read.begin + from + done);
            others = bases_from(words, position + done);
        }
        uint32 differing = mismatches(bases, others);
        uint32 unknown = bases.breaks;
        if constexpr (leftwards) {
            differing = __brev(differing);
            unknown = __brev(unknown);
        }
        const int count = min(static_cast<int>(WORD_BASES), end - done);
        differing &= lowest_bits(static_cast<uint32>(count));
        int behind = 0;
        for (; differing != 0; differing &= differing - 1) {
            const int place = __ffs(differing) - 1;
            score += (place - behind) * match;
            if (score >= best) {
                best = score;
                taken = done + place;
                best_credit = credit;
            }
            if (unknown >> place & 1) {
                score -= scoring.cost(UNKNOWN);
            } else {
                score -= scoring.cost(MISMATCH);
                const int base = leftwards ? from - 1 - done - place : from + done + place;
                if (read.has_qualities) {
                    credit += scoring.credits[read.quality[read.step * base]];
                }
            }
            behind = place + 1;
        }
        score += (count - behind) * match;
        done += count;
        if (score >= best) {
            best = score;
            taken = done;
            best_credit = credit;
        } else if (score + (end - done) * match + bonus < best) {
            return {best, taken, best_credit};
        }
    }
    if (end == length && score + bonus >= best) {
        return {score + bonus, length, credit};
    }
    return {best, taken, best_credit};
}

// Return the most that a flank with a gap may score; `windows` whole windows are among its bases.
__device__ __forceinline__ int bound_of_flank(int length, int windows, const Scoring& scoring,
                                              const SeedFreeFlank& beside) {
    const int gap = min(scoring.cost(DELETION_OPEN) + scoring.cost(DELETION_EXTEND),
                              scoring.cost(INSERTION_OPEN) + scoring.cost(INSERTION_EXTEND));
    int loss = min(scoring.cost(MISMATCH) + scoring.cost(MATCH), gap);
    // A flank without bases has one edit less than none: the division rounds down.
    const int others = (length + beside.length - 1) / beside.length - 1;
    int least = gap + others * loss;
    if (windows > 1) {
        loss = min(loss, beside.window * scoring.cost(MATCH));
        const int of_two =
            scoring.cost(INSERTION_OPEN) +
            2 * (scoring.cost(INSERTION_EXTEND) + scoring.cost(MATCH));
        least = max(least, min(gap + loss, of_two) + (windows - 2) * loss);
    }
    return length * scoring.cost(MATCH) + scoring.cost(END_BONUS) - least;
}
