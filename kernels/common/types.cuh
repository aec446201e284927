// The types and the generated constants that every kernel uses.
//
// The host writes constants.cuh when it compiles a program. The file holds the numbers that the
// kernels share with the host, such as the threads of a block; only the host defines them.
#pragma once

#include "constants.cuh"

using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;

// Selects one of two types by a constant.
template <bool condition, typename Yes, typename No>
struct Conditional {
    using Type = Yes;
};
template <typename Yes, typename No>
struct Conditional<false, Yes, No> {
    using Type = No;
};
