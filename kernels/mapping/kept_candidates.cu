// Keeps the candidates that may matter, and writes them one after the other.
//
// The rules are those of the processor's pruning of candidates, and so are the names. A warp works on a
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
    long long margin;  // placements worse than the best by more points do not matter
    uint64 mates;      // the reads of a template
    uint64 is_needed;  // 0 to keep all candidates
};

// The candidates of a read.
struct Listed {
    const Candidate* rows;
    uint32 count;
    int length;  // the bases of the read
};

// The best of the candidates of a read.
struct Best {
    int score;        // in points; 0 if there are none
    int bound;        // in points; 0 if there are none
    long long units;  // NOTHING if there are none
};

// Return the largest of the lanes' numbers. All lanes of a warp must call.
template <typename Number>
__device__ __forceinline__ Number warp_maximum(Number value) {
#pragma unroll
    for (uint32 distance = WARP_LANES / 2; distance > 0; distance /= 2) {
        value = max(value, __shfl_sync(ALL_LANES, value, lane_number() ^ distance));
    }
    return value;
}

// Return points in units.
__device__ __forceinline__ long long in_units(long long points) {
    return points * UNIT;
}

// Return the score of a candidate in units, with its credit.
__device__ __forceinline__ long long units_of(const Candidate& candidate, const Scoring& scoring) {
    return in_units(score_of(candidate, scoring)) + candidate.credit;
}

// Return the best of the candidates of a read. All lanes of a warp must call.
__device__ __forceinline__ Best best_of(const Listed& listed, const Scoring& scoring) {
    Best best = {0, 0, NOTHING};
    for (uint32 row = lane_number(); row < listed.count; row += WARP_LANES) {
        const Candidate& candidate = listed.rows[row];
        best.score = max(best.score, score_of(candidate, scoring));
        best.bound = max(best.bound, candidate.bound);
        best.units = max(best.units, units_of(candidate, scoring));
    }
    return {warp_maximum(best.score), warp_maximum(best.bound), warp_maximum(best.units)};
}

// Return the first candidate on a strand whose diagonal is not less, or the number of candidates.
__device__ __forceinline__ uint32 first_not_before(const Listed& listed, uint32 strand,
                                                   long long diagonal) {
    return first_that<uint32>(0, listed.count, [&](uint32 row) {
        const Candidate& here = listed.rows[row];
        return here.strand > strand || (here.strand == strand && here.diagonal >= diagonal);
    });
}

// Call `visit` with each candidate of the mate that forms a proper pair with a candidate, and with
// the penalty of the pair.
template <typename Visit>
__device__ __forceinline__ void visit_partners(const Candidate& candidate, int length,
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
                                                 const Pairing& pairing, const Scoring& scoring) {
    if (best.score == 0 || other.score == 0) {
        return in_units(best.score + other.score);
    }
    const long long unpaired = in_units(best.score + other.score - pairing.unpaired);
    long long joint = unpaired;
    if (pairing.last_size > 0) {
        for (uint32 row = lane_number(); row < first.count; row += WARP_LANES) {
            const int score = score_of(first.rows[row], scoring);
            if (in_units(score + other.score) > unpaired) {
                visit_partners(first.rows[row], first.length, second, pairing,
                               [&](const Candidate& partner, int penalty) {
                                   const int sum = score + score_of(partner, scoring);
                                   joint = max(joint, in_units(sum) - penalty);
                               });
            }
        }
    }
    return warp_maximum(joint);
}

// Return the score of a candidate without the bonus of the ends that it reaches.
__device__ __forceinline__ int reported_score(const Candidate& candidate, int length,
                                              const Scoring& scoring) {
    int score = score_of(candidate, scoring);
    if (candidate.seed_begin == candidate.left_query_bases) {
        score -= scoring.cost(END_BONUS);
    }
    if (candidate.seed_begin + candidate.seed_bases + candidate.right_query_bases == length) {
        score -= scoring.cost(END_BONUS);
    }
    return score;
}

// Return the bases that a candidate clips at the end where it clips more.
__device__ __forceinline__ int clipped_bases(const Candidate& candidate, int length) {
    const int end = candidate.seed_begin + candidate.seed_bases + candidate.right_query_bases;
    return max(candidate.seed_begin - candidate.left_query_bases, length - end);
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

// Return the most that a mate may score which is found beside a read only, in units.
__device__ __forceinline__ long long max_rescued_score(int length, const Pruning& pruning,
                                                     const Scoring& scoring) {
    const int edits = length / static_cast<int>(pruning.seed_length);
    const int loss = scoring.cost(MISMATCH) + scoring.cost(MATCH);
    return in_units(length * scoring.cost(MATCH) + 2 * scoring.cost(END_BONUS) - edits * loss);
}

// Mark the candidates of a read that may matter, and return how many there are, in every lane. All
// lanes of a warp must call.
//
// listed        the candidates of the read
// mate          those of its mate, none if it has no mate
// best_of_mate  the best of those
// joint         the best joint score of the template, in units
// has_pairs     whether mates can be a proper pair
// marks         uint8[listed.count], receives 1 for a candidate that is kept, and 0 for the others
__device__ __forceinline__ uint32 mark_read(const Listed& listed, const Listed& mate,
                                            const Best& best_of_mate, long long joint,
                                            bool has_pairs, const Pairing& pairing,
                                            const Pruning& pruning, const Scoring& scoring,
                                            uint8* marks) {
    const long long rescued = has_pairs ? max_rescued_score(mate.length, pruning, scoring) : NOTHING;
    bool has_clip = false;
    for (uint32 row = lane_number(); row < listed.count; row += WARP_LANES) {
        const Candidate& candidate = listed.rows[row];
        long long by_bound = 0;
        long long by_units = 0;
        if (mate.count > 0) {
            by_bound = in_units(best_of_mate.bound - pairing.unpaired);
            by_units = best_of_mate.units - in_units(pairing.unpaired);
            if (has_pairs) {
                visit_partners(candidate, listed.length, mate, pairing,
                               [&](const Candidate& partner, int penalty) {
                                   by_bound = max(by_bound, in_units(partner.bound) - penalty);
                                   by_units = max(by_units, units_of(partner, scoring) - penalty);
                               });
            }
        }
        const long long most = in_units(candidate.bound) + max(by_bound, rescued);
        const long long weighed = units_of(candidate, scoring) + max(by_units, rescued);
        const bool matters = most >= joint - in_units(pruning.margin) ||
                             weighed >= joint - static_cast<long long>(FARTHEST);
        marks[row] = matters ? 1 : 0;
        has_clip |= matters &&
                    clipped_bases(candidate, listed.length) >= static_cast<int>(MIN_CLIPPED);
    }
    const bool keeps_all = pruning.is_needed == 0 || __ballot_sync(ALL_LANES, has_clip) != 0;
    if (!keeps_all) {
        mark_best(listed, scoring, marks);
    }
    __syncwarp();
    uint32 kept = 0;
    for (uint32 row = lane_number(); row < listed.count; row += WARP_LANES) {
        if (keeps_all) {
            marks[row] = 1;
        }
        kept += marks[row];
    }
    uint32 total;
    warp_exclusive_sum(kept, total);
    return total;
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
    const bool has_pairs = paired && pairing.last_size > 0;
    for (uint64 number = grid_warp(); number < reads.count / pruning.mates;
         number += grid_warps()) {
        const uint64 read = number * pruning.mates;
        const Listed first = candidates_of(reads, read, strands, candidates, counts);
        Listed second = {candidates, 0, 0};
        if (paired) {
            second = candidates_of(reads, read + 1, strands, candidates, counts);
        }
        const Best best = best_of(first, scoring);
        const Best other = best_of(second, scoring);
        const long long joint = joint_score(first, second, best, other, pairing, scoring);
        const uint32 kept = mark_read(first, second, other, joint, has_pairs, pairing, pruning,
                                      scoring, marks + first_row(strands, read));
        if (lane_number() == 0) {
            kept_counts[read] = kept;
        }
        if (paired) {
            const uint32 kept_of_mate =
                mark_read(second, first, best, joint, has_pairs, pairing, pruning, scoring,
                          marks + first_row(strands, read + 1));
            if (lane_number() == 0) {
                kept_counts[read + 1] = kept_of_mate;
            }
        }
    }
}

// Write the candidates that are kept, one after the other.
//
// strands     the matches of the reads on both strands
// read_count  the number of reads
// candidates  Candidate[matches], as `score_diagonals` writes them
// counts      uint32[read_count], how many candidates each read has
// marks       uint8[matches], as `mark_candidates` writes them
// offsets     uint64[read_count + 1], where the kept candidates of each read begin
// kept        Candidate[offsets[read_count]], receives the candidates
//
// Grid: one warp for each read, or fewer warps that take several reads in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    write_candidates(Strands strands, uint64 read_count, const Candidate* candidates,
                     const uint32* counts, const uint8* marks, const uint64* offsets,
                     Candidate* kept) {
    for (uint64 read = grid_warp(); read < read_count; read += grid_warps()) {
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
