// The program that makes blocks of bgzf of deflated texts.
#include "bgzf/blocks.cu"
