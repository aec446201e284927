// The kernels' own idea of how memory is laid out, for tests to hold against the package's:
// every value is the compiler's, none is copied.
#include "host_cuda.h"
#include "host_warps.h"

#include "program.cu"

#include <cstddef>

namespace {

struct Named {
    const char* name;
    uint64 value;
};

#define NAMED(...) {#__VA_ARGS__, static_cast<uint64>(__VA_ARGS__)}

const Named VALUES[] = {
    NAMED(COUNTS_OF_THREAD),
    NAMED(SCAN_THREADS),
#if SAMPLED
    NAMED(WORD_BASES),
    NAMED(PADDING_WORDS),
    NAMED(sizeof(Planes)),
    NAMED(LANES),
    NAMED(sizeof(Tile)),
    NAMED(KEPT_OF_TILE * sizeof(uint64)),
#else
    NAMED(EDGE_START),
    NAMED(EDGE_END),
    NAMED(STRING_DEPTH),
    NAMED(PARENT),
    NAMED(SUFFIX_LINK),
    NAMED(IS_LEAF),
    NAMED(LEAF_ID),
    NAMED(NEXT_LEAF),
    NAMED(FLAGS),
    NAMED(LEAF_FLAG),
    NAMED(PRECEDING_BASE_MASK),
    NAMED(ROOT),
    NAMED(NO_NODE),
    NAMED(BREAK),
    NAMED(BREAK_IN_WORD),
    NAMED(SLOTS),
    NAMED(TREE_STRIP_BITS),
    NAMED(REFERENCE_WIDTH_BITS),
    NAMED(REFERENCE_STRIP_BITS),
    NAMED(Half::TREE_WIDTH_BITS),
    NAMED(sizeof(Half)),
    NAMED(sizeof(Half::Texel)),
    NAMED(Tree::STRIDE),
    NAMED(TEXTURE_PART_BITS),
    NAMED(TEXTURE_PARTS),
    NAMED(CODES_IN_WORD),
    NAMED(sizeof(Candidate)),
    NAMED(sizeof(KeptMems)),
    NAMED(FEW_ROWS),
    NAMED(sizeof(Tree)),
    NAMED(sizeof(Reference)),
    NAMED(sizeof(Queries)),
    NAMED(sizeof(Mems)),
    NAMED(sizeof(FoundMems)),
    NAMED(sizeof(Page)),
    NAMED(offsetof(Page, begin)),
    NAMED(offsetof(Page, base_count)),
    NAMED(offsetof(Page, owned_count)),
    NAMED(offsetof(Page, joined_count)),
    NAMED(offsetof(Page, joined_reference)),
#endif
};

#if !SAMPLED
template <typename Number>
uint32* write_half(const Number& half, uint32* fields) {
    for (uint32 field = EDGE_START; field <= IS_LEAF; ++field) {
        *fields++ = half.number(field);
    }
    return fields;
}
#endif

}  // namespace

// Return the name of a value and write it, or null behind the last.
extern "C" const char* named_value(uint64 number, uint64* value) {
    if (number >= sizeof(VALUES) / sizeof(Named)) {
        return nullptr;
    }
    *value = VALUES[number].value;
    return VALUES[number].name;
}

#if !SAMPLED
// Write the six fields of a half that lies in memory.
extern "C" void read_half(const Half* half, uint32* fields) {
    write_half(*half, fields);
}

// Write the twelve fields of each node of a tree, as the kernels find them.
extern "C" void read_nodes(const Tree* tree, const uint32* addresses, uint64 count,
                           uint32* fields) {
    for (uint64 number = 0; number < count; ++number) {
        fields = write_half(tree->node(addresses[number]), fields);
        fields = write_half(tree->second_half(addresses[number]), fields);
    }
}

extern "C" void read_reference(const Reference* reference, uint64 count, uint8* codes) {
    for (uint64 position = 0; position < count; ++position) {
        codes[position] = static_cast<uint8>(reference->code_at(position));
    }
}

extern "C" void read_words(const Queries* queries, uint64 count, uint64* words) {
    for (uint64 position = 0; position < count; ++position) {
        words[position] = queries->word_at(position);
    }
}

extern "C" void find_places(const uint64* numbers, uint64 count, uint32 width_bits,
                            uint32 strip_bits, uint64* places) {
    for (uint64 place = 0; place < count; ++place) {
        places[place] = place_in_strips(numbers[place], width_bits, strip_bits);
    }
}
#endif
