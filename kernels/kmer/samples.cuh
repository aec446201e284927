// Looks up samples of the queries in a table of k-mers, and extends them to MEMs.
#pragma once

#include "common/bit_planes.cuh"
#include "kmer/picked_kmers.cuh"

// The occurrences of all k-mers in one part of the reference.
struct Table {
    const uint32* offsets;       // uint32[4**kmer_length + 1], where each k-mer's list begins
    const uint32* positions;     // uint32[offsets[4**kmer_length]], occurrences in the part
    uint64 part_begin;           // the part's first base, as a position in the joined reference
    const BitPlanes* reference;  // the joined reference
    uint32 kmer_length;          // in bases
    uint32 longest_ascending;    // longer lists are sorted by the bases before each occurrence
    uint32 ordered_bases;        // by this many of them; 0 if all lists ascend
    uint32 picked_of;            // of this many k-mers side by side one is listed; 0 if
                                 // those at a step are listed
};

// Return the bases by which a k-mer is looked up: those of the k-mers of which one is picked.
__device__ __forceinline__ uint32 sample_bases(const Table& table) {
    return table.kmer_length + (table.picked_of > 0 ? table.picked_of - 1 : 0);
}

// No seed before another is taken: what a sample finds is found for the first time.
constexpr uint32 NO_SEED_BEFORE = ~0u;

// All occurrences of a sample count, wherever in the reference they are.
constexpr uint32 ALL_PLACES = ~0u;

// A k-mer of a block, or of a window or a longer seed of a query; or the first of those of which one
// is picked.
struct PlacedSample {
    uint32 place;         // where it begins in the block
    uint16 lead;          // the bases of its window before it
    uint16 window;        // the bases of its window
    uint32 found_before;  // where a match reaches so far to the left, an earlier sample finds it
    uint32 thinning_bits;   // only occurrences count whose `thinning_hash` has so few bits
};

static_assert(sizeof(PlacedSample) == PLACED_SAMPLE_BYTES, "as the host allocates them");

// The samples: the k-mers at every `step`-th position of a block of queries, or some of those in each
// window of each query.
struct Samples {
    const BitPlanes* queries;  // the block
    uint64 count;              // the number of samples
    const PlacedSample* placed;  // PlacedSample[count]; null without windows
    uint32 step;               // the bases from one sample to the next
    uint32 period;             // the bases from one pair of a MEM to the next; with windows, more
                               // than most MEMs have before their sample
    uint32 window;             // the bases of the window that a MEM has whole; 0 for all MEMs
    uint32 samples_of_window;  // the last k-mers of a window that are samples; 1 without windows
    uint32 minimum_length;     // the fewest bases of a MEM
    uint32 only_fronts;        // whether MEMs that lie in others of their sample may be left out
};

// A k-mer of the queries and its occurrences.
struct Sample {
    uint32 position;    // where the k-mer begins in the block
    Flanks flanks;      // the bases around the position
    uint32 window;      // the bases of its window (upper half; 0 without windows), and those of it
                        // before the k-mer: one register and one shuffle for both
    uint32 found_before;  // for a mapper: where a match reaches so far to the left, an earlier sample
                          // finds it
    uint32 thinning_bits;   // for a mapper: only occurrences count whose `thinning_hash` has so few bits
    uint32 list_begin;  // the k-mer's first occurrence, as an index of `Table::positions`
    uint32 list_end;    // the end of its occurrences, as an index of `Table::positions`
    bool is_ordered;    // whether the occurrences are sorted by the bases before each
};

// Return the bases of a sample's window before its k-mer.
__device__ __forceinline__ uint32 lead_of(const Sample& sample) { return sample.window & 0xffff; }

// Return how far a match must reach to the left for an earlier sample to find it.
__device__ __forceinline__ uint32 found_before(const Samples& samples, const Sample& sample) {
    // Without windows, the bases before a k-mer are those of the span that it is picked of.
    return FOR_MAPPING ? sample.found_before : samples.period + sample.window;
}

// Return whether the MEMs of a sample have to be sorted. With a period of one base they share a query
// start and are sorted already; a mapper sorts matches by their diagonals.
__device__ __forceinline__ bool sorts_mems(const Samples& samples) {
    return !FOR_MAPPING && samples.period > 1;
}

// A sample extended at one occurrence.
struct Extension {
    uint32 occurrence;  // the position of the k-mer in the part
    uint32 left;        // the number of matching bases before the k-mer
    uint32 length;      // of the whole match; 0 if it is no MEM or an earlier sample finds it
};

// Return a number that is larger than the left extension of each MEM, or with windows of most.
__device__ __forceinline__ uint32 beyond_left(const Samples& samples, const Table& table) {
    return samples.period + (table.picked_of > 0 ? table.picked_of - 1 : 0);
}

// Return whether an occurrence of a sample counts, by where in the reference its seed begins.
__device__ __forceinline__ bool is_spread(const Sample& sample, uint64 seed_begin) {
    const uint32 key = static_cast<uint32>(seed_begin) * THINNING_FACTOR;
    return !FOR_MAPPING || sample.thinning_bits >= THINNING_BITS || key >> sample.thinning_bits == 0;
}

// Return the first place in a sorted list at which the bases before the occurrence come after those
// before the sample, or, unless `after_equal`, are the same. `bases` bases are compared; the list
// is sorted by at least as many. A break before the sample equals no base.
__device__ __forceinline__ uint32 place_by_bases(const Samples& samples, const Table& table,
                                                 const Sample& sample, uint32 bases, uint32 low,
                                                 bool after_equal) {
    const long long query = static_cast<long long>(sample.position);
    uint32 high = sample.list_end;
    while (low < high) {
        const uint32 middle = low + (high - low) / 2;
        const long long reference =
            static_cast<long long>(table.part_begin + __ldg(table.positions + middle));
        bool is_before = after_equal;
        for (uint32 left = 0; left < bases; left += WORD_BASES) {
            const BitPlanes mine =
                left == 0 ? sample.flanks.left
                          : load_query_flanks(samples.queries, query - left).left;
            const BitPlanes there = bases_before(table.reference, reference - left);
            const uint32 different = mismatches(mine, there);
            if (different != 0) {
                const uint32 equal = __clz(different);
                if (left + equal < bases) {
                    const uint32 base = WORD_BASES - 1 - equal;
                    is_before = code_of(there, base) < code_of(mine, base);
                }
                break;
            }
        }
        if (is_before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Return where the k-mer of a sample begins: the one that is picked, if the table lists such. Return
// false if none is picked.
__device__ __forceinline__ bool pick_kmer(const Samples& samples, const Table& table,
                                          PlacedSample& placed) {
    if (table.picked_of == 0) {
        return true;
    }
    const Flanks flanks =
        load_query_flanks(samples.queries, static_cast<long long>(placed.place));
    const uint32 picked = picked_kmer(flanks.right, table.kmer_length, table.picked_of);
    if (picked == NOT_PICKED) {
        return false;
    }
    placed.place += picked;
    placed.lead = static_cast<uint16>(placed.lead + picked);
    placed.found_before += placed.found_before == NO_SEED_BEFORE ? 0 : picked;
    return true;
}

// Return a sample with those occurrences of its k-mer at which a MEM may be. A k-mer with a break
// has no occurrences, and those of a skipped sample are left out. In a sorted list, those lie side
// by side that the sample's window precedes, or as many of its bases as the list is sorted by; in
// another, all are returned.
__device__ __forceinline__ Sample look_up(const Samples& samples, const Table& table,
                                          PlacedSample placed) {
    const bool is_picked = pick_kmer(samples, table, placed);
    Sample sample;
    sample.position = placed.place;
    sample.flanks =
        load_query_flanks(samples.queries, static_cast<long long>(sample.position));
    sample.window = static_cast<uint32>(placed.window) << 16 | placed.lead;
    sample.found_before = placed.found_before;
    sample.thinning_bits = placed.thinning_bits;
    sample.list_begin = sample.list_end = 0;
    sample.is_ordered = false;
    const BitPlanes& right = sample.flanks.right;
    if (is_picked && (right.breaks & ((1u << table.kmer_length) - 1)) == 0) {
        const uint32 kmer = first_kmer(right, table.kmer_length);
        sample.list_begin = __ldg(table.offsets + kmer);
        sample.list_end = __ldg(table.offsets + kmer + 1);
        sample.is_ordered = sample.list_end - sample.list_begin > table.longest_ascending;
        const uint32 known = min(lead_of(sample), table.ordered_bases);
        if (sample.is_ordered && known > 0) {
            sample.list_begin =
                place_by_bases(samples, table, sample, known, sample.list_begin, false);
            sample.list_end =
                place_by_bases(samples, table, sample, known, sample.list_begin, true);
        }
    }
    return sample;
}

// Return where the sample with a number is.
__device__ __forceinline__ PlacedSample place_of_sample(const Samples& samples, uint64 number) {
    if (!FOR_MAPPING || samples.placed == nullptr) {
        const uint32 place = static_cast<uint32>(number) * samples.step;
        return {place, 0, 0, samples.period, ALL_PLACES};
    }
    return samples.placed[number];
}

// Return the sample with a number (`look_up`).
__device__ __forceinline__ Sample load_sample(const Samples& samples, const Table& table,
                                              uint64 number) {
    return look_up(samples, table, place_of_sample(samples, number));
}

// Return the number of occurrences of a sample at which a MEM may be.
__device__ __forceinline__ uint32 occurrence_count(const Sample& sample) {
    return sample.list_end - sample.list_begin;
}

// Extend a sample at the occurrence `Table::positions[index]` of its k-mer.
__device__ __forceinline__ Extension extend(const Samples& samples, const Table& table,
                                            const Sample& sample, uint32 index) {
    Extension found;
    found.occurrence = __ldg(table.positions + index);
    found.length = 0;
    const long long query = static_cast<long long>(sample.position);
    const long long reference = static_cast<long long>(table.part_begin + found.occurrence);
    if (!is_spread(sample, static_cast<uint64>(reference) - lead_of(sample))) {
        return found;
    }
    const Flanks there = load_flanks(table.reference, reference);
    uint32 different = mismatches(sample.flanks.left, there.left);
    found.left = __clz(different);
    const uint32 too_far = found_before(samples, sample);
    while (different == 0 && found.left < too_far) {
        different = mismatches(load_query_flanks(samples.queries, query - found.left).left,
                               load_flanks(table.reference, reference - found.left).left);
        found.left += __clz(different);
    }
    if (found.left < lead_of(sample) || found.left >= too_far) {
        return found;
    }
    different = mismatches(sample.flanks.right, there.right);
    uint32 right = different == 0 ? WORD_BASES : __ffs(different) - 1;
    while (different == 0) {
        BitPlanes ahead = load_flanks(samples.queries, query + right).right;
        ahead.breaks |= ahead.starts;
        different = mismatches(ahead, load_flanks(table.reference, reference + right).right);
        right += different == 0 ? WORD_BASES : __ffs(different) - 1;
    }
    const bool has_window = !FOR_MAPPING || lead_of(sample) + right >= sample.window >> 16;
    if (found.left + right >= samples.minimum_length && has_window) {
        found.length = found.left + right;
    }
    return found;
}
