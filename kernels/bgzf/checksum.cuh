// The CRC-32 of gzip, computed by a warp.
//
// A text is a polynomial over GF(2), and its checksum the remainder modulo another one. The bits of
// a remainder are reflected: the highest one is the coefficient of x^0. Each lane computes the
// remainder of a part of the text. That of two parts together is the sum of the right one and of
// the left one times x^8 for each byte of the right part.
#pragma once

#include "common/warp.cuh"

constexpr uint32 ONE = 1u << 31;
constexpr uint32 BYTE_SHIFT = ONE >> 8;

// Return a remainder times x.
__device__ __forceinline__ uint32 times_x(uint32 remainder) {
    return remainder >> 1 ^ ((remainder & 1) != 0 ? CRC32_POLYNOMIAL : 0);
}

// Return the product of two remainders.
__device__ __forceinline__ uint32 product(uint32 one, uint32 other) {
    uint32 sum = 0;
    for (uint32 bit = ONE; bit != 0; bit >>= 1) {
        sum ^= (one & bit) != 0 ? other : 0;
        other = times_x(other);
    }
    return sum;
}

// Return the remainder of x^(8 * bytes).
__device__ __forceinline__ uint32 shift_by(uint32 bytes) {
    uint32 found = ONE;
    for (uint32 power = BYTE_SHIFT; bytes != 0; bytes >>= 1) {
        found = (bytes & 1) != 0 ? product(found, power) : found;
        power = product(power, power);
    }
    return found;
}

// Return the checksum of a text. All lanes of a warp must call.
__device__ __forceinline__ uint32 checksum_of(const uint8* text, uint32 size) {
    // All parts have the same size but the first one, which has what is left over too. So the right
    // one of two neighbouring groups of lanes always has the same number of bytes.
    const uint32 part = size / WARP_LANES;
    const uint32 rest = size % WARP_LANES;
    const uint32 lane = lane_number();
    uint32 remainder = lane == 0 ? ~0u : 0;
    for (uint32 at = lane == 0 ? 0 : rest + lane * part; at < rest + (lane + 1) * part; ++at) {
        remainder ^= text[at];
#pragma unroll
        for (uint32 bit = 0; bit < 8; ++bit) {
            remainder = times_x(remainder);
        }
    }
    // Only the last lane of each group has the remainder of the group.
    uint32 shift = shift_by(part);
    for (uint32 lanes = 1; lanes < WARP_LANES; lanes *= 2) {
        const uint32 left = __shfl_up_sync(ALL_LANES, remainder, lanes);
        remainder ^= product(left, shift);
        shift = product(shift, shift);
    }
    return ~from_lane(remainder, WARP_LANES - 1);
}
