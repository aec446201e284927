// Runs of equal states, which are written from the end of a path on.
#pragma once

#include "common/grid.cuh"

constexpr uint32 NO_VISIT = ~0u;

// Visits in a row: places in a list.
struct Visits {
    const uint32* list;
    uint64 first;
    uint64 end;
};

// The runs of a path from its last one on, in front of a place; nowhere if there is no memory.
struct RunWriter {
    uint32* visits;
    uint64* lengths;
    uint64 place;
    uint32 visit = NO_VISIT;
    uint64 length = 0;
    uint32 last = NO_VISIT;

    __device__ __forceinline__ void take(uint32 next) {
        if (next != visit) {
            end_run();
            visit = next;
            last = last == NO_VISIT ? next : last;
        }
        ++length;
    }

    // Of visits in a row, the last one comes first here.
    __device__ __forceinline__ void take_all(const Visits& all) {
        for (uint64 at = all.end; at > all.first; --at) {
            take(all.list[at - 1]);
        }
    }

    __device__ __forceinline__ void end_run() {
        if (length > 0) {
            --place;
            if (visits != nullptr) {
                visits[place] = visit;
                lengths[place] = length;
            }
            length = 0;
        }
    }
};
