// The kernels as a shared library for the host, with a function that launches them.
#include "host_cuda.h"
#include "host_warps.h"

#include PROGRAM_ENTRY

#if defined(HMM_ENGINE) || defined(CHAINS_ENGINE)
// What a launch gives a block.
thread_local uint4 block_memory[(227 << 10) / sizeof(uint4)];
#endif

namespace {

// Reads arguments as a launch lays them out: each at a multiple of its own alignment.
class Arguments {
  public:
    Arguments(const char* bytes, size_t size) : bytes_(bytes), size_(size) {}

    template <typename Argument>
    Argument next() {
        offset_ = (offset_ + alignof(Argument) - 1) / alignof(Argument) * alignof(Argument);
        require(offset_ + sizeof(Argument) <= size_, "too few arguments");
        Argument argument;
        std::memcpy(&argument, bytes_ + offset_, sizeof(Argument));
        offset_ += sizeof(Argument);
        return argument;
    }

    void end() const {
        require(offset_ == size_, "too many arguments");
    }

  private:
    const char* bytes_;
    size_t size_;
    size_t offset_ = 0;
};

// Run all threads of a grid, one after the other, or all lanes of a warp in each block.
template <typename... Parameters>
void launch(void (*kernel)(Parameters...), unsigned int blocks,
                             [[maybe_unused]] unsigned int threads,
            bool in_warps, Arguments arguments) {
    // Braces make the call below evaluate its arguments in order.
    struct Call {
        Call(void (*kernel)(Parameters...), unsigned int blocks,
                             [[maybe_unused]] unsigned int threads,
             bool in_warps, const Arguments& source, Parameters... parameters) {
            source.end();
            gridDim.x = blocks;
            blockDim.x = threads;
            auto thread = [&] { kernel(parameters...); };
            for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
                if (in_warps) {
                    warp::run([](void* given) { (*static_cast<decltype(thread)*>(given))(); },
                              &thread);
                    continue;
                }
                for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {
                    thread();
                }
            }
        }
    };
    Call{kernel, blocks, threads, in_warps, arguments, arguments.next<Parameters>()...};
}

}  // namespace

// Launch the kernel of a name. Return 0, or 1 if there is no such kernel.
extern "C" int launch_kernel(const char* name, unsigned int blocks,
                             [[maybe_unused]] unsigned int threads, const char* bytes,
                             size_t size) {
#define LAUNCH(kernel, threads, in_warps)                                  \
    if (std::strcmp(name, #kernel) == 0) {                                 \
        launch(kernel, blocks, threads, in_warps, Arguments(bytes, size)); \
        return 0;                                                          \
    }
#define KERNEL(kernel) LAUNCH(kernel, threads, false)
// A kernel that works in warps gets one warp in each block; `threads` is ignored.
#define WARP_KERNEL(kernel) LAUNCH(kernel, warp::LANES, true)
#ifdef STUDY_ENGINE
    KERNEL(fill_table)
    KERNEL(read_merged)
    KERNEL(read_split)
    KERNEL(read_halves)
#elif defined(HMM_ENGINE)
#ifdef FILTER_THREADS
#if SCORES == SCORES_IN_TILES
    WARP_KERNEL(score_in_tiles)
#else
    WARP_KERNEL(score_in_rows)
#endif
#elif defined(KEEPS_STEPS)
    WARP_KERNEL(score_paths)
#elif defined(ROW_REGISTERS)
    WARP_KERNEL(find_cells)
#if !IN_BYTES
    WARP_KERNEL(score_passes)
#endif
#else
    WARP_KERNEL(pack_sequences)
    KERNEL(bound_cells)
    KERNEL(sum_compositions)
#endif
#elif defined(CHAINS_ENGINE)
#ifdef WIDE_CHAINS
    WARP_KERNEL(run_wide_chain)
#elif defined(CHAIN_KEEPS)
    KERNEL(run_chain)
#else
#ifdef CHAIN_WORD_BITS
    KERNEL(walk_chain)
    KERNEL(cross_pieces)
#else
    WARP_KERNEL(finish_shares)
    KERNEL(list_states)
#endif
#endif
#elif defined(BGZF_ENGINE)
    WARP_KERNEL(write_blocks)
#elif defined(MAPPING_ENGINE)
    KERNEL(sum_tiles)
    KERNEL(scan_tile_sums)
    KERNEL(scan_tiles)
    WARP_KERNEL(list_diagonals)
    KERNEL(sort_long_reads)
    WARP_KERNEL(score_diagonals)
    WARP_KERNEL(mark_candidates)
    WARP_KERNEL(write_candidates)
#elif defined(VITERBI_ENGINE)
    WARP_KERNEL(fill_round)
    WARP_KERNEL(trace_rounds)
    WARP_KERNEL(fill_tile_pairs)
    WARP_KERNEL(fill_small_tile_pairs)
    WARP_KERNEL(fill_middle_tile_pairs)
    WARP_KERNEL(trace_tile_pairs)
#else
    KERNEL(sum_tiles)
    KERNEL(scan_tile_sums)
    KERNEL(scan_tiles)
#ifdef KMER_ENGINE
    KERNEL(pack_codes)
    KERNEL(mark_queries)
    KERNEL(reverse_bit_planes)
    WARP_KERNEL(count_kmer_mems)
    KERNEL(count_frequent_kmer_mems)
#if FOR_MAPPING
    WARP_KERNEL(choose_query_seeds)
    KERNEL(count_query_kmers)
    KERNEL(place_query_kmers)
#endif
    KERNEL(offset_query_mems)
    WARP_KERNEL(write_kmer_mems)
    KERNEL(write_frequent_kmer_mems)
    KERNEL(sort_query_mems)
    KERNEL(sort_long_query_mems)
    WARP_KERNEL(count_text)
    WARP_KERNEL(write_text)
    KERNEL(write_match_columns)
    KERNEL(write_row_offsets)
#else
    KERNEL(match_kernel)
    WARP_KERNEL(find_mems)
    KERNEL(place_mems)
    KERNEL(assign_queries)
    KERNEL(reverse_complement)
    KERNEL(offset_query_mems)
    KERNEL(sort_candidates)
    KERNEL(sort_long_candidates)
    KERNEL(merge_pages)
#endif
#endif
    return 1;
}
