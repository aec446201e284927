// The program that searches tables of k-mers: packs the queries, looks up and extends query k-mers, and
// makes text or columns of the matches.
#include "common/scan.cu"
#include "kmer/columns.cu"
#include "kmer/frequent_kmers.cu"
#include "kmer/pack.cu"
#include "kmer/search.cu"
#include "kmer/sort_mems.cu"
#include "kmer/text.cu"
