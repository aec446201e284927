// The program that searches tables of k-mers: pack the queries, look up and extend samples.
#include "common/scan.cu"
#include "kmer/frequent_kmers.cu"
#include "kmer/pack.cu"
#include "kmer/search.cu"
