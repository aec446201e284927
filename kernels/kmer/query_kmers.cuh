// Looks up k-mers of the queries in a table of k-mers, and extends them to MEMs.
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
__device__ __forceinline__ uint32 kmer_bases(const Table& table) {
    return table.kmer_length + (table.picked_of > 0 ? table.picked_of - 1 : 0);
}

// No seed before another is taken: what a query k-mer finds is found for the first time.
constexpr uint32 NO_SEED_BEFORE = ~0u;

// All occurrences of a query k-mer count, wherever in the reference they are.
constexpr uint32 ALL_PLACES = ~0u;

// A k-mer of a block, or of a window or a longer seed of a query; or the first of those of which
// one is picked.
struct PlacedKmer {
    uint32 place;        // where it begins in the block
    uint16 kmer_offset;  // the bases of its window before it
    uint16 window;       // the bases of its window
    uint32 left_limit;  // where a match reaches so far to the left, an earlier query k-mer finds it
    uint32 thinning_bits;  // only occurrences count whose `thinning_hash` has so few bits
};

static_assert(sizeof(PlacedKmer) == PLACED_KMER_BYTES, "as the host allocates them");

// The query k-mers: the k-mers at every `step`-th position of a block of queries, or some of those
// in each window of each query.
struct QueryKmers {
    const BitPlanes* queries;  // the block
    uint64 count;              // the number of query k-mers
    const PlacedKmer* placed;  // PlacedKmer[count]; null without windows
    uint32 step;               // the bases from one query k-mer to the next
    uint32 sampling_step;      // the bases from one pair of a MEM to the next; with windows, more
                               // than most MEMs have before their query k-mer
    uint32 window;             // the bases of the window that a MEM has whole; 0 for all MEMs
    uint32 kmers_of_window;  // the last k-mers of a window that are query k-mers; 1 without windows
    uint32 minimum_length;   // the fewest bases of a MEM
    uint32 only_fronts;      // whether MEMs that lie in others of their query k-mer may be left out
};

// A k-mer of the queries and its occurrences.
struct QueryKmer {
    uint32 position;    // where the k-mer begins in the block
    Flanks flanks;      // the bases around the position
    uint32 window;      // the bases of its window (upper half; 0 without windows), and those of it
                        // before the k-mer: one register and one shuffle for both
    uint32 left_limit;  // for a mapper: where a match reaches so far to the left, an earlier query
                        // k-mer finds it
    uint32 thinning_bits;  // for a mapper: only occurrences count whose `thinning_hash` has so few
                           // bits
    uint32 list_begin;     // the k-mer's first occurrence, as an index of `Table::positions`
    uint32 list_end;       // the end of its occurrences, as an index of `Table::positions`
    bool is_ordered;       // whether the occurrences are sorted by the bases before each
};

// Return the bases of a query k-mer's window before its k-mer.
__device__ __forceinline__ uint32 offset_in_window(const QueryKmer& kmer) {
    return kmer.window & 0xffff;
}

// Return how far a match must reach to the left for an earlier query k-mer to find it.
__device__ __forceinline__ uint32 left_limit_of(const QueryKmers& kmers, const QueryKmer& kmer) {
    // Without windows, the bases before a k-mer are those of the span that it is picked of.
    return FOR_MAPPING ? kmer.left_limit : kmers.sampling_step + kmer.window;
}

// Return whether the MEMs of a query k-mer have to be sorted. With a sampling step of one base they
// share a query start and are sorted already; a mapper sorts matches by their diagonals.
__device__ __forceinline__ bool sorts_mems(const QueryKmers& kmers) {
    return !FOR_MAPPING && kmers.sampling_step > 1;
}

// A query k-mer extended at one occurrence.
struct Extension {
    uint32 occurrence;  // the position of the k-mer in the part
    uint32 left;        // the number of matching bases before the k-mer
    uint32 length;      // of the whole match; 0 if it is no MEM or an earlier query k-mer finds it
};

// Return a number that is larger than the left extension of each MEM, or with windows of most.
__device__ __forceinline__ uint32 beyond_left(const QueryKmers& kmers, const Table& table) {
    return kmers.sampling_step + (table.picked_of > 0 ? table.picked_of - 1 : 0);
}

// Return whether an occurrence of a query k-mer counts, by where in the reference its seed begins.
__device__ __forceinline__ bool is_spread(const QueryKmer& kmer, uint64 seed_begin) {
    const uint32 key = static_cast<uint32>(seed_begin) * THINNING_FACTOR;
    return !FOR_MAPPING || kmer.thinning_bits >= THINNING_BITS || key >> kmer.thinning_bits == 0;
}

// Return the first place in a sorted list at which the bases before the occurrence come after those
// before the query k-mer, or, unless `after_equal`, are the same. `bases` bases are compared; the
// list is sorted by at least as many. A break before the query k-mer equals no base.
__device__ __forceinline__ uint32 place_by_bases(const QueryKmers& kmers, const Table& table,
                                                 const QueryKmer& kmer, uint32 bases, uint32 low,
                                                 bool after_equal) {
    const long long query = static_cast<long long>(kmer.position);
    uint32 high = kmer.list_end;
    while (low < high) {
        const uint32 middle = low + (high - low) / 2;
        const long long reference =
            static_cast<long long>(table.part_begin + __ldg(table.positions + middle));
        bool is_before = after_equal;
        for (uint32 left = 0; left < bases; left += WORD_BASES) {
            const BitPlanes mine =
                left == 0 ? kmer.flanks.left : load_query_flanks(kmers.queries, query - left).left;
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

// Return where a query k-mer begins: the one that is picked, if the table lists such.
// Return false if none is picked.
__device__ __forceinline__ bool pick_kmer(const QueryKmers& kmers, const Table& table,
                                          PlacedKmer& placed) {
    if (table.picked_of == 0) {
        return true;
    }
    const Flanks flanks = load_query_flanks(kmers.queries, static_cast<long long>(placed.place));
    const uint32 picked = picked_kmer(flanks.right, table.kmer_length, table.picked_of);
    if (picked == NOT_PICKED) {
        return false;
    }
    placed.place += picked;
    placed.kmer_offset = static_cast<uint16>(placed.kmer_offset + picked);
    placed.left_limit += placed.left_limit == NO_SEED_BEFORE ? 0 : picked;
    return true;
}

// Return a query k-mer with those occurrences of its k-mer at which a MEM may be. A k-mer with a
// break has no occurrences, and those of a skipped query k-mer are left out. In a sorted list,
// those lie side by side that the query k-mer's window precedes, or as many of its bases as the
// list is sorted by; in another, all are returned.
__device__ __forceinline__ QueryKmer look_up(const QueryKmers& kmers, const Table& table,
                                             PlacedKmer placed) {
    const bool is_picked = pick_kmer(kmers, table, placed);
    QueryKmer kmer;
    kmer.position = placed.place;
    kmer.flanks = load_query_flanks(kmers.queries, static_cast<long long>(kmer.position));
    kmer.window = static_cast<uint32>(placed.window) << 16 | placed.kmer_offset;
    kmer.left_limit = placed.left_limit;
    kmer.thinning_bits = placed.thinning_bits;
    kmer.list_begin = kmer.list_end = 0;
    kmer.is_ordered = false;
    const BitPlanes& right = kmer.flanks.right;
    if (is_picked && (right.breaks & ((1u << table.kmer_length) - 1)) == 0) {
        const uint32 number = first_kmer(right, table.kmer_length);
        kmer.list_begin = __ldg(table.offsets + number);
        kmer.list_end = __ldg(table.offsets + number + 1);
        kmer.is_ordered = kmer.list_end - kmer.list_begin > table.longest_ascending;
        const uint32 known = min(offset_in_window(kmer), table.ordered_bases);
        if (kmer.is_ordered && known > 0) {
            kmer.list_begin = place_by_bases(kmers, table, kmer, known, kmer.list_begin, false);
            kmer.list_end = place_by_bases(kmers, table, kmer, known, kmer.list_begin, true);
        }
    }
    return kmer;
}

// Return where the query k-mer with a number is.
__device__ __forceinline__ PlacedKmer place_of_kmer(const QueryKmers& kmers, uint64 number) {
    if (!FOR_MAPPING || kmers.placed == nullptr) {
        const uint32 place = static_cast<uint32>(number) * kmers.step;
        return {place, 0, 0, kmers.sampling_step, ALL_PLACES};
    }
    return kmers.placed[number];
}

// Return the query k-mer with a number (`look_up`).
__device__ __forceinline__ QueryKmer load_kmer(const QueryKmers& kmers, const Table& table,
                                               uint64 number) {
    return look_up(kmers, table, place_of_kmer(kmers, number));
}

// Return the number of occurrences of a query k-mer at which a MEM may be.
__device__ __forceinline__ uint32 occurrence_count(const QueryKmer& kmer) {
    return kmer.list_end - kmer.list_begin;
}

// Extend a query k-mer at the occurrence `Table::positions[index]` of its k-mer.
__device__ __forceinline__ Extension extend(const QueryKmers& kmers, const Table& table,
                                            const QueryKmer& kmer, uint32 index) {
    Extension found;
    found.occurrence = __ldg(table.positions + index);
    found.length = 0;
    const long long query = static_cast<long long>(kmer.position);
    const long long reference = static_cast<long long>(table.part_begin + found.occurrence);
    if (!is_spread(kmer, static_cast<uint64>(reference) - offset_in_window(kmer))) {
        return found;
    }
    const Flanks there = load_flanks(table.reference, reference);
    uint32 different = mismatches(kmer.flanks.left, there.left);
    found.left = __clz(different);
    const uint32 too_far = left_limit_of(kmers, kmer);
    while (different == 0 && found.left < too_far) {
        different = mismatches(load_query_flanks(kmers.queries, query - found.left).left,
                               load_flanks(table.reference, reference - found.left).left);
        found.left += __clz(different);
    }
    if (found.left < offset_in_window(kmer) || found.left >= too_far) {
        return found;
    }
    different = mismatches(kmer.flanks.right, there.right);
    uint32 right = different == 0 ? WORD_BASES : __ffs(different) - 1;
    while (different == 0) {
        BitPlanes ahead = load_flanks(kmers.queries, query + right).right;
        ahead.breaks |= ahead.starts;
        different = mismatches(ahead, load_flanks(table.reference, reference + right).right);
        right += different == 0 ? WORD_BASES : __ffs(different) - 1;
    }
    const bool has_window = !FOR_MAPPING || offset_in_window(kmer) + right >= kmer.window >> 16;
    if (found.left + right >= kmers.minimum_length && has_window) {
        found.length = found.left + right;
    }
    return found;
}
