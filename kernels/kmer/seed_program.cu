// The program that searches tables of k-mers for a mapper: query k-mers are in windows of the queries, or in
// seeds that are chosen. With FOR_MAPPING = 0, a search for all matches has none of these rules.
#include "kmer/program.cu"
#include "kmer/seed_kmers.cu"
