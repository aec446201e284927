// The program that searches tables of k-mers for a mapper: samples are in windows of the queries, or in
// seeds that are chosen. With FOR_MAPPING = 0, a search for all matches has none of these rules.
#include "kmer/program.cu"
#include "kmer/query_samples.cu"
