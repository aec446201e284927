// The program that searches suffix trees: match, then print.
//
// The host passes macros to the compiler, each 0 or 1: QUERY_TEXTURE, REFERENCE_TEXTURE,
// TREE_TEXTURE, MERGED_TREE, TWO_DIMENSIONAL_REFERENCE and TWO_DIMENSIONAL_TREE (the policy),
// WIDE (the node format) and PROFILE (count the visited nodes).
#include "common/scan.cu"
#include "tree/match.cu"
#include "tree/merge.cu"
#include "tree/print.cu"
#include "tree/query_offsets.cu"
#include "tree/reverse_complement.cu"
#include "tree/sort.cu"
