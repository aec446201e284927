// All kernels that align tiles, as one program.
#include "viterbi/score.cu"
#include "viterbi/trace.cu"
