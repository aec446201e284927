// The lines of MUMmer's text: their order, their sizes and their bytes.
//
// Each query has a header for each searched strand, and below the header a line for each row of the
// query on that strand. Lines are numbered in this order, so that a line's number follows from the
// numbers of the rows before it, and no array of lines is needed.
#pragma once

#include "common/warp.cuh"
#include "common/strand_rows.cuh"

// A warp works on a tile of lines at a time.
static_assert(TILE_LINES == WARP_LANES, "a lane works on one line of a tile");

// The queries of a block.
struct NamedQueries {
    const uint64* offsets;       // uint64[count + 1], where each query begins in the block
    const uint8* names;          // the names, one after the other
    const uint64* name_offsets;  // uint64[count + 1], where each name begins
    uint64 count;
};

// The records of the reference, with their names.
struct NamedRecords {
    Records places;
    const uint8* names;          // the names, one after the other
    const uint64* name_offsets;  // uint64[records + 1], where each name begins
    uint64 head_bytes;           // the bytes before the numbers of a row; 0 if rows have no names
};

// The options that change the text.
struct Style {
    uint32 strand_count;         // 1 or 2
    uint32 first_is_reverse;     // the first strand is the reverse strand
    uint32 forward_coordinates;  // query positions of reverse rows are those on the forward strand
    uint32 show_lengths;         // headers end with the length of the query
};

struct Text {
    Strands strands;
    NamedQueries queries;
    NamedRecords records;
    Style style;
    uint64 line_count;
};

// A line to be written. The numbers of a row are 1-based, as they are printed.
struct Line {
    uint64 bytes;  // 0 beyond the last line
    uint64 query;
    uint64 record;
    uint64 reference_position;
    uint64 query_position;
    uint64 length;  // of the match; of a header, the length of the query
    bool is_header;
    bool is_reverse;
};

constexpr uint64 COLUMN_BYTES = 8;
constexpr uint64 SMALLEST_WIDER_NUMBER = 100000000;
constexpr uint64 GAP_BYTES = 2;

// Return the number of digits of a number, or `least` if there are fewer. `limit` is the smallest
// number with more than `least` digits.
__device__ __forceinline__ uint64 digit_count(uint64 number, uint64 least, uint64 limit) {
    uint64 digits = least;
    while (number >= limit) {
        ++digits;
        // No number of 64 bits has more digits.
        if (digits == 20) {
            break;
        }
        limit *= 10;
    }
    return digits;
}

// Return the bytes of a right-aligned number.
__device__ __forceinline__ uint64 column_bytes(uint64 number) {
    return digit_count(number, COLUMN_BYTES, SMALLEST_WIDER_NUMBER);
}

// Return the number of headers.
__device__ __forceinline__ uint64 header_count(const Text& text) {
    return text.style.strand_count * text.queries.count;
}

// Return the number of a header's line, or for the number after the last header, that of all lines.
__device__ __forceinline__ uint64 line_of_header(const Text& text, uint64 header) {
    const Strands& strands = text.strands;
    if (text.style.strand_count == 1) {
        return header + strands.first.query_offsets[header];
    }
    const uint64 query = header / 2;
    return header + strands.first.query_offsets[query + header % 2] +
           strands.second.query_offsets[query];
}

// Return the last header at or before a line.
__device__ __forceinline__ uint64 last_header_at(const Text& text, uint64 line) {
    const auto is_later = [&](uint64 header) { return line_of_header(text, header) > line; };
    return first_that<uint64>(1, header_count(text), is_later) - 1;
}

// Return the header of a query.
__device__ __forceinline__ Line header_of(const Text& text, uint64 query, bool is_reverse) {
    Line line = {};
    line.is_header = true;
    line.is_reverse = is_reverse;
    line.query = query;
    line.length = text.queries.offsets[query + 1] - text.queries.offsets[query];
    // "> ", the name, " Reverse", "  Len = " and the line end.
    line.bytes = 2 + text.queries.name_offsets[query + 1] - text.queries.name_offsets[query] +
                 (is_reverse ? 8 : 0) +
                 (text.style.show_lengths ? 8 + digit_count(line.length, 1, 10) : 0) + 1;
    return line;
}

// Return the line of a row.
__device__ __forceinline__ Line line_of_row(const Text& text, uint64 query, bool is_reverse,
                                            const MemColumns& mems, uint64 row) {
    Line line = {};
    line.is_reverse = is_reverse;
    line.query = query;
    line.length = mems.lengths[row];
    line.query_position = mems.query_starts[row] + 1;
    if (is_reverse && text.style.forward_coordinates) {
        line.query_position = text.queries.offsets[query + 1] - text.queries.offsets[query] + 1 -
                              line.query_position;
    }
    const uint64 start = mems.reference_starts[row];
    line.record = record_at(text.records.places, start);
    line.reference_position = start - text.records.places.starts[line.record] + 1;
    line.bytes = text.records.head_bytes + column_bytes(line.reference_position) + GAP_BYTES +
                 column_bytes(line.query_position) + GAP_BYTES + column_bytes(line.length) + 1;
    return line;
}

// Return this lane's line of a tile. All lanes of the warp must call.
__device__ __forceinline__ Line line_of_lane(const Text& text, uint64 tile) {
    const uint64 begin = tile * TILE_LINES;
    const uint64 first_header = last_header_at(text, begin);
    // Headers are lines themselves, so no more than these can be in the tile.
    const uint64 own_header = min(first_header + lane_number(), header_count(text));
    const uint64 own_line = line_of_header(text, own_header);
    const uint32 place = own_line < begin + TILE_LINES
                             ? static_cast<uint32>(own_line > begin ? own_line - begin : 0)
                             : TILE_LINES;
    const uint32 owner = last_lane_at_most(place, lane_number());
    const uint64 header = first_header + owner;
    const uint64 header_line = __shfl_sync(ALL_LANES, own_line, owner);
    const uint64 number = begin + lane_number();
    if (number >= text.line_count) {
        return {};
    }
    const bool is_second = text.style.strand_count == 2 && header % 2 == 1;
    const uint64 query = text.style.strand_count == 2 ? header / 2 : header;
    const bool is_reverse = is_second || text.style.first_is_reverse;
    if (number == header_line) {
        return header_of(text, query, is_reverse);
    }
    const StrandRows rows = rows_of_strand(text.strands, is_second);
    return line_of_row(text, query, is_reverse, rows.mems,
                       rows.query_offsets[query] + (number - header_line - 1));
}

// Write a range of bytes; return where they end.
__device__ __forceinline__ uint8* write_bytes(uint8* to, const uint8* from, uint64 count) {
    for (uint64 place = 0; place < count; ++place) {
        to[place] = from[place];
    }
    return to + count;
}

// Write the eight bytes of a word, the lowest first; return where they end.
__device__ __forceinline__ uint8* write_word(uint8* to, uint64 word) {
#pragma unroll
    for (uint32 place = 0; place < 8; ++place) {
        to[place] = static_cast<uint8>(word >> 8 * place);
    }
    return to + 8;
}

// Write blanks up to `end`; return `end`.
__device__ __forceinline__ uint8* write_blanks(uint8* to, uint8* end) {
    while (to < end) {
        *to++ = ' ';
    }
    return end;
}

// Write the digits of a number so that the last one is before `end`; return where the first one is.
__device__ __forceinline__ uint8* write_digits_before(uint8* end, uint64 number) {
    while (number >> 32 != 0) {
        const uint64 quotient = number / 10;
        *--end = static_cast<uint8>('0' + (number - 10 * quotient));
        number = quotient;
    }
    // Divisions of 32 bits take far less time.
    uint32 rest = static_cast<uint32>(number);
    do {
        const uint32 quotient = rest / 10;
        *--end = static_cast<uint8>('0' + (rest - 10 * quotient));
        rest = quotient;
    } while (rest != 0);
    return end;
}

// Write a right-aligned number; return where it ends.
__device__ __forceinline__ uint8* write_column(uint8* to, uint64 number) {
    uint8* const end = to + column_bytes(number);
    write_blanks(to, write_digits_before(end, number));
    return end;
}

// Write a line.
__device__ __forceinline__ void write_line(const Text& text, const Line& line, uint8* to) {
    if (line.is_header) {
        const uint64 begin = text.queries.name_offsets[line.query];
        *to++ = '>';
        *to++ = ' ';
        to = write_bytes(to, text.queries.names + begin,
                         text.queries.name_offsets[line.query + 1] - begin);
        if (line.is_reverse) {
            to = write_word(to, 0x6573726576655220);  // " Reverse"
        }
        if (text.style.show_lengths) {
            to = write_word(to, 0x203D206E654C2020);  // "  Len = "
            uint8* const end = to + digit_count(line.length, 1, 10);
            write_digits_before(end, line.length);
            to = end;
        }
    } else {
        if (text.records.head_bytes > 0) {
            uint8* const end = to + text.records.head_bytes;
            const uint64 begin = text.records.name_offsets[line.record];
            to = write_blanks(to, to + GAP_BYTES);
            to = write_bytes(to, text.records.names + begin,
                             text.records.name_offsets[line.record + 1] - begin);
            to = write_blanks(to, end);
        }
        to = write_column(to, line.reference_position);
        to = write_column(write_blanks(to, to + GAP_BYTES), line.query_position);
        to = write_column(write_blanks(to, to + GAP_BYTES), line.length);
    }
    *to = '\n';
}
