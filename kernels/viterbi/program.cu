// All kernels that align tiles, as one program.
#include "viterbi/rounds.cu"
#include "viterbi/whole_tiles.cu"
