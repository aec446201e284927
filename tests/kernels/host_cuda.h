// The parts of CUDA that the kernels use, for a host compiler. Threads run one after the other.
//
// A kernel with barriers runs with one thread in each block, so that a barrier does nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __device__
#define __constant__
#define __global__
#if defined(HMM_ENGINE) || defined(CHAINS_ENGINE)
// It can be `extern` as well, and there is one thread.
#define __shared__ thread_local
#else
#define __shared__ static
#endif
#define __forceinline__ inline
#define __launch_bounds__(...)

struct alignas(8) uint2 {
    unsigned int x, y;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) uint4 {
    unsigned int x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
struct Index {
    unsigned int x;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

// A texture. On a device it would be an opaque handle; here the handle is its address.
struct HostTexture {
    const unsigned char* data;
    size_t width;  // texels
    size_t rows;
    size_t texel_bytes;
};
using cudaTextureObject_t = unsigned long long;

static inline void require(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "host kernels: %s\n", what);
        std::abort();
    }
}

template <typename Texel>
Texel fetch(cudaTextureObject_t handle, size_t column, size_t row) {
    const HostTexture* texture = reinterpret_cast<const HostTexture*>(handle);
    require(texture != nullptr, "a texture that was not bound");
    require(texture->texel_bytes == sizeof(Texel), "texels of another size");
    require(column < texture->width && row < texture->rows, "a texel outside of its texture");
    Texel texel;
    std::memcpy(&texel, texture->data + (row * texture->width + column) * sizeof(Texel),
                sizeof(Texel));
    return texel;
}

template <typename Texel>
Texel tex1Dfetch(cudaTextureObject_t texture, int number) {
    require(number >= 0, "a texel of negative number");
    return fetch<Texel>(texture, static_cast<size_t>(number), 0);
}

template <typename Texel>
Texel tex2D(cudaTextureObject_t texture, float column, float row) {
    return fetch<Texel>(texture, static_cast<size_t>(column), static_cast<size_t>(row));
}

template <typename Number>
Number __ldg(const Number* address) {
    require(reinterpret_cast<uintptr_t>(address) % alignof(Number) == 0, "an unaligned load");
    return *address;
}

template <typename Number>
Number atomicAdd(Number* address, Number value) {
    const Number before = *address;
    *address += value;
    return before;
}

template <typename Number>
Number atomicMax(Number* address, Number value) {
    const Number before = *address;
    *address = value > before ? value : before;
    return before;
}

static inline float __fdiv_rn(float one, float other) {
    return one / other;
}

static inline float __fsub_rn(float one, float other) {
    return one - other;
}

static inline double __ddiv_rn(double one, double other) {
    return one / other;
}

static inline float __uint_as_float(unsigned int bits) {
    float number;
    std::memcpy(&number, &bits, sizeof(number));
    return number;
}

static inline unsigned int __float_as_uint(float number) {
    unsigned int bits;
    std::memcpy(&bits, &number, sizeof(bits));
    return bits;
}

static inline long long __double_as_longlong(double number) {
    long long bits;
    std::memcpy(&bits, &number, sizeof(bits));
    return bits;
}

static inline double __longlong_as_double(long long bits) {
    double number;
    std::memcpy(&number, &bits, sizeof(number));
    return number;
}

// Add numbers of half precision in both halves; 0 where a sum is negative.
static inline unsigned int host_sum_from_zero(unsigned int one, unsigned int other) {
    unsigned short ones[2], others[2];
    std::memcpy(ones, &one, sizeof(one));
    std::memcpy(others, &other, sizeof(other));
    for (int half = 0; half < 2; ++half) {
        _Float16 number, summand;
        std::memcpy(&number, &ones[half], sizeof(number));
        std::memcpy(&summand, &others[half], sizeof(summand));
        const _Float16 sum = static_cast<_Float16>(static_cast<float>(number) +
                                                   static_cast<float>(summand));
        std::memcpy(&ones[half], &sum, sizeof(sum));
        ones[half] = ones[half] & 0x8000 ? 0 : ones[half];
    }
    unsigned int both;
    std::memcpy(&both, ones, sizeof(both));
    return both;
}

// Do something to each of the four bytes of two words; negative results are 0, large ones 255.
template <typename Operation>
static inline unsigned int host_in_bytes(unsigned int one, unsigned int other, Operation of) {
    unsigned int found = 0;
    for (int at = 0; at < 32; at += 8) {
        const int result = of(static_cast<int>(one >> at & 255), static_cast<int>(other >> at & 255));
        found |= static_cast<unsigned int>(std::clamp(result, 0, 255)) << at;
    }
    return found;
}

static inline unsigned int __vaddus4(unsigned int one, unsigned int other) {
    return host_in_bytes(one, other, [](int a, int b) { return a + b; });
}

static inline unsigned int __vsubus4(unsigned int one, unsigned int other) {
    return host_in_bytes(one, other, [](int a, int b) { return a - b; });
}

static inline unsigned int __vmaxu4(unsigned int one, unsigned int other) {
    return host_in_bytes(one, other, [](int a, int b) { return a > b ? a : b; });
}

static inline unsigned int __byte_perm(unsigned int low, unsigned int high,
                                       unsigned int selector) {
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    unsigned int chosen = 0;
    for (int place = 0; place < 4; ++place) {
        const unsigned int byte = selector >> 4 * place & 7;
        chosen |= static_cast<unsigned int>(both >> 8 * byte & 255) << 8 * place;
    }
    return chosen;
}

static inline int __ffsll(long long value) {
    return __builtin_ffsll(value);
}

static inline int __ffs(unsigned int value) {
    return __builtin_ffs(static_cast<int>(value));
}

static inline int __popc(unsigned int value) {
    return __builtin_popcount(value);
}

static inline unsigned int __brev(unsigned int value) {
    unsigned int reversed = 0;
    for (int bit = 0; bit < 32; ++bit) {
        reversed |= (value >> bit & 1) << (31 - bit);
    }
    return reversed;
}

static inline unsigned int __umulhi(unsigned int one, unsigned int other) {
    return static_cast<unsigned int>(static_cast<unsigned long long>(one) * other >> 32);
}

static inline int __clz(unsigned int value) {
    return value == 0 ? 32 : __builtin_clz(value);
}

static inline unsigned int __funnelshift_r(unsigned int low, unsigned int high,
                                           unsigned int shift) {
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned int>(both >> (shift % 32));
}

static inline unsigned int atomicOr(unsigned int* address, unsigned int value) {
    const unsigned int before = *address;
    *address |= value;
    return before;
}

template <typename Number>
Number min(Number one, Number other) {
    return other < one ? other : one;
}

template <typename Number>
Number max(Number one, Number other) {
    return one < other ? other : one;
}
