// The memory layout as the kernels see it. Tests compare it with the package's layout. The compiler
// computes every value; none is copied.
#include "host_cuda.h"
#include "host_warps.h"

#include PROGRAM_ENTRY

#include <cstddef>

namespace {

struct Named {
    const char* name;
    uint64 value;
};

#define NAMED(...) {#__VA_ARGS__, static_cast<uint64>(__VA_ARGS__)}

const Named VALUES[] = {
    NAMED(BLOCK_THREADS),
    NAMED(BREAKS_OF_WORD),
    NAMED(SLOTS),
    NAMED(CODES_IN_WORD),
    NAMED(sizeof(NodeHalf::Texel)),
    NAMED(sizeof(Tree)),
    NAMED(sizeof(Reference)),
    NAMED(sizeof(Queries)),
    NAMED(sizeof(MemColumns)),
    NAMED(sizeof(FoundMems)),
    NAMED(sizeof(Page)),
    NAMED(offsetof(Page, begin)),
    NAMED(offsetof(Page, base_count)),
    NAMED(offsetof(Page, owned_count)),
    NAMED(offsetof(Page, joined_count)),
    NAMED(offsetof(Page, joined_reference)),
};

// Write the six fields of a half. Return the end of what was written.
template <typename Number>
uint32* write_half(const Number& half, uint32* fields) {
    for (uint32 field = EDGE_START; field <= IS_LEAF; ++field) {
        *fields++ = half.number(field);
    }
    return fields;
}

}  // namespace

// Write the number-th value and return its name, or return null beyond the last value.
extern "C" const char* named_value(uint64 number, uint64* value) {
    if (number >= sizeof(VALUES) / sizeof(Named)) {
        return nullptr;
    }
    *value = VALUES[number].value;
    return VALUES[number].name;
}

// Write the six fields of a half in memory.
extern "C" void read_half(const NodeHalf* half, uint32* fields) {
    write_half(*half, fields);
}

// Write the twelve fields of each node of a tree, read through the kernels' functions.
extern "C" void read_nodes(const Tree* tree, const uint32* addresses, uint64 count,
                           uint32* fields) {
    for (uint64 number = 0; number < count; ++number) {
        fields = write_half(tree->node(addresses[number]), fields);
        fields = write_half(tree->second_half(addresses[number]), fields);
    }
}

// Write the codes of the reference, read through the kernels' functions.
extern "C" void read_reference(const Reference* reference, uint64 count, uint8* codes) {
    for (uint64 position = 0; position < count; ++position) {
        codes[position] = static_cast<uint8>(reference->code_at(position));
    }
}

// Write the word of query codes at each position.
extern "C" void read_words(const Queries* queries, uint64 count, uint64* words) {
    for (uint64 position = 0; position < count; ++position) {
        words[position] = queries->word_at(position);
    }
}

// Write the index of each numbered item in an array of strips.
extern "C" void find_places(const uint64* numbers, uint64 count, uint32 width_bits,
                            uint32 strip_bits, uint64* places) {
    for (uint64 place = 0; place < count; ++place) {
        places[place] = place_in_strips(numbers[place], width_bits, strip_bits);
    }
}
