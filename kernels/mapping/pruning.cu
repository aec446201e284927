// Keeps the candidates that may matter, and writes them one after the other.
//
// The rules are those of `mummergpu/mapping/pruning.py`, and so are the names. A warp works on a
// template: its lanes share the candidates of a read. Scores are in points, or in units of a
// point's UNIT-th part.
//
// The kernels read and write candidates.
#pragma once

#include "common/warp.cuh"
#include "mapping/candidates.cuh"

// The score of what there is not.
constexpr long long NOTHING = -(1ll << 40);

// What is known about the sizes of templates.
struct Pairing {
    const int* penalties;  // int32[last_size - first_size + 1], the penalty of each size, in units
    long long first_size;
    long long last_size;   // 0 if no pairs are proper
    long long unpaired;    // the penalty of mates that are not a proper pair, in points
};

// What candidates are judged by.
struct Pruning {
    long long seed_length;
    long long margin;  // placements that are so many points worse than the best do not matter
    uint64 mates;      // the reads of a template
    uint64 is_needed;  // 0 to keep all candidates
};

// The candidates of a read.
struct Listed {
    const Candidate* rows;
    uint32 count;
    long long length;  // the bases of the read
};

// The best of the candidates of a read.
struct Best {
    long long score;  // in points; 0 if there are none
    long long bound;  // in points; 0 if there are none
    long long units;  // NOTHING if there are none
};

// Return the largest of the lanes' numbers. All lanes of a warp must call.
__device__ __forceinline__ long long warp_maximum(long long value) {
#pragma unroll
    for (uint32 distance = WARP_LANES / 2; distance > 0; distance /= 2) {
        value = max(value, __shfl_sync(ALL_LANES, value, lane_number() ^ distance));
    }
    return value;
}

// Return the score of a candidate in units, with its credit.
__device__ __forceinline__ long long units_of(const Candidate& candidate, const Scoring& scoring) {
    return score_of(candidate, scoring) * UNIT + candidate.credit;
}

// Return the best of the candidates of a read. All lanes of a warp must call.
__device__ __forceinline__ Best best_of(const Listed& listed, const Scoring& scoring) {
    Best best = {0, 0, NOTHING};
    for (uint32 row = lane_number(); row < listed.count; row += WARP_LANES) {
        const Candidate& candidate = listed.rows[row];
        best.score = max(best.score, score_of(candidate, scoring));
        best.bound = max(best.bound, static_cast<long long>(candidate.bound));
        best.units = max(best.units, units_of(candidate, scoring));
    }
    return {warp_maximum(best.score), warp_maximum(best.bound), warp_maximum(best.units)};
}

// Return the first candidate on a strand whose diagonal is not less, or the number of candidates.
__device__ __forceinline__ uint32 first_not_before(const Listed& listed, uint32 strand,
                                                   long long diagonal) {
    uint32 low = 0;
    uint32 high = listed.count;
    while (low < high) {
        const uint32 middle = (low + high) / 2;
        const Candidate& here = listed.rows[middle];
        if (here.strand < strand || (here.strand == strand && here.diagonal < diagonal)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Call `visit` with each candidate of the mate that forms a proper pair with a candidate, and with
// the penalty of the pair.
template <typename Visit>
__device__ __forceinline__ void visit_partners(const Candidate& candidate, long long length,
                                               const Listed& mate, const Pairing& pairing,
                                               Visit visit) {
    const bool is_forward = candidate.strand == 0;
    const long long low =
        candidate.diagonal +
        (is_forward ? pairing.first_size - mate.length : length - pairing.last_size);
    const long long high =
        candidate.diagonal +
        (is_forward ? pairing.last_size - mate.length : length - pairing.first_size);
    const uint32 strand = is_forward ? 1 : 0;
    for (uint32 row = first_not_before(mate, strand, low); row < mate.count; ++row) {
        const Candidate& other = mate.rows[row];
        if (other.strand != strand || other.diagonal > high) {
            break;
        }
        const long long size = is_forward ? other.diagonal + mate.length - candidate.diagonal
                                          : candidate.diagonal + length - other.diagonal;
        if (other.record == candidate.record) {
            visit(other, pairing.penalties[size - pairing.first_size]);
        }
    }
}

// Return the best joint score of a template without gaps, in units. All lanes of a warp must call.
__device__ __forceinline__ long long joint_score(const Listed& first, const Listed& second,
                                                 const Best& best, const Best& other,
                                                 const Pairing& pairing, const Scoring& scoring,
                                                 bool paired) {
    if (!paired || best.score == 0 || other.score == 0) {
        return (best.score + other.score) * UNIT;
    }
    const long long unpaired = (best.score + other.score - pairing.unpaired) * UNIT;
    long long joint = unpaired;
    if (pairing.last_size > 0) {
        for (uint32 row = lane_number(); row < first.count; row += WARP_LANES) {
            const Candidate& candidate = first.rows[row];
            const long long score = score_of(candidate, scoring);
            if ((score + other.score) * UNIT > unpaired) {
                visit_partners(candidate, first.length, second, pairing,
                               [&](const Candidate& partner, int penalty) {
                                   const long long sum = score + score_of(partner, scoring);
                                   joint = max(joint, sum * UNIT - penalty);
                               });
            }
        }
    }
    return warp_maximum(joint);
}

// Return the score of a candidate without the bonus of the ends that it reaches.
__device__ __forceinline__ long long reported_score(const Candidate& candidate, long long length,
                                                    const Scoring& scoring) {
    long long score = score_of(candidate, scoring);
    if (candidate.core_begin == candidate.left_taken) {
        score -= scoring.cost(END_BONUS);
    }
    if (candidate.core_begin + candidate.core_length + candidate.right_taken == length) {
        score -= scoring.cost(END_BONUS);
    }
    return score;
}

// Return the bases that a candidate clips at the end where it clips more.
__device__ __forceinline__ long long clipped_bases(const Candidate& candidate, long long length) {
    const long long end =
        candidate.core_begin + candidate.core_length + candidate.right_taken;
    return max(static_cast<long long>(candidate.core_begin - candidate.left_taken), length - end);
}

// Mark the BEST_KEPT candidates with the best reported scores; of equal ones the first ones. All
// lanes of a warp must call.
__device__ __forceinline__ void mark_best(const Listed& listed, const Scoring& scoring,
                                          uint8* marks) {
    // A larger number is a better score, or the same score of an earlier candidate.
    constexpr long long LOWEST = -(1ll << 62);
    long long last = 1ll << 62;
    for (uint32 turn = 0; turn < BEST_KEPT; ++turn) {
        long long best = LOWEST;
        for (uint32 row = lane_number(); row < listed.count; row += WARP_LANES) {
            const long long score = reported_score(listed.rows[row], listed.length, scoring);
            const long long rank = score * (1ll << 32) + static_cast<long long>(~row);
            if (rank < last) {
                best = max(best, rank);
            }
        }
        last = warp_maximum(best);
        if (last == LOWEST) {
            return;
        }
        if (lane_number() == 0) {
            marks[~static_cast<uint32>(last)] = 1;
        }
    }
}

// Mark the candidates of a mate that may matter. All lanes of a warp must call.
__device__ __forceinline__ void mark_mate(const Listed& listed, const Listed& mate,
                                          const Best& best_of_mate, bool paired, long long joint,
                                          const Pairing& pairing, const Pruning& pruning,
                                          const Scoring& scoring, uint8* marks) {
    const bool has_pairs = paired && pairing.last_size > 0;
    long long rescued = NOTHING;
    if (has_pairs) {
        const long long edits = mate.length / pruning.seed_length;
        const long long loss = scoring.cost(MISMATCH) + scoring.cost(MATCH);
        rescued = (mate.length * scoring.cost(MATCH) + 2 * scoring.cost(END_BONUS) -
                   edits * loss) *
                  UNIT;
    }
    bool has_clip = false;
    for (uint32 row = lane_number(); row < listed.count; row += WARP_LANES) {
        const Candidate& candidate = listed.rows[row];
        long long by_bound = 0;
        long long by_units = 0;
        if (paired && mate.count > 0) {
            by_bound = (best_of_mate.bound - pairing.unpaired) * UNIT;
            by_units = best_of_mate.units - pairing.unpaired * UNIT;
            if (has_pairs) {
                visit_partners(candidate, listed.length, mate, pairing,
                               [&](const Candidate& partner, int penalty) {
                                   const long long bound = partner.bound;
                                   by_bound = max(by_bound, bound * UNIT - penalty);
                                   by_units = max(by_units, units_of(partner, scoring) - penalty);
                               });
            }
        }
        const long long bound = candidate.bound;
        const long long most = bound * UNIT + max(by_bound, rescued);
        const long long weighed = units_of(candidate, scoring) + max(by_units, rescued);
        const bool matters = most >= joint - pruning.margin * UNIT ||
                             weighed >= joint - static_cast<long long>(FARTHEST);
        marks[row] = matters ? 1 : 0;
        has_clip |= matters && clipped_bases(candidate, listed.length) >= LEAST_CLIPPED;
    }
    if (__ballot_sync(ALL_LANES, has_clip) == 0) {
        mark_best(listed, scoring, marks);
        return;
    }
    for (uint32 row = lane_number(); row < listed.count; row += WARP_LANES) {
        marks[row] = 1;
    }
}

// Return the candidates of a read.
__device__ __forceinline__ Listed candidates_of(const Reads& reads, uint64 read,
                                                const Strands& strands,
                                                const Candidate* candidates,
                                                const uint32* counts) {
    return {candidates + first_row(strands, read), counts[read], read_length(reads, read)};
}

// Mark the candidates of all reads that may matter, and count those of each read.
//
// reads        the reads
// scoring      the scores
// pairing      the sizes of templates
// pruning      what candidates are judged by
// strands      the matches of the reads on both strands
// candidates   Candidate[matches], as `score_diagonals` writes them
// counts       uint32[reads.count], how many candidates each read has
// marks        uint8[matches], receives 1 for each candidate that is kept, and 0 for the others
// kept_counts  uint32[reads.count], receives how many candidates of each read are kept
//
// Grid: one warp for each template, or fewer warps that take several templates in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    mark_candidates(Reads reads, Scoring scoring, Pairing pairing, Pruning pruning,
                    Strands strands, const Candidate* candidates, const uint32* counts,
                    uint8* marks, uint32* kept_counts) {
    const bool paired = pruning.mates == 2;
    for (uint64 number = grid_warp(); number < reads.count / pruning.mates;
         number += grid_warps()) {
        const uint64 read = number * pruning.mates;
        const uint64 other = paired ? read + 1 : read;
        const Listed first = candidates_of(reads, read, strands, candidates, counts);
        const Listed second = candidates_of(reads, other, strands, candidates, counts);
        const Best best = best_of(first, scoring);
        const Best best_of_other = paired ? best_of(second, scoring) : Best{0, 0, NOTHING};
        const long long joint =
            joint_score(first, second, best, best_of_other, pairing, scoring, paired);
        for (uint64 mate = 0; mate < pruning.mates; ++mate) {
            const Listed& listed = mate == 0 ? first : second;
            uint8* const own = marks + first_row(strands, read + mate);
            if (pruning.is_needed == 0) {
                for (uint32 row = lane_number(); row < listed.count; row += WARP_LANES) {
                    own[row] = 1;
                }
            } else {
                mark_mate(listed, mate == 0 ? second : first, mate == 0 ? best_of_other : best,
                          paired, joint, pairing, pruning, scoring, own);
            }
            __syncwarp();
            uint32 kept = 0;
            for (uint32 row = lane_number(); row < listed.count; row += WARP_LANES) {
                kept += own[row];
            }
            uint32 total;
            warp_exclusive_sum(kept, total);
            if (lane_number() == 0) {
                kept_counts[read + mate] = total;
            }
        }
    }
}

// Write the candidates that are kept, one after the other.
//
// reads       the reads
// strands     the matches of the reads on both strands
// candidates  Candidate[matches], as `score_diagonals` writes them
// counts      uint32[reads.count], how many candidates each read has
// marks       uint8[matches], as `mark_candidates` writes them
// offsets     uint64[reads.count + 1], where the kept candidates of each read begin
// kept        Candidate[offsets[reads.count]], receives the candidates
//
// Grid: one warp for each read, or fewer warps that take several reads in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    write_candidates(Reads reads, Strands strands, const Candidate* candidates,
                     const uint32* counts, const uint8* marks, const uint64* offsets,
                     Candidate* kept) {
    for (uint64 read = grid_warp(); read < reads.count; read += grid_warps()) {
        const uint64 place = first_row(strands, read);
        uint64 filled = offsets[read];
        for (uint32 first = 0; first < counts[read]; first += WARP_LANES) {
            const uint32 row = first + lane_number();
            const bool is_kept = row < counts[read] && marks[place + row] != 0;
            const uint32 lanes = __ballot_sync(ALL_LANES, is_kept);
            if (is_kept) {
                kept[filled + __popc(lanes & lowest_bits(lane_number()))] = candidates[place + row];
            }
            filled += __popc(lanes);
        }
    }
}
