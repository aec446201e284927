// The program that turns the matches of reads into candidates, and keeps those that may matter.
#include "common/scan.cu"
#include "mapping/diagonals.cu"
#include "mapping/kept_candidates.cu"
#include "mapping/scores.cu"
