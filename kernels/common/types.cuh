// The types and the generated constants that every kernel uses.
//
// constants.cuh is written when a program is compiled: it holds the numbers that the kernels
// share with the host, such as the threads of a block, each defined on the host's side only.
#pragma once

#include "constants.cuh"

using uint8 = unsigned char;
using uint32 = unsigned int;
using uint64 = unsigned long long;

// One of two types, chosen by a constant.
template <bool condition, typename Yes, typename No>
struct Conditional {
    using Type = Yes;
};
template <typename Yes, typename No>
struct Conditional<false, Yes, No> {
    using Type = No;
};
