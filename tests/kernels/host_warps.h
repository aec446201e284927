// Warps for a host compiler. The lanes of a warp take turns: each runs from one warp-wide call,
// such as a shuffle, to the next.
#pragma once

#include <ucontext.h>

#include "host_cuda.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace warp {

constexpr unsigned int LANES = 32;
constexpr size_t STACK_BYTES = 64 << 10;

// A thread of execution that runs until it hands over to another.
struct Turn {
    ucontext_t context;  // where it begins
    void* place[5];      // where it resumes, as the compiler keeps it
    bool has_begun;
};

struct Lane {
    Turn turn;
    alignas(16) char stack[STACK_BYTES];
    unsigned int calls;  // the number of warp-wide calls that it has made
    bool ended;
};

// Everything is static: a process that loads several libraries would otherwise share the lanes of
// the first.

// The values of the lanes in a warp-wide call. There are two sets, because a lane may write its
// value for the next call before all lanes have read the values of this one.
static unsigned long long handed_over[2][LANES];
static Lane lanes[LANES];
static Turn scheduler;
static bool is_running = false;

static const void* scheduler_stack = nullptr;
static size_t scheduler_stack_bytes = 0;

// A jump makes no system call; a change of context does. These are the compiler's jumps: the
// sanitizer takes those of the C library for jumps within one stack.
__attribute__((noinline, no_sanitize("address"))) static inline void resume(Turn& turn) {
    if (turn.has_begun) {
        __builtin_longjmp(turn.place, 1);
    }
    turn.has_begun = true;
    setcontext(&turn.context);
}

// Hand over to another, whose stack is told to the sanitizer; return when handed back to.
__attribute__((noinline, no_sanitize("address"))) static inline void go(
    Turn& from, Turn& to, [[maybe_unused]] const void* stack,
    [[maybe_unused]] size_t stack_bytes) {
#ifdef __SANITIZE_ADDRESS__
    void* kept = nullptr;
    __sanitizer_start_switch_fiber(&kept, stack, stack_bytes);
#endif
    if (__builtin_setjmp(from.place) == 0) {
        resume(to);
    }
    // Others have changed what lies in memory.
    asm volatile("" ::: "memory");
#ifdef __SANITIZE_ADDRESS__
    const bool from_scheduler = &from != &scheduler;
    __sanitizer_finish_switch_fiber(kept, from_scheduler ? &scheduler_stack : nullptr,
                                    from_scheduler ? &scheduler_stack_bytes : nullptr);
#endif
}

// Hand over this lane's value. When all lanes have done so, return the values of all.
template <typename Value>
const unsigned long long* exchange(unsigned int mask, Value value) {
    static_assert(sizeof(Value) <= sizeof(unsigned long long));
    require(is_running, "a call of a warp outside of one");
    require(mask == ~0u, "a call of some lanes only");
    const unsigned int number = threadIdx.x % LANES;
    unsigned long long* values = handed_over[lanes[number].calls++ % 2];
    values[number] = 0;
    std::memcpy(&values[number], &value, sizeof(Value));
    go(lanes[number].turn, scheduler, scheduler_stack, scheduler_stack_bytes);
    return values;
}

// Return a lane's value in its own type.
template <typename Value>
Value taken(unsigned long long value) {
    Value taken;
    std::memcpy(&taken, &value, sizeof(Value));
    return taken;
}

// The function that the lanes run, and its argument.
static void (*body)(void*);
static void* argument;

// A lane runs one function after the other: to begin takes as long as a hundred turns.
static inline void lane_body() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
    for (;;) {
        const unsigned int number = threadIdx.x % LANES;
        body(argument);
        lanes[number].ended = true;
        go(lanes[number].turn, scheduler, scheduler_stack, scheduler_stack_bytes);
    }
}

__attribute__((noinline)) static inline void prepare(Lane& lane) {
    ucontext_t& context = lane.turn.context;
    getcontext(&context);
    context.uc_stack.ss_sp = lane.stack;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = nullptr;
    makecontext(&context, lane_body, 0);
}

// Run a function in all lanes of a warp, which take turns.
static inline void run(void (*function)(void*), void* given) {
    body = function;
    argument = given;
    is_running = true;
    for (Lane& lane : lanes) {
        if (!lane.turn.has_begun) {
            prepare(lane);
        }
        lane.calls = 0;
        lane.ended = false;
    }
    scheduler.has_begun = true;
    while (!lanes[0].ended) {
        for (unsigned int number = 0; number < LANES; ++number) {
            threadIdx.x = number;
            go(scheduler, lanes[number].turn, lanes[number].stack, STACK_BYTES);
        }
        for (const Lane& lane : lanes) {
            require(lane.ended == lanes[0].ended && lane.calls == lanes[0].calls,
                    "lanes of a warp that part ways");
        }
    }
    is_running = false;
    // It lies on the stack of the caller.
    argument = nullptr;
}

}  // namespace warp

template <typename Value>
Value __shfl_sync(unsigned int mask, Value value, unsigned int lane) {
    return warp::taken<Value>(warp::exchange(mask, value)[lane % warp::LANES]);
}

template <typename Value>
Value __shfl_up_sync(unsigned int mask, Value value, unsigned int reach) {
    const unsigned int number = threadIdx.x % warp::LANES;
    const unsigned int other = number < reach ? number : number - reach;
    return warp::taken<Value>(warp::exchange(mask, value)[other]);
}

static inline unsigned int __ballot_sync(unsigned int mask, bool holds) {
    const unsigned long long* all = warp::exchange(mask, holds);
    unsigned int lanes = 0;
    for (unsigned int number = 0; number < warp::LANES; ++number) {
        lanes |= static_cast<unsigned int>(all[number]) << number;
    }
    return lanes;
}

template <typename Value>
Value __shfl_xor_sync(unsigned int mask, Value value, unsigned int distance) {
    const unsigned int number = threadIdx.x % warp::LANES;
    return warp::taken<Value>(warp::exchange(mask, value)[number ^ distance]);
}

static inline bool __any_sync(unsigned int mask, bool holds) {
    return __ballot_sync(mask, holds) != 0;
}

static inline bool __all_sync(unsigned int mask, bool holds) {
    return __ballot_sync(mask, holds) == ~0u;
}

// A barrier of a block, which has one warp or one thread.
static inline void __syncthreads() {
    if (warp::is_running) {
        warp::exchange(~0u, 0);
        return;
    }
    require(blockDim.x == 1, "a barrier among threads that run one after the other");
}

static inline void __syncwarp() {
    warp::exchange(~0u, 0);
}
