// What the filters of profiles do besides: pack proteins, bound the cells of SSV, and compare with
// the background that has the profile's composition.
#include "hmm/residues.cuh"

// Write sequences as `Sequences` has them.
//
// codes            uint8[], the residues of all sequences, as they were read
// begins           uint64[sequence_count], where each sequence begins in `codes`
// sequences        where they are written; the lengths and the first words are there
// sequence_count   how many there are
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
pack_sequences(const uint8* codes, const uint64* begins, Sequences sequences,
               uint64 sequence_count) {
    for (uint64 number = grid_warp(); number < sequence_count; number += grid_warps()) {
        const uint8* source = codes + begins[number];
        const uint32 length = sequences.lengths[number];
        uint8* target = reinterpret_cast<uint8*>(
            const_cast<uint2*>(sequences.words + sequences.first_words[number]));
        const uint32 end = word_count(length) * WORD_RESIDUES;
        for (uint32 place = lane_number(); place < end; place += WARP_LANES) {
            target[place] = place < length ? source[place] : static_cast<uint8>(PADDING_CODE);
        }
    }
}

// What decides which cells of SSV pass, for a profile.
struct Limits {
    uint32 entry;  // the cost of the step into some node
    uint32 bias;   // the highest score of a match
    float score;   // in bits, from which on MSV lets pass
    uint32 unused;
};

static_assert(sizeof(Limits) == LIMITS_BYTES, "as the host writes them");

// Return in bits what the best byte that left the profile scores against the background. All
// divisions and differences are HMMER's, in its precision.
__device__ __forceinline__ float bits_of_byte(int left, int move, float background) {
    const float third = __fdiv_rn(static_cast<float>(left - move - static_cast<int>(BYTE_BASE)),
                                  __uint_as_float(BYTE_SCALE_BITS));
    const float nats = __fsub_rn(__fsub_rn(third, 3.0f), background);
    return static_cast<float>(
        __ddiv_rn(static_cast<double>(nats), __longlong_as_double(LN2_BITS)));
}

// Find for profiles and lengths the least cell of SSV with which a sequence may pass MSV.
//
// limits        Limits[profiles]
// profiles      how many there are
// backgrounds   float[lengths], the score of the background in nats
// moves         uint32[lengths], the cost of the steps outside the profile
// lengths       one more than the longest
// least         uint8[profiles * lengths], receives the cells, by profile and length
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
bound_cells(const Limits* limits, uint64 profiles, const float* backgrounds, const uint32* moves,
            uint64 lengths, uint8* least) {
    for (uint64 number = grid_thread(); number < profiles * lengths; number += grid_threads()) {
        const Limits limit = limits[number / lengths];
        const int move = static_cast<int>(moves[number % lengths]);
        const float background = backgrounds[number % lengths];
        const int costs = move + static_cast<int>(limit.entry);
        const int bias = static_cast<int>(limit.bias);
        const int begin = static_cast<int>(BYTE_BASE) - costs;
        const int leave = static_cast<int>(BYTE_LEAVE);
        // From `high` on MSV decides, or the score does not fit; see `msv_from_ssv` of the host.
        int low = 0;
        int high = min(min(127 - bias, leave + 1 + costs), 255 - bias - begin);
        if (costs + leave + bias >= 127) {
            high = 0;
        }
        while (low < high) {
            const int middle = (low + high) / 2;
            if (bits_of_byte(middle + begin - leave, move, background) >= limit.score) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        least[number] = static_cast<uint8>(max(low, 0));
    }
}

// Compute for pairs of sequences and profiles the chance of the sequence under a background of two
// states, one with the profile's composition, against one of them.
//
// sequences    the proteins
// pairs        uint64[pair_count], profile << 32 | sequence
// pair_count   how many there are
// odds         double[profiles * ODDS_OF_PROFILE], for each profile those of each code, then the
//              chances to leave the profile's composition and to stay
// sums         double[2 * pair_count], receives the chance of each pair, scaled, and how often it
//              was scaled up by 1e100
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
sum_compositions(Sequences sequences, const uint64* pairs, uint64 pair_count, const double* odds,
                 double* sums) {
    for (uint64 number = grid_thread(); number < pair_count; number += grid_threads()) {
        const uint32 sequence = static_cast<uint32>(pairs[number]);
        const double* own = odds + (pairs[number] >> 32) * ODDS_OF_PROFILE;
        const double leave = own[ODDS_OF_PROFILE - 2];
        const double remain = own[ODDS_OF_PROFILE - 1];
        const uint32 length = sequences.lengths[sequence];
        const uint2* words = sequences.words + sequences.first_words[sequence];
        const double stay = length / (length + 1.0);
        double plain = 0.999;
        double biased = 0.001;
        double scaled = 0;
        uint2 now = words[0];
        for (uint32 place = 0; place < length; ++place) {
            if (place % WORD_RESIDUES == 0) {
                now = words[place / WORD_RESIDUES];
            }
            const uint32 code = __byte_perm(now.x, now.y, place % WORD_RESIDUES) & 255u;
            if (place > 0) {
                const double leaving = plain * (1.0 - stay);
                plain = plain * stay + biased * leave;
                biased = leaving + biased * remain;
            }
            biased *= own[code];
            const double total = plain + biased;
            if (total < 1e-100) {
                plain *= 1e100;
                biased *= 1e100;
                scaled += 1;
            } else if (total > 1e100) {
                plain *= 1e-100;
                biased *= 1e-100;
                scaled -= 1;
            }
        }
        sums[2 * number] = plain + biased;
        sums[2 * number + 1] = scaled;
    }
}
