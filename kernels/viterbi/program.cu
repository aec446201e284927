// All kernels that align tiles, as one program.
#include "viterbi/score.cu"
#include "viterbi/rounds.cu"
#include "viterbi/trace.cu"
#include "viterbi/whole_tiles.cu"
